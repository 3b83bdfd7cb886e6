# SPDX-License-Identifier: MIT
"""A way to a server for one command at a time, on which the server can be
killed at the n-th command: instead of it, or behind it and ahead of its
answer. What clients say while they connect does not count."""

import socket
import threading

from proxy import hang_up
from server import write_command
from tap import read_command

UNCOUNTED = {b"AUTH", b"CLIENT", b"INFO", b"PING", b"SCRIPT", b"SELECT",
             b"SUBSCRIBE", b"TIME"}


def read_reply(file):
    """The bytes of one reply."""
    line = file.readline()
    if not line.endswith(b"\n"):
        raise ConnectionError("the server hung up")
    kind, parts = line[:1], [line]
    if kind == b"$" and int(line[1:]) >= 0:
        parts.append(file.read(int(line[1:]) + 2))
    elif kind == b"*":
        parts += [read_reply(file) for _ in range(int(line[1:]))]
    return b"".join(parts)


class Gate:
    def __init__(self, path, server):
        self.server = server
        self.url = "unix://" + path
        self.lock = threading.Lock()  # one command at a time
        self.count = 0
        self.fatal = None    # the number of the command, or None
        self.is_behind = False
        self.killed = None   # the command
        self.is_down = threading.Event()
        self.clients = []
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def arm(self, number, is_behind):
        """The server dies at that command from now on."""
        with self.lock:
            self.count, self.fatal, self.is_behind = 0, number, is_behind
            self.killed = None
            self.is_down.clear()

    def disarm(self):
        with self.lock:
            self.fatal = None

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.server.socket)
            except OSError:
                client.close()
                server.close()
                continue
            threading.Thread(target=self.serve, args=(client, server),
                             daemon=True).start()

    def serve(self, client, server):
        commands, replies = client.makefile("rb"), server.makefile("rb")
        try:
            while True:
                words = read_command(commands)
                if words is None:
                    break
                with self.lock:
                    reply = self.ask(words, server, replies)
                client.sendall(reply)
                if words[0] == b"SUBSCRIBE" and reply != b"+QUEUED\r\n":
                    threading.Thread(target=self.listen, daemon=True,
                                     args=(client, replies)).start()
        except (OSError, ValueError):
            pass
        for end in (client, server):
            hang_up(end)
            end.close()

    def ask(self, words, server, replies):
        is_fatal = False
        if words[0] not in UNCOUNTED:
            self.count += 1
            is_fatal = self.count == self.fatal
        if is_fatal and not self.is_behind:
            self.kill(words)
        server.sendall(write_command(words))
        reply = read_reply(replies)
        if is_fatal:
            self.kill(words)
        return reply

    def kill(self, words):
        self.server.kill()
        self.killed = words
        self.is_down.set()
        raise ConnectionError("killed")

    @staticmethod
    def listen(client, replies):
        try:
            while True:
                client.sendall(read_reply(replies))
        except (OSError, ValueError):
            hang_up(client)

    def close(self):
        self.listener.close()
