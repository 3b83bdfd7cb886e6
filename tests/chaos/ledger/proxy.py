# SPDX-License-Identifier: MIT
"""A TCP proxy in front of a server's unix socket that does what networks do:
delays, splits, swallows and cuts."""

import random
import socket
import threading
import time

from ports import listener


class Pair:
    """A connection and the one behind it."""

    def __init__(self, client, server):
        self.ends = (client, server)
        self.pumps = 2
        self.lock = threading.Lock()

    def hang_up(self):
        for end in self.ends:
            hang_up(end)

    def leave(self):
        """One direction is over, and with it the other."""
        self.hang_up()
        with self.lock:
            self.pumps -= 1
            if self.pumps == 0:
                for end in self.ends:
                    end.close()


class Pump(threading.Thread):
    """One direction of a pair."""

    def __init__(self, proxy, pair, source, sink):
        super().__init__(daemon=True)
        self.proxy, self.pair = proxy, pair
        self.source, self.sink = source, sink

    def run(self):
        try:
            while True:
                data = self.source.recv(65536)
                if not data or not self.pass_on(data):
                    break
        except OSError:
            pass
        self.pair.leave()

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
        self.listener = listener()
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
            pair = Pair(client, server)
            self.pairs = [old for old in self.pairs if old.pumps > 0] + [pair]
            Pump(self, pair, client, server).start()
            Pump(self, pair, server, client).start()

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
        for pair in self.pairs:
            pair.hang_up()

    def close(self):
        self.listener.close()
        self.is_black.clear()
        self.cut_all()
