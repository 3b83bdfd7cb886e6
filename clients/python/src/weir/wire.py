# SPDX-License-Identifier: MIT
"""What docs/wire.md says, as pure functions: keys, names, packs, records, and the
lists of a settle call. Knows no connection and no clock."""

import hashlib
import itertools
import os
import re
import struct
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

import msgpack

Command = Tuple[Any, ...]

ALPHABET = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
YEAR_2020_MS = 1577836800000
PACK_JOBS, PACK_BYTES, CALL_JOBS = 256, 256 * 1024, 1024
HEADER_LEAST = 8
OF_MIXED = 65536     # beside the place of a key
MIXED_MS = 1 << 45   # beside a due time
OPTIONS = {"retry": str, "ttl_ms": int, "url": str, "headers": dict,
           "reason": str, "error": str, "spent": int, "added_ms": int}
NEW = b"\x98\x01\0\0\0\0\0"  # a record's array, version and five counters
DEFAULTS = {"retry": "15s 3m 10m 30m 30m 1h 2h 6h 15h", "retry_jitter": "0",
            "lease": "5s", "max_crashes": "3", "max_dead": "10000",
            "ttl": "none", "timeout": "30s"}
UNITS = {"ms": 1, "s": 1000, "m": 60000, "h": 3600000, "d": 86400000,
         "w": 604800000}
SUFFIXES = ["%02x" % slot for slot in range(PACK_JOBS)]


class Error(Exception):
    """The server or the topic does not let it happen."""


class WrongKind(Error):
    """The topic is of another kind than delay."""


class Full(Error):
    """As many jobs wait as the topic's max_pending says."""


class Later(Error):
    """Written by a later weir: it is left alone."""


class Script(NamedTuple):
    text: bytes
    sha1: str


def read_scripts() -> Dict[str, Script]:
    folder = os.path.join(os.path.dirname(__file__), "scripts")
    scripts = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            text = file.read()
        scripts[name[:-len(".lua")]] = Script(
            text, hashlib.sha1(text).hexdigest())
    return scripts


SCRIPTS = read_scripts()


def packb(value: Any) -> bytes:
    return msgpack.packb(value, unicode_errors="surrogateescape")


def unpackb(data: bytes) -> Any:
    return msgpack.unpackb(data, strict_map_key=False,
                           unicode_errors="surrogateescape")


def script_list(values: List[Any]) -> bytes:
    """A list for a script, which knows no bin."""
    return msgpack.packb(values, use_bin_type=False) if values else b""


# --- What people write ------------------------------------------------------

is_topic = re.compile("[A-Za-z0-9._:-]{1,40}").fullmatch


def check_topic(topic: str) -> None:
    if not is_topic(topic):
        raise ValueError("the topic %r is not 1 to 40 of A-Z a-z 0-9 . _ : -"
                         % topic)


is_id = re.compile(r'["-z|][!-z|~]{0,127}').fullmatch
is_made_id = re.compile("~([-0-9A-Z_a-z]{12})([0-9a-f]{2})").fullmatch


def check_id(job_id: str) -> None:
    if not is_id(job_id):
        raise ValueError("the id %r is not 1 to 128 bytes from 0x21 to 0x7e "
                         "without { and }, or begins with ~ or !" % job_id)


def duration_ms(text: str) -> int:
    """Of 15s, 250ms, 2d; 0 of none."""
    found = re.fullmatch(r"(\d+)(ms|[smhdw])", text)
    if not found and text != "none":
        raise ValueError("%r is no duration: write 250ms, 15s, 2h" % text)
    return int(found[1]) * UNITS[found[2]] if found else 0


def size_bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)(KiB|MiB|)", text)
    if not found:
        raise ValueError("%r is no size" % text)
    return int(found[1]) << {"": 0, "KiB": 10, "MiB": 20}[found[2]]


def ladder_delay_ms(ladder: str, retry: int) -> int:
    """The delay before a retry, counted from 0; -1: there is none."""
    text = ladder.strip()
    repeats = text.endswith("...")
    words = (text[:-3] if repeats else text).split()
    steps = [] if text == "none" else [duration_ms(word) for word in words]
    if text != "none" and (not steps or len(steps) > 64 or
                           not all(0 < step <= 365 * UNITS["d"]
                                   for step in steps)):
        raise ValueError("%r is no retry ladder: write 15s 3m 10m" % ladder)
    if retry < len(steps):
        return steps[retry]
    return steps[-1] if repeats and steps else -1


def when(delay: float, at: Optional[float]) -> bytes:
    """WHEN of a delay in seconds, or of a time in seconds since 1970."""
    return b"a%d" % round(at * 1000) if at is not None else \
        b"r%d" % round(delay * 1000)


def job_options(retry: Optional[str] = None, ttl: Optional[float] = None,
                url: Optional[str] = None,
                headers: Optional[Dict[str, str]] = None) -> Dict[str, Any]:
    """OPTIONS of a new record; ttl in seconds."""
    options: Dict[str, Any] = {}
    if retry is not None:
        ladder_delay_ms(retry, 0)
        options["retry"] = retry
    if ttl is not None:
        options["ttl_ms"] = round(ttl * 1000)
    if url is not None:
        if len(url.encode()) > 2048:
            raise ValueError("the url has more than 2048 bytes")
        options["url"] = url
    if headers:
        options["headers"] = dict(headers)
    return options


# --- Keys and calls ---------------------------------------------------------

class Topic:
    """Names of a topic's keys."""

    def __init__(self, prefix: str, name: str):
        check_topic(name)
        self.name = name
        self.base = ("%s:{%s}:" % (prefix, name)).encode()

    def key(self, name: bytes) -> bytes:
        return self.base + name

    def keys(self, names: str) -> List[bytes]:
        return [self.base + name.encode() for name in names.split()]


def call(script: str, keys: List[bytes], *args: Any) -> Command:
    return ("EVALSHA", SCRIPTS[script].sha1, len(keys), *keys, *args)


def kind_of(answer: Any) -> Optional[str]:
    """The other kind that a topic is of, where the answer says so."""
    if len(answer) == 2 and answer[0] == -1 and isinstance(answer[1], bytes):
        return answer[1].decode()
    return None


# --- Packs ------------------------------------------------------------------

def pack_name(number: int, producer: int) -> bytes:
    bits = number << 24 | producer
    return bytes(ALPHABET[bits >> shift & 63] for shift in range(66, -1, -6))


def added_ms(name: bytes) -> int:
    """When the jobs of a pack were added, by its name."""
    bits = 0
    for letter in name[:7]:
        bits = bits << 6 | max(ALPHABET.find(letter), 0)
    return (bits >> 1) + YEAR_2020_MS


def made_id(name: bytes, slot: int) -> str:
    return "~" + name.decode("ascii", "replace") + SUFFIXES[slot]


def pack_of(records: List[bytes], ids: Optional[List[str]]
            ) -> Tuple[bytes, int]:
    """The bytes of a pack, and its header length."""
    block = msgpack.packb(ids) if ids else b""
    header_len = HEADER_LEAST + len(block)
    ends = itertools.accumulate(map(len, records), initial=0)
    return b"".join((
        b"W1", bytes((len(records) - 1, 0, 1 if ids else 0)),
        header_len.to_bytes(3, "little"), block,
        struct.pack("<%dI" % (len(records) + 1), *ends), *records)), header_len


def split(records: List[bytes], ids: Optional[List[str]]
          ) -> Iterable[Tuple[int, int]]:
    """First and end of the jobs of each pack."""
    first = size = 0
    for at, record in enumerate(records):
        more = len(record) + 4 + (len(ids[at]) + 2 if ids else 0)
        if at > first and (at - first == PACK_JOBS or
                           size + more > PACK_BYTES - 32):
            yield first, at
            first, size = at, 0
        size += more
    if records:
        yield first, len(records)


class Pack:
    """A pack that was read. ValueError: its bytes are none. Later."""

    def __init__(self, name: bytes, data: bytes):
        if data[:2] != b"W1":
            raise Later("a pack of a later weir")
        count, self.name, self.data = data[2] + 1, name, data
        self.header_len = int.from_bytes(data[5:8], "little")
        self.first = self.header_len + 4 * (count + 1)
        if self.header_len < HEADER_LEAST or self.first > len(data):
            raise ValueError("the pack is too short")
        self.offsets = struct.unpack_from("<%dI" % (count + 1), data,
                                          self.header_len)
        self.ids: Optional[List[Any]] = None
        if data[4] & 1:
            try:
                ids = unpackb(data[HEADER_LEAST:self.header_len])
            except (ValueError, msgpack.UnpackException):
                ids = None
            self.ids = ids if isinstance(ids, list) and len(ids) == count \
                else [None] * count

    def id_of(self, slot: int) -> Optional[str]:
        """None: its bytes are no id."""
        if self.ids is None:
            return made_id(self.name, slot)
        found = self.ids[slot]
        return found if isinstance(found, str) and (
            is_id(found) or is_made_id(found)) else None

    def record(self, slot: int) -> bytes:
        """Empty where the pack has no such slot."""
        if slot + 1 >= len(self.offsets):
            return b""
        return self.data[self.first + self.offsets[slot]:
                         self.first + self.offsets[slot + 1]]


class Record(NamedTuple):
    attempt: int
    failures: int
    timeouts: int
    crashes: int
    snoozes: int
    options: Dict[str, Any]
    body: bytes  # msgpack


NO_RECORD = Record(0, 0, 0, 0, 0, {}, b"\xc0")


def read_record(data: bytes) -> Record:
    """ValueError: it is none. Later."""
    if data.startswith(NEW + b"\xc0"):  # most are
        return Record(0, 0, 0, 0, 0, {}, data[8:])
    unpacker = msgpack.Unpacker(strict_map_key=False,
                                unicode_errors="surrogateescape")
    unpacker.feed(data)
    try:
        count = unpacker.read_array_header()
        if unpacker.unpack() != 1:
            raise Later("a record of a later weir")
        counters = [unpacker.unpack() for _ in range(5)]
        options, at = unpacker.unpack(), unpacker.tell()
        unpacker.skip()
    except (msgpack.UnpackException, TypeError) as error:
        raise ValueError("the record is none") from error
    options = {} if options is None else options
    if count != 8 or unpacker.tell() != len(data) or not all(
            isinstance(one, int) and one >= 0 for one in counters) or \
            not isinstance(options, dict) or not all(
                isinstance(options.get(name, kind()), kind)
                for name, kind in OPTIONS.items()):
        raise ValueError("the record is none")
    return Record(*counters, options, data[at:])


def write_record(record: Record) -> bytes:
    return b"\x98\x01" + b"".join(map(packb, record[:6])) + record.body


# --- Nodes ------------------------------------------------------------------

def due_times(value: Any, lo: int, hi: int) -> Tuple[int, bool, List[int]]:
    """Of a node's value: state, whether its pack is mixed, due ms by slot."""
    if isinstance(value, int):
        mixed = value >= 1 << 53
        value -= mixed << 53
        return value & 255, mixed, [value >> 8] * (hi - lo + 1)
    added = int.from_bytes(value[1:7], "little")
    base = int.from_bytes(value[7:13], "little")
    return value[0], True, [max(base + one[0], added)
                            for one in struct.iter_unpack("<I", value[13:])]


def bounds(node: bytes) -> Tuple[int, int]:
    lo1, lo2, hi1, hi2 = node[12:16]
    return (lo1 - 48) * 16 + lo2 - 48, (hi1 - 48) * 16 + hi2 - 48
