#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A child of exec with mode=stream: a job a line in, a verdict a line out."""

import json
import sys


def handle(job):
    """What is printed to stderr is logged; stdout is for verdicts."""
    print("greets", job["body"]["name"], file=sys.stderr)


for line in sys.stdin:
    job = json.loads(line)
    answer = {"run": job["run"], "verdict": "done"}
    try:
        handle(job)
    except Exception as fault:  # the job is retried, the child goes on
        answer.update(verdict="retry", reason=repr(fault))
    print(json.dumps(answer), flush=True)
