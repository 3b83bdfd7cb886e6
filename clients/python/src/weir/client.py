# SPDX-License-Identifier: MIT
"""What docs/wire.md says of adding and looking, and a connection for it."""

import collections
import contextlib
import copy
import functools
import hashlib
import inspect
import itertools
import logging
import os
import pathlib
import re
import secrets
import struct
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence

import msgpack
import redis

from . import check

LOST_CONNECTION = (redis.ConnectionError, redis.TimeoutError, OSError)
logger = logging.getLogger("weir")
PATIENCE = 60.0  # seconds: the server knows repeated adds for so long
FIRST_PATIENCE = 3.0  # seconds, for a server that never answered; sentinels: 10
ANSWER = 10.0  # seconds until a connection counts as lost
LARGE = 1 << 20  # bytes: no server can be told to take less of a command
CLOSINGS = 3  # of a connection at a large command, until that is given up
PACK_JOBS, PACK_BYTES = 256, 256 * 1024
ALPHABET = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
NEW = b"\x98\x01\0\0\0\0\0"  # a record's array, version and five counters
IS_MADE_ID = "@([-0-9A-Z_a-z]{12})([0-9a-f]{2})"
SCRIPTS = {path.stem: path.read_bytes() for path in
           (pathlib.Path(__file__).parent / "scripts").iterdir()}
SHA1 = {name: hashlib.sha1(text).hexdigest() for name, text in SCRIPTS.items()}

packb = functools.partial(msgpack.packb, unicode_errors="surrogateescape")
unpackb = functools.partial(msgpack.unpackb, strict_map_key=False,
                            unicode_errors="surrogateescape")

# is_new: False where a job with this id exists, or the job `id` has the
# unique key.
Added = collections.namedtuple("Added", "id is_new")
# ids of all jobs, given or made; places of those that were not added: a job
# with the id exists, or max_pending is reached.
AddedMany = collections.namedtuple("AddedMany", "ids exists full")
# due_ms since 1970 is -1 while the job runs, and when a dead one died; options
# also have its reason and error. malformed: why the body cannot be read, or "".
Found = collections.namedtuple(
    "Found", "id state due_ms body attempt failures timeouts crashes snoozes "
    "options malformed")


class Error(Exception):
    """The server or the topic does not let it happen."""


class Closed(redis.ConnectionError):
    """The server closed the connection at a command of so many bytes."""

    def __init__(self, size: int):
        super().__init__("the server closed the connection")
        self.size = size


class WrongKind(Error):
    """The topic is of another kind than delay."""


class Full(Error):
    """As many jobs wait as the topic's max_pending says."""


def call(script: str, keys: List[bytes], *args: Any) -> Any:
    return ("EVALSHA", SHA1[script], len(keys), *keys, *args)


def topic_keys(prefix: str, topic: str, names: str) -> List[bytes]:
    return [("%s:{%s}:%s" % (prefix, check.topic(topic), name)).encode()
            for name in names.split()]


def record_options(told: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """OPTIONS of a new record."""
    return {"ttl_ms" if name == "ttl" else name: one
            for name, one in told.items() if name not in ("delay", "at")
            } or None


def when_of(told: Dict[str, Any]) -> str:
    return "a%d" % told["at"] if "at" in told else "r%d" % told.get("delay", 0)


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


def read_record(record: bytes) -> Any:
    """Counters, options, body, and why the body cannot be read."""
    reader = msgpack.Unpacker(strict_map_key=False, max_buffer_size=len(record),
                              unicode_errors="surrogateescape")
    reader.feed(record)
    reader.read_array_header()
    _, *counters, options = (reader.unpack() for _ in range(7))
    try:
        return counters, options or {}, unpackb(record[reader.tell():]), ""
    except Exception as error:  # of msgpack, or TypeError for a key
        return counters, options or {}, None, str(error)


# redis-py before 5.3 wants the name of a command.
ANY_COMMAND = [] if inspect.signature(
    redis.ConnectionPool.get_connection).parameters["command_name"].default \
    is None else ["_"]


class Link:
    """Connections with a client's settings, which nobody shares. `until` says
    when to give up a call that began at a time."""

    def __init__(self, client: Any, until: Callable[[float], float] =
                 lambda began: began + PATIENCE):
        if not isinstance(client, redis.Redis):
            raise TypeError("a %s.%s is no redis.Redis" % (
                type(client).__module__, type(client).__qualname__))
        self._until, self.repeats, self.has_met = until, 0, False
        self._client = client  # connections by a sentinel ask its pool
        self._pool = pool = copy.copy(client.connection_pool)
        options = {**pool.connection_kwargs, "decode_responses": False}
        options["socket_timeout"] = options.get("socket_timeout") or ANSWER
        if "path" not in options:
            options["socket_connect_timeout"] = options.get(
                "socket_connect_timeout") or FIRST_PATIENCE
        pool.connection_kwargs = options
        pool.reset()
        self.redis = redis.Redis(connection_pool=pool)
        self.close = functools.partial(pool.disconnect, False)

    def _address(self) -> str:
        options = self._pool.connection_kwargs
        service = getattr(self._pool, "service_name", "")
        return "sentinels, of %s" % service if service else \
            "unix://" + options["path"] if "path" in options else "%s:%s" % (
                options.get("host", "localhost"), options.get("port", 6379))

    def _end(self, began: float, timeout: Optional[float]) -> float:
        if timeout is not None:
            return began + timeout
        if self.has_met:
            return self._until(began)
        first = 10 if hasattr(self._pool, "service_name") else FIRST_PATIENCE
        return min(self._until(began), began + first)

    def ask(self, *commands: Any, raises: bool = True,
            timeout: Optional[float] = None) -> List[Any]:
        """The answers of commands that may be repeated, which they are while
        the connection breaks, for `timeout` seconds. An error is raised, or an
        answer."""
        began, pause, loads, closings = time.monotonic(), 0.05, 0, 0
        while True:
            try:
                answers = self._send(commands, self._end(began, timeout))
                if loads == 3 or not self._lacks_scripts(answers):
                    break
                loads += 1
            except redis.AuthenticationError:  # to redis-py a lost connection
                raise
            except LOST_CONNECTION as error:
                closings += isinstance(error, Closed)
                if closings == CLOSINGS:
                    raise Error("the server at %s closes the connection at a "
                                "command of %d bytes: raise its proto-max-bulk"
                                "-len and client-query-buffer-limit" % (
                                    self._address(), error.size)) from error
                self.has_met |= isinstance(error, redis.BusyLoadingError)
                logger.log(logging.WARNING if pause == 0.05 else logging.DEBUG,
                           "%s", error)
                if time.monotonic() + pause > self._end(began, timeout):
                    kind = redis.TimeoutError if isinstance(
                        error, redis.TimeoutError) else redis.ConnectionError
                    raise kind("no answer from the server at %s: %s" % (
                        self._address(), error)) from error
                time.sleep(pause)
                self.repeats += 1
                pause = min(2 * pause, 2.0)
        for answer in answers if raises else ():
            if isinstance(answer, redis.exceptions.NoScriptError):
                raise Error("the server at %s forgets scripts as soon as they "
                            "are loaded" % self._address())
            if isinstance(answer, Exception):
                raise answer
        return answers

    def _lacks_scripts(self, answers: List[Any]) -> bool:
        """Loads them then: the commands are to be sent again."""
        if not any(isinstance(answer, redis.exceptions.NoScriptError)
                   for answer in answers):
            return False
        for text in SCRIPTS.values():
            self.redis.script_load(text)
        self.repeats += 1
        return True

    def _send(self, commands: Sequence[Any], end: float) -> List[Any]:
        connection = self._pool.get_connection(*ANY_COMMAND)
        packed = connection.pack_commands(commands)
        size = sum(map(len, packed))
        try:
            connection.send_packed_command(packed)
            answers = [self._answer(connection, end) for _ in commands]
        except BaseException as error:
            connection.disconnect()  # else a later call reads these answers
            if size >= LARGE and type(error) in (redis.ConnectionError,
                                                 ConnectionResetError,
                                                 BrokenPipeError):
                raise Closed(size) from error
            raise
        finally:
            self._pool.release(connection)
        self.has_met = True
        if any(isinstance(answer, redis.ReadOnlyError) for answer in answers):
            self.close()  # a primary that is none any more
            raise redis.ConnectionError("the server takes no writes")
        return answers

    @staticmethod
    def _answer(connection: Any, end: float) -> Any:
        left = max(end - time.monotonic(), 0)
        try:
            if left < ANSWER and not connection.can_read(left):
                raise redis.TimeoutError("it did not answer in time")
        except AttributeError as error:  # redis-py 4.3: a unix socket broke
            raise redis.ConnectionError("the connection is lost") from error
        try:
            return connection.read_response()
        except redis.ResponseError as error:
            return error


class Shared:
    """Copies are the same object, since its names must stay unique."""

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("a weir.%s cannot be pickled: open one in each process"
                        % type(self).__name__)


FORKS = [0]  # from the first process to this one
os.register_at_fork(after_in_child=lambda: FORKS.insert(0, FORKS[0] + 1))


def process() -> Any:
    """Tells this process from the one that forked it. Both may have one id, in
    namespaces of their own."""
    return os.getpid(), FORKS[0]


class Producer:
    """What a client has in one process: connections, and the names of packs.
    The server knows a repeat by its call slot and number, so these have random
    parts of the operating system, which no fork and no snapshot copies."""

    def __init__(self, client: Any, prefix: str, timeout: Optional[float]):
        self.process, self._prefix = process(), prefix
        self.link = Link(client) if timeout is None else \
            Link(client, lambda began: began + timeout)
        self.lock = threading.Lock()
        self._clock = 0.0  # the server's, less ours, in seconds
        self.number = 0
        self.rename()

    def rename(self) -> None:
        self._letters, self.call_slot = -1, secrets.token_urlsafe(9)

    def next_name(self, timeout: Optional[float]) -> str:
        if self._letters < 0:
            count, now = self.link.ask(("INCR", self._prefix + ":producers"),
                                       ("TIME",), timeout=timeout)
            self._clock = int(now[0]) + int(now[1]) / 1e6 - time.time()
            self._letters = count % 8192000
        ms = int((time.time() + self._clock) * 1000) - 1577836800000
        self.number = max(ms << 7, self.number + 1)
        bits = self.number << 24 | self._letters
        return bytes(ALPHABET[bits >> shift & 63]
                     for shift in range(66, -1, -6)).decode()


class Client(Shared):
    """Adds jobs, looks at them, deletes them. Threads may share one, and so may
    the processes of a fork: each connects on its own. `client` is a
    redis.Redis, whose settings it takes. Calls wait for the server for
    `timeout` seconds, which each call may have as its own: 60, and 3 until the
    server answered once."""

    def __init__(self, client: Any, prefix: str = "weir",
                 timeout: Optional[float] = None):
        self._client, self._prefix = client, check.prefix(prefix)
        self._timeout = check.timeout(timeout)
        self._most: Dict[str, int] = {}  # bytes of a body, by topic
        self._producers = [Producer(client, prefix, timeout)]  # this process'

    def _here(self) -> Producer:
        """After a fork a lock may be held by a thread that is not there, and
        the connections are the parent's: the child starts again."""
        producer = self._producers[0]
        if producer.process != process():
            producer = Producer(self._client, self._prefix, self._timeout)
            self._producers[0] = producer
        return producer

    def close(self) -> None:
        self._here().link.close()

    def add(self, topic: str, body: Any, *, id: Optional[str] = None,
            timeout: Optional[float] = None, **options: Any) -> Added:
        """Add a job, with the options of add_many. An id is made where none is
        given. More options: key and priority (urgent, high, normal, low), or
        unique with unique_for (a time such as 10m, until-done, until-start),
        unique_else (reject, replace, debounce, throttle) and max_wait. A job
        with these may be added twice if the answer was lost and it ran by
        then."""
        told = check.options("add", options)
        if set(told).intersection(check.KEYED):
            return self._push(topic, body, id, told, timeout)
        many = self.add_many(topic, [body], None if id is None else [id],
                             timeout=timeout, **options)
        if many.full:
            raise Full("%s is full" % topic)
        return Added(many.ids[0], not many.exists)

    def add_many(self, topic: str, bodies: Sequence[Any],
                 ids: Optional[List[str]] = None, *,
                 timeout: Optional[float] = None, **options: Any) -> AddedMany:
        """Add jobs. Options: delay (seconds) or at (seconds since 1970), retry
        (a ladder), ttl (seconds), url, headers (a dict). ValueError or
        TypeError: an argument cannot be, nothing was added. After another error
        some of them may have been added."""
        told = check.options("add_many", options)
        bodies, given = check.listed("bodies", bodies), ids is not None
        ids = check.listed("ids", ids) if given else None
        if given and len(ids) != len(bodies):
            raise ValueError("%d ids for %d jobs" % (len(ids), len(bodies)))
        for one in ids or []:
            check.job_id(one)
        when, head = when_of(told), NEW + packb(record_options(told))
        result = AddedMany(list(ids or []), [], [])
        with self._turn(check.timeout(timeout)) as producer:
            records = [head + one for one in
                       self._packed(topic, bodies, timeout)]
            for first, end in spans_of(records, ids):
                self._add_pack(producer, topic, first, records[first:end],
                               ids and ids[first:end], when, result, timeout)
        return result

    @contextlib.contextmanager
    def _turn(self, timeout: Optional[float]) -> Iterator[Producer]:
        """Names of packs grow: one thread at a time adds some."""
        producer = self._here()
        if not producer.lock.acquire(timeout=-1 if timeout is None
                                     else timeout):
            raise redis.TimeoutError("another thread adds, and has not got its "
                                     "answer in time")
        try:
            yield producer
        finally:
            producer.lock.release()

    def _push(self, topic: str, body: Any, id: Optional[str],
              told: Dict[str, Any], timeout: Optional[float]) -> Added:
        """By the id that the client makes, a repeat of the call is known."""
        made = secrets.token_urlsafe(12) if id is None else check.job_id(id)
        packed, = self._packed(topic, [body], check.timeout(timeout))
        keys = topic_keys(self._prefix, topic,
                          "wait ids meta idle options absent")
        pairs: List[Any] = []
        for name, value in told.items():
            name = {"ttl": "ttl_ms", "unique_for": "for",
                    "unique_else": "else"}.get(name, name)
            for key, one in value.items() if name == "headers" else ():
                pairs += "header:" + key, one
            if name not in ("delay", "at", "headers"):
                pairs += name, value.encode() if name != "ttl_ms" else value
        (outcome, other), = self._here().link.ask(
            call("push", keys, topic, made, packed, when_of(told), *pairs),
            timeout=timeout)
        if outcome == b"kind":
            raise WrongKind(topic + " is of kind " + other.decode())
        if outcome == b"full":
            raise Full("%s is full" % topic)
        return Added(other.decode(), outcome == b"added" or
                     outcome == b"exists" and id is None)

    def _packed(self, topic: str, bodies: Sequence[Any],
                timeout: Optional[float]) -> List[bytes]:
        """The bodies' bytes; the first add enters the topic."""
        options, = topic_keys(self._prefix, topic, "options")
        pack = msgpack.Packer().pack
        packed = [pack(check.body(body)) for body in bodies]
        longest = max(map(len, packed), default=0)
        if longest > self._most.get(topic, -1):
            _, size = self._here().link.ask(
                ("SADD", self._prefix + ":topics", topic),
                ("HGET", options, "max_body"), timeout=timeout)
            digits, unit = re.match(rb"(\d+)([KMG]?)", size or b"1M").groups()
            self._most[topic] = int(digits) << 10 * b" KMG".find(unit)
        if longest > self._most[topic]:
            raise ValueError("the body has %d bytes, and max_body of the topic "
                             "is %d" % (longest, self._most[topic]))
        return packed

    def _add_pack(self, producer: Producer, topic: str, first: int,
                  records: List[bytes], ids: Optional[List[str]], when: str,
                  result: AddedMany, timeout: Optional[float]) -> None:
        pack, header_len = pack_of(records, ids)
        slots = [-2]
        while slots and slots[0] in (-1, -2, -4):
            if slots[0] != -2:  # another client has this name
                producer.rename()
            name = producer.next_name(timeout)
            keys = topic_keys(self._prefix, topic,
                              "wait ids meta idle seen p:" + name)
            repeats = producer.link.repeats
            staged, answer = producer.link.ask(
                ("SET", keys[-1], pack, "NX", "PX", 60000),
                call("add", keys, topic, "delay", producer.call_slot,
                     "%d.%d" % (producer.number, secrets.randbits(30)),
                     len(records), header_len, when), timeout=timeout)
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
            result.ids.extend("@%s%02x" % (name, slot)
                              for slot in range(len(records)))

    def counts(self, topic: str, *, timeout: Optional[float] = None
               ) -> Dict[str, Any]:
        """The numbers of weir stats, as docs/wire.md names them."""
        keys = topic_keys(self._prefix, topic, "wait meta dead relay due lease")
        flat, = self._here().link.ask(call("stats", keys, 1000),
                                      timeout=check.timeout(timeout))
        return {name.decode(): value.decode() if isinstance(value, bytes)
                else value for name, value in zip(flat[::2], flat[1::2])}

    def look(self, topic: str, id: str, *, timeout: Optional[float] = None
             ) -> Optional[Found]:
        """None: there is no such job."""
        return self._find(topic, id, "show", timeout)

    def delete(self, topic: str, id: str, *, timeout: Optional[float] = None
               ) -> Optional[Found]:
        """The job that was deleted; None: there was none."""
        return self._find(topic, id, "delete", timeout)

    def _find(self, topic: str, id: str, verb: str, timeout: Optional[float]
              ) -> Optional[Found]:
        made, answer = re.fullmatch(IS_MADE_ID, check.any_id(id)), [b"moved"]
        ids, rec = topic_keys(self._prefix, topic, "ids rec")
        ask = functools.partial(self._here().link.ask,
                                timeout=check.timeout(timeout))
        while answer[0] == b"moved":
            slot, (place,) = b"", ask(("HGET", ids, id))
            if place is None and made:
                place, slot = made[1].encode(), b"%d" % int(made[2], 16)
            if place is None:
                return None
            keys = topic_keys(self._prefix, topic, "wait run ids meta p:%s "
                              "dead rec idle due absent" % place.decode())
            pack, dead, answer = ask(
                ("GET", keys[4]), ("HGET", rec, id),
                call("slot", keys, verb, id, place, slot))
        if answer[0] == b"none":
            return None
        if answer[0] == b"tick":
            raise Error("%s is the tick of a schedule, which stays: delete the "
                        "schedule by weir cron delete" % id)
        counters, options, body, malformed = read_record(
            dead if place == b"D" else record_in(pack, answer[3]))
        counters[3] += answer[2]
        return Found(id, answer[0].decode(), answer[1], body, *counters,
                     options, malformed)
