# SPDX-License-Identifier: MIT
"""What a server refuses in the middle of a script leaves no half state.

Real commands and workers go through a tap. Each call of a script that differs
from those before is made on a second server first, with the same keys: on one
that is full, on one that wants replicas, and with an error put in at its first,
second, third ... command. Redis takes nothing back of what a script wrote, so a
refusal has to come before the first write; the errors put in show how many
commands rely on that.
"""

import time

from ledger import Ledger
from e2e import eventually, expect, expect_true, test
from scripts import script_texts
from server import Client, Refused, Server
from tap import Tap

# Those of delay topics; all of them have to be called.
DELAY = set("""delay/add delay/add_one delay/bury delay/claim delay/forget
    delay/page delay/purge delay/recall delay/renew delay/requeue delay/settle
    delay/settle_one delay/slot delay/start delay/stats store/lateness
    store/pause store/set""".split())
CALLS_EACH = 5  # different calls of each script that are looked at

# Before a script's text: its command number %d fails.
FAILING = """local real, calls = redis.call, 0
local redis = { call = function(...)
  calls = calls + 1
  if calls == %d then error('injected') end
  return real(...)
end } """


def content(client, key):
    """What is in a key, whatever order the server keeps it in."""
    kind = client.call("TYPE", key)
    if kind == "hash":
        flat = client.call("HGETALL", key)
        return sorted(zip(flat[::2], flat[1::2]))
    if kind == "zset":
        return client.call("ZRANGE", key, 0, -1, "WITHSCORES")
    if kind == "set":
        return sorted(client.call("SMEMBERS", key))
    return client.call("GET", key)


def contents(client):
    """By key: whether it has a time to live, and what is in it."""
    return {key: (client.call("PTTL", key) >= 0, content(client, key))
            for key in client.call("KEYS", "*")}


def jobs(client):
    """How often each slot lies in `wait` or `run`, and who is dead."""
    found = {}
    for key in client.call("KEYS", "weir:{*"):
        topic, name = key.decode().rsplit(":", 1)
        if name not in ("wait", "run", "dead"):
            continue
        for member in client.call("ZRANGE", key, 0, -1):
            slots = [member] if name == "dead" else slots_of(member)
            for slot in slots:
                found[topic, slot] = found.get((topic, slot), 0) + 1
    return found


def slots_of(node):
    low, high = ((node[at] - 48) * 16 + node[at + 1] - 48 for at in (12, 14))
    return [(node[:12], slot) for slot in range(low, high + 1)]


class Trial:
    """A server with the keys that another one has now."""

    def __init__(self, source, client):
        self.client = client
        self.dumps = {}
        for key in source.call("KEYS", "*"):
            ttl = source.call("PTTL", key)
            dump = source.call("DUMP", key)
            if dump is not None:  # it may have gone meanwhile
                self.dumps[key] = (60000 if ttl >= 0 else 0, dump)
        self.put()
        self.before = contents(client)

    def put(self):
        self.client.call("FLUSHALL")
        for key, (ttl, dump) in self.dumps.items():
            self.client.call("RESTORE", key, ttl, dump)

    def changed(self):
        """What is different since `put`."""
        now = contents(self.client)
        return ["%s: %s became %s" % (key.decode(), self.before.get(key),
                                      now.get(key))
                for key in sorted(now.keys() | self.before.keys())
                if now.get(key) != self.before.get(key)]


class Examiner:
    """Looks at each command on its way."""

    def __init__(self, place):
        self.main = Server(place).start()
        self.trial = Server(place, "trial").start()
        self.source = Client(self.main.socket, raw=True)
        self.client = Client(self.trial.socket, raw=True)
        self.texts = script_texts()
        self.seen = {}     # name -> the numbers of commands of its calls
        self.partial = {}  # name -> positions behind the first write
        self.missing = {}  # name -> of these, jobs that a repeat leaves nowhere
        self.doubled = {}  # name -> of these, jobs that it leaves twice
        self.refusals = {"full": 0, "replicas": 0}

    def look(self, words):
        if words[0] != b"EVALSHA" or words[1].decode() not in self.texts:
            return
        name, text = self.texts[words[1].decode()]
        seen = self.seen.setdefault(name, [])
        if len(seen) >= CALLS_EACH:
            return
        trial = Trial(self.source, self.client)
        count = self.fail_each(name, text, words[2:], trial)
        if count not in seen:
            seen.append(count)
        self.refuse(name, text, words[2:], trial)

    def run(self, text, rest, trial):
        """The error, and what changed."""
        trial.put()
        try:
            self.client.call("EVAL", text, *rest)
            error = ""
        except Refused as refused:
            error = str(refused)
        return error, trial.changed()

    def fail_each(self, name, text, rest, trial):
        """Returns how many commands the call has. One that leaves a part of its
        writes behind is only counted: see refuse."""
        at = 1
        self.run(text, rest, trial)
        wanted = jobs(self.client)
        while True:
            error, changed = self.run(FAILING % at + text, rest, trial)
            if "injected" not in error:
                return at - 1
            self.partial[name] = self.partial.get(name, 0) + bool(changed)
            if changed:
                self.repeat(name, text, rest, wanted)
            at += 1

    def repeat(self, name, text, rest, wanted):
        """The call is made again after an error behind its first write."""
        try:
            self.client.call("EVAL", text, *rest)
        except Refused as refused:
            expect("", str(refused), name)
        got = jobs(self.client)
        for count, is_so in ((self.missing, bool(wanted.keys() - got.keys())),
                             (self.doubled, max(got.values(), default=0) > 1)):
            count[name] = count.get(name, 0) + is_so

    def refuse(self, name, text, rest, trial):
        """What a server refuses of itself comes before the first write."""
        for what, on, off in (
                ("full", ("maxmemory", 1), ("maxmemory", 0)),
                ("replicas", ("min-replicas-to-write", 1),
                 ("min-replicas-to-write", 0))):
            trial.put()
            self.client.call("CONFIG", "SET", *on)
            try:
                self.client.call("EVAL", text, *rest)
            except Refused:
                self.refusals[what] += 1
                expect([], trial.changed(),
                       "%s refused (%s) leaves a part" % (name, what))
            finally:
                self.client.call("CONFIG", "SET", *off)


def manage(place, ledger):
    """What people do to jobs."""
    def weir(code, *args):
        result = place.weir(*args, "--redis", ledger.url)
        expect(code, result.code, result.err)

    ledger.add(["now"] * 3 + ["soon"] * 4 + ["delete", "reschedule"])
    weir(0, "add", "t")
    weir(0, "import", "t", place.write("dead", '{"id":"old","past":{"died":'
                                       '"2026-01-31T08:30:00Z"}}\n'))
    weir(4, "add", "t", "--id", "0")
    weir(0, "show", "t", "0")
    weir(0, "reschedule", "t", "8", "--delay", "0ms")
    weir(0, "delete", "t", "7")
    weir(0, "pause", "t")
    weir(0, "resume", "t")
    weir(0, "topic", "set", "t", "max_dead=2")
    weir(0, "stats", "t")


def work(place, ledger):
    """Workers with every verdict, one that dies, one that is stopped."""
    ledger.add(["now"] * 6 + ["fail"] * 4)
    victim = ledger.start_worker(options=["work=200ms", "retry_every=3"])
    ledger.has_runs(2)
    ledger.kill(victim)
    ledger.start_worker(options=["work=5ms", "retry_every=3"])
    eventually(ledger.is_empty, "all is done")
    holder = ledger.start_worker("--prefetch", "50",
                                 options=["work=300ms"])
    ledger.alive[0].end()
    ledger.add(["now"] * 20)
    eventually(lambda: len(holder.runs()) > 5, "it renews its lease")
    holder.end()
    time.sleep(1.1)  # time is the subject: lateness goes out once a second


def bury(place, ledger):
    """Dead jobs move, are requeued, purged."""
    def weir(code, *args):
        result = place.weir(*args, "--redis", ledger.url)
        expect(code, result.code, result.err)

    weir(0, "dead", "requeue", "t", "--all")
    weir(0, "topic", "set", "t", "on_dead=grave")
    ledger.add(["fail"] * 2)
    worker = ledger.start_worker(options=[])
    eventually(ledger.is_empty, "all is buried")
    worker.end()
    weir(0, "topic", "set", "t", "on_dead=")
    ledger.add(["fail"] * 2)
    worker = ledger.start_worker(options=[])
    eventually(ledger.is_empty, "all is dead")
    worker.end()
    weir(0, "dead", "purge", "t", "--all")
    ledger.add(["soon"] * 3)
    weir(0, "purge", "t", "--yes")


@test
def what_a_server_refuses_in_a_script_leaves_no_half_state(place):
    examiner = Examiner(place)
    tap = Tap(place.path("tap.sock"), examiner.main.socket, examiner.look)
    ledger = Ledger(place, examiner.main, lease_ms=3000, url=tap.url)
    for act in (manage, work, bury):
        act(place, ledger)
    for worker in ledger.alive:
        if worker.process.poll() is None:
            worker.end()
    tap.close()
    print("calls looked at: " + ", ".join(
        "%s %s" % (name, "+".join(map(str, counts)))
        for name, counts in sorted(examiner.seen.items())))
    print("commands that come after a write: " + ", ".join(
        "%s %d" % item for item in sorted(examiner.partial.items())))
    for what, counts in (("nowhere", examiner.missing),
                         ("twice", examiner.doubled)):
        print("after the call was made again jobs were %s: " % what + ", ".join(
            "%s %d" % item for item in sorted(counts.items()) if item[1]))
    print("refused by a full server %(full)d, for lack of replicas "
          "%(replicas)d: nothing was written" % examiner.refusals)
    expect(set(), DELAY - set(examiner.seen), "scripts never called")
    expect(0, sum(examiner.doubled.values()), "jobs were twice")
    expect(set(), {name for name, count in examiner.missing.items() if count} -
           {"delay/add", "delay/add_one", "delay/claim", "delay/settle",
            "delay/slot"}, "jobs were nowhere")
    expect_true(min(examiner.refusals.values()) > 10, "calls were refused")
