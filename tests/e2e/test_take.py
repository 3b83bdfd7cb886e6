# SPDX-License-Identifier: MIT
"""Jobs that a shell takes, and settles by another command."""

import json
import signal

from e2e import (WEIR, communicate, eventually, expect, expect_in, expect_true,
                 run, stop_cleanly, test, wait)
from redis_server import use_good_plugins
from sentinel import Trio


def take(place, *flags, topic="t"):
    """The objects that a take prints."""
    result = place.weir("take", topic, "--json", *flags)
    expect(0 if result.out else 3, result.code, result.err)
    return [json.loads(line) for line in result.out.splitlines()]


def settle(place, jobs, *verdict, topic="t"):
    return place.ok("settle", topic, *(job["token"] for job in jobs),
                    *verdict)["settled"]


def add_pack(place, count):
    """All of them in one pack."""
    lines = "".join('{"id": "%d", "body": %d}\n' % (i, i)
                    for i in range(count))
    place.ok("add", "t", "--jsonl", place.write("lines", lines))


def asleep(place):
    redis = place.redis()
    redis.send("ZCARD weir:{t}:idle")
    count = redis.line()
    redis.close()
    return int(count[1:])


def fill(place, is_full):
    redis = place.redis()
    redis.send("CONFIG SET maxmemory %d" % is_full)
    expect("+OK", redis.line())
    redis.close()


def state(place, job_id):
    return place.ok("show", "t", job_id)["state"]


@test
def a_take_prints_what_a_shell_needs_and_a_settle_ends_it(place):
    place.add("t", "a", "--body", '{"n": 1}', "--header", "k=v")
    line = place.weir("take", "t").out.split(" ", 2)
    expect(["a", '{"n":1}\n'], line[1:])
    expect("running", state(place, "a"))
    expect(3, place.weir("take", "t").code)
    expect({"topic": "t", "settled": 1},
           place.ok("settle", "t", line[0], "--done"))
    expect(3, place.weir("show", "t", "a").code)
    expect(1, place.stats("t")["done_total"])
    place.add("t", "b", "--body", '"x"', "--header", "k=v")
    (job,) = take(place)
    expect(("b", "x", {"k": "v"}, 0),
           (job["id"], job["body"], job["headers"], job["attempt"]))


@test
def jobs_of_one_pack_are_settled_one_by_one_each_in_its_way(place):
    add_pack(place, 6)
    jobs = take(place, "--limit", "5")
    expect(["0", "1", "2", "3", "4"], [job["id"] for job in jobs])
    expect("ready", state(place, "5"))
    expect(1, settle(place, jobs[3:4], "--done"))
    expect(1, settle(place, jobs[0:1], "--retry", "--error", "why"))
    expect(1, settle(place, jobs[1:2], "--fail", "--error", "bad"))
    expect(1, settle(place, jobs[4:5], "--snooze", "1h"))
    expect("running", state(place, "2"))
    job = place.ok("show", "t", "0")
    expect(("scheduled", 1, 1, "why"), (job["state"], job["attempt"],
                                        job["failures"], job["error"]))
    job = place.ok("show", "t", "1")
    expect(("dead", "failed", "bad"),
           (job["state"], job["reason"], job["error"]))
    expect(1, place.ok("show", "t", "4")["snoozes"])
    expect(1, settle(place, jobs[2:3], "--retry", "--delay", "1h"))
    counts = place.stats("t")
    expect((1, 2, 1, 3, 1, 0),
           tuple(counts[name] for name in (
               "done_total", "retried_total", "failed_total", "scheduled",
               "ready", "running")))


@test
def what_was_settled_or_deleted_or_is_no_token_is_told(place):
    add_pack(place, 3)
    jobs = take(place, "--limit", "3")
    expect(1, settle(place, jobs[:1], "--done"))
    place.ok("delete", "t", "1")
    result = place.weir("settle", "t", *(job["token"] for job in jobs),
                        "--retry")
    expect((3, "settled 1\n"), (result.code, result.out))
    expect_in("2 of 3 jobs of topic \"t\" are not yours any more", result.err)
    expect("scheduled", state(place, "2"))
    token = jobs[2]["token"]
    for text in ("x", token[:-1] + "x", token + "0" * 9, "+" + token,
                 token.replace(".0002.", ".0200.")):
        result = place.weir("settle", "t", text, "--done")
        expect(2, result.code, text)
        expect_in("is no token of weir take", result.err)
    for flags in ((), ("--done", "--fail"), ("--done", "--error", "x"),
                  ("--snooze", "1h", "--delay", "1h"), ("--snooze", "x")):
        expect(2, place.weir("settle", "t", token, *flags).code, flags)
    expect((1, 1), (place.stats("t")["done_total"],
                    place.stats("t")["scheduled"]))


@test
def a_take_that_nobody_settles_comes_back_and_is_renewed_until_then(place):
    place.ok("topic", "set", "t", "max_crashes=2")
    place.add("t", "a")
    (job,) = take(place, "--lease", "1s")
    expect(1, place.ok("renew", "t", job["token"], "--lease",
                       "1h")["renewed"])
    expect_true(place.ok("show", "t", "a")["lease_left_ms"] > 1000000,
                "it was renewed")
    expect(1, place.ok("renew", "t", job["token"], "--lease",
                       "300ms")["renewed"])
    (again,) = take(place, "--wait", "60s", "--lease", "300ms")
    expect(("a", 1), (again["id"], again["crashes"]))
    expect(3, place.weir("settle", "t", job["token"], "--done").code)
    result = place.weir("renew", "t", job["token"])
    expect((3, "renewed 0\n"), (result.code, result.out))
    expect_in("1 of 1 leases in topic \"t\" have ended", result.err)
    (third,) = take(place, "--wait", "60s", "--lease", "1h")
    expect(2, third["crashes"])
    expect(1, settle(place, [third], "--retry"))
    expect((2, 1), tuple(place.ok("show", "t", "a")[name]
                         for name in ("crashes", "attempt")))


@test
def a_job_that_is_taken_after_its_ttl_is_dropped_and_not_when_settled(place):
    place.add("t", "a")
    (job,) = take(place)
    place.ok("topic", "set", "t", "ttl=1ms")
    place.add("t", "b", "--delay", "1ms")
    eventually(lambda: state(place, "b") == "ready", "it is due")
    eventually(lambda: take(place) == [] and
               place.stats("t")["expired_total"] == 1, "it is dropped")
    expect(1, settle(place, [job], "--retry"))
    expect("scheduled", state(place, "a"))


@test
def a_pause_and_the_ladder_hold_for_jobs_that_are_taken(place):
    place.ok("topic", "set", "t", "retry=none", "on_dead=graves")
    place.add("t", "a")
    place.add("t", "b")
    jobs = take(place, "--limit", "2")
    place.add("t", "c")
    place.ok("pause", "t")
    expect([], take(place))
    expect(1, settle(place, jobs[:1], "--retry", "--error", "why"))
    expect(1, settle(place, jobs[1:], "--done"))
    eventually(lambda: place.weir("show", "graves", "a").code == 0,
               "it went where dead jobs go")
    expect("ready", state(place, "c"))


@test
def a_take_waits_for_a_job_and_one_that_is_ended_takes_none(place):
    place.add("t", "first")
    expect(1, settle(place, take(place), "--done"))
    waiting = place.start("take", "t", "--wait", "1h")
    eventually(lambda: asleep(place) == 1, "it waits")
    place.add("t", "a")
    out, err = communicate(waiting)
    expect((0, "", "a null\n"),
           (waiting.returncode, err, out.split(" ", 1)[1]))
    waiting = place.start("take", "t", "--wait", "1h")
    eventually(lambda: asleep(place) == 1, "it waits")
    waiting.send_signal(signal.SIGTERM)
    expect(("", ""), communicate(waiting))
    expect(3, waiting.returncode)
    expect(0, asleep(place))
    expect([], place.ok("workers")["workers"])


@test
def a_take_whose_output_is_full_gives_the_jobs_back(place):
    place.add("t", "a")
    with open("/dev/full", "w", encoding="ascii") as full:
        done = run([WEIR, "take", "t"], env=place.env, stdout=full)
    expect(1, done.returncode, done.stderr)
    expect_in("could not be printed, they went back", done.stderr)
    job = place.ok("show", "t", "a")
    expect(("ready", 0), (job["state"], job["crashes"]))


@test
def a_take_that_follows_takes_the_next_job_when_the_last_one_was_read(place):
    add_pack(place, 5)
    loop = ("%s take t --follow --wait 1s | while read -r token id body; do "
            "echo $id; %s settle t $token --done; done" % (WEIR, WEIR))
    done = run(["sh", "-c", loop], env=place.env)
    expect((0, ""), (done.returncode, done.stderr))
    expect([str(i) for i in range(5)], done.stdout.split("\n")[0:10:2])
    expect(5, place.stats("t")["done_total"])


@test
def what_a_reader_left_in_the_pipe_goes_back(place):
    add_pack(place, 5)
    taker = place.start("take", "t", "--follow")
    expect("0", taker.stdout.readline().split()[1])
    eventually(lambda: place.stats("t")["running"] == 2, "it took the next one")
    expect(3, place.stats("t")["ready"])
    taker.stdout.close()
    expect(0, wait(taker))
    job = place.ok("show", "t", "1")
    expect(("ready", 0), (job["state"], job["crashes"]))
    expect("running", state(place, "0"))


@test
def a_take_follows_into_pipes_only(place):
    place.add("t", "a")
    with open(place.path("jobs"), "w", encoding="ascii") as file:
        done = run([WEIR, "take", "t", "--follow"], env=place.env, stdout=file)
    expect(2, done.returncode)
    expect_in("--follow needs a pipe: weir take t --follow | while", done.stderr)
    place.weir("take", "t", "--follow", "--limit", "2").expect_complaint(
        2, "leave --limit out")
    expect("ready", state(place, "a"))


@test
def workers_and_takers_share_a_topic(place):
    add_pack(place, 40)
    jobs = take(place, "--limit", "7")
    worker = place.work(place.echo())
    eventually(lambda: len(place.lines("out")) == 33, "the rest runs")
    expect(7, settle(place, jobs, "--done"))
    stop_cleanly(worker)
    expect(40, place.stats("t")["done_total"])
    expect([str(i) for i in range(7, 40)],
           sorted((line["id"] for line in place.lines("out")), key=int))


@test
def topics_of_other_kinds_are_refused_with_a_sentence(place):
    place.ok("topic", "set", "b", "kind=bounded")
    for line in (("take", "b"), ("renew", "b", "1.5KPdqb7-uRJ_.0000.0.0.1"),
                 ("settle", "b", "1.5KPdqb7-uRJ_.0000.0.0.1", "--done")):
        result = place.weir(*line)
        expect((2, ""), (result.code, result.out))
        expect("weir: %s: topic \"b\" is of kind bounded; this is for topics "
               "of kind delay\n" % line[0], result.err)


# --- servers that are full, or fail -------------------------------------------


@test
def a_server_that_is_full_is_taken_from_all_the_same(place):
    add_pack(place, 2)
    fill(place, True)
    jobs = take(place, "--limit", "2")
    expect(["0", "1"], [job["id"] for job in jobs])
    expect(2, settle(place, jobs, "--done"))
    expect([], take(place))


@test
def what_is_done_is_settled_on_a_full_server_and_a_retry_waits_for_room(place):
    add_pack(place, 3)
    jobs = take(place, "--limit", "3")
    fill(place, True)
    expect(1, settle(place, jobs[:1], "--done"))
    waiting = place.start("settle", "t", jobs[1]["token"], "--retry")
    expect(1, settle(place, jobs[2:], "--done"))
    expect("running", state(place, "1"))
    fill(place, False)
    out, err = communicate(waiting)
    expect((0, "settled 1\n"), (waiting.returncode, out), err)
    expect("scheduled", state(place, "1"))


@test
def a_lease_that_was_made_longer_is_left_by_a_worker_with_short_ones(place):
    place.add("t", "a")
    (job,) = take(place, "--lease", "5s")
    expect(1, place.ok("renew", "t", job["token"], "--lease",
                       "1h")["renewed"])
    place.add("t", "b")
    worker = place.work(place.echo(), flags=("--lease", "300ms"))
    eventually(lambda: place.lines("out"), "b runs")
    stop_cleanly(worker)
    expect_true(place.ok("show", "t", "a")["lease_left_ms"] > 1000000,
                "the lease was cut")
    expect(["b"], [line["id"] for line in place.lines("out")])
    expect(1, settle(place, [job], "--done"))
    expect(2, place.stats("t")["done_total"])


@test
def leases_are_renewed_on_a_full_server(place):
    add_pack(place, 1)
    jobs = take(place, "--lease", "10s")
    fill(place, True)
    expect(1, place.ok("renew", "t", jobs[0]["token"], "--lease",
                       "1h")["renewed"])
    expect_true(place.ok("show", "t", "0")["lease_left_ms"] > 1000000,
                "it was renewed")


@test
def a_token_is_good_on_the_server_that_took_over(place):
    use_good_plugins(place)
    trio = Trio(place)
    add_pack(place, 4)
    jobs = take(place, "--limit", "3")
    trio.await_replicas()
    trio.fail_over()
    expect(1, settle(place, jobs[:1], "--done"))
    expect(1, place.ok("renew", "t", jobs[1]["token"])["renewed"])
    expect(2, settle(place, jobs[1:], "--retry"))
    expect(("scheduled", "ready"), (state(place, "1"), state(place, "3")))
    (job,) = take(place)
    expect("3", job["id"])
    expect_true(int(job["token"].split(".")[0]) >
                int(jobs[0]["token"].split(".")[0]), "tokens go on")
    expect(1, settle(place, [job], "--done"))
    expect(2, place.stats("t")["done_total"])


@test
def a_take_that_waits_goes_on_at_the_server_that_took_over(place):
    use_good_plugins(place)
    trio = Trio(place)
    place.add("t", "first")
    expect(1, settle(place, take(place), "--done"))
    waiting = place.start("take", "t", "--wait", "1h")
    eventually(lambda: trio.primary().tell("ZCARD weir:{t}:idle") == ":1",
               "it waits")
    trio.await_replicas()
    trio.primary().kill()
    trio.fail_over()
    eventually(lambda: place.weir("add", "t", "--id", "a").code in (0, 4),
               "it is added")
    out, err = communicate(waiting)
    expect((0, "a null\n"), (waiting.returncode, out.split(" ", 1)[1]), err)
