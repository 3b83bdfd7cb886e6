# SPDX-License-Identifier: MIT
"""The bundled plugin deliver: due jobs go into a list or a stream."""

import os
import signal

import sentinel
from cluster import share, slot_of
from e2e import (Heard, await_line, eventually, expect, expect_in, expect_true,
                 kill, stop_cleanly, terminate, test, wait)
from redis_server import Server, use_good_plugins
from resp import Client


def connect(place):
    use_good_plugins(place)
    place.ok("topic", "list")
    return Client(os.path.join(place.data, "redis.sock"))


def add_numbers(place, count):
    place.add_lines("t", count, '{"body":%d}')


@test
def bodies_are_pushed_in_their_order_at_either_end(place):
    redis = connect(place)
    for end, wanted in (("right", range(300)), ("left", range(299, -1, -1))):
        add_numbers(place, 300)
        place.drain("t=deliver?list=%s&end=%s" % (end, end))
        expect([b"%d" % n for n in wanted], redis("LRANGE", end, 0, -1))
    place.expect_stats("t", done_total=600, retried_total=0)


@test
def a_list_topic_runs_what_is_delivered_to_it(place):
    connect(place)
    place.ok("topic", "set", "out", "kind=list")
    place.add("t", "1", "--body", '{"n":1}')
    place.add("t", "2")
    place.drain("t=deliver?list=out&form=msgpack")
    place.drain(place.echo("out"))
    expect([{"n": 1}, None], [line["body"] for line in place.lines("out")])


@test
def an_entry_of_a_stream_has_the_job_or_its_body(place):
    redis = connect(place)
    for fields in ("job", "body"):
        place.add("t", "1", "--header", "trace=x", "--body", "[1]")
        place.drain("t=deliver?stream=%s&fields=%s" % (fields, fields))
    expect([b"id", b"1", b"topic", b"t", b"body", b"[1]", b"header.trace",
            b"x"], redis("XRANGE", "job", "-", "+")[0][1])
    expect([b"body", b"[1]"], redis("XRANGE", "body", "-", "+")[0][1])


@test
def a_stream_keeps_about_as_many_as_it_may(place):
    redis = connect(place)
    add_numbers(place, 1000)
    place.drain("t=deliver?stream=s&maxlen=100")
    expect_true(100 <= redis("XLEN", "s") <= 300, "it is trimmed")


@test
def what_the_server_refuses_is_retried_with_its_reason(place):
    redis = connect(place)
    place.ok("topic", "set", "t", "retry=none")
    redis("SET", "out", "no list")
    place.add("t", "1")
    place.drain("t=deliver?list=out")
    (dead,) = place.ok("dead", "list", "t")
    expect_in("deliver: WRONGTYPE", dead["error"])


@test
def another_server_is_waited_for(place):
    redis = connect(place)
    other = Server(place)
    other.kill()
    worker = place.work("t=deliver?list=out&url=" + other.url)
    add_numbers(place, 10)
    eventually(lambda: place.stats("t")["running"] == 10, "they wait")
    other.start()
    eventually(lambda: place.stats("t")["done_total"] == 10, "they arrive")
    stop_cleanly(worker)
    expect("$", other.tell("LINDEX out 0")[:1])
    expect(0, redis("EXISTS", "out"))


@test
def another_server_hears_of_nothing_else(place):
    connect(place)
    other = Server(place)
    monitor = Client(other.path)
    monitor("MONITOR")
    place.add("t", "1", "--body", "1")
    place.drain("t=deliver?list=out&url=" + other.url)
    Client(other.path)("ECHO", "the end")
    heard = set()
    while "the end" not in heard:
        heard |= set(monitor.reply().split('"')[1::2])
    expect(set(), heard & {"SUBSCRIBE", "SCRIPT", "EVALSHA", "HSET"})
    expect_true({"RPUSH", "out"} <= heard, "it is pushed: %s" % heard)


@test
def a_topic_leaves_while_the_worker_goes_on(place):
    redis = connect(place)
    other, config = Server(place), place.path("weir.conf")
    text = 'topic "%s" { handler = deliver options = { "list=out"%s } }\n'
    place.write("weir.conf", text % ("t", ', "url=%s"' % other.url) +
                text % ("u", ""))
    worker = Heard(place.start("run", "--config", config))
    place.add("t", "1")
    eventually(lambda: place.stats("t")["done_total"] == 1, "it arrives")
    place.write("weir.conf", text % ("u", ""))
    worker.process.send_signal(signal.SIGHUP)
    worker.says("reload: removed t")
    eventually(lambda: len(other.told("CLIENT LIST").splitlines()) == 1,
               "its connection is closed")
    place.add("u", "1")
    eventually(lambda: redis("LLEN", "out") == 1, "it arrives")
    terminate(worker.process)
    expect(0, wait(worker.process))
    worker.reader.join()


# --- what goes wrong ----------------------------------------------------------


def ids(redis, key="s"):
    return [entry[1][1].decode() for entry in redis("XRANGE", key, "-", "+")]


@test
def a_worker_that_is_killed_loses_nothing(place):
    redis, count = connect(place), 20000
    place.ok("topic", "set", "t", "lease=1s")
    place.add_lines("t", count)
    for part in range(1, 4):
        worker = place.work("t=deliver?stream=s")
        eventually(lambda: redis("XLEN", "s") >= part * count // 8, "some do")
        kill(worker)
    place.drain("t=deliver?stream=s")
    expect({str(i) for i in range(count)}, set(ids(redis)))
    place.expect_stats("t", done_total=count, dead=0)


@test
def a_server_that_is_full_is_tried_again(place):
    redis = connect(place)
    other = Server(place, "--maxmemory", "1")
    place.ok("topic", "set", "t", "retry=100ms ...")
    place.add("t", "1")
    worker = place.work("t=deliver?list=out&url=" + other.url)
    eventually(lambda: place.stats("t")["retried_total"] > 0, "it waits")
    expect_in("deliver: OOM", place.ok("show", "t", "1")["error"])
    other.tell("CONFIG SET maxmemory 0")
    eventually(lambda: place.stats("t")["done_total"] == 1, "it arrives")
    stop_cleanly(worker)
    expect(0, redis("EXISTS", "out"))


@test
def who_may_not_write_there_is_told(place):
    connect(place)
    other = Server(place)
    other.log_in("-rpush", "~out")
    place.ok("topic", "set", "t", "retry=none")
    place.add("t", "1")
    place.drain("t=deliver?list=out&url=" + other.url_of("w:pw"))
    expect_in("deliver: NOPERM", place.dead("1")[1])


@test
def a_server_that_dies_before_its_answer_is_given_it_again(place):
    connect(place)
    other = Server(place)
    place.ok("topic", "set", "t", "retry=50ms ...")
    worker = place.work("t=deliver?list=out&url=" + other.url)
    await_line(worker, "connected to " + other.url)
    other.process.send_signal(signal.SIGSTOP)
    place.add("t", "1")
    eventually(lambda: place.stats("t")["running"] == 1, "it is on its way")
    other.kill()
    other.start()
    eventually(lambda: place.stats("t")["done_total"] == 1, "it arrives")
    stop_cleanly(worker)
    expect("$4", other.tell("LINDEX out 0"))


@test
def keys_of_a_cluster_are_at_whatever_node(place):
    cluster = share(place)
    use_good_plugins(place)
    topic = cluster.topic(cluster.nodes[0])
    for at, node in enumerate(cluster.nodes):
        key = cluster.topic(node, name="out%d-" % at)
        place.add_lines(topic, 10, "{}")
        place.drain("%s=deliver?list=%s" % (topic, key))
        expect(10, Client(node.path)("LLEN", key))


@test
def a_slot_that_moves_is_followed(place):
    cluster = share(place)
    del place.env["WEIR_REDIS"]
    connect(place)
    key = cluster.topic(cluster.nodes[0], name="out")
    worker = place.work("t=deliver?list=%s&url=%s" % (key, cluster.url()))
    place.add("t", "1")
    eventually(lambda: place.stats("t")["done_total"] == 1, "it arrives")
    cluster.move_slot(slot_of(key), cluster.nodes[1])
    place.add("t", "2")
    eventually(lambda: place.stats("t")["done_total"] == 2, "it arrives")
    stop_cleanly(worker)
    expect(2, Client(cluster.nodes[1].path)("LLEN", key))
    place.expect_stats("t", retried_total=0)


@test
def the_primary_that_sentinels_name_is_followed(place):
    connect(place)
    one, next_one = (Server(place, name=name) for name in ("one", "next"))
    guide = sentinel.Fake(one.port)
    worker = place.work("t=deliver?list=out&url=redis+sentinel://"
                        "127.0.0.1:%d/%s" % (guide.port, sentinel.NAME))
    place.add("t", "1")
    eventually(lambda: place.stats("t")["done_total"] == 1, "it arrives")
    guide.primary = next_one.port
    one.kill()
    place.add("t", "2")
    eventually(lambda: place.stats("t")["done_total"] == 2, "it arrives")
    stop_cleanly(worker)
    expect(1, Client(next_one.path)("LLEN", "out"))


@test
def bodies_of_a_batch_that_are_large_leave_in_parts(place):
    redis = connect(place)
    body = '"%s"' % ("x" * 700000)
    for n in range(5):
        place.ok("add", "t", "--jsonl", "-",
                 stdin='{"id":"%d","body":%s}\n' % (n, body))
    place.drain("t=deliver?list=out")
    expect([len(body)] * 5, [len(one) for one in redis("LRANGE", "out", 0,
                                                       -1)])


@test
def what_cannot_be_is_refused(place):
    connect(place)
    for options, word in (("", "one of list=KEY and stream=KEY"),
                          ("?list=a&stream=b", "one of list=KEY"),
                          ("?list=a&maxlen=1", "maxlen"),
                          ("?list=a&end=up", "left|right"),
                          ("?list=a&url=redis:x", "address")):
        done = place.weir("run", "--handle", "t=deliver" + options,
                          "--until-empty")
        expect(2, done.code, done.err)
        expect_in(word, done.err.splitlines()[-1])
    place.weir("plugin", "try", "deliver", "--option", "list=a"
               ).expect_complaint(2, "there is no server here")
