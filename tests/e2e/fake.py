# SPDX-License-Identifier: MIT
"""A server that is none: it says what it is told to say."""

import socket
import threading

from ports import free_port


class Fake:
    """Listens on a port of 127.0.0.1. Whoever makes one says in answer(), with
    the words of a command and who sent them, what comes back, without the end
    of its last line; None: nothing."""

    def __init__(self, port=None):
        self.heard = []  # words of commands
        self.listener = socket.create_server(
            ("127.0.0.1", port or free_port()))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def answer(self, words, client):
        return "+OK"

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,),
                             daemon=True).start()

    def serve(self, client):
        file = client.makefile("rb")
        try:
            while True:
                words = read(file)
                if not words or self.listener.fileno() < 0:
                    break
                self.heard.append(words)
                answer = self.answer(words, client)
                if answer is not None:
                    client.sendall(answer.encode() + b"\r\n")
        except OSError:
            pass
        client.close()

    def close(self):
        self.listener.close()


def read(file):
    """The words of the next command; bytes that are no text are replaced."""
    line = file.readline()
    return [file.read(int(file.readline()[1:]) + 2)[:-2].decode(
        errors="replace") for _ in range(int(line[1:]))] if line else []


def bulks(*words):
    return "*%d\r\n" % len(words) + "".join(
        "$%d\r\n%s\r\n" % (len(word), word) for word in words)
