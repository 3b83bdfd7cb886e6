# SPDX-License-Identifier: MIT
"""Unique keys beside a pause, a full server, workers that are killed, another
kind of the topic, and its deletion."""

import os

from e2e import (eventually, expect, expect_in, expect_true, kill, run_together,
                 stop_cleanly, test)
from lanes import (add_jobs, await_ran, await_sleepers, await_stats, client,
                   drain, drain_ready, fill, keyed, ran, set_topic, start_held,
                   trace)

DIGEST = """local names, all = redis.call('KEYS', '*'), {}
table.sort(names)
for _, name in ipairs(names) do all[#all + 1] = name .. redis.call('DUMP', name)
end
return redis.sha1hex(table.concat(all))"""


def digest(place):
    """Of all that the server has."""
    return client(place)("EVAL", DIGEST, 0)


def expect_held(place, holder, key, *args):
    result = place.weir("add", "t", "--unique", key, *args)
    expect(4, result.code, result.err)
    expect(['weir: job "%s" of topic "t" has the key "%s"; nothing was '
            "changed" % (holder, key)], result.sentences)


def state(place, job_id):
    return place.ok("show", "t", job_id)["state"]


def keys(place):
    return sorted(name.decode() for name in client(place)("KEYS", "weir:{t}:*"))


# --- a pause ----------------------------------------------------------------


@test
def a_pause_leaves_keys_with_their_jobs(place):
    place.ok("pause", "t", "--new")
    worker = trace(place)
    await_sleepers(place)
    place.add("t", "1", "--unique", "k")
    place.add("t", "s", "--unique", "start", "--for", "until-start")
    expect_held(place, "1", "k")
    expect_held(place, "s", "start", "--for", "until-start")
    place.add("t", "2", "--unique", "k", "--else", "replace")
    expect(3, place.weir("show", "t", "1").code)
    place.expect_stats("t", ready=2, added_total=3)
    place.ok("resume", "t")
    await_ran(place, 2)
    await_stats(place, done_total=2)
    place.ok("pause", "t")
    place.add("t", "3", "--unique", "k")
    expect_held(place, "3", "k")
    place.ok("resume", "t")
    await_ran(place, 3)
    stop_cleanly(worker)
    expect(["2", "3", "s"], sorted(ran(place)))


@test
def what_runs_while_its_topic_is_paused_has_its_key_until_it_is_done(place):
    place.add("t", "1", "--unique", "k")
    gate, worker = start_held(place)
    place.ok("pause", "t")
    expect_held(place, "1", "k")
    expect_held(place, "1", "k", "--else", "replace")
    os.write(gate, b"x")
    await_stats(place, done_total=1)
    place.add("t", "2", "--unique", "k")
    expect_held(place, "2", "k")
    stop_cleanly(worker)
    place.ok("resume", "t")
    expect(["2"], drain(place))
    os.close(gate)


# --- a full server ----------------------------------------------------------


def expect_refused_whole(place, *args, stdin=None):
    """With one sentence, and nothing is done."""
    before = digest(place)
    result = place.weir("add", "t", *args, stdin=stdin)
    expect(1, len(result.sentences), result.err)
    expect_true(result.code not in (0, 4), result.code)
    expect_in("OOM", result.err)
    expect(before, digest(place))


@test
def a_full_server_refuses_each_way_of_a_key_and_changes_nothing(place):
    throttle = ("--else", "throttle", "--for", "1h")
    later = ("--delay", "1h")
    ways = ((), ("--else", "replace"), ("--else", "debounce"), throttle,
            ("--key", "a"), ("--key", "a", "--else", "replace"),
            ("--priority", "high", "--for", "1h"))
    place.add("t", "held", "--unique", "k", *later)
    place.add("t", "lane", "--unique", "l", "--key", "a", *later)
    place.add("t", "moving", "--unique", "m", *throttle)
    for key in ("free", "k", "l", "m"):
        for way in ways:
            fill(client(place))
            expect_refused_whole(place, "--unique", key, *way, *later)
            fill(client(place), 0)
    for way in (("--key", "a"), ("--priority", "low")):
        fill(client(place))
        expect_refused_whole(place, *way)
        fill(client(place), 0)
    place.expect_stats("t", added_total=3, scheduled=2, ready=1)
    expect_held(place, "held", "k")
    expect_held(place, "lane", "l")
    place.add("t", "1", "--unique", "free")
    place.add("t", "2", "--unique", "k", "--else", "replace")
    place.add("t", "3", "--unique", "l", "--else", "replace", "--key", "b")
    place.add("t", "4", "--unique", "m", *throttle)
    expect(["1", "2", "3", "4", "moving"],
           sorted(job["id"] for job in place.ok("list", "t")))
    expect(["1", "2", "3", "moving"], sorted(drain_ready(place, 4)))


@test
def lines_that_a_full_server_refused_can_be_added_again(place):
    lines = "".join('{"id":"%d","unique":"k%d","key":"c%d"}\n'
                    % (i, i % 30, i % 3) for i in range(60))
    place.add("t", "29", "--unique", "k29")
    fill(client(place))
    before = digest(place)
    result = place.weir("add", "t", "--jsonl", "-", stdin=lines)
    expect_true(result.code not in (0, 4), result.code)
    expect_in("OOM", result.err)
    expect(before, digest(place))
    fill(client(place), 0)
    result = place.weir("add", "t", "--jsonl", "-", stdin=lines)
    expect("added 29, existing 31, refused 0\n", result.out, result.err)
    expect(sorted(map(str, range(30))), sorted(drain(place)))


@test
def a_key_is_free_when_its_verdict_has_found_room(place):
    place.add("t", "1", "--unique", "k")
    place.add("t", "2", "--unique", "r")
    tokens = [line.split(" ")[0] for line in
              place.weir("take", "t", "--limit", "2").out.splitlines()]
    fill(client(place))
    place.ok("settle", "t", tokens[0], "--done")
    waiting = place.start("settle", "t", tokens[1], "--retry", "--delay", "1h")
    expect("running", state(place, "2"))
    fill(client(place), 0)
    expect(0, waiting.wait())
    place.add("t", "3", "--unique", "k")
    expect_held(place, "2", "r")
    place.add("t", "4", "--unique", "r", "--else", "replace")
    expect(["3", "4"], sorted(drain(place)))


# --- workers that are killed ------------------------------------------------


@test
def a_key_stays_with_the_job_of_a_killed_worker_until_it_is_settled(place):
    how = ("--else", "replace")
    place.add("t", "1", "--unique", "k", "--key", "a")
    worker = trace(place, "killed", lease="1s", verdict="hold", fail=1)
    await_ran(place, 1, "killed")
    kill(worker)
    expect_held(place, "1", "k")
    eventually(lambda: place.stats("t")["lease_ended_ms"] is not None,
               "its lease is over")
    expect_held(place, "1", "k")
    expect_held(place, "1", "k", *how)
    gate, worker = start_held(place)
    expect_held(place, "1", "k", *how)
    os.write(gate, b"x")
    await_stats(place, done_total=1)
    stop_cleanly(worker)
    place.add("t", "2", "--unique", "k")
    expect(["2"], drain(place))
    place.expect_stats("t", crashed_total=1, done_total=2)
    os.close(gate)


@test
def a_suspect_that_waits_gives_its_place_to_the_next_one(place):
    for job_id, more in (("plain", ()), ("lane", ("--key", "a"))):
        place.add("t", job_id, "--unique", job_id, *more)
    place.add("t", "start", "--unique", "start", "--for", "until-start")
    kill(taken_by_one_that_dies(place, 3))
    place.ok("pause", "t")
    worker = trace(place)
    await_stats(place, ready=3, running=0, crashed_total=3)
    for job_id in ("plain", "lane", "start"):
        expect_held(place, job_id, job_id)
        place.add("t", job_id + "2", "--unique", job_id, "--else", "replace",
                  "--key", "b")
    place.expect_stats("t", ready=3)
    place.ok("resume", "t")
    await_ran(place, 3)
    await_stats(place, done_total=3, ready=0)
    stop_cleanly(worker)
    expect(["lane2", "plain2", "start2"], sorted(ran(place)))


def taken_by_one_that_dies(place, count):
    worker = place.work(place.handler("later", file="later"),
                        flags=("--lease", "1s"))
    eventually(lambda: place.stats("t")["running"] == count, "all of them run")
    return worker


@test
def a_job_that_killed_its_workers_is_dead_and_its_key_is_free(place):
    set_topic(place, "max_crashes=1")
    place.add("t", "1", "--unique", "k", "--key", "a")
    for count in (1, 2):
        worker = trace(place, "killed", lease="1s", verdict="hold", fail=9)
        await_ran(place, count, "killed")
        kill(worker)
        expect_held(place, "1", "k")
    worker = trace(place)
    eventually(lambda: state(place, "1") == "dead", "it is dead")
    place.add("t", "2", "--unique", "k", "--key", "a")
    await_ran(place, 1)
    stop_cleanly(worker)
    expect(["2"], ran(place))
    place.ok("dead", "requeue", "t", "1")


@test
def what_is_requeued_has_its_key_again(place):
    set_topic(place, "retry=none")
    place.add("t", "1", "--unique", "k")
    token = place.weir("take", "t").out.split(" ")[0]
    place.ok("settle", "t", token, "--fail")
    expect("dead", state(place, "1"))
    place.ok("dead", "requeue", "t", "1")
    expect_held(place, "1", "k")
    expect(["1"], drain(place))
    place.add("t", "2", "--unique", "k")


# --- another kind, deletion, what is told -----------------------------------


@test
def a_topic_with_a_job_that_has_a_key_stays_of_its_kind(place):
    place.add("t", "1", "--unique", "k", "--key", "a", "--delay", "1h")
    before = digest(place)
    place.weir("topic", "set", "t", "kind=list").expect_complaint(
        2, "the topic holds jobs and stays of kind delay")
    expect(before, digest(place))
    expect_held(place, "1", "k")
    place.ok("reschedule", "t", "1", "--delay", "0ms")
    expect(["1"], drain(place))


@test
def lanes_go_on_in_a_topic_that_was_of_another_kind_meanwhile(place):
    add_jobs(place, keyed("a", 2) + keyed("b", 1, priority="low"))
    for job_id in ("a-0", "a-1", "b-0"):
        place.ok("delete", "t", job_id)
    set_topic(place, "kind=list")
    set_topic(place, "kind=delay")
    add_jobs(place, keyed("a", 2, 2))
    worker = trace(place)
    await_ran(place, 2)
    stop_cleanly(worker)
    expect(["a-2", "a-3"], ran(place))


@test
def a_key_for_a_time_is_over_when_its_topic_was_of_another_kind(place):
    place.add("t", "1", "--unique", "k", "--for", "1d")
    expect(["1"], drain(place))
    expect_held(place, "1", "k", "--for", "1d")
    set_topic(place, "kind=list")
    place.weir("add", "t", "--unique", "k").expect_complaint(
        2, "topic t is of kind list: its jobs have no unique keys")
    set_topic(place, "kind=delay")
    place.add("t", "2", "--unique", "k", "--for", "1d")


@test
def a_topic_of_another_kind_leaves_nothing_of_keys_when_it_is_deleted(place):
    set_topic(place, "key_rate=100/s", "key_parallel=1")
    add_jobs(place, keyed("a", 2, unique="k", **{"else": "replace"}) +
             keyed("b", 2))
    expect(3, len(drain(place)))
    add_jobs(place, keyed("c", 1))
    place.ok("delete", "t", "c-0")
    set_topic(place, "kind=list")
    place.ok("topic", "delete", "t")
    expect([], keys(place))


run_together(3)


@test
def throttled_jobs_of_keys_and_priorities_keep_their_times(place):
    how = ("--unique", "k", "--else", "throttle", "--for", "1h", "--key", "a",
           "--priority", "high")
    place.add("t", "first", *how, "--delay", "10m")
    place.add("t", "second", *how, "--delay", "20m")
    place.add("t", "third", *how, "--delay", "30m")
    expect(["first", "third"],
           sorted(job["id"] for job in place.ok("list", "t")))
    place.ok("reschedule", "t", "third", "--delay", "0s")
    place.add("t", "fourth", *how)
    expect(["first", "fourth", "third"],
           sorted(job["id"] for job in place.ok("list", "t")))
    expect("scheduled", state(place, "fourth"))
    expect(["third"], drain_ready(place, 1))
