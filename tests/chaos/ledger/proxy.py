# SPDX-License-Identifier: MIT
"""A TCP proxy in front of a server's unix socket that does what networks do:
delays, splits, swallows and cuts."""

import random
import socket
import threading
import time


class Pump(threading.Thread):
    """One direction of one connection."""

    def __init__(self, proxy, source, sink):
        super().__init__(daemon=True)
        self.proxy, self.source, self.sink = proxy, source, sink

    def run(self):
        try:
            while True:
                data = self.source.recv(65536)
                if not data or not self.pass_on(data):
                    break
        except OSError:
            pass
        for end in (self.source, self.sink):
            hang_up(end)

    def pass_on(self, data):
        """False when the connection is to be cut."""
        proxy = self.proxy
        while proxy.is_black.is_set():
            time.sleep(0.01)
        if proxy.delay > 0:
            time.sleep(proxy.delay)
        data, goes_on = proxy.spend(data)
        step = proxy.piece or len(data)
        for at in range(0, len(data), step or 1):
            self.sink.sendall(data[at:at + step])
        return goes_on


def hang_up(end):
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Proxy:
    def __init__(self, target, seed=1):
        self.target = target  # path of a unix socket
        self.random = random.Random(seed)
        self.delay = 0.0      # seconds, for each chunk
        self.piece = 0        # bytes written at a time; 0: all
        self.is_black = threading.Event()
        self.lock = threading.Lock()
        self.left = None      # bytes until the cut
        self.cuts = 0
        self.pairs = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = "redis://127.0.0.1:%d" % self.port
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                server.close()
                continue
            self.pairs.append((client, server))
            Pump(self, client, server).start()
            Pump(self, server, client).start()

    def spend(self, data):
        """What may still pass, and whether the connection goes on."""
        with self.lock:
            if self.left is None:
                return data, True
            self.left -= len(data)
            if self.left > 0:
                return data, True
            data = data[:len(data) + self.left]
            self.left = None
            self.cuts += 1
            return data, False

    def cut_after(self, count):
        """Cut the connection that carries the byte number `count`."""
        with self.lock:
            self.left = count

    def cut_all(self):
        pairs, self.pairs = self.pairs, []
        for client, server in pairs:
            hang_up(client)
            hang_up(server)

    def close(self):
        self.listener.close()
        self.is_black.clear()
        self.cut_all()
