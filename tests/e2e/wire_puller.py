# SPDX-License-Identifier: MIT
"""A worker for weir in Python, by pull and finish alone."""

import os

import msgpack

from e2e import BUILD
from wire_producer import Weir

NAMES = ("wait run lease ids meta idle held due dead rec options started "
         "absent").split()
SERVER = "00112233445566aa"
DIGEST = """local names, all = redis.call('KEYS', '*'), {}
table.sort(names)
for _, name in ipairs(names) do all[#all + 1] = name .. redis.call('DUMP', name)
end
return redis.sha1hex(table.concat(all))"""


class Job:
    def __init__(self, fields):
        self.handle, self.id = fields[0], fields[1].decode()
        self.body = fields[2]
        (self.due, self.attempt, self.failures, self.timeouts, self.crashes,
         self.snoozes, options, self.added) = msgpack.unpackb(fields[3])
        self.options = options or {}


class Wire(Weir):
    def __init__(self, place, socket=None, topic="t"):
        if not socket:
            place.weir("add", "other")  # starts the server
        super().__init__(socket or os.path.join(place.data, "redis.sock"),
                         os.path.join(BUILD, "scripts", "delay"))
        self.topic = topic
        self.all = [self.key(topic, name.encode()) for name in NAMES]

    def push(self, job_id, body, when="r0", *options):
        keys = self.keys(self.topic, b"wait", b"ids", b"meta", b"idle",
                         b"options", b"absent")
        return self.run("push", keys, [
            self.topic, job_id, msgpack.packb(body), when,
            *options])[1].decode()

    def ask(self, room=10, worker="w1", in_hand=0, server=SERVER):
        return self.run("pull", self.all, [room, worker, in_hand, server])

    def pull(self, room=10, worker="w1", in_hand=0):
        return [Job(one) for one in self.ask(room, worker, in_hand)[8]]

    def finish(self, *jobs):
        """Jobs are (job, verdict, delay, why), the last two may be left out."""
        args = ["w1"]
        for job, *told in jobs:
            args += [job.handle] + (told + ["", ""])[:3]
        return self.run("finish", self.all, args)

    def end_leases(self):
        for token in self.redis.zrange("weir:{t}:lease", 0, -1):
            self.redis.zadd("weir:{t}:lease", {token: 1})

    def pull_all(self, room=10):
        """All that is due."""
        found = []
        while True:
            answer = self.ask(room)
            found += [Job(one) for one in answer[8]]
            if answer[2] != 0:
                return found

    def digest(self):
        return self.redis.eval(DIGEST, 0)
