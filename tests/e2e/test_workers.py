# SPDX-License-Identifier: MIT
"""Who runs what: weir workers, and show of a job that runs."""

import time

from e2e import (Redis, eventually, expect, expect_in, expect_true, kill,
                 run_together, stop_cleanly, test)

run_together(4)


def config(place, name, topic, after="0ms", more=""):
    """A file of a worker that calls itself so; its jobs do not end by
    themselves."""
    return place.write(name + ".conf",
                       'worker { name = "%s" drain = 0ms }\n'
                       'topic "%s" { handler = later options = { "file=%s", '
                       '"after=%s" } %s }\n'
                       % (name, topic, place.path(name), after, more))


def work(place, name, topic, **more):
    return place.work(flags=("--config", config(place, name, topic, **more)))


def is_running(place, topic, job_id):
    job = place.ok("show", topic, job_id)
    return job if job["state"] == "running" else None


# --- show -------------------------------------------------------------------

@test
def show_names_who_runs_a_job_since_when_and_how_long(place):
    for topic in ("a", "b", "c"):
        place.add(topic, "1")
        work(place, "worker-" + topic, topic, more="lease = 20s")
    for topic in ("a", "b", "c"):
        job = eventually(lambda: is_running(place, topic, "1"), "it runs")
        expect("worker-" + topic, job["worker"])
        expect_true(abs(time.time() * 1000 - job["claimed_ms"]) < 60000,
                    "it was claimed a moment ago")
        expect_true(0 < job["lease_left_ms"] <= 20000, "its lease lasts")
        text = place.weir("show", topic, "1").out
        expect_in("worker    worker-%s\n" % topic, text)
        expect_in("ms left\n", text)


@test
def show_tells_of_no_worker_where_none_has_the_job(place):
    place.add("t", "1")
    expect_true("worker" not in place.ok("show", "t", "1"), "it waits")
    worker = work(place, "one", "t", more="lease = 1s")
    eventually(lambda: is_running(place, "t", "1"), "it runs")
    kill(worker)
    expect("one", place.ok("show", "t", "1")["worker"])
    place.weir("run", "--handle", place.echo("t"), "--until-empty")
    place.weir("show", "t", "1").expect_complaint(3, "no job")
