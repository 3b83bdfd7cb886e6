# SPDX-License-Identifier: MIT
"""What a client says to the server, without saying it: each function yields the
commands that are to be sent, as a list, or seconds to wait, and goes on with the
answers. Who drives it (link.py, aio.py) blocks or awaits."""

import logging
import time
from typing import (Any, Callable, Dict, Generator, List, NamedTuple, Optional,
                    Sequence, Tuple, TypeVar, Union)

import msgpack
import redis

from . import wire

LOST_CONNECTION = (redis.ConnectionError, redis.TimeoutError, OSError)
logger = logging.getLogger("weir")
PATIENCE = 60.0  # seconds: the server knows repeated adds for so long
CALLS_AT_ONCE = 8

T = TypeVar("T")
Steps = Generator[Union[List[wire.Command], float], Any, T]


class Added(NamedTuple):
    id: str
    is_new: bool  # False: a job with this id exists; where the connection broke
    #               meanwhile it may be this one


class AddedMany(NamedTuple):
    ids: List[str]      # of all jobs, given or made, in their order
    exists: List[int]   # which were not added: a job with the id exists
    full: List[int]     # which were not added: max_pending is reached


class Found(NamedTuple):
    id: str
    state: str   # scheduled, ready, running or dead
    due_ms: int  # since 1970, -1 while it runs; of a dead one when it died
    body: Any
    attempt: int
    failures: int
    timeouts: int
    crashes: int
    snoozes: int
    options: Dict[str, Any]  # also reason and error of a dead one


def own_connection(client: Any) -> Any:
    """One with the client's settings, which nobody shares."""
    pool = getattr(client, "connection_pool", None)
    if pool is None:
        raise TypeError("%s is no client of one server"
                        % type(client).__name__)
    connection = pool.make_connection()
    connection.protocol = 2
    if connection.socket_timeout is None:
        connection.socket_timeout = 10.0
    return connection


def check(answers: List[Any]) -> List[Any]:
    """A primary that is none any more is as one that is gone."""
    for answer in answers:
        if isinstance(answer, redis.ReadOnlyError):
            raise redis.ConnectionError(str(answer))
    return answers


def ask(commands: List[wire.Command],
        until: Optional[Callable[[], float]] = None) -> Steps[List[Any]]:
    """The answers of commands that may be repeated, which they are while the
    connection breaks, for a minute or until a time. Errors are among them."""
    end, pause = time.monotonic() + PATIENCE, 0.05
    while True:
        try:
            answers = yield commands
            if not any(isinstance(one, redis.exceptions.NoScriptError)
                       for one in answers):
                return answers
            yield [("SCRIPT", "LOAD", script.text)
                   for script in wire.SCRIPTS.values()]
        except redis.AuthenticationError:  # to redis-py a lost connection
            raise
        except LOST_CONNECTION as error:
            logger.log(logging.WARNING if pause == 0.05 else logging.DEBUG,
                       "%s", error)
            if time.monotonic() + pause > (until() if until else end):
                raise
            yield pause
            pause = min(2 * pause, 2.0)


def one_of(answers: List[Any]) -> Any:
    """The last answer; an error is raised."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return answers[-1]


class Staged(NamedTuple):
    """A pack that is to be added."""
    first: int  # of its jobs, among all
    name: bytes
    number: int
    data: bytes
    header_len: int
    jobs: int


class Calls:
    """The calls of one client: adds, look-ups, deletes."""

    def __init__(self, prefix: str):
        self.prefix = prefix
        self.topics: Dict[str, Tuple[wire.Topic, int]] = {}
        self.producer = -1
        self.clock = 0.0  # the server's, less ours, in seconds
        self.number = 0
        self.first_name = b""

    def topic(self, name: str, adds: bool = True
              ) -> Steps[Tuple[wire.Topic, int]]:
        """Its keys, and how long a body may be; the first add enters it."""
        known = self.topics.get(name)
        if known is None:
            topic = wire.Topic(self.prefix, name)
            if not adds:
                return topic, 0
            size = one_of((yield from ask(
                [("SADD", self.prefix + ":topics", name),
                 ("HGET", topic.key(b"options"), "max_body")])))
            known = self.topics[name] = topic, wire.size_bytes(
                size.decode() if size else "1MiB")
        return known

    def start(self) -> Steps[None]:
        """A producer number, and the server's time."""
        if self.producer < 0:
            answers = yield from ask([("INCR", self.prefix + ":producers"),
                                      ("TIME",)])
            seconds, us = one_of(answers)
            self.clock = int(seconds) + int(us) / 1e6 - time.time()
            self.producer = answers[0] % (1 << 23)

    def next_name(self) -> bytes:
        ms = int((time.time() + self.clock) * 1000) - wire.YEAR_2020_MS
        self.number = max(ms << 7, self.number + 1)
        name = wire.pack_name(self.number, self.producer)
        self.first_name = self.first_name or name
        return name

    def add(self, topic: str, body: Any, id: str, when: bytes,
            options: Dict[str, Any]) -> Steps[Added]:
        if not id:  # in a pack, a repeat does not add it again
            many = yield from self.add_many(topic, [body], None, when, options)
            if many.full:
                raise wire.Full("%s is full" % topic)
            return Added(many.ids[0], True)
        wire.check_id(id)
        names, most = yield from self.topic(topic)
        options = dict(options)
        pairs: List[Any] = [part for name, value in
                            options.pop("headers", {}).items()
                            for part in ("header:" + name, value)]
        for pair in options.items():
            pairs += pair
        answer = one_of((yield from ask([wire.call(
            "push", names.keys("wait ids meta idle options absent"), topic,
            id, checked(wire.packb(body), most), when, *pairs)])))
        what = answer[0].decode()
        if what == "kind":
            raise wire.WrongKind("%s is of kind %s" % (topic,
                                                       answer[1].decode()))
        if what == "full":
            raise wire.Full("%s is full" % topic)
        return Added(answer[1].decode(), what == "added")

    # --- Packs --------------------------------------------------------------

    def stage(self, records: List[bytes], ids: Optional[List[str]],
              first: int, end: int) -> Staged:
        name = self.next_name()
        data, header_len = wire.pack_of(records[first:end],
                                        ids and ids[first:end])
        return Staged(first, name, self.number, data, header_len, end - first)

    def add_many(self, topic: str, bodies: Sequence[Any],
                 ids: Optional[List[str]], when: bytes,
                 options: Dict[str, Any]) -> Steps[AddedMany]:
        if ids is not None:
            if len(ids) != len(bodies):
                raise ValueError("%d ids for %d jobs" % (len(ids),
                                                         len(bodies)))
            for one in ids:
                wire.check_id(one)
        names, most = yield from self.topic(topic)
        yield from self.start()
        head = wire.NEW + wire.packb(options or None)
        pack = msgpack.Packer(unicode_errors="surrogateescape").pack
        records = [head + checked(pack(body), most) for body in bodies]
        spans = list(wire.split(records, ids))
        result = AddedMany(list(ids or [""] * len(records)), [], [])
        while spans:
            calls = self.take_calls(spans, records, ids)
            again = yield from self.send(names, calls, when, result,
                                         ids is None)
            spans[:0] = again
        return result

    def take_calls(self, spans: List[Tuple[int, int]], records: List[bytes],
                   ids: Optional[List[str]]) -> List[List[Staged]]:
        """Packs of the next calls, which go at once."""
        calls: List[List[Staged]] = []
        jobs = wire.CALL_JOBS
        while spans:
            first, end = spans[0]
            if jobs + end - first > wire.CALL_JOBS:
                if len(calls) == CALLS_AT_ONCE:
                    break
                calls.append([])
                jobs = 0
            calls[-1].append(self.stage(records, ids, first, end))
            jobs += end - first
            del spans[0]
        return calls

    def send(self, names: wire.Topic, calls: List[List[Staged]], when: bytes,
             result: AddedMany, makes_ids: bool) -> Steps[List[Tuple[int, int]]]:
        """Which jobs are to be added again, under new names."""
        keys = names.keys("wait ids meta idle seen")
        commands: List[wire.Command] = []
        for slot, call in enumerate(calls):
            args: List[Any] = []
            for pack in call:
                commands.append(("SET", names.key(b"p:" + pack.name),
                                 pack.data, "NX", "PX", 60000))
                args += pack.jobs, pack.header_len, when
            commands.append(wire.call(
                "add", keys + [names.key(b"p:" + pack.name) for pack in call],
                names.name, "delay", self.first_name + b"%d" % slot,
                call[-1].number, *args))
        answers = yield from ask(commands)
        one_of(answers)
        again: List[Tuple[int, int]] = []
        at = -1
        for call in calls:
            at += len(call) + 1
            again += self.judge(names.name, call, answers[at], result)
            if makes_ids:
                for pack in call:
                    result.ids[pack.first:pack.first + pack.jobs] = [
                        wire.made_id(pack.name, slot)
                        for slot in range(pack.jobs)]
        return again

    @staticmethod
    def judge(topic: str, call: List[Staged], answer: List[Any],
              result: AddedMany) -> List[Tuple[int, int]]:
        kind = wire.kind_of(answer)
        if kind is not None:
            raise wire.WrongKind("%s is of kind %s" % (topic, kind))
        again = []
        pairs = answer[1:len(answer) - (len(answer) % 2 == 0)]
        for at, slot in zip(pairs[::2], pairs[1::2]):
            pack = call[at]
            if slot >= 256:
                result.full.append(pack.first + slot - 256)
            elif slot >= 0:
                result.exists.append(pack.first + slot)
            elif slot == -3:
                raise ValueError("the server refuses the pack")
            else:
                again.append((pack.first, pack.first + pack.jobs))
        return again

    # --- Looking ------------------------------------------------------------

    def counts(self, topic: str) -> Steps[Dict[str, Any]]:
        names, _ = yield from self.topic(topic, adds=False)
        flat = one_of((yield from ask([wire.call(
            "stats", names.keys("wait meta dead relay due lease"), 1000)])))
        return {name.decode(): value.decode() if isinstance(value, bytes)
                else value for name, value in zip(flat[::2], flat[1::2])}

    def look(self, topic: str, id: str, verb: str = "show"
             ) -> Steps[Optional[Found]]:
        """None: there is no such job. `delete` deletes what it returns."""
        names, _ = yield from self.topic(topic, adds=False)
        while True:
            place = one_of((yield from ask([("HGET", names.key(b"ids"), id)])))
            slot, made = b"", wire.is_made_id(id)
            if place is None:
                if not made:
                    return None
                place, slot = made[1].encode(), b"%d" % int(made[2], 16)
            key = names.key(b"p:" + place)
            keys = names.keys("wait run ids meta") + [key] + names.keys(
                "dead rec idle due absent")
            answers = yield from ask([("GET", key),
                                      ("HGET", names.key(b"rec"), id),
                                      wire.call("slot", keys, verb, id, place,
                                                slot)])
            answer = one_of(answers)
            if answer[0] == b"none":
                return None
            if answer[0] != b"moved":
                data = answers[1] if place == b"D" else wire.Pack(
                    place, answers[0]).record(answer[3])
                record = wire.read_record(data)
                return Found(id, answer[0].decode(), answer[1],
                             wire.unpackb(record.body), record.attempt,
                             record.failures, record.timeouts,
                             record.crashes + answer[2], record.snoozes,
                             record.options)


def checked(body: bytes, most: int) -> bytes:
    if len(body) > most:
        raise ValueError("the body has %d bytes, not %d at most" % (len(body),
                                                                    most))
    return body
