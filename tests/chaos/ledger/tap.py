# SPDX-License-Identifier: MIT
"""A proxy that shows each command to a function before the server gets it."""

import os
import socket
import threading

from proxy import hang_up
from server import write_command


def read_command(file):
    """The words of one command as bytes; None at the end."""
    line = file.readline()
    if not line.startswith(b"*"):
        return None
    words = []
    for _ in range(int(line[1:])):
        size = int(file.readline()[1:])
        words.append(file.read(size + 2)[:-2])
    return words


class Tap:
    def __init__(self, path, target, look):
        self.target, self.look = target, look
        self.lock = threading.Lock()  # one command at a time
        self.trouble = None
        self.url = "unix://" + path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self.target)
            for work in (self.forth, self.back):
                threading.Thread(target=work, args=(client, server),
                                 daemon=True).start()

    def forth(self, client, server):
        file = client.makefile("rb")
        try:
            while True:
                words = read_command(file)
                if words is None:
                    break
                with self.lock:
                    self.show(words)
                    server.sendall(write_command(words))
        except (OSError, ValueError):
            pass
        hang_up(client)
        hang_up(server)

    def show(self, words):
        try:
            self.look(words)
        except BaseException as trouble:  # told by the test's own thread
            self.trouble = self.trouble or trouble

    def back(self, client, server):
        try:
            while True:
                data = server.recv(65536)
                if not data:
                    break
                client.sendall(data)
        except OSError:
            pass
        hang_up(client)
        hang_up(server)
        for end in (client, server):
            end.close()

    def close(self):
        self.listener.close()
        os.unlink(self.url[len("unix://"):])
        if self.trouble is not None:
            raise self.trouble
