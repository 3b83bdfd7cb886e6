# SPDX-License-Identifier: MIT
"""A client of a Redis server as other people's programs have one: it knows
nothing of weir."""

import socket

from patience import WALL


class ReplyError(Exception):
    pass


class Client:
    """One connection to a unix socket; call it with the words of a command."""

    def __init__(self, path, patience=WALL):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(patience)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def __call__(self, *words):
        return self.pipeline([words])[0]

    def pipeline(self, commands):
        out = []
        for words in commands:
            out.append(b"*%d\r\n" % len(words))
            for word in words:
                if not isinstance(word, bytes):
                    word = str(word).encode()
                out.append(b"$%d\r\n%s\r\n" % (len(word), word))
        self.socket.sendall(b"".join(out))
        return [self.reply() for _ in commands]

    def script_calls(self):
        """Calls of scripts by their names, since CONFIG RESETSTAT."""
        stats = self("INFO", "commandstats").decode()
        return int(stats.split("cmdstat_evalsha:calls=")[1].split(",")[0])

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server hung up")
        form, rest = line[:1], line[1:-2]
        if form == b"-":
            raise ReplyError(rest.decode())
        if form == b":":
            return int(rest)
        if form == b"+":
            return rest.decode()
        if int(rest) < 0:
            return None
        if form == b"$":
            return self.file.read(int(rest) + 2)[:-2]
        return [self.reply() for _ in range(int(rest))]

    def close(self):
        self.file.close()
        self.socket.close()
