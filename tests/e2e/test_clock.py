# SPDX-License-Identifier: MIT
"""A server whose clock was ahead for a moment, and ticks that were lost."""

import os

from e2e import (eventually, expect, expect_in, expect_true, kill, stop_cleanly,
                 test)
from redis_server import Clocked
from resp import Client
from schedules import add, ticks

HOUR_MS = 3600000
DAY_MS = 24 * HOUR_MS
MOST_LEFT_MS = 60000


def ids(place, name="out"):
    return [line["id"] for line in place.lines(name)]


def left_ms(server, key):
    """For how long the lease lasts that ends last; 0: there is none."""
    client = Client(server.path)
    last = client("ZRANGE", "weir:{t}:" + key, -1, -1, "WITHSCORES")
    now = client("TIME")
    return float(last[1]) - int(now[0]) * 1000 if last else 0


def die_ahead(place, server, key="lease"):
    """A worker renews its leases while the clock is an hour ahead, and is
    killed. Then the clock is right again."""
    worker = place.work(place.handler("later", file="held", until="end"))
    eventually(lambda: left_ms(server, key) > 0, "the worker has the job")
    server.advance(HOUR_MS)
    eventually(lambda: left_ms(server, key) > 0, "the worker renews its lease")
    kill(worker)
    server.advance(-HOUR_MS)
    expect_true(left_ms(server, key) > MOST_LEFT_MS, "the lease is not ahead")


def expect_back(place, server, key="lease"):
    """Another worker has the job when its lease is over, not an hour later."""
    worker = place.work(place.echo())
    eventually(lambda: place.lines("out"), "the job runs again")
    expect(1, len(place.lines("out")))
    expect_true(left_ms(server, key) < MOST_LEFT_MS, "a lease is ahead")
    stop_cleanly(worker)


@test
def a_lease_of_a_delay_topic_ends_though_the_clock_was_ahead(place):
    server = Clocked(place)
    place.add("t", "a")
    die_ahead(place, server)
    expect_back(place, server)


@test
def places_of_parallel_are_free_though_the_clock_was_ahead(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "parallel=1", "key_parallel=1")
    place.add("t", "a", "--key", "k")
    die_ahead(place, server)
    expect_back(place, server)


@test
def a_lease_of_a_list_ends_though_the_clock_was_ahead(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=list")
    Client(server.path)("RPUSH", "t", '{"n":1}')
    die_ahead(place, server)
    expect_back(place, server)


@test
def a_lease_of_a_stream_ends_though_the_clock_was_ahead(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=stream")
    Client(server.path)("XADD", "t", "*", "n", "1")
    die_ahead(place, server)
    expect_back(place, server)


@test
def a_lease_of_a_bounded_topic_ends_though_the_clock_was_ahead(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=bounded")
    place.ok("add", "t", "--group", "a", "--body", '{"n":1}')
    die_ahead(place, server)
    expect_back(place, server)


@test
def a_group_has_its_turn_though_it_came_while_the_clock_was_ahead(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=bounded")
    server.advance(HOUR_MS)
    place.ok("add", "t", "--group", "a", "--body", '{"n":1}')
    server.advance(-HOUR_MS)
    expect_back(place, server)


@test
def a_message_of_a_concurrent_topic_is_back_though_the_clock_was_ahead(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=concurrent", "delay=1ms")
    place.ok("add", "t", "--body", '{"n":1}')
    die_ahead(place, server, "alive")
    expect_back(place, server, "alive")


@test
def the_lock_of_a_sync_topic_is_free_though_the_clock_was_ahead(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=sync", "delay=1ms")
    place.ok("add", "t", "--body", '{"n":1}')
    server.advance(HOUR_MS)
    Client(server.path)("SET", "weir:{t}:lock", "dead", "PX", 5000)
    server.advance(-HOUR_MS)
    expect_back(place, server, "alive")


def expect_order(place, kind):
    """A message that came while the clock was ahead delays none behind it."""
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=" + kind, "delay=1ms")
    server.advance(HOUR_MS)
    place.add("t", "a")
    server.advance(-HOUR_MS)
    place.add("t", "b")
    place.drain(place.echo())
    expect(["a", "b"], ids(place))


@test
def a_sync_topic_goes_on_though_the_clock_was_ahead(place):
    expect_order(place, "sync")


@test
def a_concurrent_topic_goes_on_though_the_clock_was_ahead(place):
    expect_order(place, "concurrent")


@test
def jobs_with_keys_run_though_the_clock_was_set_back(place):
    server = Clocked(place)
    for i in range(3):
        place.add("t", "a%d" % i, "--key", "k")
    server.advance(HOUR_MS)
    worker = place.work(place.handler("later", file="held", until="end"),
                        flags=("--concurrency", "1", "--prefetch", "0"))
    eventually(lambda: left_ms(server, "lease") > 0, "the worker has a job")
    kill(worker)
    server.advance(-HOUR_MS)
    worker = place.work(place.echo())
    eventually(lambda: len(ids(place)) == 3, "they run")
    stop_cleanly(worker)


# --- schedules ---------------------------------------------------------------

def ahead_for_a_moment(place, server, ms):
    """A schedule makes a job while the clock is ahead."""
    worker = place.work(place.echo(name="before"))
    eventually(lambda: ids(place, "before"), "the schedule begins")
    server.advance(ms)
    count = len(ids(place, "before"))
    eventually(lambda: len(ids(place, "before")) > count, "it goes on")
    return worker


def expect_more(place, name):
    count = len(ids(place, name))
    eventually(lambda: len(ids(place, name)) >= count + 3, "it goes on")
    found = ids(place, name)
    expect(len(found), len(set(found)))


@test
def a_schedule_goes_on_though_the_clock_was_a_day_ahead(place):
    server = Clocked(place)
    add(place, "s", "--every", "1s")
    worker = ahead_for_a_moment(place, server, DAY_MS)
    server.advance(-DAY_MS)
    expect_more(place, "before")
    stop_cleanly(worker)


@test
def a_schedule_of_another_worker_goes_on_after_a_restart(place):
    server = Clocked(place)
    add(place, "s", "--at", "* * * * * *", "--zone", "Europe/Berlin")
    kill(ahead_for_a_moment(place, server, DAY_MS))
    server.advance(-DAY_MS)
    worker = place.work(place.echo())
    expect_more(place, "out")
    stop_cleanly(worker)
    expect(["s@next"], ticks(place))


@test
def a_schedule_that_was_set_while_the_clock_was_ahead_begins(place):
    server = Clocked(place)
    server.advance(DAY_MS)
    add(place, "s", "--every", "1s")
    server.advance(-DAY_MS)
    expect("unchanged", add(place, "s", "--every", "1s")["schedule"])
    worker = place.work(place.echo())
    expect_more(place, "out")
    stop_cleanly(worker)


def lose_packs(place):
    server = Client(os.path.join(place.data, "redis.sock"))
    keys = server("KEYS", "weir:{t}:p:*")
    for key in keys:
        server("DEL", key)
    return len(keys)


@test
def a_tick_whose_pack_was_lost_is_made_anew_by_its_worker(place):
    add(place, "s", "--every", "1s")
    worker = place.work(place.echo())
    eventually(lambda: ids(place), "it begins")
    eventually(lambda: lose_packs(place), "the tick is there")
    expect_more(place, "out")
    expect_more(place, "out")
    stop_cleanly(worker)


def listed(place):
    schedule, = place.ok("cron", "list", "--topic", "t")
    return schedule["tick"], schedule["next_ms"], len(schedule["next"])


@test
def a_list_says_that_there_is_no_tick_and_can_be_none(place):
    add(place, "s", "--every", "1h")
    expect((True, 5), listed(place)[::2])
    lose_packs(place)
    server = Client(os.path.join(place.data, "redis.sock"))
    server("HDEL", "weir:{t}:ids", "s@next")
    place.add("t", "s@next")
    expect((False, None, 0), listed(place))
    expect("t  s  every 1h  no tick\n", place.weir("cron", "list").out)
    expect_in("no tick", place.weir("cron", "show", "s", "--topic", "t").out)
    place.drain(place.echo())
    expect((True, 5), listed(place)[::2])


@test
def a_tick_whose_pack_was_lost_is_made_anew_by_a_list_and_a_set(place):
    for verb in ("list", "add"):
        add(place, "s", "--every", "1h")
        expect(1, lose_packs(place))
        expect([], ticks(place))
        if verb == "list":
            place.ok("cron", "list")
        else:
            add(place, "s", "--every", "1h")
        expect(["s@next"], ticks(place))
