# SPDX-License-Identifier: MIT
"""A client in Python, made from docs/wire.md, and weir understand each other.

Needs the modules redis and msgpack."""

import os
import re
import subprocess
import sys

import wire_producer
import wire_vectors
from e2e import (BUILD, ROOT, eventually, expect, expect_in, expect_true, run,
                 stop_cleanly, test)
from wire_producer import Weir, pack, record, rising


def open_wire(place, **options):
    place.weir("add", "other")  # starts the server
    return Weir(os.path.join(place.data, "redis.sock"),
                os.path.join(BUILD, "scripts", "delay"), **options)


def run_all(place, topic="t"):
    place.drain(place.echo(topic))
    return place.lines("out")


def page():
    with open(os.path.join(ROOT, "docs", "wire.md"), encoding="utf-8") as file:
        return file.read()


@test
def ten_lines_add_a_job_that_runs(place):
    open_wire(place)
    lines = re.search(r"```python\n(.*?)```", page(), re.S).group(1)
    lines = lines.replace("redis.Redis()", "redis.Redis(unix_socket_path=%r)"
                          % os.path.join(place.data, "redis.sock"))
    lines = lines.replace("/usr/share/weir/scripts",
                          os.path.join(BUILD, "scripts", "delay"))
    for answer in ("added", "exists"):
        done = run([sys.executable, "-c", lines])
        expect(("[b'%s', b'order-42']\n" % answer, ""),
               (done.stdout, done.stderr))
    expect_in("orders", [topic["topic"]
                         for topic in place.ok("stats")["topics"]])
    expect([{"order": 42}], [line["body"] for line in
                             run_all(place, "orders")])


@test
def twenty_lines_run_jobs(place):
    open_wire(place)
    place.ok("topic", "set", "orders", "retry=50ms")
    lines = re.findall(r"```python\n(.*?)```", page(), re.S)[1]
    lines = lines.replace("redis.Redis()", "redis.Redis(unix_socket_path=%r)"
                          % os.path.join(place.data, "redis.sock"))
    lines = lines.replace("/usr/share/weir/scripts",
                          os.path.join(BUILD, "scripts", "delay"))
    place.add("orders", "a", "--body", "1")
    worker = subprocess.Popen([sys.executable, "-u", "-c", lines], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.started.append(worker)
    eventually(lambda: place.stats("orders")["done_total"] == 1, "it ran")
    place.add("orders", "b", "--delay", "100ms")
    eventually(lambda: place.stats("orders")["done_total"] == 2, "so did b")
    worker.kill()
    expect("b'a' 1\nb'b' None\n", worker.communicate()[0])


@test
def calls_and_answers_are_those_of_the_vectors(place):
    server = open_wire(place).redis
    server.flushall()
    scripts = os.path.join(BUILD, "scripts", "delay")
    path = os.path.join(ROOT, "docs", "wire-vectors.jsonl")
    with open(path, encoding="utf-8") as file:
        calls = file.read().count('"call"')
    expect(calls, wire_vectors.replay(path, scripts, server))


@test
def the_example_on_the_page_is_the_pack_of_that_job(place):
    example = re.search(r"^5731.*$", page(), re.M).group()
    expect(bytes.fromhex(example.replace(" ", "")),
           pack([record({"order": 42})], ["42"])[0])


@test
def jobs_of_another_language_are_shown_and_run(place):
    wire = open_wire(place)
    jobs = [record({"n": i, "text": "ä", "bytes": b"\0", "list": [None, 1.5]},
                   retry="15s 3m", url="http://a/%d" % i) for i in range(256)]
    _, added, refused, _ = wire.add("t", jobs, "r0",
                                    ["job-%d" % i for i in range(256)])
    expect((256, []), (added, refused))
    job = place.ok("show", "t", "job-200")
    expect(("ready", "15s 3m", "http://a/200", 200),
           (job["state"], job["retry"], job["url"], job["body"]["n"]))
    expect_in("t", [topic["topic"] for topic in place.ok("stats")["topics"]])
    lines = run_all(place)
    expect(list(range(256)), sorted(line["body"]["n"] for line in lines))
    expect("ä", lines[0]["body"]["text"])
    expect(256, place.stats("t")["done_total"])


@test
def jobs_of_another_language_reach_the_project_of_their_prefix(place):
    wire = open_wire(place, prefix=b"shop")
    url = "unix://%s?prefix=shop" % os.path.join(place.data, "redis.sock")
    worker = place.work(place.echo(), flags=("--redis", url))
    eventually(lambda: wire.redis.zcard("shop:{t}:idle"), "it sleeps")
    _, added, refused, _ = wire.add("t", [record(1)], "r0", ["a"])
    expect((1, []), (added, refused))
    eventually(lambda: place.lines("out"), "it was woken")
    expect(1, wire.stats("t")["done"])
    stop_cleanly(worker)
    names = [topic["topic"] for topic in place.ok("stats")["topics"]]
    expect(["other"], names)


@test
def ids_are_made_and_due_times_kept(place):
    wire = open_wire(place)
    name, added, _, _ = wire.add("t", [record(1), record(2)], "r3600000")
    expect(2, added)
    made = "@%s01" % name.decode()
    job = place.ok("show", "t", made)
    expect(("scheduled", 2), (job["state"], job["body"]))
    state, due, found = wire.look("t", made)
    expect(("scheduled", job["due_ms"], 2), (state, due, found[7]))
    when = wire.stats("t")["time"] + 7200000
    wire.add("t", [record(3)], "a%d" % when, ["c"])
    expect(when, place.ok("show", "t", "c")["due_ms"])
    data = b"p" + wire_producer.msgpack.packb([1000, 3600000])
    wire.add("t", [record(4), record(5)], data, ["d", "e"])
    expect("scheduled", place.ok("show", "t", "e")["state"])
    expect(3599000, place.ok("show", "t", "e")["due_ms"] -
           place.ok("show", "t", "d")["due_ms"])


@test
def a_name_that_another_client_staged_is_given_up(place):
    wire = open_wire(place)
    wire.number = ahead = 1 << 47
    wire.redis.set(wire.key("t", b"p:" + wire.name()), "of another client",
                   px=60000)
    wire.number = ahead
    name, added, refused, _ = wire.add("t", [record("ours")], "r3600000")
    expect((1, []), (added, refused))
    expect("ours", wire.look("t", "@%s00" % name.decode())[2][-1])


@test
def an_id_that_exists_is_refused_and_a_repeat_changes_nothing(place):
    wire = open_wire(place)
    place.add("t", "b", "--body", '"old"', "--delay", "1h")
    _, added, refused, again = wire.add(
        "t", [record("new") for _ in range(3)], "r3600000", ["a", "b", "c"])
    expect((2, [1]), (added, refused))
    expect((0, [1]), again())
    expect("old", place.ok("show", "t", "b")["body"])
    expect(3, place.stats("t")["scheduled"])
    place.ok("delete", "t", "a")
    expect((0, [1]), again())
    expect(2, place.stats("t")["scheduled"])


@test
def headers_of_another_language_that_are_none_are_left_out(place):
    wire = open_wire(place)
    odd = {"a": "1", "b": 2, 3: "c", "d": "x\r\ny: z", "A": "2",
           "weir.token": 7, "e": "x" * 300, "f": "\u00e4", "g": "3"}
    jobs = [record(1, headers=odd), record(2, headers="text"), record(3)]
    expect(3, wire.add("t", jobs, "r0", ["odd", "text", "none"])[1])
    expect({"a": "1", "g": "3"}, place.ok("show", "t", "odd")["headers"])
    run_all(place)
    expect(2, place.stats("t")["done_total"])
    expect(["malformed"], [job["reason"]
                           for job in place.ok("dead", "list", "t")])


NO_IDS = ["\r\nX-Admin: 1", "a\nb", "a\0b", "a\x1b[2Jb", "x" * 129, "x" * 255]
MORE_NO_IDS = ["a b", "{x}", "a}", "!x", "a\tb", "\x7f"]


@test
def an_id_that_no_job_can_have_is_refused_and_its_neighbours_run(place):
    wire = open_wire(place)
    for i, bad in enumerate(NO_IDS + MORE_NO_IDS):
        answer = wire.add("t", [record(i), record(i)], "r0", ["good", bad])
        expect((0, [-3]), answer[1:3], "id %r" % bad)
        expect((0, [-3]), answer[3](), "a repeat, id %r" % bad)
        expect(1, wire.add("t", [record(i)], "r0", ["good%d" % i])[1])
    expect(2, wire.add("t", [record(0)] * 2, "r0", ["a~b!", "y" * 123])[1])
    for i, bad in enumerate(("\x01", "\x9b")):
        expect(2, wire.add("t", [record(7), record(7)], "r0",
                           ["fair%d" % i, bad])[1], "id %r" % bad)
    lines = run_all(place)
    expect(sorted(["good%d" % i for i in range(12)] +
                  ["a~b!", "y" * 123, "fair0", "fair1"]),
           sorted(line["id"] for line in lines))
    dead = place.ok("dead", "list", "t")
    expect(2, len(dead), dead)
    for job in dead:
        expect("malformed", job["reason"])
        expect_true(re.fullmatch("@[-0-9A-Z_a-z]{12}01", job["id"]), job)
    expect(16, place.stats("t")["done_total"])


@test
def jobs_whose_times_rise_share_a_pack(place):
    wire = open_wire(place)
    now = wire.stats("other")["time"]
    times = [now, now + 3600000, now + 7200000]
    _, added, refused, _ = wire.add("t", [record(i) for i in range(3)],
                                    rising(b"t", times), ["a", "b", "c"])
    expect((3, []), (added, refused))
    expect(1, wire.redis.zcard(wire.key("t", b"wait")))
    expect(("scheduled", times[2]), wire.look("t", "c")[:2])
    expect(("scheduled", times[1]), wire.look("t", "b", "delete")[:2])
    expect(("scheduled", times[2]), wire.look("t", "c", "delete")[:2])
    expect(1, wire.stats("t")["waiting"])
    expect(["a"], [line["id"] for line in run_all(place)])


@test
def a_time_that_is_none_is_refused(place):
    wire = open_wire(place)
    for when in ("r1500.5", "a1795335435322.7", "r1000000000000000"):
        answer = wire.add("t", [record(1)], when)
        expect((0, [-3]), answer[1:3], when)
    expect(0, place.stats("t")["scheduled"])


def put_pack(wire, bad):
    """Without the script that would refuse it."""
    name = wire.name()
    data, _ = pack([record(7)], [bad])
    key = wire.key("d", b"ids")
    wire.redis.set(wire.key("d", b"p:" + name), data)
    wire.redis.hset(key, bad, name)
    wire.redis.zadd(wire.key("d", b"wait"), {name + b"0000": 1})
    wire.redis.hincrby(wire.key("d", b"meta"), "added", 1)


def put_event(wire, bad):
    event = b"\x01" + wire.name() + b"\0" + bytes([len(bad)]) + bad + record(7)
    wire.redis.rpush(wire.key("b", b"g:g"), event)
    for field in ("added", "waiting"):
        wire.redis.hincrby(wire.key("b", b"meta"), field, 1)


def put_entry(wire, bad):
    wire.redis.hset(wire.key("l", b"held"), bad, b"7")
    wire.redis.zadd(wire.key("l", b"wait"), {bad: 1})


@test
def ids_that_were_written_by_hand_reach_no_handler_of_any_kind(place):
    wire = open_wire(place)
    for topic, kind in (("d", "delay"), ("b", "bounded"), ("l", "list"),
                        ("s", "stream")):
        place.ok("topic", "set", topic, "kind=" + kind)
    place.add("d", "good")
    place.ok("add", "b", "--group", "g", "--id", "good")
    wire.redis.rpush("l", b"1")
    wire.redis.xadd("s", {"body": "1"})
    for bad in NO_IDS:
        put_pack(wire, bad)
        put_event(wire, bad.encode())
        put_entry(wire, bad)
        wire.redis.zadd(wire.key("s", b"wait"), {bad: 1})
    result = place.drain(*(place.echo(topic, topic) for topic in "dbls"))
    for topic in "dbls":
        expect(1, len(place.lines(topic)), topic)
    expect("good", place.lines("d")[0]["id"])
    expect("good", place.lines("b")[0]["id"])
    expect(6, place.stats("b")["failed_total"])
    for topic in "dl":
        expect(6, len(place.ok("dead", "list", topic)), topic)
    shown = "".join(place.weir("dead", "list", topic).out
                    for topic in "dl")
    for text in (result.err, shown):
        expect_true("\x1b" not in text and "X-Admin" not in text, repr(text))
    for topic in "dbl":
        expect_in("redis: %s: 1 claimed jobs cannot be read" % topic,
                  result.err)


@test
def the_bound_of_a_topic_is_told(place):
    wire = open_wire(place)
    place.ok("topic", "set", "t", "max_pending=2")
    _, added, refused, _ = wire.add("t", [record(i) for i in range(3)], "r0",
                                    ["a", "b", "c"])
    expect((2, [256 + 2]), (added, refused))


@test
def a_topic_of_another_kind_is_told(place):
    wire = open_wire(place)
    place.ok("topic", "set", "t", "kind=list")
    expect(-1, wire.add("t", [record(1)], "r0", ["a"])[1])


@test
def a_script_that_the_server_forgot_is_loaded_again(place):
    wire = open_wire(place)
    wire.add("t", [record(1)], "r0", ["a"])
    wire.redis.script_flush()
    expect(1, wire.add("t", [record(1)], "r0", ["b"])[1])
    expect(["a", "b"], sorted(line["id"] for line in run_all(place)))


@test
def jobs_of_weir_are_seen_counted_and_deleted_from_outside(place):
    wire = open_wire(place)
    place.add("t", "a", "--delay", "1h", "--body", '{"order":42}')
    place.add("t", "b")
    made = place.ok("add", "t", "--delay", "1h")["id"]
    state, due, found = wire.look("t", "a")
    expect(("scheduled", place.ok("show", "t", "a")["due_ms"],
            {"order": 42}), (state, due, found[7]))
    expect("ready", wire.look("t", "b")[0])
    expect("scheduled", wire.look("t", made)[0])
    expect(None, wire.look("t", "nothing"))
    stats = wire.stats("t")
    expect((b"delay", 3, 1, 3),
           (stats["kind"], stats["waiting"], stats["ready"], stats["added"]))
    for job_id in ("a", made):
        expect("scheduled", wire.look("t", job_id, "delete")[0])
        expect(None, wire.look("t", job_id))
        expect(3, place.weir("show", "t", job_id).code)
    expect(0, place.stats("t")["scheduled"])


@test
def a_dead_job_tells_why(place):
    wire = open_wire(place)
    wire.add("t", [record(1)], "r0", ["a"])
    place.drain("t=flaky?verdict=fail")
    state, died, found = wire.look("t", "a")
    expect("dead", state)
    expect_true(died > 1600000000000, "a time: %r" % died)
    expect(("failed", "flaky: attempt 1 of 1 that fail"),
           (found[6]["reason"], found[6]["error"]))
    expect(1, found[1])


@test
def a_sleeping_worker_is_woken(place):
    wire = open_wire(place)
    worker = place.work(place.echo())
    eventually(lambda: wire.redis.zcard(wire.key("t", b"idle")) == 1,
               "the worker sleeps")
    wire.add("t", [record(7)], "r0", ["a"])
    (line,) = eventually(lambda: place.lines("out"), "it ran")
    expect(7, line["body"])
    stop_cleanly(worker)
