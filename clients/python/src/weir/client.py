# SPDX-License-Identifier: MIT
"""What docs/wire.md says of adding and looking, and a connection for it."""

import collections
import copy
import functools
import hashlib
import itertools
import logging
import os
import pathlib
import re
import secrets
import struct
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Sequence

import msgpack
import redis

LOST_CONNECTION = (redis.ConnectionError, redis.TimeoutError, OSError)
logger = logging.getLogger("weir")
PATIENCE = 60.0  # seconds: the server knows repeated adds for so long
PACK_JOBS, PACK_BYTES = 256, 256 * 1024
ALPHABET = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
NEW = b"\x98\x01\0\0\0\0\0"  # a record's array, version and five counters
STEP = r"(?:\d+(?:ms|[wdhms]))+"
IS_ID = r'["-z|][!-z|~]{0,127}'
IS_MADE_ID = "~([-0-9A-Z_a-z]{12})([0-9a-f]{2})"
IS_LADDER = r"\s*(none|%s(\s+%s)*\s*(\.\.\.)?)\s*" % (STEP, STEP)
SCRIPTS = {path.stem: path.read_bytes() for path in
           (pathlib.Path(__file__).parent / "scripts").iterdir()}
SHA1 = {name: hashlib.sha1(text).hexdigest() for name, text in SCRIPTS.items()}

packb = functools.partial(msgpack.packb, unicode_errors="surrogateescape")
unpackb = functools.partial(msgpack.unpackb, strict_map_key=False,
                            unicode_errors="surrogateescape")

# is_new: False where a job with this id exists.
Added = collections.namedtuple("Added", "id is_new")
# ids of all jobs, given or made; places of those that were not added: a job
# with the id exists, or max_pending is reached.
AddedMany = collections.namedtuple("AddedMany", "ids exists full")
# due_ms since 1970 is -1 while the job runs, and when a dead one died; options
# also have its reason and error.
Found = collections.namedtuple(
    "Found", "id state due_ms body attempt failures timeouts crashes snoozes "
    "options")


class Error(Exception):
    """The server or the topic does not let it happen."""


class WrongKind(Error):
    """The topic is of another kind than delay."""


class Full(Error):
    """As many jobs wait as the topic's max_pending says."""


def call(script: str, keys: List[bytes], *args: Any) -> Any:
    return ("EVALSHA", SHA1[script], len(keys), *keys, *args)


def topic_keys(prefix: str, topic: str, names: str) -> List[bytes]:
    if not re.fullmatch("[A-Za-z0-9._:-]{1,40}", topic):
        raise ValueError("the topic %r is not 1 to 40 of A-Z a-z 0-9 . _ : -"
                         % topic)
    return [("%s:{%s}:%s" % (prefix, topic, name)).encode()
            for name in names.split()]


def job_options(retry: Optional[str] = None, ttl: Optional[float] = None,
                url: str = "", headers: Any = ()) -> Optional[Dict[str, Any]]:
    """OPTIONS of a new record; ttl in seconds."""
    if retry is not None and not re.fullmatch(IS_LADDER, retry):
        raise ValueError("%r is no retry ladder: write 15s 3m 10m" % retry)
    if len(url.encode()) > 2048:
        raise ValueError("the url has more than 2048 bytes")
    options = {"retry": retry, "ttl_ms": ttl and round(ttl * 1000), "url": url,
               "headers": dict(headers)}
    return {name: one for name, one in options.items() if one} or None


def pack_of(records: List[bytes], ids: Optional[List[str]]) -> Any:
    """The bytes of a pack, and its header length."""
    block = msgpack.packb(ids) if ids else b""
    header_len = 8 + len(block)
    ends = itertools.accumulate(map(len, records), initial=0)
    return b"".join((
        b"W1", bytes((len(records) - 1, 0, 1 if ids else 0)),
        header_len.to_bytes(3, "little"), block,
        struct.pack("<%dI" % (len(records) + 1), *ends), *records)), header_len


def spans_of(records: List[bytes], ids: Optional[List[str]]) -> Any:
    """First and end of the jobs of each pack."""
    first, total = 0, 32
    for at, record in enumerate(records + [b""]):
        size = len(record) + 6 + (len(ids[at]) if ids and record else 0)
        total += size
        if at > first and (not record or at - first == PACK_JOBS or
                           total > PACK_BYTES):
            yield first, at
            first, total = at, 32 + size


def record_in(data: bytes, slot: int) -> bytes:
    """The record in a slot of a pack."""
    if data[:2] != b"W1":
        raise Error("a pack of a later weir")
    header_len = int.from_bytes(data[5:8], "little")
    first, end = struct.unpack_from("<II", data, header_len + 4 * slot)
    records = header_len + 4 * (data[2] + 2)
    return data[records + first:records + end]


class Link:
    """Connections with a client's settings, which nobody shares. `until` says
    when to give up a call that began at a time."""

    def __init__(self, client: Any, until: Callable[[float], float] =
                 lambda began: began + PATIENCE):
        if not isinstance(client, redis.Redis):
            raise TypeError("%s is no redis.Redis" % type(client).__name__)
        self._until, self.repeats = until, 0
        self._client = client  # connections by a sentinel ask its pool
        pool = copy.copy(client.connection_pool)
        options = pool.connection_kwargs
        pool.connection_kwargs = {
            **options, "decode_responses": False,
            "socket_timeout": options.get("socket_timeout") or 10.0}
        pool.reset()
        self.redis = redis.Redis(connection_pool=pool)
        self.close = functools.partial(pool.disconnect, False)

    def ask(self, *commands: Any, raises: bool = True) -> List[Any]:
        """The answers of commands that may be repeated, which they are while
        the connection breaks. An error is raised, or an answer."""
        began, pause = time.monotonic(), 0.05
        while True:
            try:
                return self._send(commands, raises)
            except redis.AuthenticationError:  # to redis-py a lost connection
                raise
            except LOST_CONNECTION as error:
                logger.log(logging.WARNING if pause == 0.05 else logging.DEBUG,
                           "%s", error)
                if time.monotonic() + pause > self._until(began):
                    raise
                time.sleep(pause)
                self.repeats += 1
                pause = min(2 * pause, 2.0)

    def _send(self, commands: Sequence[Any], raises: bool) -> List[Any]:
        pipe = self.redis.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        answers = pipe.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, redis.exceptions.NoScriptError):
                for text in SCRIPTS.values():
                    self.redis.script_load(text)
                self.repeats += 1
                return self._send(commands, raises)
            if isinstance(answer, redis.ReadOnlyError):
                self.close()  # a primary that is none any more
                raise redis.ConnectionError("the server takes no writes")
            if isinstance(answer, Exception) and raises:
                raise answer
        return answers


class Shared:
    """Copies are the same object, since its names must stay unique."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a weir.%s cannot be pickled: open one in each process"
                        % type(self).__name__)


class Producer:
    """What a client has in one process: connections, and the names of packs.
    The server knows a repeat by its call slot and number, so these have random
    parts of the operating system, which no fork and no snapshot copies."""

    def __init__(self, client: Any, prefix: str):
        self.pid, self.link = os.getpid(), Link(client)
        self.lock, self._prefix = threading.Lock(), prefix
        self._clock = 0.0  # the server's, less ours, in seconds
        self.number = 0
        self.rename()

    def rename(self) -> None:
        self._letters, self.call_slot = -1, secrets.token_urlsafe(9)

    def next_name(self) -> str:
        if self._letters < 0:
            count, now = self.link.ask(("INCR", self._prefix + ":producers"),
                                       ("TIME",))
            self._clock = int(now[0]) + int(now[1]) / 1e6 - time.time()
            self._letters = count % (1 << 23)
        ms = int((time.time() + self._clock) * 1000) - 1577836800000
        self.number = max(ms << 7, self.number + 1)
        bits = self.number << 24 | self._letters
        return bytes(ALPHABET[bits >> shift & 63]
                     for shift in range(66, -1, -6)).decode()


class Client(Shared):
    """Adds jobs, looks at them, deletes them. Threads may share one, and so may
    the processes of a fork: each connects on its own. `client` is a
    redis.Redis, whose settings it takes."""

    def __init__(self, client: Any, prefix: str = "weir"):
        self._client, self._prefix = client, prefix
        self._most: Dict[str, int] = {}  # bytes of a body, by topic
        self._producers = [Producer(client, prefix)]  # the one of this process

    def _here(self) -> Producer:
        """After a fork a lock may be held by a thread that is not there, and
        the connections are the parent's: the child starts again."""
        producer = self._producers[0]
        if producer.pid != os.getpid():
            producer = Producer(self._client, self._prefix)
            self._producers[0] = producer
        return producer

    def close(self) -> None:
        self._here().link.close()

    def add(self, topic: str, body: Any, *, id: str = "", **options: Any
            ) -> Added:
        """Add a job, with the options of add_many. An id is made where none is
        given."""
        many = self.add_many(topic, [body], [id] if id else None, **options)
        if many.full:
            raise Full("%s is full" % topic)
        return Added(many.ids[0], not many.exists)

    def add_many(self, topic: str, bodies: Sequence[Any],
                 ids: Optional[List[str]] = None, *, delay: float = 0,
                 at: Optional[float] = None, **options: Any) -> AddedMany:
        """Add jobs that are due after `delay` seconds, or at a time in seconds
        since 1970. Options: retry (a ladder), ttl (seconds), url, headers (a
        dict). After an error some of them may have been added."""
        if ids is not None and len(ids) != len(bodies):
            raise ValueError("%d ids for %d jobs" % (len(ids), len(bodies)))
        for one in ids or []:
            if not re.fullmatch(IS_ID, one):
                raise ValueError("the id %r is not 1 to 128 bytes from 0x21 to "
                                 "0x7e without { and }, or begins with ~ or !"
                                 % one)
        when = "r%d" % round(delay * 1000) if at is None else \
            "a%d" % round(at * 1000)
        head = NEW + packb(job_options(**options))
        result = AddedMany(list(ids or []), [], [])
        producer = self._here()
        with producer.lock:
            records = [head + one for one in self._packed(topic, bodies)]
            for first, end in spans_of(records, ids):
                self._add_pack(producer, topic, first, records[first:end],
                               ids and ids[first:end], when, result)
        return result

    def _packed(self, topic: str, bodies: Sequence[Any]) -> List[bytes]:
        """The bodies' bytes; the first add enters the topic."""
        if topic not in self._most:
            options, = topic_keys(self._prefix, topic, "options")
            _, size = self._here().link.ask(
                ("SADD", self._prefix + ":topics", topic),
                ("HGET", options, "max_body"))
            digits, unit = re.match(rb"(\d+)([KMG]?)", size or b"1M").groups()
            self._most[topic] = int(digits) << 10 * b" KMG".find(unit)
        pack = msgpack.Packer(unicode_errors="surrogateescape").pack
        packed = [pack(body) for body in bodies]
        longest = max(map(len, packed), default=0)
        if longest > self._most[topic]:
            raise ValueError("the body has %d bytes, not %d at most"
                             % (longest, self._most[topic]))
        return packed

    def _add_pack(self, producer: Producer, topic: str, first: int,
                  records: List[bytes], ids: Optional[List[str]], when: str,
                  result: AddedMany) -> None:
        pack, header_len = pack_of(records, ids)
        slots = [-2]
        while slots and slots[0] in (-1, -2, -4):
            if slots[0] != -2:  # another client has this name
                producer.rename()
            name = producer.next_name()
            keys = topic_keys(self._prefix, topic,
                              "wait ids meta idle seen p:" + name)
            repeats = producer.link.repeats
            staged, answer = producer.link.ask(
                ("SET", keys[-1], pack, "NX", "PX", 60000),
                call("add", keys, topic, "delay", producer.call_slot,
                     "%d.%d" % (producer.number, secrets.randbits(30)),
                     len(records), header_len, when))
            if answer[0] == -1:
                raise WrongKind(topic + " is of kind " + answer[1].decode())
            slots = answer[2:len(answer) - (len(answer) % 2 == 0):2]
            if not staged and producer.link.repeats == repeats:
                slots = [-1]  # what was added is of another client
        if -3 in slots:
            raise ValueError("the server refuses the pack")
        for slot in slots:
            (result.full if slot >= 256 else result.exists).append(
                first + slot % 256)
        if ids is None:
            result.ids.extend("~%s%02x" % (name, slot)
                              for slot in range(len(records)))

    def counts(self, topic: str) -> Dict[str, Any]:
        """The numbers of weir stats, as docs/wire.md names them."""
        keys = topic_keys(self._prefix, topic, "wait meta dead relay due lease")
        flat, = self._here().link.ask(call("stats", keys, 1000))
        return {name.decode(): value.decode() if isinstance(value, bytes)
                else value for name, value in zip(flat[::2], flat[1::2])}

    def look(self, topic: str, id: str, verb: str = "show"
             ) -> Optional[Found]:
        """None: there is no such job."""
        made, answer = re.fullmatch(IS_MADE_ID, id), [b"moved"]
        ids, rec = topic_keys(self._prefix, topic, "ids rec")
        link = self._here().link
        while answer[0] == b"moved":
            slot, (place,) = b"", link.ask(("HGET", ids, id))
            if place is None and made:
                place, slot = made[1].encode(), b"%d" % int(made[2], 16)
            if place is None:
                return None
            keys = topic_keys(self._prefix, topic, "wait run ids meta p:%s "
                              "dead rec idle due absent" % place.decode())
            pack, dead, answer = link.ask(
                ("GET", keys[4]), ("HGET", rec, id),
                call("slot", keys, verb, id, place, slot))
        if answer[0] == b"none":
            return None
        _, *counters, options, body = unpackb(
            dead if place == b"D" else record_in(pack, answer[3]))
        counters[3] += answer[2]
        return Found(id, answer[0].decode(), answer[1], body, *counters,
                     options or {})

    def delete(self, topic: str, id: str) -> Optional[Found]:
        """The job that was deleted; None: there was none."""
        return self.look(topic, id, "delete")
