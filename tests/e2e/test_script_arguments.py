# SPDX-License-Identifier: MIT
"""No argument of a script can be anything else than docs/packs.md says: the
call is refused before its first write."""

import os

import msgpack
import redis

from e2e import BUILD, expect, expect_true, test
from redis_server import Server
from script_calls import CALLS, FEWER, Packed, Told

PATIENCE = 60  # s, for a script that never ends
HOSTILE = [b"nan", b"inf", b"-inf", b"1e308", b"-1", b"", b"abc", b"0x10",
           b"1.5", b" 7", b"9007199254740993", b"9" * 30, b"\0\xff"]
INSIDE = [float("nan"), float("inf"), 1e308, -1, b"", b"abc", 1.5, 2 ** 53 + 1,
          2 ** 64 - 1, None, True, [], {}, b"nan"]

DIGEST = """
local names, all = redis.call('KEYS', '*'), {}
table.sort(names)
for _, name in ipairs(names) do
  local stays = redis.call('PTTL', name) < 0 and ' ' or ''
  all[#all + 1] = name .. stays .. redis.call('DUMP', name)
end
return redis.sha1hex(table.concat(all))"""

READERS = {"delay/page", "bounded/list", "bounded/stats", "external/find",
           "external/list", "external/stats", "classic/list", "classic/stats",
           "store/workers"}


class World:
    """A server, on which each call finds what its row says."""

    def __init__(self, place):
        self.server = Server(place)
        self.redis = redis.Redis(unix_socket_path=self.server.path,
                                 socket_timeout=PATIENCE)
        self.sha1 = {}

    def run(self, script, keys, values):
        if script not in self.sha1:
            path = os.path.join(BUILD, "scripts", script + ".lua")
            with open(path, "rb") as file:
                self.sha1[script] = self.redis.script_load(file.read())
        keys = [b"q" if key.endswith(b"@q") else
                b"s" if key.endswith(b"@s") else key for key in keys]
        return self.redis.evalsha(self.sha1[script], len(keys), *keys, *values)

    def prepare(self, call):
        self.redis.flushall()
        call.world(self.run, self.redis)
        self.before = self.digest()

    def digest(self):
        return self.redis.eval(DIGEST, 0)

    def tries(self, call, values, keys=None):
        """What an error says, if it says one, and whether a key changed."""
        try:
            self.answer = self.run(call.script, call.keys if keys is None else keys,
                                   values)
            why = ""
        except redis.ResponseError as error:
            why = str(error)
        except redis.TimeoutError:  # the script never ends
            self.server.kill()
            self.server.start()
            self.sha1.clear()
            return "it does not end", True
        return why, self.digest() != self.before


def swapped(values, at, value):
    return values[:at] + [value] + values[at + 1:]


def inside(rule, value):
    """The lists that a packed argument may have instead, each with the rule
    of what was changed, and what it is now."""
    if not isinstance(rule, Packed) or not value:
        return
    row = msgpack.unpackb(value, raw=True, strict_map_key=False)
    for at in range(len(row)):
        for other in INSIDE:
            changed = msgpack.packb(swapped(row, at, other), use_bin_type=False)
            yield changed, rule.columns[at % len(rule.columns)], (at, other)


@test
def each_call_of_the_table_does_something(place):
    world = World(place)
    for call in CALLS:
        world.prepare(call)
        why, has_changed = world.tries(call, call.values)
        expect("", why, call.script)
        expect(call.script not in READERS, has_changed, call.script)
    folder = os.path.join(BUILD, "scripts")
    names = {os.path.join(kind, name)[:-len(".lua")]
             for kind in os.listdir(folder)
             for name in os.listdir(os.path.join(folder, kind))}
    expect(names, {call.script for call in CALLS})


@test
def what_no_argument_may_be_changes_nothing(place):
    world, wrong = World(place), []
    for call in CALLS:
        world.prepare(call)
        for at, (rule, value) in enumerate(zip(call.rules, call.values)):
            variants = [(other, rule, (None, other)) for other in HOSTILE]
            variants += list(inside(rule, value))
            for argument, accepts, what in variants:
                why, has_changed = world.tries(
                    call, swapped(call.values, at, argument))
                if has_changed:
                    is_told = isinstance(accepts, Told) and \
                        -3 in world.answer and \
                        not world.redis.exists("weir:{t}:wait")
                    if why or not (accepts(what[1]) or is_told):
                        wrong.append("%s %d %r: %s" % (call.script, at + 1,
                                                       what, why))
                    world.prepare(call)
    expect([], wrong[:10], "%d arguments" % len(wrong))


def few_and_more(call, given, rest):
    """What was given cut anywhere, but where some may be missing, and with one
    more. Each with whether it is too little."""
    fewer = FEWER.get((call.script, rest), ())
    for count in range(len(given)):
        yield given[:count], count not in fewer
    yield given + [b"weir:{t}:more"], False


@test
def a_wrong_count_of_keys_or_arguments_changes_nothing(place):
    world, wrong = World(place), []
    for call in CALLS:
        world.prepare(call)
        tried = [(some, call.values, is_few) for some, is_few in
                 few_and_more(call, call.keys, "keys")]
        tried += [(call.keys, some, is_few) for some, is_few in
                  few_and_more(call, call.values, "arguments")]
        for keys, values, is_few in tried:
            why, has_changed = world.tries(call, values, keys)
            if has_changed and (why or is_few):
                wrong.append("%s, %d keys, %d arguments: %s" % (
                    call.script, len(keys), len(values), why))
            if has_changed:
                world.prepare(call)
    expect([], wrong[:10], "%d calls" % len(wrong))
