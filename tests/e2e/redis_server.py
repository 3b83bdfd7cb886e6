# SPDX-License-Identifier: MIT
"""A redis-server as somebody else would run it."""

import os
import struct
import subprocess

from e2e import BUILD, Redis, eventually, expect_in, expect_true
from ports import free_port
from resp import Client


class Server:
    """Answers on a port and on a unix socket."""

    env = None

    def __init__(self, place, *args, waits_for="+PONG", name="other"):
        directory = place.path(name)
        self.path = os.path.join(directory, "redis.sock")
        self.url = "unix://" + self.path
        self.port = free_port()
        os.makedirs(directory, exist_ok=True)
        self.place, self.waits_for = place, waits_for
        self.command = [
            "redis-server", "--port", str(self.port), "--bind", "127.0.0.1",
            "--unixsocket", self.path, "--dir", directory, "--save", "", *args]
        self.start()

    def start(self):
        """Also again, after it was killed."""
        self.process = subprocess.Popen(self.command, text=True, env=self.env,
                                        stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.place.started.append(self.process)
        eventually(lambda: self.answer().startswith(self.waits_for),
                   "it answers")

    def url_of(self, login):
        return "redis://%s@127.0.0.1:%d" % (login, self.port)

    def answer(self):
        try:
            redis = Redis(self.path)
        except OSError:
            return ""
        redis.send("PING")
        line = redis.line()
        redis.close()
        return line

    def tell(self, line):
        redis = Redis(self.path)
        redis.send(line)
        answer = redis.line()
        redis.close()
        expect_true(answer[:1] != "-", "%s: %s" % (line, answer))
        return answer

    def told(self, line):
        """A bulk answer; "" for none."""
        redis = Redis(self.path)
        redis.send(line)
        size = redis.line()
        expect_in("$", size[:1])
        text = redis.file.read(max(int(size[1:]), 0)).decode()
        redis.close()
        return text

    def log_in(self, rights="", keys="~weir:*"):
        """Make the login w:pw, which has these alone."""
        self.tell("ACL SETUSER w on >pw resetchannels &weir:* %s +@all %s"
                  % (keys, rights))

    def guard(self, rule):
        return guard(self.path, rule)

    def give_slots(self, first, last):
        for at in range(first, last + 1, 1024):  # a line holds 64 KiB
            self.tell("CLUSTER ADDSLOTS " + " ".join(
                str(slot) for slot in range(at, min(at + 1024, last + 1))))

    def kill(self):
        self.process.kill()
        self.process.wait()


class Clocked(Server):
    """The server of a place, whose clock a test puts ahead: see
    tests/harness/server_clock.c."""

    def __init__(self, place):
        self.clock, self.ahead_ns = place.write("clock", "\0" * 8), 0
        self.env = {
            **os.environ, "WEIR_CLOCK": self.clock,
            "LD_PRELOAD": os.path.join(BUILD, "tests/core/libserver_clock.so")}
        super().__init__(place)
        place.env["WEIR_REDIS"] = self.url

    def advance(self, ms):
        self.ahead_ns += ms * 1000000
        with open(self.clock, "r+b") as file:
            file.write(struct.pack("q", self.ahead_ns))


def guard(path, rule):
    """Let nobody in but the user of this rule, as NAME:pw; returns a client who
    may do all."""
    admin = Client(path)
    admin(*rule.replace("PASSWORD", "pw").split())
    admin("ACL", "SETUSER", "default", "off")
    return admin


def refused(admin):
    """What the server refused, but for what weir only tries, in a transaction,
    and for settings, without which it does."""
    entries = [dict(zip(entry[::2], entry[1::2]))
               for entry in admin("ACL", "LOG")]
    return [entry for entry in entries if entry[b"context"] != b"multi"
            and not entry[b"object"].startswith(b"config")]


def use_good_plugins(place):
    place.env["WEIR_PLUGIN_PATH"] = os.path.abspath(
        os.path.join(BUILD, "plugins"))
