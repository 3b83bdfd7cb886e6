# SPDX-License-Identifier: MIT
"""tests/flaky.tsv: names that were flaky before, and the few in quarantine.
build/flaky.tsv: what each run of a red test looked like."""

import datetime
import os
import time

import verdict

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
KNOWN = os.path.join(ROOT, "tests", "flaky.tsv")
EVIDENCE = os.path.join(ROOT, "build", "flaky.tsv")
MOST, DAYS = 5, 14  # names in quarantine, and for how long


def rows(path=KNOWN):
    """[(date, "seen" or "quarantine", name, reason)]"""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [tuple(line.rstrip("\n").split("\t")) for line in file
                if line.strip() and not line.startswith("#")]


def known(path=KNOWN):
    return {row[2] for row in rows(path)}


def quarantined(path=KNOWN):
    return {row[2] for row in rows(path) if row[1] == "quarantine"}


def overdue(path=KNOWN, today=None):
    """Sentences about a quarantine that is too large or too old."""
    today = today or datetime.date.today()
    inside = [row for row in rows(path) if row[1] == "quarantine"]
    found = ["%s is in quarantine since %s, and %d days are the most" % (
        row[2], row[0], DAYS) for row in inside
        if (today - datetime.date.fromisoformat(row[0])).days > DAYS]
    if len(inside) > MOST:
        found.append("%d names are in quarantine, and %d are the most" % (
            len(inside), MOST))
    return found


def is_excused(name, outcome, names):
    """Never ledgers, crashes, reports of sanitizers."""
    return name in names and not verdict.LEDGER.search(name) and \
        not verdict.is_crash(outcome.record, outcome.output)


def keep(task, outcomes):
    """A line for each run: when, what, whether it passed, what it met."""
    with open(EVIDENCE, "a", encoding="utf-8") as file:
        for one in outcomes:
            record = one.record
            file.write("\t".join(str(word) for word in (
                time.strftime("%Y-%m-%dT%H:%M:%S"), task.build, task.name,
                "passed" if one.is_good else "failed", record["status"],
                "%.2f" % record["wall_s"], "%.2f" % record["cpu_s"],
                "%.2f" % record["waited_s"], record["psi_s"],
                "%.2f" % record["stolen_s"], one.task.log)) + "\n")
