# SPDX-License-Identifier: MIT
"""Due times stay what they are, whatever becomes of the workers that had the
jobs in hand."""

from e2e import eventually, expect, expect_true, kill, test

LEASE_US = 1000000  # of workers that are killed


def hold(place, count):
    """A worker that has claimed so many jobs of "t" and never ends the first
    one."""
    worker = place.work(place.handler("trace", file="held", verdict="hold"),
                        flags=("--lease", "1s", "--concurrency", "1",
                               "--prefetch", str(count)))
    eventually(lambda: place.lines("held"), "a job runs")
    eventually(lambda: place.stats("t")["running"] == count, "all are claimed")
    return worker


def trace(place):
    """What runs in the end, by id."""
    place.drain(place.handler("trace", file="ran"))
    return {line["id"]: line for line in place.lines("ran")}


@test
def a_ttl_does_not_begin_anew_when_a_worker_is_killed(place):
    place.add("t", "first")
    place.add("t", "short", "--ttl", "900ms")  # less than the lease
    place.add("t", "long", "--ttl", "1h")
    kill(hold(place, 3))
    expect(["first", "long"], sorted(trace(place)))
    place.expect_stats("t", expired_total=1, done_total=2)


@test
def lateness_counts_from_the_due_time_when_a_worker_is_killed(place):
    for job_id in "abc":
        place.add("t", job_id)
    kill(hold(place, 3))
    ran = trace(place)
    expect(["a", "b", "c"], sorted(ran))
    for line in ran.values():
        expect_true(line["late_us"] >= LEASE_US, "late by the lease: %r" % line)
