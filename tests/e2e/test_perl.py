# SPDX-License-Identifier: MIT
"""docs/examples/jobs.pl runs jobs beside weir and loses none."""

import os
import subprocess

from e2e import (BUILD, ROOT, communicate, eventually, expect, expect_in, kill,
                 stop_cleanly, test)


def perl(place, *args):
    place.weir("add", "other")  # starts the server
    env = {**place.env, "WEIR_SERVER": os.path.join(place.data, "redis.sock"),
           "WEIR_SCRIPTS": os.path.join(BUILD, "scripts", "delay")}
    process = subprocess.Popen(
        ["perl", os.path.join(ROOT, "docs", "examples", "jobs.pl"), *args],
        env=env, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE)
    place.started.append(process)
    return process


def await_done(place, count):
    eventually(lambda: place.stats("t")["done_total"] == count,
               "%d are done" % count)


@test
def jobs_of_perl_are_run_by_weir(place):
    out, err = communicate(perl(place, "add", "t", "20"))
    expect(("", 20), (err, out.count("added @")))
    place.drain(place.echo())
    expect(list(range(20)), sorted(line["body"]["n"]
                                   for line in place.lines("out")))


@test
def jobs_of_weir_are_run_and_retried_by_perl(place):
    place.weir("add", "other")
    place.ok("topic", "set", "t", "retry=10ms 10ms")
    place.add("t", "a", "--body", '{"n":-5,"l":[1.5,true,null,"x"]}')
    place.add("t", "b", "--body", '{"n":70000,"fail":2}')
    place.add("t", "c", "--body", '{"n":9223372036854775807,"fail":9}')
    worker = perl(place, "work", "t")
    eventually(lambda: place.stats("t")["dead"] == 1, "one is dead")
    await_done(place, 2)
    expect(["exhausted", "told to fail\n"], place.dead("c"))
    place.add("t", "d", "--body", '{"n":1}')  # it sleeps, and is woken
    await_done(place, 3)
    worker.terminate()
    out, err = communicate(worker)
    expect((0, ""), (worker.returncode, err))
    lines = out.splitlines()
    for line in ("a -5 1", "b 70000 3", "c 9223372036854775807 3", "d 1 1"):
        expect_in(line, lines)
    place.expect_stats("t", running=0)


@test
def a_topic_of_another_kind_is_refused_by_perl(place):
    place.weir("add", "other")
    place.ok("topic", "set", "t", "kind=list")
    worker = perl(place, "work", "t")
    _, err = communicate(worker)
    expect("t is of the kind list\n", err)


@test
def what_a_killed_perl_had_is_run_by_others(place):
    place.weir("add", "other")
    place.ok("topic", "set", "t", "lease=500ms", "max_crashes=100")
    for name in "ab":  # each has some for itself, or might wait for ever
        place.add_lines("t", 300, '{"id":"%s%%d"}' % name)
        worker = perl(place, "work", "t")
        eventually(worker.stdout.readline, "it runs one")
        kill(worker)
    weir = place.work(place.echo())
    await_done(place, 600)
    stop_cleanly(weir)
    place.expect_stats("t", dead=0, running=0, ready=0)
