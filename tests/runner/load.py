# SPDX-License-Identifier: MIT
"""How busy the machine is, and patience: a clock that does not count the time
in which programs wait for a CPU."""

import os
import time
from collections import namedtuple

# psi_s: how long any task waited for a CPU, None without /proc/pressure.
Reading = namedtuple("Reading", "wall_s psi_s stolen_s")
MOST_SLOWER = 10  # patience runs at a tenth of the wall clock's speed at least


def read():
    try:
        with open("/proc/pressure/cpu") as file:
            psi_s = int(file.readline().rsplit("=", 1)[1]) / 1e6
    except OSError:
        psi_s = None
    with open("/proc/stat") as file:
        ticks = int(file.readline().split()[8])
    stolen_s = ticks / os.sysconf("SC_CLK_TCK") / os.cpu_count()
    return Reading(time.monotonic(), psi_s, stolen_s)


def waited_ns(pid):
    """How long a process was ready to run and did not; None if it ended."""
    try:
        with open("/proc/%d/schedstat" % pid) as file:
            return int(file.read().split()[1])
    except (OSError, IndexError):
        return None


def patience_s(before, after, waited_s):
    """Wall time without the time in which tasks of the machine waited for a
    CPU. Without /proc/pressure `waited_s`, the waits of the program's own
    processes, stand in for it."""
    wall_s = after.wall_s - before.wall_s
    lost_s = waited_s if after.psi_s is None else after.psi_s - before.psi_s
    lost_s = max(lost_s, after.stolen_s - before.stolen_s)
    return max(wall_s - lost_s, wall_s / MOST_SLOWER)
