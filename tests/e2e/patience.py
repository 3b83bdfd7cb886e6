# SPDX-License-Identifier: MIT
"""Waiting that does not give up because the machine is busy.

The patience clock runs at wall speed minus the time in which tasks waited for
a CPU. The clock keeps at least a tenth of wall speed, so each wait ends.
"""

import contextlib
import os
import subprocess
import threading
import time

PATIENCE = 60.0  # seconds of the patience clock, for all that ends by itself
PACE = 10  # the clock runs at most this much slower than the wall
WALL = PACE * PATIENCE  # seconds of the wall, after which no patience is left
CORES = os.cpu_count()
TICKS = os.sysconf("SC_CLK_TCK")


def elapsed(wall, waited):
    return max(wall - waited, wall / PACE)


def waited(before, now):
    """Seconds of waiting between two readings. Each is what the host stole,
    and a table of waits: one for all tasks, or one per process."""
    return max(now[0] - before[0], sum(
        wait - before[1].get(key, 0) for key, wait in now[1].items()))


def stolen():
    """Seconds that the host took from each core, on average."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) / TICKS / CORES


def stat(process):
    """Fields of /proc/PID/stat, from the state on."""
    with open("/proc/%s/stat" % process) as file:
        return file.read().rsplit(")", 1)[1].split()


def processes():
    """Waits of processes that are as young as this one: its children, their
    servers, and others that started since."""
    waits, start = {}, int(stat("self")[19])
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if int(stat(pid)[19]) >= start:
                with open("/proc/%s/schedstat" % pid) as file:
                    waits[pid] = int(file.read().split()[1]) / 1e9
    return waits


def pressure():
    """The wait of all tasks, where the kernel counts it."""
    try:
        with open("/proc/pressure/cpu") as file:
            return {"some": int(file.readline().rsplit("=", 1)[1]) / 1e6}
    except OSError:
        return processes()


def read():
    return stolen(), pressure()


class Stopwatch:
    """Seconds of the wall: how long a test does something, or what it prints.
    A limit of them fails on a busy machine."""

    def __init__(self):
        self.begin = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.begin


class Clock(Stopwatch):
    """Patience that runs out."""

    def __init__(self, patience=PATIENCE):
        self.patience, self.reading = patience, read()
        super().__init__()

    def is_over(self):
        wall = self.seconds()
        return wall >= self.patience and elapsed(
            wall, waited(self.reading, read())) >= self.patience


def eventually(condition, what, patience=PATIENCE):
    """Wait until condition() is true; returns its value."""
    clock, is_over = Clock(patience), False
    while not is_over:
        is_over = clock.is_over()  # and one more look after that
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError("did not come true: " + what)


@contextlib.contextmanager
def guarded(process, patience=PATIENCE):
    """Kill the process if the block takes too long: what it waits for ends."""
    clock, has_ended, is_late = Clock(patience), threading.Event(), []

    def watch():
        while not has_ended.wait(1):
            if clock.is_over():
                is_late.append(True)
                process.kill()

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        has_ended.set()
        watcher.join()
    if is_late:
        raise AssertionError("%r does not end" % (process.args,))


def rest(seconds=0.3):
    """Let time pass on the patience clock: what must not happen could."""
    eventually(Clock(seconds).is_over, "time passes")


def communicate(process, text=None, patience=PATIENCE):
    """(stdout, stderr) of a process that must end."""
    err = None
    try:
        with guarded(process, patience):  # children may hold its pipes
            out, err = process.communicate(text, timeout=WALL * 2)
    except AssertionError as late:
        raise AssertionError("%s; its stderr %r" % (late, err)) from None
    return out, err


def wait(process, patience=PATIENCE):
    """The exit code of a process that must end. Others read its pipes."""
    with guarded(process, patience):
        return process.wait()


def run(command, written=None, patience=PATIENCE, check=False, **options):
    """subprocess.run() of a program that must end; text is written to it."""
    pipe = subprocess.PIPE
    options = {"text": True, "stdout": pipe, "stderr": pipe, **options}
    if written is not None:
        options["stdin"] = pipe
    with subprocess.Popen(command, **options) as process:
        out, err = communicate(process, written, patience)
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check and done.returncode:
        raise AssertionError("%r failed: %r" % (command, err))
    return done


def patient(connection):
    connection.settimeout(WALL)
    return connection
