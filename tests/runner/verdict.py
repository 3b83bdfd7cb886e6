# SPDX-License-Identifier: MIT
"""What a red test means. A failed test is repeated alone, twice."""

import re

CALM = 0.10  # the part of its time that a calm run's processes wait for a CPU
CRASH = re.compile(r"ended by signal \d+|Sanitizer:|runtime error: |"
                   r"\bcore dumped\b")
WRONG_COUNT = re.compile(r"\b(lost|twice|duplicate[ds]?|missing)\b")
LEDGER = re.compile(r"ledger|chaos")

PASSED, FLAKY, FAILED = "passed", "flaky", "failed"


def is_crash(record, output):
    """A limit that ended the program is no crash."""
    return not record["timed_out"] and (
        record["status"] < 0 or bool(CRASH.search(output)))


def is_calm(record):
    """Without /proc/pressure nothing is known of the machine: no credit."""
    return record["psi_s"] is None or \
        record["waited_s"] < CALM * record["wall_s"]


def judge(name, record, output, repeats, touched, known):
    """`repeats`: whether each run alone passed. `touched`: the change touched
    the test or what it covers. `known`: it was flaky before. Returns a verdict
    and why."""
    if not all(repeats):
        return FAILED, "it fails alone, too"
    if is_crash(record, output):
        return FAILED, "it crashed once, and passed twice alone"
    if LEDGER.search(name) and WRONG_COUNT.search(output):
        return FAILED, "it counted jobs wrong once, and passed twice alone"
    if touched:
        return FAILED, "it failed once, and the change touched %s" % touched
    if is_calm(record):
        return FAILED, "it failed once though no CPU was scarce"
    if known:
        return FAILED, "it failed once, and is in tests/flaky.tsv already"
    return FLAKY, "it failed once on a busy machine, and passed twice alone"


def judge_run(flaky):
    """Of `flaky` names in one run: which fail after all. One may happen."""
    return list(flaky) if len(flaky) > 1 else []
