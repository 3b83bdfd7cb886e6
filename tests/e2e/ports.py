# SPDX-License-Identifier: MIT
"""Ports of 127.0.0.1 for servers of tests.

All are below 32768, from where on the kernel gives ports to connections. Two
programs never get the same one, also while no server listens there.
"""

import random
import socket

reserved = []  # sockets that do not listen


def reserve(port):
    """Whether the port was free. No other program gets it from now on; a
    server of the test may bind it as well: it has SO_REUSEADDR."""
    taken = socket.socket()
    try:
        taken.bind(("127.0.0.1", port))
    except OSError:
        taken.close()
        return False
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    reserved.append(taken)
    return True


def free_port(also=10000):
    """A port, and the one that is so much above: nodes of a cluster use the
    one 10,000 above, too."""
    while True:
        port = random.randrange(10000, 22768)
        if reserve(port) and reserve(port + also):
            return port


def listener():
    """A socket that listens."""
    return socket.create_server(("127.0.0.1", free_port()))
