# SPDX-License-Identifier: MIT
"""A redis-server that tests stop, kill and start again, and a client for it."""

import os
import signal
import socket
import subprocess

from e2e import eventually, expect, patient


class Refused(Exception):
    """The server answered with an error."""


def write_command(words):
    parts = [word if isinstance(word, bytes) else str(word).encode()
             for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(
        b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)


class Client:
    """A blocking connection to a unix socket; raw: strings come as bytes."""

    def __init__(self, path, raw=False):
        self.raw = raw
        self.socket = patient(socket.socket(socket.AF_UNIX))
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def call(self, *words):
        self.socket.sendall(write_command(words))
        return self.reply()

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server hung up")
        kind, text = line[:1], line[1:-2].decode(errors="replace")
        if kind == b"-":
            raise Refused(text)
        if kind == b":":
            return int(text)
        if kind == b"$":
            if int(text) < 0:
                return None
            data = self.file.read(int(text) + 2)[:-2]
            return data if self.raw else data.decode(errors="replace")
        if kind == b"*":
            return [self.reply() for _ in range(int(text))]
        return text

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    """Answers on a unix socket in a directory of its own; the append-only file
    outlives the process."""

    def __init__(self, place, name="server", fsync="everysec", port=0):
        self.place = place
        self.dir = place.path(name)
        os.mkdir(self.dir)
        self.socket = os.path.join(self.dir, "redis.sock")
        self.url = "unix://" + self.socket
        self.options = ["--port", port, "--unixsocket", self.socket,
                        "--save", "", "--appendonly", "yes",
                        "--appendfsync", fsync, "--dir", self.dir,
                        "--repl-diskless-sync-delay", 0,
                        "--logfile", os.path.join(self.dir, "log")]
        self.process = None
        self.is_killed = False

    def launch(self):
        """Start it and do not wait until it answers."""
        self.process = subprocess.Popen(
            ["redis-server", *map(str, self.options)],
            stdin=subprocess.DEVNULL)
        self.place.started.append(self.process)

    def start(self):
        if self.is_killed:
            self.repair()
        self.is_killed = False
        self.launch()
        eventually(lambda: self.process.poll() is not None or self.answers(),
                   "the server starts, see %s/log" % self.dir)
        expect(None, self.process.poll(), "the server, see %s/log" % self.dir)
        return self

    def files(self, end):
        """The append-only file, or what has such an end where there are several
        (since 7.0)."""
        folder = os.path.join(self.dir, "appendonlydir")
        if not os.path.isdir(folder):
            return os.path.join(self.dir, "appendonly.aof")
        return os.path.join(folder, max(
            name for name in os.listdir(folder) if name.endswith(end)))

    def aof(self):
        """The one that grows."""
        return self.files(".incr.aof")

    def repair(self):
        """What the server is to do after a crash, see docs/guarantees.md:
        shortened by itself, the file may end in the middle of a step."""
        with open(os.path.join(self.dir, "repairs"), "a") as log:
            subprocess.run(["redis-check-aof", "--fix",
                            self.files(".manifest")], input="y\n", text=True,
                           stdout=log, stderr=log, check=True)

    def answers(self):
        try:
            return self.call("PING") == "PONG"
        except (OSError, Refused):
            return False

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.is_killed = True

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def call(self, *words):
        client = Client(self.socket)
        try:
            return client.call(*words)
        finally:
            client.close()

    def info(self, section):
        lines = self.call("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def command_count(self):
        """Commands that clients sent so far, or that scripts called."""
        return int(self.info("stats")["total_commands_processed"])
