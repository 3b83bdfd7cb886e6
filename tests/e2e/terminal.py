# SPDX-License-Identifier: MIT
"""A program on a terminal of its own."""

import fcntl
import os
import pty
import select
import struct
import termios

from e2e import WEIR, eventually


class Terminal:
    """weir there; `shown` is what it printed so far, both streams."""

    def __init__(self, place, *args, lines=24, width=80, program=WEIR,
                 cwd=".", **env):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            fcntl.ioctl(1, termios.TIOCSWINSZ,
                        struct.pack("HHHH", lines, width, 0, 0))
            os.execvpe(program, [program, *args],
                       {**place.env, "TERM": "xterm", **env})
        self.shown = b""

    def read(self):
        """Wait for more; False when it is over."""
        eventually(lambda: select.select([self.fd], [], [], 0.1)[0],
                   "something is printed behind %r" % self.shown)
        try:
            more = os.read(self.fd, 65536)
        except OSError:  # nobody has it open any more
            return False
        self.shown += more
        return more != b""

    def wait(self):
        """Read to the end; the exit code."""
        while self.read():
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
