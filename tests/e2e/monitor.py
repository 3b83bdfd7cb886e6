# SPDX-License-Identifier: MIT
"""What programs send to servers, by what the servers say of it."""

import collections
import threading

from resp import Client


class Monitor:
    """Commands that came by TCP, not those of scripts: (when by the server's
    clock, words) of each. The node is not to be down meanwhile."""

    def __init__(self, node):
        self.client = Client(node.path)
        self.client("MONITOR")
        self.commands = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        try:
            while True:
                self.take(self.client.file.readline().decode(errors="replace"))
        except (OSError, ValueError, IndexError):
            pass  # closed

    def take(self, line):
        when, _, rest = line[1:].partition(" ")
        source, _, words = rest.partition("] ")
        if not source.endswith(" lua") and "unix:" not in source:
            self.commands.append((float(when), words.strip()))

    def close(self):
        self.client.socket.shutdown(2)
        self.reader.join()
        self.client.close()

    def kinds(self):
        return collections.Counter(words.split()[0].strip('"').upper()
                                   for _, words in self.commands)
