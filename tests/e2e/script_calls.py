# SPDX-License-Identifier: MIT
"""A call of each script, with what each of its arguments may be
(docs/packs.md)."""

import re

import msgpack

from wire_producer import pack, record

SEQ, OTHER = b"a" * 12, b"b" * 12
NODE = SEQ + b"0000"
HOUR, MOST_MS = 3600000, 10 ** 13


def number(least, most, *words):
    """A whole number as Lua reads it, or one of these words."""
    def accepts(value):
        if value in [word.encode() for word in words]:
            return True
        if isinstance(value, bytes):
            text = value.strip()
            if re.fullmatch(rb"0x[0-9a-f]+", text):
                value = int(text, 16)
            elif re.fullmatch(rb"-?[0-9.]+(e[0-9]+)?", text):
                value = float(text)
        return isinstance(value, (int, float)) and \
            least <= float(value) <= most and value % 1 == 0
    return accepts


def words(*all_of_them):
    return lambda value: value in [word.encode() for word in all_of_them]


def form(pattern):
    return lambda value: isinstance(value, bytes) and \
        re.fullmatch(pattern, value, re.DOTALL) is not None


def text(value):
    return isinstance(value, bytes)


topic = form(rb"[\w.:-]{1,40}")
name = form(rb"[!-~]{1,128}")
call_number = form(rb"\d{1,15}(\.\d*)?")
add_number = form(rb"\d{1,15}\.\d+")
when = form(rb"[ra]-?\d{1,13}")
server = form(rb"[0-9a-fA-F]{0,32}( \d*)?")
lease = number(0, HOUR)
flag = text  # 1, or anything else for no


class Packed:
    """A flat list as msgpack, of rows of values; '' is an empty one."""

    def __init__(self, *columns):
        self.columns = columns

    def __call__(self, value):
        return value == b""


class Call:
    def __init__(self, script, keys, world, *arguments):
        self.script, self.world = script, world
        self.keys = [b"weir:{t}:" + key for key in keys.encode().split()]
        self.rules = [rule for rule, _ in arguments]
        self.values = [value for _, value in arguments]


class Told:
    """What is none of these is told in the reply (-3), and not added."""

    def __init__(self, rule):
        self.rule = rule

    def __call__(self, value):
        return self.rule(value)


def arguments(rule, *values):
    return [(rule, value) for value in values]


def packed(*values):
    return msgpack.packb(list(values), use_bin_type=False)


# Counts of keys or arguments below those of a call with which the script does
# another of its tasks, or the same where only `absent` is left out.
FEWER = {
    ("delay/claim", "keys"): {8}, ("delay/claim", "arguments"): range(6, 11),
    ("delay/cron", "keys"): {8}, ("delay/mend", "keys"): {8},
    ("delay/purge", "keys"): {8}, ("delay/push", "keys"): {5},
    ("delay/push", "arguments"): {4}, ("delay/renew", "keys"): {1},
    ("delay/requeue", "keys"): {7}, ("delay/requeue", "arguments"): {4},
    ("delay/settle", "keys"): range(10, 14),
    ("delay/settle", "arguments"): {7}, ("delay/slot", "keys"): {7, 8, 9},
    ("delay/stats", "keys"): {3, 4, 5}, ("store/set", "keys"): {4},
    ("store/set", "arguments"): {1}, ("store/lateness", "arguments"): {1},
    ("bounded/claim", "keys"): {10}, ("bounded/claim", "arguments"): {9},
    ("bounded/settle", "keys"): {10}, ("bounded/purge", "keys"): {8},
    ("external/claim_list", "keys"): {8},
    ("external/claim_stream", "keys"): {8},
    ("external/settle", "keys"): {9}, ("external/requeue", "keys"): {5},
    ("delay/undeliverable", "arguments"): {2},
    ("external/undeliverable", "arguments"): {2},
    ("external/purge", "keys"): {9}, ("classic/push", "arguments"): {3},
    ("classic/pop", "keys"): {6}, ("classic/settle", "keys"): {6},
    ("classic/poll", "keys"): {6}, ("classic/poll", "arguments"): {5},
    ("classic/renew", "arguments"): {1}, ("classic/unlock", "keys"): {2},
}

# --- what a call finds ------------------------------------------------------

def nothing(run, redis):
    pass


def ready(run, redis):
    keys = [b"weir:{t}:" + key for key in
            (b"wait", b"ids", b"meta", b"idle", b"options", b"absent")]
    for job_id in ("x", "y"):
        run("delay/push", keys, ["t", job_id, b"\x01", "r0"])


def staged(run, redis):
    redis.set(b"weir:{t}:p:" + SEQ, pack([record(1)], ["x"])[0], px=60000)


def waiting(run, redis):
    staged(run, redis)
    run("delay/add", ADD.keys, ADD.values)


def running(run, redis):
    waiting(run, redis)
    run("delay/claim", CLAIM.keys, CLAIM.values)
    redis.set(b"weir:{t}:p:" + OTHER, pack([record(1)], ["x"])[0], px=60000)


def scheduled(run, redis):
    run("delay/cron", CRON.keys, CRON.values)
    seq = redis.hget("weir:{t}:ids", "s@next")
    redis.hset("weir:{t}:ids", "s@next", SEQ)
    redis.rename(b"weir:{t}:p:" + seq, b"weir:{t}:p:" + SEQ)
    redis.zadd("weir:{t}:wait", {SEQ + b"0000": 5})
    redis.zrem("weir:{t}:wait", seq + b"0000")


def lost(run, redis):
    waiting(run, redis)
    redis.delete(b"weir:{t}:p:" + SEQ)


def dead(run, redis):
    run("delay/bury", BURY.keys, BURY.values)
    redis.set(b"weir:{t}:p:" + SEQ, pack([record(1)], ["x"])[0], px=60000)


def recorded(run, redis):
    redis.hset("weir:{t}:relay", SEQ, "entry")
    redis.set(b"weir:{t}:o:" + SEQ, "pack")


def served(run, redis):
    redis.hset("weir:{t}:started", "w1", NODE + b" 1 1")


def paused(run, redis):
    redis.hset("weir:{t}:meta", mapping={"kind": "delay", "paused": "1"})


def of_kind(kind):
    def prepare(run, redis):
        redis.hset("weir:{t}:meta", "kind", kind)
    return prepare


def grouped(run, redis):
    run("bounded/add", BOUNDED_ADD.keys, BOUNDED_ADD.values)


def strayed(run, redis):
    grouped(run, redis)
    redis.delete("weir:{t}:rot")


def batched(run, redis):
    grouped(run, redis)
    run("bounded/claim", BOUNDED_CLAIM.keys, BOUNDED_CLAIM.values)


def listed(run, redis):
    redis.rpush("q", b"\x01", b"\x02")


def taken(run, redis):
    listed(run, redis)
    run("external/claim_list", CLAIM_LIST.keys, CLAIM_LIST.values)


def given_away(run, redis):
    listed(run, redis)
    run("external/claim_list", CLAIM_LIST.keys,
        CLAIM_LIST.values[:5] + [b"1"] + CLAIM_LIST.values[6:])


def streamed(run, redis):
    redis.xadd("s", {"a": "1"}, "1-1")


def died(run, redis):
    redis.hset("weir:{t}:meta", "kind", "list")
    redis.zadd("weir:{t}:dead", {"x": 1})


def queued(run, redis):
    run("classic/push", FIFO_PUSH.keys, FIFO_PUSH.values)


def parked(run, redis):
    queued(run, redis)
    run("classic/pop", FIFO_POP.keys, FIFO_POP.values)


def locked(run, redis):
    redis.set("weir:{t}:lock", "c", px=100000)


# --- delay ------------------------------------------------------------------

ADD = Call(
    "delay/add", "wait ids meta idle seen p:" + SEQ.decode(), staged,
    (topic, b"t"), (words("delay"), b"delay"), (text, b"slot"),
    (add_number, b"7.5"), (Told(number(1, 256)), b"1"),
    (Told(number(11, 11)), b"11"), (Told(when), b"r0"))
CLAIM = Call(
    "delay/claim", "wait run lease ids meta idle held due absent", waiting,
    (number(0, 100000), b"10"), (lease, b"9000"), (number(0, 1024), b"10"),
    (text, b"w1"), (number(0, 7), b"0"), (words("delay"), b"delay"),
    (server, b""), (text, b""),
    (words("", "alone", "none"), b""),
    (form(rb"|[^|]*\|\d*(\|[^|]*\|\d*\|\d*)?"), b"5/s|3"), (text, b"0"))
CRON = Call(
    "delay/cron", "wait run ids meta idle due cron p: absent", nothing,
    (topic, b"t"), (words("set"), b"set"), (name, b"s"), (text, b""),
    (number(0, MOST_MS), b"8"),
    (form(rb".{8}(\d{13} ){5}.*"),
     b"\x98\x01\0\0\0\0\0\xa0" + b"%013d " % 0 * 5 + b"60000"))
BURY = Call("delay/bury", "ids meta dead rec", nothing,
            (words("delay"), b"delay"), (name, b"x"),
            (number(0, MOST_MS), b"5"), (text, b"record"))
token = number(0, 2 ** 45)
NODES = Packed(number(1, 2 ** 17), text, token,
               lambda value: text(value) or isinstance(value, (list, dict)) or
               number(0, 2 ** 24)(value), text)
SETTLE_KEYS = "run lease ids meta wait dead rec idle held due p:%s p:%s absent"
TWO = SETTLE_KEYS % (SEQ.decode(), OTHER.decode())
NO_LIST = (Packed(), b"")


MOVES = Packed(number(1, 14), number(1, 256), number(8, 2 ** 24), when,
               number(0, 3), text, words(""))
RECORDS = Packed(text, number(1, 1), text, when, number(0, 1), text,
                 words(""))


def settled(back=b"", moves=b"", ends=b"", flags=b"0", moved=MOVES,
            to=b"", unstarted=None):
    more = () if unstarted is None else (
        (Packed(lambda value: value is None or number(0, 2 ** 21 - 1)(value)),
         unstarted),)
    nodes = packed(11, NODE, 1, 11, b"")
    return Call(
        "delay/settle", TWO + " " + to.decode(), running, (text, b"t"),
        (NODES, b"" if back else nodes),
        (Packed(text, token, number(0, 2 ** 46), text), back),
        (Packed(lambda value: value is None or token(value)), packed(1)),
        (moved, moves),
        (Packed(number(0, 256), name, text), ends),
        (number(0, 2 ** 32), b"5"), *more, (number(0, 7), flags))


DELAY = [
    ADD, CLAIM, CRON, BURY,
    Call("delay/add_one", "wait ids meta idle seen run lease held p:" +
         SEQ.decode(), nothing, (text, b"t"), (words("delay"), b"delay"),
         (text, b"slot"), (call_number, b"7.5"), (when, b"r0"), (text, b"x"),
         (text, pack([record(1)], ["x"])[0]), (text, b"")),
    Call("delay/add_keyed", "wait ids meta idle seen unique due absent p:" +
         SEQ.decode(), nothing, (topic, b"t"), (words("delay"), b"delay"),
         (text, b"slot"), (call_number, b"7.5"),
         (Told(form(rb"[!-~]{0,128}")), b"x"),
         (text, pack([record(1)], ["x"])[0]), (Told(when), b"r0"),
         (Told(form(rb".{1,2048}")), b"key"),
         (Told(words("reject until-done")), b"reject until-done")),
    Call("delay/push", "wait ids meta idle options absent", nothing,
         (topic, b"t"), (form(rb"[\"-?A-z|~][!-z|~]*|"), b"x"), (text, b"\x01"),
         (when, b"r0"), (text, b"ttl_ms"), (form(rb"\d{1,14}"), b"50")),
    Call("delay/pull", "wait run lease ids meta idle held due dead rec options "
         "started absent", ready, (number(1, 1024), b"5"),
         (form(rb"[\w.:@-]{0,50}"), b"w"), (words("0", "1", "2"), b"0"),
         (server, b"")),
    Call("delay/finish", "wait run lease ids meta idle held due dead rec "
         "options started absent", running, (form(rb"[\w.:@-]{0,50}"), b"w"),
         (text, b"1 " + NODE + b" 0 5 0 x"),
         (words("retry", "done", "timeout", "fail", "malformed", "back"),
          b"retry"), (form(rb"\d{0,13}"), b"5"), (text, b"why")),
    settled(),
    settled(back=packed(NODE, 1, 1000, b"")),
    settled(moves=packed(12, 1, 11, b"r5", 1, [0], b"")),
    settled(moves=packed(record(1), 1, b"x", b"r5", 1, [0], b""),
            moved=RECORDS),
    settled(moves=packed(12, 1, 11, b"r5", 3, [0], [b"o", b"delay", b"!s", 7,
                                                    b""]), to=b"relay"),
    settled(ends=packed(0, b"x", record(1))),
    settled(unstarted=packed(256)),
    Call("delay/settle_one", "run lease ids meta held p:" + SEQ.decode(),
         running, (text, NODE), (token, b"1"), (text, b"0"), (text, b"x"),
         (number(1, 256), b"2"), (words("0", "1", "2"), b"1")),
    Call("delay/settle_one", "run lease ids meta held p:%s wait idle" %
         SEQ.decode(), running, (text, NODE), (token, b"1"), (text, b"0"),
         (text, b"x"), (number(1, 256), b"1"), (lease, b"9000"),
         (text, b"4"), (text, b"w1"), (text, b""),
         (words("0", "1", "2"), b"2")),
    Call("delay/renew", "lease held", running, (lease, b"5000"),
         (token, b"1")),
    Call("delay/renew", "lease held", running, (lease, b"5000"),
         (text, b"!SIGSEGV in p.so+0x1139"), (token, b"1")),
    Call("delay/start", "run started", running, (text, NODE), (token, b"1"),
         (text, b"w1")),
    Call("delay/recall", "wait run started cron", served, (text, b"w1")),
    Call("delay/requeue", "wait ids meta dead rec idle p:%s absent" %
         SEQ.decode(), dead, (text, b"t"), (number(1, 256), b"1"),
         (number(8, 2 ** 24), b"11"), (Packed(number(0, 2 ** 53)), packed(5)),
         (when, b"r0")),
    Call("delay/forget", "ids meta dead rec", dead,
         (number(0, 2 ** 53, ""), b"9"), (number(1, 5000), b"10")),
    Call("delay/mend", "wait run ids meta dead rec due of absent", lost,
         (words("0", "1"), b"1"),
         (words("wait", "of", "due", "ids", "packs"), b"wait"),
         (form(rb"\d{1,19}"), b"0")),
    Call("delay/page", "wait", ready, (text, b"0"), (text, b""), (text, b"9")),
    Call("delay/purge", "wait run lease ids meta held due p:%s absent" %
         SEQ.decode(), waiting, (text, NODE)),
    Call("delay/slot", "wait run ids meta p:%s dead rec idle due absent" %
         SEQ.decode(), waiting, (words("delete"), b"delete"), (text, b"x"),
         (text, SEQ), (number(0, 255, ""), b"")),
    Call("delay/slot", "wait run ids meta p:%s dead rec idle due absent" %
         SEQ.decode(), waiting, (words("reschedule"), b"reschedule"),
         (text, b"x"), (text, SEQ), (number(0, 255, ""), b""), (text, b"t"),
         (when, b"r500")),
    Call("delay/stats", "wait meta dead relay due lease", ready,
         (number(1, 10 ** 6), b"1000")),
    Call("delay/undeliverable", "ids meta dead rec relay o:" + SEQ.decode(),
         recorded, (text, SEQ), (number(0, 2 ** 32), b"5"), (text, b"x"),
         (text, b"@x"), (text, b"record")),
    Call("delay/cron", "wait run ids meta idle due cron p: absent", scheduled,
         (topic, b"t"), (words("pause"), b"pause"), (text, b"s"),
         (text, SEQ)),
    Call("delay/cron", "wait run ids meta idle due cron p: absent", scheduled,
         (topic, b"t"), (words("mend"), b"mend"),
         (words("all", "odd", "soon"), b"all")),
]

# --- store ------------------------------------------------------------------

KIND_NAMES = ("delay", "list", "sync", "concurrent", "stream", "bounded")
KINDS = words(*KIND_NAMES)
STORE = [
    Call("store/set", "options ids meta wait cron", nothing, (KINDS, b"delay"),
         (text, b"max_pending"), (number(1, 10 ** 12, ""), b"5")),
    Call("store/set", "options ids meta wait cron", nothing, (KINDS, b"delay"),
         (text, b"kind"), (words(*KIND_NAMES, ""), b"list")),
    Call("store/pause", "ids meta idle", nothing, (text, b"t"),
         (words(*KIND_NAMES, ""), b""),
         (words("0", "1"), b"1")),
    Call("store/pause", "ids meta idle", paused, (text, b"t"),
         (words(*KIND_NAMES, ""), b""),
         (words("0", "1"), b"0")),
    Call("store/drop", "ids wait meta idle", of_kind("delay"), (text, b"t"),
         (number(1, 2), b"1")),
    Call("store/lateness", "late", nothing, (number(-1, 2 ** 45), b"5"),
         (number(0, 4096), b"3"), (number(0, 2 ** 45), b"1")),
    Call("store/beat", "workers", nothing, (text, b"w"), (text, b"\x80")),
    Call("store/workers", "workers", nothing),
]

# --- bounded ----------------------------------------------------------------

BOUNDED_ADD = Call(
    "bounded/add", "rot hot out meta idle options seen ttl g:a g:b", nothing,
    (topic, b"t"), (words("bounded"), b"bounded"), (text, b"slot"),
    (call_number, b"7.5"), (text, b"a"), (number(1, 3), b"1"), (text, b"e"),
    (text, b"b"), (number(1, 3), b"1"), (text, b"e"))
BOUNDED_CLAIM = Call(
    "bounded/claim", "rot hot lease out meta idle options ttl g:a l:a absent",
    grouped, (text, b"t"), (words("bounded"), b"bounded"),
    (number(0, 100000), b"5"), (lease, b"9000"), (text, b"w1"),
    (number(0, 15), b"0"), (number(0, 1000), b"4"),
    (form(rb"|\d+ \d+ \d+ \d+ \d+ .*"), b"10 0 0 1 0 "),
    (server, b""), (text, b"a"))
BOUNDED = [
    BOUNDED_ADD, BOUNDED_CLAIM,
    Call("bounded/settle", "rot hot lease out meta idle options ttl g:a l:a "
         "absent", batched, (text, b"t"), (text, b"a"), (text, b"1"),
         (words("0", "1"), b"1"), (number(0, MOST_MS), b"500"),
         *arguments(number(0, 10 ** 6), b"0", b"0", b"0", b"1", b"0", b"1"),
         (number(-1, 1), b"1"), (text, b"e")),
    Call("bounded/renew", "lease out", batched, (lease, b"8000"), (text, b"a"),
         (text, b"1")),
    Call("bounded/purge", "rot hot lease out meta ttl g:a l:a absent", grouped,
         (words("bounded"), b"bounded"), (number(0, 1000), b"5"), (text, b"a")),
    Call("bounded/list", "meta rot hot lease g:a", grouped,
         (text, b"bounded"), *arguments(text, b"9", b"0", b"0", b"0", b"a")),
    Call("bounded/mend", "meta rot hot out idle options g:a", strayed,
         (text, b"t"), (words("0", "1"), b"1"), (text, b"a")),
    Call("bounded/stats", "meta lease rot hot", grouped, (text, b"*")),
]

# --- lists and streams ------------------------------------------------------

EXTERNAL = "meta wait run lease held past auto "
CLAIM_LIST = Call(
    "external/claim_list", EXTERNAL + "@q absent", listed,
    (words("list"), b"list"), (number(0, 100000), b"1"), (lease, b"9000"),
    (text, b"0"), (text, b""), (flag, b"0"), (server, b""),
    (text, b""), (text, b""))
DONE = Packed(token, text)
OTHERS = Packed(token, text, words("r", "s", "d", "e", "b"),
                number(0, MOST_MS), text, text, number(0, 1))


def external_settled(done=b"", autos=b"", others=b"", world=taken):
    return Call("external/settle", "meta wait run lease held past dead auto @q "
                "absent", world, (text, b""), (flag, b"0"),
                (number(0, 2 ** 32), b"5"), (DONE, done),
                (Packed(token, number(0, 10 ** 6)), autos), (OTHERS, others),
                NO_LIST)


LISTS = [
    CLAIM_LIST,
    Call("external/claim_stream", EXTERNAL + "@s absent", streamed,
         (words("stream"), b"stream"), (number(0, 100000), b"5"),
         (lease, b"9000"), (text, b"0"), (text, b""), (text, b"g"),
         (text, b"c"), (form(rb"\$|\d+(-\d+)?"), b"0"),
         (number(0, 7 * 86400000), b"60000"), (server, b""),
         (text, b"")),
    Call("external/find", "meta options", nothing),
    external_settled(done=packed(1, b"@0000000000000001")),
    external_settled(autos=packed(1, 1), world=given_away),
    external_settled(others=packed(1, b"@0000000000000001", b"r", 5, b"p", b"", 0)),
    Call("external/renew", "lease run @q meta", taken, (lease, b"8000"),
         (text, b""), (text, b""), (text, b"1")),
    Call("external/requeue", "meta wait held past dead absent", died,
         (text, b"x"), (flag, b"0")),
    Call("external/undeliverable", "meta dead held past relay o:" +
         SEQ.decode(), recorded, (text, SEQ), (number(0, 2 ** 32), b"5"),
         (text, b"x"), (text, b"bytes"), (text, b"past")),
    Call("external/purge", "meta wait run lease held past dead auto @q absent",
         taken, (text, b""), (flag, b"0")),
    Call("external/list", "meta wait run held past dead @q", taken,
         *arguments(text, b"", b"untaken", b"", b"", b"9", b"")),
    Call("external/start", "run past", taken, (text, b"1"),
         (text, b"@0000000000000001")),
    Call("external/stats", "meta wait run dead auto relay lease @q", taken,
         (text, b"")),
]

# --- sync and concurrent ----------------------------------------------------

FIFO_PUSH = Call(
    "classic/push", "fifo ids meta options idle", nothing, (text, b"t"),
    (words("sync", "concurrent"), b"sync"), (number(-1, MOST_MS), b"5"),
    (form(rb"[!-z|~]{0,128}"), b""), (text, record(1)),
    (number(0, 2 ** 32), b"9"))
FIFO_POP = Call(
    "classic/pop", "fifo parked alive meta idle lock absent", queued,
    (text, b"c"), (text, b"w1"), (lease, b"9000"),
    (words("park", "done", "none"), b"park"), (text, b"0"), (text, b"0"), (server, b""))
FIFO = [
    FIFO_PUSH, FIFO_POP,
    Call("classic/settle", "fifo parked alive meta options idle absent",
         parked, (text, b"t"), (text, b"c"),
         (words("done", "retry", "snooze", "back", "fail", "expire"),
          b"retry"), (number(-1, MOST_MS), b"5"), (text, b"x"),
         (text, record(1))),
    Call("classic/poll", "fifo parked alive meta ids idle absent", parked,
         (words("sync", "concurrent"), b"sync"), (text, b"w1"),
         (lease, b"9000"), (number(-1, MOST_MS), b"5"),
         (server, b""), (number(0, 10 ** 6), b"0"),
         (text, b"c")),
    Call("classic/park", "parked alive meta", nothing, (text, b"c"),
         (lease, b"9000"), (text, b"message")),
    Call("classic/renew", "alive meta", parked, (lease, b"8000"), (text, b"c"),
         (text, b"1")),
    Call("classic/peek", "fifo idle", nothing, (text, b"w1"), (flag, b"0")),
    Call("classic/lock", "lock lockers meta", nothing, (text, b"c"),
         (text, b"w1"), (number(1, HOUR), b"9000")),
    Call("classic/lock", "lock lockers meta", locked, (text, b"d"),
         (text, b"w1"), (number(1, HOUR), b"9000")),
    Call("classic/unlock", "lock lockers absent", locked, (text, b"c"),
         (text, b"t")),
    Call("classic/list", "fifo parked meta", queued, (text, b"ready"),
         (text, b"9")),
    Call("classic/purge", "fifo parked alive meta", queued),
    Call("classic/stats", "fifo parked meta alive", queued),
]

CALLS = DELAY + STORE + BOUNDED + LISTS + FIFO
