# SPDX-License-Identifier: MIT
"""The account of a ledger test: what was promised for each job, what handlers
wrote down, and what does not fit. Knows no server and no process.

Times are milliseconds since 1970 on the one clock of the machine.
"""

import collections


class Job:
    """What a producer knows of a job."""

    def __init__(self, name):
        self.name = name
        self.is_acknowledged = False
        self.is_uncertain = False  # an add or delete of it got no answer
        self.not_before = 0        # it must not start earlier
        self.deleted_at = None     # it waited then and must not start later
        self.may_be_gone = False   # deleted while it ran, or no answer came


class Run:
    def __init__(self, worker, job, token, attempt, start):
        self.worker, self.job, self.token = worker, job, token
        self.attempt, self.start = attempt, start
        self.end = self.verdict = None


class Fault:
    """Something that was done to a worker, or to all of them (None)."""

    def __init__(self, what, worker, begin, end=None):
        self.what, self.worker = what, worker
        self.begin = begin
        self.end = begin if end is None else end

    def explains(self, before, after):
        """That what ran as `before` ran as `after` again. Of the two, the one
        with the smaller token had lost its lease."""
        loser = before if before.token < after.token else after
        return (self.worker in (None, loser.worker) and
                self.begin <= after.start and self.end >= before.start)


def read_runs(worker, text):
    """Runs in the order they started; an unfinished last line is none."""
    runs = {}
    for line in text.splitlines(True):
        if not line.endswith("\n"):
            break
        what, job, token, detail, at = line.split()
        if what == "S":
            key = (job, int(token), len(runs))
            runs[key] = Run(worker, job, int(token), int(detail), int(at))
            last = runs[key]
        else:
            if (last.job, last.token) != (job, int(token)):
                raise AssertionError("%s ends what it did not start: %s"
                                     % (worker, line))
            last.end, last.verdict = int(at), detail
    return list(runs.values())


class Account:
    """`jobs`: by name. `dead`: name -> reason. Lists what is wrong in `wrong`
    as sentences; `repeated` are pairs of runs."""

    def __init__(self, jobs, runs, dead, faults):
        self.jobs, self.dead, self.faults = jobs, dead, faults
        self.runs = collections.defaultdict(list)
        for run in sorted(runs, key=lambda run: (run.start, run.token)):
            self.runs[run.job].append(run)
        self.wrong = []
        self.lost = []
        self.repeated = []
        self.counts = collections.Counter()
        for name in self.runs:
            if name not in jobs:
                self.wrong.append("%s ran and was never added" % name)
        for job in jobs.values():
            self.judge(job)

    def judge(self, job):
        runs = self.runs.get(job.name, [])
        fate = self.fate(job, runs)
        self.counts[fate] += 1
        if fate == "lost":
            self.lost.append(job.name)
            self.wrong.append("%s is lost: %d runs" % (job.name, len(runs)))
        self.check_times(job, runs)
        self.check_tokens(job, runs)
        self.find_repeated(job, runs)

    def fate(self, job, runs):
        verdicts = {run.verdict for run in runs}
        if job.name in self.dead:
            if not self.dead[job.name]:
                self.wrong.append("%s is dead without a reason" % job.name)
            if self.dead[job.name] == "failed" and "fail" not in verdicts:
                self.wrong.append("%s did not fail and is dead" % job.name)
            return "dead"
        if "done" in verdicts:
            return "done"
        if job.deleted_at is not None or job.may_be_gone:
            return "deleted"
        return "lost" if job.is_acknowledged else "never added"

    def check_times(self, job, runs):
        for run in runs:
            if run.start < job.not_before:
                self.wrong.append("%s started %d ms early"
                                  % (job.name, job.not_before - run.start))
            if job.deleted_at is not None and run.start > job.deleted_at:
                self.wrong.append("%s ran %d ms after it was deleted"
                                  % (job.name, run.start - job.deleted_at))

    def check_tokens(self, job, runs):
        tokens = [run.token for run in runs]
        if len(set(tokens)) < len(tokens):
            self.wrong.append("%s ran twice under one token: %s"
                              % (job.name, tokens))

    def find_repeated(self, job, runs):
        for before, after in zip(runs, runs[1:]):
            if after.attempt > before.attempt:
                continue
            self.repeated.append((before, after))
            if job.is_uncertain or any(fault.explains(before, after)
                                       for fault in self.faults):
                continue
            self.wrong.append(
                "%s ran again for no reason: %s at %d to %s (%s), %s at %d; "
                "faults before: %s"
                % (job.name, before.worker, before.start, before.end,
                   before.verdict, after.worker, after.start,
                   self.faults_before(after.start)))

    def faults_before(self, at):
        """The last ones, with their times."""
        begun = sorted((fault for fault in self.faults if fault.begin <= at),
                       key=lambda fault: fault.begin)[-4:]
        return ", ".join("%s of %s %d-%d" % (fault.what, fault.worker or "all",
                                             fault.begin, fault.end)
                         for fault in begun) or "none"

    def delays_after(self, worker, at):
        """How long after `at`, when `worker` died, each job that it had begun
        and not settled started again."""
        return [after.start - at for after in self.begun_again(worker, at)]

    def begun_again(self, worker, at):
        return [after for before, after in self.repeated
                if before.worker == worker and after.start >= at]

    def delays_after_last(self, kills, lease_ms):
        """The same for each of `kills`, pairs (worker, at), but from the last
        kill that can have held the job up: who takes it when its lease ended
        may be killed, too, before it starts."""
        times = sorted(at for _, at in kills)
        delays = []
        for worker, at in kills:
            for after in self.begun_again(worker, at):
                since = at
                for other in times:
                    if since + lease_ms / 2 < other <= after.start:
                        since = other
                delays.append(after.start - since)
        return delays

    def summary(self):
        counted = ", ".join("%s %d" % item
                            for item in sorted(self.counts.items()))
        return ("%d jobs: %s, lost %d, repeated runs %d"
                % (len(self.jobs), counted, len(self.lost),
                   len(self.repeated)))

    def text(self):
        """All of it, for who has to find out."""
        faults = ["%s of %s %d-%d" % (fault.what, fault.worker or "all",
                                      fault.begin, fault.end)
                  for fault in self.faults]
        return "\n".join([self.summary(), *self.wrong, *faults]) + "\n"
