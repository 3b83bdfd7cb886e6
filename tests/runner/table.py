# SPDX-License-Identifier: MIT
"""tests/times.tsv: what each test program costs, in the release build. It tells
the pool what to start first and beside what, and it is the budget."""

import os

COLUMNS = "name", "kind", "cpu_s", "wall_s", "tests", "reason"

# Where the table has no row: what a program of this kind costs.
USUAL = {"unit": (0.1, 0.2), "adapter": (0.2, 0.5), "plugin": (0.2, 0.5),
         "redis": (0.6, 1.5), "lint": (0.8, 1.0), "scripts": (5.0, 6.0),
         "driven": (2.0, 6.0), "fuzz": (3.0, 3.5)}
SANITIZED = 1.8  # times the CPU time

# CPU s for each test, CPU s for each program, wall s for each test.
BUDGET = {"unit": (0.010, None, None), "adapter": (0.1, 0.8, None),
          "plugin": (0.1, 0.8, None), "redis": (0.1, 0.8, None),
          "ledger": (3.0, None, None), "driven": (0.5, None, 3.0)}
PROGRAM_S = 0.1  # that a program may take beside its tests


def read(path):
    """{name: {kind, cpu_s, wall_s, tests, reason}}"""
    rows = {}
    if not os.path.exists(path):
        return rows
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            name, kind, cpu, wall, tests, reason = \
                line.rstrip("\n").split("\t")
            rows[name] = {"kind": kind, "cpu_s": float(cpu),
                          "wall_s": float(wall), "tests": int(tests),
                          "reason": reason}
    return rows


def write(path, rows):
    with open(path, "w", encoding="utf-8") as file:
        file.write("# `./run test all --times` writes this. A program above "
                   "its budget needs a reason.\n")
        file.write("# %s\n" % "\t".join(COLUMNS))
        for name, row in sorted(rows.items()):
            file.write("%s\t%s\t%.2f\t%.1f\t%d\t%s\n" % (
                name, row["kind"], row["cpu_s"], row["wall_s"], row["tests"],
                row["reason"]))


def cost_of(rows, name, labels, is_sanitized):
    """(CPU s, wall s) to expect."""
    row = rows.get(name)
    if row is None:
        usual = [USUAL[label] for label in labels if label in USUAL]
        cpu, wall = usual[0] if usual else (1.0, 2.0)
    else:
        cpu, wall = row["cpu_s"], row["wall_s"]
    if is_sanitized:
        return cpu * SANITIZED, wall + cpu * (SANITIZED - 1)
    return cpu, wall


def kind_of(name, labels):
    if name.startswith(("ledger_", "python_ledger", "node_ledger")):
        return "ledger"
    return next((label for label in labels if label in USUAL), "other")


def over_budget(name, kind, cpu_s, wall_s, tests, slack=1.0):
    """A sentence, or None. `slack` times the budget is allowed."""
    if kind not in BUDGET:
        return None
    a_test, a_program, a_wait = BUDGET[kind]
    most = a_test * tests + PROGRAM_S
    if a_program is not None:
        most = min(most, a_program)
    if cpu_s > most * slack:
        return "%s: %.2f CPU s, budget %.2f" % (name, cpu_s, most)
    if a_wait is not None and wall_s > a_wait * tests * slack:
        return "%s: %.1f s of wall time, budget %.1f" % (name, wall_s,
                                                         a_wait * tests)
    return None
