# SPDX-License-Identifier: MIT
"""What a caller may say: a refusal names it, and nothing is sent. No server is
needed: a call that asked one would be a ConnectionError."""

import asyncio
import datetime
import decimal
import enum
import math

import library
from e2e import expect, expect_in, test

import msgpack
import redis
import redis.asyncio
import weir
import weir.aio
from weir import check
from weir import client as wire

NOBODY = redis.Redis(unix_socket_path="/nowhere/redis.sock")
NAN, INF = math.nan, math.inf


def refusal(fn, *args, **options):
    try:
        fn(*args, **options)
    except (TypeError, ValueError) as error:
        return str(error)
    raise AssertionError("%r %r: nothing was raised" % (args, options))


def expect_refusal(part, fn, *args, **options):
    said = refusal(fn, *args, **options)
    expect_in(part, said)
    expect([], [letter for letter in said if not " " <= letter <= "~"], said)


TIMES = ("5", True, NAN, INF, -INF, -1, -0.001, 3650 * 86400 + 1, 10**400,
         datetime.timedelta(1), datetime.datetime.now(), b"5", [5], {},
         decimal.Decimal(5), object())
TEXTS = ("", 5, b"x", ["x"], "x" * 2049, "\ud800", "\udc80", True, 1.5)
OPTIONS = {
    "delay": TIMES,
    "at": ("5", True, NAN, INF, -1, 1e10, 1764380000000,
           datetime.datetime.now(), b"5", [5]),
    "ttl": (*TIMES, 0, 0.0004, -0.0),
    "retry": ("", " ", "soon", "0s", "0ms", "366d", "1.5h", "3m1h", "1h1h",
              "15s\n3m", "15s\u00a03m", "\u0663s", "...", "none 3s",
              "3s ... 5s",
              "3s," + "5s", " ".join(["1s"] * 65), 5, b"15s", ["15s"], True,
              "9999999999999s"),
    "url": TEXTS,
    "headers": ({"a": 5}, {5: "a"}, {"a": ""}, {"": "a"}, {"a": " b"},
                {"a": "b\n"}, {"a": "\u00e4"}, {"a b": "c"}, {"weir.x": "y"},
                {"A": "x", "a": "y"}, {"a": "x" * 256}, [("a", "b")], "a=b",
                {"h%d" % i: "x" for i in range(17)}, 5, {"a": b"b"},
                {"a": None}),
}
KEYED = {
    "key": TEXTS, "unique": TEXTS,
    "priority": ("High", "", "1", 1, 0, None.__class__, b"high", True),
    "unique_for": ("", "0s", "always", "until-Done", 600, 3651 * 86400, "3651d",
                   datetime.timedelta(1)),
    "unique_else": ("", "drop", "Reject", 1, True, b"reject"),
    "max_wait": ("", "soon", "0ms", 5, "3651d"),
}


@test
def each_option_refuses_what_is_none(_place):
    client = weir.Client(NOBODY)
    for name, values in OPTIONS.items():
        for value in values:
            word = "header" if name == "headers" else "the " + name
            expect_refusal(word, client.add, "t", 1, **{name: value})
            expect_refusal(word, client.add, "t", 1, id="a", **{name: value})
            expect_refusal(word, client.add_many, "t", [1], **{name: value})
    for name, values in KEYED.items():
        for value in values:
            more = {} if name == "unique" else {"unique": "k"}
            expect_refusal("the " + name, client.add, "t", 1,
                           **{name: value, **more})


@test
def what_the_options_say_together_is_refused(_place):
    client = weir.Client(NOBODY)
    for sentence, options in (
            ("delay and at are two times", {"delay": 5, "at": 5}),
            ("delay and at are two times", {"delay": 0, "at": 0}),
            ("unique_for says something of a key", {"unique_for": "5s"}),
            ("unique_else says something of a key", {"unique_else": "reject"}),
            ("max_wait says something of a key", {"max_wait": "5s"}),
            ("throttle needs a window", {"unique": "k",
                                         "unique_else": "throttle"}),
            ("throttle needs a window", {"unique": "k", "unique_else":
                                         "throttle", "unique_for":
                                         "until-done"}),
            ("only debounce has max_wait", {"unique": "k", "max_wait": "5s"})):
        expect_refusal(sentence, client.add, "t", 1, **options)


@test
def an_unknown_option_is_told_the_one_that_was_meant(_place):
    client = weir.Client(NOBODY)
    for name, meant in (
            ("delay_ms", "delay"), ("delayMs", "delay"), ("dealy", "delay"),
            ("countdown", "delay"), ("eta", "at"), ("ttl_ms", "ttl"),
            ("expires", "ttl"), ("attempts", "retry"), ("max_retries", "retry"),
            ("job_id", "id"), ("task_id", "id"), ("header", "headers"),
            ("uniqueFor", "unique_for"), ("prority", "priority"),
            ("Timeout", "timeout")):
        expect_refusal('"%s" is no option of add: %s is meant' % (name, meant),
                       client.add, "t", 1, **{name: 5})
    expect_refusal('"queue" is no option of add; its options are id, timeout, '
                   "delay, at, retry, ttl, url, headers, key, priority, unique,"
                   " unique_for, unique_else, max_wait",
                   client.add, "t", 1, queue="x")
    for name in KEYED:
        expect_refusal('"%s" is no option of add_many' % name,
                       client.add_many, "t", [1], **{name: "5s"})
    expect_refusal('"conurrency" is no option of Worker: concurrency is meant',
                   weir.Worker, NOBODY, {"t": print}, conurrency=5)


@test
def topics_ids_and_lists_are_checked(_place):
    client = weir.Client(NOBODY)
    for topic in ("", "a b", "x" * 41, "t\n", "\u00e4", "{t}", None, 5, b"t",
                  ["t"], "t" + chr(0)):
        for call in (client.add, lambda topic, body: client.add_many(
                topic, [body]), client.look, client.delete,
                lambda topic, _: client.counts(topic)):
            expect_refusal("the topic", call, topic, "a")
        expect_refusal("the topic", weir.Worker, NOBODY, {topic: print}) \
            if not isinstance(topic, list) else None
    for one in ("", "a b", "@" + "0" * 14, "!a", "{", "a}", "a\n", "\u00e4",
                "x" * 129, 5, 0, b"a", True, ["a"]):
        expect_refusal("the id", client.add, "t", 1, id=one)
        expect_refusal("the id", client.add, "t", 1, id=one, key="k")
        expect_refusal("the id", client.add_many, "t", [1], [one])
    expect_refusal("the id None", client.add_many, "t", [1, 2], ["a", None])
    for one in ("", None, 5, b"a", "a b", "x" * 129, "a\n"):
        expect_refusal("the id", client.look, "t", one)
        expect_refusal("the id", client.delete, "t", one)
    for bodies in ("abc", b"abc", {"a": 1}, {1, 2}, 5, None, iter([1]),
                   (i for i in range(3))):
        expect_refusal("the bodies are", client.add_many, "t", bodies)
    for ids in ("ab", {"a": 1, "b": 2}, 5, b"ab"):
        expect_refusal("the ids are", client.add_many, "t", [1, 2], ids)
    expect_refusal("1 ids for 2 jobs", client.add_many, "t", [1, 2], ["a"])
    expect_refusal("0 ids for 2 jobs", client.add_many, "t", [1, 2], [])


class Point:
    x = 1


class Color(enum.Enum):
    RED = 1


def nested(levels):
    body = 1
    for _ in range(levels - 1):
        body = [body]
    return body


class Shorter(dict):
    def items(self):
        return []


class Longer(list):
    def __len__(self):
        return 2


CIRCLE = []
CIRCLE.append(CIRCLE)
BODIES = (
    (NAN, "body is nan"), ({"a": [1, INF]}, "body.a[1] is inf"),
    (-INF, "body is -inf"), (1 << 64, "body is 18446744073709551616, beyond"),
    (-(1 << 63) - 1, "beyond 64 bits"), ([10**400], "beyond 64 bits"),
    ({1, 2}, "body is a set"), (frozenset(), "is a frozenset"),
    ({"at": datetime.datetime.now()}, "body.at is a datetime"),
    (datetime.date.today(), "is a date"), (decimal.Decimal("1.5"), "Decimal"),
    (Point(), "is a Point"), (Color.RED, "is a Color"), (object, "is a type"),
    (1j, "is a complex"), (print, "builtin_function"), (range(3), "is a range"),
    (memoryview(b"abc"), "is a memoryview"), (iter([]), "list_iterator"),
    (msgpack.ExtType(5, b"x"), "is a ExtType"),
    (msgpack.Timestamp(1), "is a Timestamp"),
    ({1: 2}, "body has the key 1"), ({"a": {None: 1}}, "body.a has the key N"),
    ({True: 1}, "has the key True"), ({b"k": 1}, "has the key b'k'"),
    ({("a", 1): 2}, "has the key ('a', 1)"), ("\ud800", "body has a lone surr"),
    ("\udc80", "lone surrogate"), ({"\ud800": 1}, "lone surrogate"),
    (Shorter(a=1), "is a Shorter whose length is not the number"),
    ([Longer()], "body[0] is a Longer whose length"),
    (nested(33), "is more than 32 levels deep"), (CIRCLE, "32 levels"),
    ({"a": [[{"b": object()}]]}, "body.a[0][0].b is a object"))


@test
def bodies_that_would_arrive_as_something_else_are_refused(_place):
    client = weir.Client(NOBODY)
    for body, part in BODIES:
        expect_refusal(part, client.add, "t", body)
        expect_refusal(part, client.add, "t", body, id="a", priority="high")
        expect_refusal(part, client.add_many, "t", [1, body])


class Level(enum.IntEnum):
    HIGH = 7


class Word(str):
    pass


@test
def what_arrives_as_it_is_passes(_place):
    for body in (None, True, False, 0, -1, (1 << 64) - 1, -(1 << 63), 1.5,
                 5e-324, 1.7976931348623157e308, "", "\u00e4\U0001f600\0", b"",
                 b"\xff", [], {}, {"": [None]}, nested(32), [[]], Level.HIGH,
                 Word("x"), {Word("k"): 1}, {"a": {"b": [1, "2", b"3"]}}):
        expect(body, wire.unpackb(msgpack.packb(check.body(body))))
    zero = msgpack.unpackb(msgpack.packb(check.body(-0.0)))
    expect(-1.0, math.copysign(1, zero))
    expect([1, 2], msgpack.unpackb(msgpack.packb(check.body((1, 2)))))


@test
def ladders_and_windows_are_those_of_weir(_place):
    for text in ("none", "15s", "15s 3m 10m", "1w2d3h4m5s6ms", "5ms", "365d",
                 "1s ...", "1s...", "\t1s  2s ", " ".join(["1s"] * 64)):
        expect(text, check.ladder("retry", text))
    for text, ms in (("1h30m", 5400000), ("1ms", 1), ("1s500ms", 1500)):
        expect(ms, check.read_ms(text))


@test
def settings_of_clients_and_workers_are_checked(_place):
    for prefix in ("", "a b", "x" * 33, None, 5, b"p", "a{b}"):
        for kind in (weir.Client, weir.aio.Client):
            expect_refusal("the prefix", kind, NOBODY, prefix)
        expect_refusal("the prefix", weir.Worker, NOBODY, {"t": print},
                       prefix=prefix)
    for seconds in ("5", 0, -1, NAN, INF, True, datetime.timedelta(1)):
        expect_refusal("the timeout", weir.Client, NOBODY, timeout=seconds)
        client = weir.Client(NOBODY)
        for call in (lambda **one: client.add("t", 1, **one),
                     lambda **one: client.add("t", 1, key="k", **one),
                     lambda **one: client.add_many("t", [1], **one),
                     lambda **one: client.look("t", "a", **one),
                     lambda **one: client.delete("t", "a", **one),
                     lambda **one: client.counts("t", **one)):
            expect_refusal("the timeout", call, timeout=seconds)
    for name in ("concurrency", "prefetch"):
        for count in (0, -1, 1.0, "8", True, None, NAN, 100001, 10**30):
            expect_refusal("the " + name, weir.Worker, NOBODY, {"t": print},
                           **{name: count})
    for handlers in ({}, [], None, "t", [("t", print)], print):
        expect_refusal("the handlers are", weir.Worker, NOBODY, handlers)
    expect_refusal("no redis.Redis", weir.Client, "redis://localhost")
    expect_refusal("no redis.Redis", weir.Client, redis.asyncio.Redis())


async def coroutine(_job):
    pass


def generator(_job):
    yield


async def async_generator(_job):
    yield


class Callable:
    async def __call__(self, job):
        pass


@test
def handlers_that_would_do_nothing_are_refused(_place):
    for handler in (None, "print", 5):
        for kind in (weir.Worker, weir.aio.Worker):
            expect_refusal("the handler of t is", kind, NOBODY, {"t": handler})
    for handler in (coroutine, generator, async_generator, Callable()):
        expect_refusal("the handler of t is not a plain function", weir.Worker,
                       NOBODY, {"t": handler})
    for handler in (generator, async_generator):
        expect_refusal("the handler of t", weir.aio.Worker, NOBODY,
                       {"t": handler})
    weir.aio.Worker(NOBODY, {"t": coroutine, "u": Callable()})


@test
def delays_of_verdicts_are_checked(_place):
    for delay in ("5", NAN, INF, -1, True, 1e10, datetime.timedelta(1)):
        expect_refusal("the delay", weir.Retry, "x", delay)
        expect_refusal("the delay", weir.Snooze, delay)


@test
def asyncio_refuses_the_same(_place):
    async def add():
        client = weir.aio.Client(NOBODY)
        for options in ({"delay_ms": 5}, {"delay": -1}, {"timeout": 0}):
            try:
                await client.add("t", 1, **options)
            except (TypeError, ValueError):
                continue
            raise AssertionError(options)
    asyncio.run(add())


@test
def a_server_that_was_never_there_is_an_error_soon_that_names_it(_place):
    wire.FIRST_PATIENCE = 0.05
    wire.PATIENCE = 1e9
    client = weir.Client(NOBODY)
    for call in (lambda: client.add("t", 1), lambda: client.counts("t"),
                 lambda: client.look("t", "a"),
                 lambda: weir.Worker(NOBODY, {"t": print}).run()):
        try:
            call()
        except redis.ConnectionError as error:
            expect_in("no answer from the server at unix:///nowhere/redis.sock",
                      str(error))
        else:
            raise AssertionError("nothing was raised")
