# SPDX-License-Identifier: MIT
"""How much of what a primary says its replica hears."""

import threading
import time

from cluster import ask
from e2e import eventually
from ledger import now_ms
from resp import Client


class Offsets(threading.Thread):
    """Notes what a primary has told its replica, until it dies."""

    def __init__(self, primary, replica):
        super().__init__(daemon=True)
        self.primary, self.said = primary, []
        self.start()
        eventually(lambda: self.said, "it says something")
        eventually(lambda: number(ask(replica, "INFO", "replication"),
                                  "master_repl_offset") >= self.said[0][1],
                   "its replica hears that")

    def run(self):
        client = Client(self.primary.path)
        try:
            while True:
                at = now_ms()
                self.said.append((at, number(client("INFO", "replication"),
                                             "master_repl_offset")))
                time.sleep(0.005)
        except (OSError, ConnectionError):
            pass

    def known_until(self, replica):
        """It took over, and had heard of everything until then."""
        heard = number(ask(replica, "INFO", "replication"),
                       "second_repl_offset") - 1
        return max(at for at, end in self.said if end <= heard)


def number(info, name):
    return int(info.decode().partition(name + ":")[2].split()[0])


def added(node, topic):
    """Also by a replica."""
    client = Client(node.path)
    try:
        return int(client.pipeline([
            ("READONLY",),
            ("HGET", "weir:{%s}:meta" % topic, "added")])[1] or 0)
    finally:
        client.close()


def cut_off(primary, replica):
    """What the primary says from now on is not heard, though it lives."""
    ask(replica, "CONFIG", "SET", "masterauth", "wrong")
    ask(primary, "CLIENT", "KILL", "TYPE", "replica")
    eventually(lambda: not replica.is_connected(), "it hears nothing")
