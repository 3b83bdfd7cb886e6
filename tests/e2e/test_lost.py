# SPDX-License-Identifier: MIT
"""Keys that are gone from the server, each one alone (docs/packs.md)."""

import os

from e2e import (await_line, eventually, expect, expect_in, kill,
                 stop_cleanly, test)
from redis_server import Server, use_good_plugins
from resp import Client


def server(place):
    return Client(os.path.join(place.data, "redis.sock"))


@test
def a_job_whose_pack_was_lost_is_counted_and_its_id_is_free(place):
    place.add("t", "a")
    redis = server(place)
    pack, = redis("KEYS", "weir:{t}:p:*")
    redis("DEL", pack)
    expect_in("jobs are lost", place.drain(place.echo()).err)
    place.expect_stats("t", lost_total=1, done_total=0, ready=0, running=0)
    place.add("t", "a")
    place.drain(place.echo())
    place.expect_stats("t", lost_total=1, done_total=1)


@test
def jobs_whose_due_times_were_lost_are_dead_and_never_early(place):
    place.ok("add", "t", "--jsonl", "-", stdin='{"id":"a"}\n'
             '{"id":"b","delay":"1h"}\n{"id":"c","delay":"24h"}')
    server(place)("DEL", "weir:{t}:due")
    expect_in("dead: its due time was lost", place.drain(place.echo()).err)
    place.expect_stats("t", dead=3, done_total=0, ready=0, scheduled=0)
    expect_in("malformed", place.weir("show", "t", "b").out)
    place.ok("dead", "requeue", "t", "--all")
    place.drain(place.echo())
    place.expect_stats("t", dead=0, done_total=3)


@test
def a_schedule_whose_index_was_lost_has_one_tick_and_can_be_deleted(place):
    place.ok("cron", "add", "s", "--topic", "t", "--every", "1h")
    redis = server(place)
    redis("DEL", "weir:{t}:ids")
    place.weir("cron", "list")
    expect(1, redis("ZCARD", "weir:{t}:wait"))
    redis("DEL", "weir:{t}:ids")
    place.ok("cron", "delete", "s", "--topic", "t")
    expect(0, redis("ZCARD", "weir:{t}:wait"))


@test
def a_tick_whose_schedule_is_gone_ends_without_a_job(place):
    """Also one of two, after the index named another pack."""
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for lost in ("HDEL weir:{t}:cron s", "HSET weir:{t}:ids s@next D"):
        redis("FLUSHALL")
        place.ok("cron", "add", "s", "--topic", "t", "--every", "1s")
        place.weir("run", "--until-empty", "--handle", place.echo())
        redis(*lost.split())
        worker = place.work(place.echo())
        eventually(lambda: redis("ZCARD", "weir:{t}:wait") == 0 and
                   redis("ZCARD", "weir:{t}:run") == 0, "the tick ended")
        stop_cleanly(worker)
        place.expect_stats("t", done_total=0, running=0, lost_total=0)


@test
def jobs_of_lanes_and_mixed_packs_run_where_meta_was_lost(place):
    place.ok("add", "t", "--id", "k", "--key", "K")
    place.ok("add", "t", "--jsonl", "-", stdin='{"id":"a"}\n'
             '{"id":"b","delay":"1s"}')
    server(place)("DEL", "weir:{t}:meta")
    worker = place.work(place.echo())
    eventually(lambda: len(place.lines("out")) == 3, "all ran")
    stop_cleanly(worker)


@test
def until_empty_ends_where_a_key_of_lanes_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for lost in ("lane:2k", "turns", "of", "on:k", "rates", "ids", "held",
                 "idle", "meta", "wait", "run", "lease", "due", "seen"):
        redis("FLUSHALL")
        place.ok("add", "t", "--key", "k", "--id", "a")
        redis("DEL", "weir:{t}:" + lost)
        place.drain(place.echo())


def run_and_kill(place):
    """A worker dies with a job in hand."""
    before = len(place.lines("starts"))
    worker = place.work(place.handler("trace", fail=9, verdict="hold",
                                      file="starts"))
    eventually(lambda: len(place.lines("starts")) > before, "it started")
    kill(worker)


def expect_ends(place, redis, lost, ran):
    """weir run --until-empty ends after the key was lost, and these ran."""
    before = len(place.lines("out"))
    redis("DEL", "weir:{t}:" + lost)
    place.stats("t")
    for lease in ("lease", "alive"):
        for claim in redis("ZRANGE", "weir:{t}:" + lease, "0", "-1"):
            redis("ZADD", "weir:{t}:" + lease, "1", claim)
    place.drain(place.echo())
    expect((lost, ran), (lost, len(place.lines("out")) - before))


@test
def until_empty_ends_where_a_key_of_a_list_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for lost, ran, gone in (("lease", 2, 0), ("held", 0, 2), ("run", 2, 0),
                            ("past", 2, 0), ("idle", 2, 0)):
        redis("FLUSHALL")
        place.ok("topic", "set", "t", "kind=list", "lease=1h")
        redis("RPUSH", "t", "1", "2")
        run_and_kill(place)
        expect_ends(place, redis, lost, ran)
        expect((lost, gone), (lost, place.stats("t")["lost_total"]))


@test
def until_empty_ends_where_a_key_of_a_bounded_topic_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for lost, ran, gone in (("lease", 2, 0), ("out", 2, 0), ("l:a", 1, 1),
                            ("g:b", 1, 1), ("rot", 1, 1), ("seen", 2, 0)):
        redis("FLUSHALL")
        place.ok("topic", "set", "t", "kind=bounded", "lease=1h", "batch=1")
        place.ok("add", "t", "--group", "a")
        run_and_kill(place)
        place.ok("add", "t", "--group", "b")
        expect_ends(place, redis, lost, ran)
        expect((lost, gone), (lost, place.stats("t")["lost_total"]))


@test
def until_empty_ends_where_hot_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    place.ok("topic", "set", "t", "kind=bounded", "hot=a")
    place.ok("add", "t", "--group", "a")
    expect_ends(place, redis, "hot", 0)
    expect(1, place.stats("t")["lost_total"])


@test
def until_empty_ends_where_a_key_of_messages_was_lost(place):
    place.weir("add", "other")  # starts the server
    redis = server(place)
    for kind, lost, ran in (
            ("concurrent", "alive", 2), ("concurrent", "parked", 1),
            ("concurrent", "fifo", 1), ("concurrent", "ids", 2),
            ("concurrent", "idle", 2), ("sync", "fifo", 0), ("sync", "idle", 1),
            ("sync", "lock", 1), ("sync", "lockers", 1)):
        redis("FLUSHALL")
        place.ok("topic", "set", "t", "kind=" + kind, "lease=1h")
        place.ok("add", "t")
        place.ok("add", "t")
        run_and_kill(place)
        redis("DEL", "weir:{t}:lock")  # of the worker that is dead
        expect_ends(place, redis, lost, ran)


# --- weir doctor --------------------------------------------------------------

def said_of(place, check, *args):
    """What weir doctor says: status and text, each."""
    use_good_plugins(place)
    return [(one["status"], one["text"])
            for one in place.ok("doctor", *args) if one["check"] == check]


def losses(place, *args):
    return said_of(place, "losses", *args)


@test
def doctor_finds_jobs_that_are_lost_and_mends_their_topic(place):
    place.add_lines("t", 600)
    place.add_lines("u", 3)
    redis = server(place)
    expect([("ok", "none found in 2 topics")], losses(place))
    for pack in redis("KEYS", "weir:{t}:p:*")[1:]:
        redis("DEL", pack)
    (status, text), = losses(place)
    expect("warning", status)
    expect_in("topic t: ", text)
    (status, text), = losses(place, "--mend", "t")
    expect("ok", status)
    expect_in("they are removed", text)
    expect([("ok", "none found in 2 topics")], losses(place))
    expect([("ok", "none found in 1 topic")], losses(place, "--mend", "t"))
    stats = place.stats("t")
    expect(600, stats["lost_total"] + stats["ready"])
    again = place.weir("add", "t", "--jsonl", "-", "--json",
                       stdin="\n".join('{"id":"%d"}' % i for i in range(600)))
    expect(600 - stats["ready"], again.json["added"])


@test
def doctor_mends_what_lost_its_place_though_its_pack_is_there(place):
    place.add_lines("t", 300)
    for _ in range(3):
        place.ok("add", "t")
    redis = server(place)
    redis("DEL", "weir:{t}:wait")
    losses(place, "--mend", "t")
    expect([], redis("KEYS", "weir:{t}:p:*"))
    place.expect_stats("t", lost_total=303, ready=0)
    expect(300, place.add_lines("t", 300)["added"])


@test
def doctor_gives_groups_their_turns_again(place):
    place.weir("add", "other")
    redis = server(place)
    place.ok("topic", "set", "t", "kind=bounded", "hot=a")
    for group in ("a", "b", "c"):
        place.ok("add", "t", "--group", group)
    redis("DEL", "weir:{t}:hot", "weir:{t}:rot")
    place.stats("t")
    expect([("warning", "topic t: 3 groups with events have no turn")],
           losses(place))
    (status, text), = losses(place, "--mend", "t")
    expect_in("3 groups", text)
    place.drain(place.echo())
    expect(3, len(place.lines("out")))
    expect([("ok", "none found in 2 topics")], losses(place))


@test
def doctor_needs_a_topic_to_mend(place):
    place.weir("add", "other")
    place.weir("doctor", "--mend").expect_complaint(2, "topic")
    place.weir("doctor", "--mend", "none").expect_complaint(3, "none")
    place.weir("doctor", "--mend", "--acl", "t").expect_complaint(2, "--acl")


@test
def doctor_names_a_topic_whose_meta_was_lost(place):
    place.add_lines("t", 3)
    redis = server(place)
    redis("DEL", "weir:{t}:meta")
    expect([("warning", "topic t: its key meta is lost")], losses(place))
    place.expect_stats("t", ready=3, running=0)
    (status, text), = losses(place)
    expect("warning", status)
    expect_in("its key meta was lost: totals began again", text)
    (status, text), = losses(place, "--mend", "t")
    expect("ok", status)
    expect([("ok", "none found in 1 topic")], losses(place))
    redis("DEL", "weir:{t}:meta")
    expect("ok", losses(place, "--mend", "t")[0][0])
    place.drain(place.echo())
    place.expect_stats("t", ready=0, done_total=3)


@test
def a_topic_whose_meta_was_lost_is_there_and_keeps_its_kind(place):
    place.add_lines("t", 3)
    redis = server(place)
    redis("DEL", "weir:{t}:meta")
    place.weir("topic", "set", "t", "kind=list").expect_complaint(
        2, "stays of kind delay")
    redis("DEL", "weir:{t}:meta")
    place.ok("pause", "t")
    place.ok("resume", "t")
    place.expect_stats("t", ready=3)
    place.drain(place.echo())
    expect(3, len(place.lines("out")))


# --- eviction -----------------------------------------------------------------

@test
def a_worker_logs_an_eviction_policy_that_is_set_while_it_runs(place):
    redis = Server(place)
    place.env["WEIR_REDIS"] = redis.url
    worker = place.work(place.echo())
    place.ok("add", "t")
    eventually(lambda: place.lines("out"), "it serves, so the start is over")
    redis.tell("CONFIG SET maxmemory-policy allkeys-lru")
    await_line(worker, "maxmemory-policy is allkeys-lru")
    redis.tell("CONFIG SET maxmemory-policy noeviction")
    await_line(worker, "maxmemory-policy is noeviction again")
    stop_cleanly(worker)


@test
def doctor_says_that_keys_were_evicted(place):
    redis = Server(place, "--maxmemory", "3mb")
    redis.tell("CONFIG SET maxmemory-policy allkeys-random")
    for i in range(40):
        redis.tell("SETRANGE big:%d 200000 x" % i)
    redis.tell("CONFIG SET maxmemory-policy noeviction")
    redis.tell("CONFIG SET maxmemory 0")
    (status, text), = said_of(place, "eviction", "--redis", redis.url)
    expect("warning", status)
    expect_in("keys were evicted", text)
