# SPDX-License-Identifier: MIT
"""python3 guard.py COMMAND...: runs it until stdin ends, as it does when its
other holder ends, by whatever. Then nothing is left of what the command
started."""

import ctypes
import os
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36


def children():
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        return [int(pid) for pid in file.read().split()]


def end_all():
    """Those of a child that ended become children of this process."""
    while children():
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        os.wait()


if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
    sys.exit("guard.py: prctl failed")
command = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
sys.stdin.buffer.read()
end_all()
