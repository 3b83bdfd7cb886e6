# SPDX-License-Identifier: MIT
"""Run one program with everything that it starts, and measure it.

Each program gets a supervisor: a forked process that adopts orphans (servers
that a test started and left), so that it can kill all of them at the end and
count their CPU time.
"""

import ctypes
import json
import os
import resource
import signal
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))), "e2e"))
import patience

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
TICK_S = 0.25  # between two looks at what waits for a CPU


def start(command, env, cwd, log_path, limit_s, nice=0):
    """Start `command`; returns the supervisor's pid and the descriptor from
    which `finish` reads. `limit_s` is patience. The caller has no threads."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            record = _watch(command, env, cwd, log_path, limit_s, nice)
            os.write(writing, json.dumps(record).encode())
        finally:
            os._exit(0)
    os.close(writing)
    return pid, reading


def finish(pid, reading):
    """The record of a program that ended: `status` (negative: a signal),
    `timed_out`, `cpu_s`, `wall_s`, `waited_s` (its processes, for a CPU),
    `psi_s` and `stolen_s` (the whole machine)."""
    with os.fdopen(reading, "rb") as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    if not text:
        raise RuntimeError("a supervisor ended without a record")
    return json.loads(text)


def hurry(pid):
    """Ends the low priority of what the supervisor `pid` started, if this user
    may do that. Returns whether something has started."""
    found = _descendants(pid)
    for one in found:
        try:
            os.setpriority(os.PRIO_PROCESS, one, 0)
            with open("/proc/%d/autogroup" % one, "w", encoding="ascii") as file:
                file.write("0")
        except OSError:
            pass
    return bool(found)


def _spawn(command, env, cwd, log_path, nice):
    pid = os.fork()
    if pid != 0:
        return pid
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in signal.SIGHUP, signal.SIGINT, signal.SIGQUIT:
            signal.signal(number, signal.SIG_DFL)  # nohup ignores some
        os.setsid()
        _lower_priority(nice)
        os.chdir(cwd)
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.execvpe(command[0], command, env)
    except OSError as error:
        os.write(2, ("%s: %s\n" % (command[0], error)).encode())
    os._exit(127)


def _lower_priority(nice):
    """Also of the session, where Linux gives each session a fair share."""
    os.nice(nice)
    if nice:
        try:
            with open("/proc/self/autogroup", "w", encoding="ascii") as file:
                file.write(str(nice))
        except OSError:
            pass


def _descendants(pid):
    found, left = [], [pid]
    while left:
        pid = left.pop()
        try:
            with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
                children = [int(word) for word in file.read().split()]
        except OSError:  # it ended meanwhile
            continue
        found += children
        left += children
    return found


def _waited_s(pid):
    """How long a process was ready to run and did not; None if it ended."""
    try:
        with open("/proc/%d/schedstat" % pid) as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError):
        return None


def _kill_all():
    """Until no descendant is left; their CPU time is counted when they are
    reaped."""
    while True:
        for pid in _descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                time.sleep(0.005)
        except ChildProcessError:
            return


def _reap(main):
    """The status of `main` if it ended; reaps others on the way."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == main:
            return os.waitstatus_to_exitcode(status)
        if pid == 0:
            return None


def _watch(command, env, cwd, log_path, limit_s, nice):
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signals = {signal.SIGCHLD, signal.SIGTERM, signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    begin, before, waits, status = time.monotonic(), patience.read(), {}, None
    clock = patience.Clock(limit_s)
    main = _spawn(command, env, cwd, log_path, nice)
    timed_out = False
    while status is None:
        came = signal.sigtimedwait(signals, TICK_S)
        if came is not None and came.si_signo != signal.SIGCHLD:
            _kill_all()
            os._exit(1)
        for pid in _descendants(os.getpid()):
            waits[pid] = _waited_s(pid) or waits.get(pid, 0)
        status = _reap(main)
        if status is None and clock.is_over():
            timed_out, status = True, -signal.SIGKILL
    wall_s, after = time.monotonic() - begin, patience.read()
    _kill_all()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    if timed_out:
        with open(log_path, "a", encoding="utf-8") as log:
            log.write("  took more than %g s\n" % limit_s)
    return {"status": status, "timed_out": timed_out,
            "cpu_s": usage.ru_utime + usage.ru_stime,
            "wall_s": wall_s, "waited_s": sum(waits.values()),
            "psi_s": (after[1]["some"] - before[1]["some"]
                      if "some" in after[1] else None),
            "stolen_s": after[0] - before[0]}
