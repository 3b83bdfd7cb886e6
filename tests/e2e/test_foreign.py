# SPDX-License-Identifier: MIT
"""What somebody else wrote into the server, as the commands see it: a topic that
it hit is told, and the others work on."""

import os

from e2e import expect, expect_in, expect_true, test
from resp import Client


def connect(place):
    return Client(os.path.join(place.data, "redis.sock"))


@test
def stats_shows_the_topics_that_can_be_read_and_a_line_for_each_other(place):
    for topic in ("good", "broken", "wrong", "last"):
        place.add(topic, "1")
    redis = connect(place)
    redis("DEL", "weir:{broken}:wait")
    redis("SET", "weir:{broken}:wait", "x")
    redis("SET", "weir:{wrong}:meta", "x")
    result = place.weir("stats")
    expect(1, result.code)
    expect(["TOPIC", "good", "last"],
           [line.split()[0] for line in result.out.splitlines()])
    for topic in ("broken", "wrong"):
        expect(1, sum("stats of %s: " % topic in line
                      for line in result.err.splitlines()))
    expect("broken\ngood\nlast\nwrong\n", place.weir("topic", "list").out)


@test
def a_hundred_thousand_topics_and_one_more_are_listed(place):
    place.add("one", "1")
    redis = connect(place)
    names = ["topic-%06d" % i for i in range(100000)]
    for at in range(0, len(names), 1000):
        redis("SADD", "weir:topics", *names[at:at + 1000])
    result = place.weir("topic", "list")
    expect(0, result.code)
    expect_true(result.out.splitlines() == ["one"] + names, "all in order")
    expect(["TOPIC", "one"], [line.split()[0] for line in
                              place.weir("stats").out.splitlines()])


def end_with_newer(place, topic):
    result = place.weir("run", "--handle", topic + "=echo", "--until-empty")
    expect(1, result.code)
    expect_in('topic "%s" holds 1 jobs that a newer version of weir wrote'
              % topic, result.err.splitlines()[-1])


@test
def until_empty_ends_where_only_a_pack_of_a_newer_version_is_left(place):
    place.add("t", "1")
    redis = connect(place)
    pack = redis("KEYS", "weir:{t}:p:*")[0].decode()
    redis("SETRANGE", pack, "1", "2")
    place.add("t", "2")
    end_with_newer(place, "t")
    expect(1, place.stats("t")["done_total"])
    redis("SETRANGE", pack, "1", "1")
    place.drain("t=echo")
    expect(2, place.stats("t")["done_total"])


@test
def until_empty_ends_behind_a_message_of_a_newer_version(place):
    place.ok("topic", "set", "t", "kind=sync", "delay=0s")
    place.add("t", "1")
    redis = connect(place)
    expect(1, redis("EVAL", """
        local message = redis.call('LPOP', KEYS[1])
        local at = string.find(message, string.char(0x98, 1), 1, true)
        return redis.call('LPUSH', KEYS[1], string.sub(message, 1, at) ..
                          string.char(2) .. string.sub(message, at + 2))""",
                    "1", "weir:{t}:fifo"))
    end_with_newer(place, "t")
    expect_true(redis("LLEN", "weir:{t}:fifo") == 1, "it is left there")
