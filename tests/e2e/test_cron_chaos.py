# SPDX-License-Identifier: MIT
"""Schedules of one second while workers are killed at random: each time has
exactly one job, and none is missing.

WEIR_CRON_SECONDS, _SCHEDULES and _WORKERS make it longer, _KILL is how often one
is killed, in seconds; how late the jobs started, from the time in their id on,
is printed, not judged: of all, and of those around which the host of a virtual
machine took no CPU time for others (proc_stat(5), `steal`)."""

import datetime
import os
import random
import signal
import threading
import time

from e2e import eventually, expect, expect_true, terminate, test, wait
from patience import Stopwatch

SECONDS = int(os.environ.get("WEIR_CRON_SECONDS", "6"))
SCHEDULES = int(os.environ.get("WEIR_CRON_SCHEDULES", "40"))
WORKERS = int(os.environ.get("WEIR_CRON_WORKERS", "3"))
KILL_S = float(os.environ.get("WEIR_CRON_KILL", "0.2"))
AT_ONCE = 8


class Steal(threading.Thread):
    """Notes, each SPAN_MS, whether CPU time was stolen."""
    SPAN_MS = 200

    def __init__(self):
        super().__init__(daemon=True)
        self.spans, self.total_s = set(), 0
        self.start()

    @staticmethod
    def stolen():
        with open("/proc/stat") as file:
            return int(file.readline().split()[8])

    def run(self):
        before = self.stolen()
        while True:
            at = time.time() * 1000 // self.SPAN_MS
            time.sleep(self.SPAN_MS / 1000)
            stolen = self.stolen()
            self.total_s += (stolen - before) / os.sysconf("SC_CLK_TCK")
            if stolen > before:
                self.spans |= {at, time.time() * 1000 // self.SPAN_MS}
            before = stolen

    def is_calm(self, ms):
        return not self.spans & {ms // self.SPAN_MS + i for i in (-1, 0, 1)}


def add_all(place):
    running = []
    for i in range(SCHEDULES):
        running.append(place.start("cron", "add", "s%d" % i, "--topic", "t",
                                   "--every", "1s", "--missed", "all"))
        if len(running) >= AT_ONCE:
            expect(0, wait(running.pop(0)))
    for process in running:
        expect(0, wait(process))


def moment_of(job_id):
    """(schedule, ms since 1970) of an id NAME@TIME."""
    name, text = job_id.split("@")
    form = "%Y-%m-%dT%H:%M:%S.%fZ" if "." in text else "%Y-%m-%dT%H:%M:%SZ"
    at = datetime.datetime.strptime(text, form)
    at = at.replace(tzinfo=datetime.timezone.utc)
    return name, round(at.timestamp() * 1000)


def begun(place):
    """S ID TOKEN ATTEMPT MS of each run that began."""
    try:
        with open(place.path("out"), encoding="ascii") as file:
            lines = [line.split() for line in file]
    except FileNotFoundError:
        return []
    return [words for words in lines if len(words) == 5 and words[0] == "S"]


def jobs_left(place):
    """Ids, without ticks."""
    return {job["id"] for job in place.ok("list", "t", "--limit", "100000")
            if not job["id"].endswith("@next")}


def has_no_job_again(place):
    """None that a killed worker began is there still."""
    ids = {words[1] for words in begun(place)}
    return not ids & jobs_left(place)


def times_of(place, since=0):
    """Of each schedule its times, each once; and how late each job was, with
    its time, of times behind `since`."""
    times, late = {}, []
    for words in begun(place):
        name, ms = moment_of(words[1])
        if ms not in times.setdefault(name, set()) and ms >= since:
            late.append((int(words[4]) - ms, ms))
        times[name].add(ms)
    return times, sorted(late)


def describe(late):
    return "p50 %d ms, p99 %d ms, most %d ms" % (
        late[len(late) // 2][0], late[len(late) * 99 // 100][0], late[-1][0])


def disturb(place, workers, seconds):
    """Kill one after the other, and start another one for it."""
    killed, watch = 0, Stopwatch()
    while watch.seconds() < seconds:
        time.sleep(KILL_S * random.uniform(0.5, 1.5))
        at = random.randrange(len(workers))
        workers[at].send_signal(signal.SIGKILL)
        wait(workers[at])
        workers[at] = start(place)
        killed += 1
    return killed


def start(place):
    return place.start("run", "--handle", place.handler("ledger", file="out"),
                       "--lease", "1s", stderr=open(os.devnull, "w"))


def have_all(place, until):
    times = times_of(place)[0]
    return len(times) == SCHEDULES and all(max(times[name]) >= until
                                           for name in times)


@test
def each_second_of_each_schedule_has_one_job_whoever_is_killed(place):
    add_all(place)
    steal = Steal()
    workers = [start(place) for _ in range(WORKERS)]
    eventually(lambda: have_all(place, 0), "each schedule has made a job")
    begin = time.time() * 1000
    killed = disturb(place, workers, SECONDS)
    until = time.time() * 1000
    eventually(lambda: have_all(place, until), "what was missed is made up for")
    eventually(lambda: has_no_job_again(place), "what was begun is done")
    for worker in workers:
        terminate(worker)
        expect(0, wait(worker))
    times, late = times_of(place, begin)
    left = jobs_left(place)
    for name, found in times.items():
        here = {ms for of, ms in map(moment_of, left) if of == name}
        expect(set(), here & found, name)
        both = sorted(found | here)
        expect(list(range(both[0], both[-1] + 1, 1000)), both, name)
    made = sum(len(found) for found in times.values())
    stats = place.stats("t")
    expect((made, SCHEDULES + len(left), SCHEDULES + made + len(left)),
           (stats["done_total"], stats["scheduled"] + stats["ready"],
            stats["added_total"]))
    print("%d jobs of %d schedules, %d workers killed; late: %s"
          % (made, SCHEDULES, killed, describe(late)))
    calm = [one for one in late if steal.is_calm(one[1])]
    print("%.1f s of CPU were stolen; of the %d jobs around which none was: %s"
          % (steal.total_s, len(calm), describe(calm) if calm else "-"))
    expect_true(made > SCHEDULES, "the schedules went on")
