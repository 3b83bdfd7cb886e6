# SPDX-License-Identifier: MIT
"""A producer for weir in Python, written from docs/wire.md alone."""

import os
import secrets
import struct
import time

import msgpack
import redis

ALPHABET = b"-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
YEAR_2020_MS = 1577836800000


def record(body, **options):
    """The bytes of a new job; options: retry, ttl_ms, url, headers."""
    return msgpack.packb([1, 0, 0, 0, 0, 0, options or None, body])


def pack(records, ids=None):
    """The bytes of a pack, and its header length."""
    block = msgpack.packb(ids) if ids else b""
    header_len = 8 + len(block)
    offsets, end = [], 0
    for one in records:
        offsets.append(end)
        end += len(one)
    offsets.append(end)
    head = b"W1" + bytes([len(records) - 1, 0, 1 if ids else 0])
    head += struct.pack("<I", header_len)[:3] + block
    table = b"".join(struct.pack("<I", offset) for offset in offsets)
    return head + table + b"".join(records), header_len


def rising(form, times):
    """When jobs are due whose delays or times rise."""
    return form + times[0].to_bytes(6, "little") + b"".join(
        (time - times[0]).to_bytes(4, "little") for time in times)


def record_in(data, slot):
    """The record in a slot of a pack, decoded."""
    if data[:2] != b"W1":
        raise ValueError("a pack of a later weir")
    header_len = int.from_bytes(data[5:8], "little")
    records = header_len + 4 * (data[2] + 2)
    first, end = struct.unpack_from("<II", data, header_len + 4 * slot)
    return msgpack.unpackb(data[records + first:records + end])


class Weir:
    def __init__(self, socket, scripts, prefix=b"weir"):
        self.prefix = prefix
        self.redis = redis.Redis(unix_socket_path=socket)
        self.scripts = {}
        for name in ("add", "slot", "stats", "push", "pull", "finish",
                     "claim", "settle", "renew"):
            with open(os.path.join(scripts, name + ".lua"), "rb") as file:
                self.scripts[name] = file.read()
        self.sha1 = {}
        self.number = 0
        self.rename()

    def load(self):
        for name, text in self.scripts.items():
            self.sha1[name] = self.redis.script_load(text)

    def rename(self):
        """Another client has our names: a later call takes others."""
        self.producer, self.call_slot = None, secrets.token_urlsafe(9)

    def name(self):
        if self.producer is None:
            count = self.redis.incr(self.prefix + b":producers")
            self.producer = count % 8192000
        now = (int(time.time() * 1000) - YEAR_2020_MS) << 7
        self.number = max(now, self.number + 1)
        bits = self.number << 24 | self.producer
        name = bytes(ALPHABET[bits >> shift & 63]
                     for shift in range(66, -1, -6))
        return name

    def run(self, script, keys, args, before=None):
        """A script, with a SET that goes before it. `is_staged` says of the
        first SET whether it stored something."""
        self.is_staged = None
        for _ in range(2):
            pipe = self.redis.pipeline(transaction=False)
            if before:
                pipe.set(*before[:2], nx=True, px=60000)
            pipe.evalsha(self.sha1.get(script, "0" * 40), len(keys), *keys,
                         *args)
            *staged, answer = pipe.execute(raise_on_error=False)
            if self.is_staged is None:
                self.is_staged = staged == [True]
            if not isinstance(answer, redis.exceptions.NoScriptError):
                break
            self.load()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def key(self, topic, name):
        return b"%s:{%s}:%s" % (self.prefix, topic.encode(), name)

    def keys(self, topic, *names):
        return [self.key(topic, name) for name in names]

    def add(self, topic, jobs, when, ids=None):
        """Add one pack. Returns its name, how many were added, the slots of
        those that exist, and a function that sends the call once more."""
        self.redis.sadd(self.prefix + b":topics", topic)
        name = self.name()
        number = "%d.%d" % (self.number, secrets.randbits(30))
        data, header_len = pack(jobs, ids)
        key = self.key(topic, b"p:" + name)
        keys = self.keys(topic, b"wait", b"ids", b"meta", b"idle", b"seen")
        last = self.keys(topic, b"due") if when[:1] in (b"s", b"t") else []
        args = [topic, "delay", self.call_slot + "0", number, len(jobs),
                header_len, when]

        def send():
            answer = self.run("add", keys + [key] + last, args, (key, data))
            if len(answer) % 2 == 0:
                answer = answer[:-1]
            return answer[0], answer[2::2]

        added, refused = send()
        if not self.is_staged or refused and refused[0] in (-1, -4):
            self.rename()  # another client has this name
            return self.add(topic, jobs, when, ids)
        return name, added, refused, send

    def look(self, topic, job_id, verb="show"):
        """State, due time, record and slot of a job; None: there is none."""
        place = self.redis.hget(self.key(topic, b"ids"), job_id)
        slot = b""
        if place is None and job_id.startswith("@"):
            place, slot = job_id[1:13].encode(), int(job_id[13:], 16)
        if place is None:
            return None
        pack_key = self.key(topic, b"p:" + place)
        data = self.redis.get(pack_key)
        dead = self.redis.hget(self.key(topic, b"rec"), job_id)
        keys = self.keys(topic, b"wait", b"run", b"ids", b"meta")
        keys += [pack_key] + self.keys(topic, b"dead", b"rec", b"idle", b"due")
        answer = self.run("slot", keys, [verb, job_id, place, slot])
        if answer[0] == b"moved":
            return self.look(topic, job_id, verb)
        if answer[0] == b"none":
            return None
        found = msgpack.unpackb(dead) if place == b"D" else \
            record_in(data, answer[3])
        return answer[0].decode(), answer[1], found

    def stats(self, topic):
        keys = self.keys(topic, b"wait", b"meta", b"dead", b"relay", b"due")
        answer = self.run("stats", keys, [1000])
        return dict(zip([name.decode() for name in answer[::2]], answer[1::2]))
