# SPDX-License-Identifier: MIT
"""Schedules: weir cron, those of a configuration file, and what else happens to
a topic that has some."""

import json
import os
import re
import signal
import time

from cluster import share
from e2e import (await_line, eventually, expect, expect_in,
                 expect_true, stop_cleanly, test)
from redis_server import use_good_plugins
from resp import Client
from schedules import add, cron, moment_of, ticks
from web import TOKEN, Web

ID = re.compile(r"^(.+)@\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$")


def ids(place, name="out"):
    return [line["id"] for line in place.lines(name)]


def redis(place):
    return Client(os.path.join(place.data, "redis.sock"))


def wait_until(ms):
    eventually(lambda: time.time() * 1000 >= ms, "time passes")


def await_tick(place):
    """A list is no snapshot: it may miss a tick that begins or ends to run."""
    eventually(lambda: ticks(place) == ["s@next"], "there is one tick")


@test
def each_time_has_a_job_and_the_job_has_what_the_schedule_says(place):
    expect("set", add(place, "s", "--every", "1s", "--body", '{"n":1}',
                      "--url", "u", "--ttl", "1h")["schedule"])
    expect("unchanged", add(place, "s", "--every", "1s", "--body", '{"n":1}',
                            "--url", "u", "--ttl", "1h")["schedule"])
    workers = [place.work(place.echo()) for _ in range(2)]
    eventually(lambda: len(ids(place)) >= 3, "three jobs")
    for worker in workers:
        stop_cleanly(worker)
    found = ids(place)
    expect(len(found), len(set(found)))
    for job_id in found:
        expect("s", ID.match(job_id).group(1))
    expect([{"n": 1}], [body for body in (line["body"] for line
                                          in place.lines("out"))][:1])
    expect(["s@next"], ticks(place))


@test
def what_is_wrong_with_a_schedule_is_told(place):
    def refused(*args):
        return place.weir("cron", "add", "s", *args)

    refused("--every", "1s").expect_complaint(2, "needs --topic T")
    topic = ("--topic", "t")
    refused(*topic).expect_complaint(2, "one of at and every")
    refused(*topic, "--every", "1s", "--at", "@daily") \
        .expect_complaint(2, "one of at and every")
    refused(*topic, "--every", "1ms").expect_complaint(2, "--every", "1s to")
    refused(*topic, "--at", "0 25 * * *") \
        .expect_complaint(2, '--at: hour: "25" is not 0 to 23')
    refused(*topic, "--at", "@daily", "--zone", "Europe/Berlino") \
        .expect_complaint(2, "--zone: time zone Europe/Berlino is not known")
    refused(*topic, "--at", "@daily", "--zone", "../passwd") \
        .expect_complaint(2, "--zone", "no name of a time zone")
    refused(*topic, "--every", "1s", "--zone", "Europe/Berlin") \
        .expect_complaint(2, "a zone belongs to at")
    refused(*topic, "--every", "1s", "--missed", "some") \
        .expect_complaint(2, "--missed", "once, skip or all")
    refused(*topic, "--every", "1s", "--overlap", "no") \
        .expect_complaint(2, "--overlap", "allow or skip")
    refused(*topic, "--every", "1s", "--missed", "all", "--overlap", "skip") \
        .expect_complaint(2, "missed = all makes jobs that overlap")
    refused(*topic, "--every", "1s", "--body", "{") \
        .expect_complaint(2, "--body")
    place.weir("cron", "add", "a b", *topic, "--every", "1s") \
        .expect_complaint(2, "a b")
    for verb in ("show", "pause", "resume", "run", "delete"):
        place.weir("cron", verb, "s", *topic) \
            .expect_complaint(3, 'no schedule "s" in topic "t"')
    expect([], place.ok("cron", "list"))


@test
def list_and_show_tell_what_there_is(place):
    add(place, "b", "--every", "15m")
    add(place, "a", "--at", "0 3 * * 1-5", "--zone", "Europe/Berlin",
        "--jitter", "5s", topic="other")
    place.ok("topic", "set", "l", "kind=list")
    listed = place.ok("cron", "list")
    expect([("other", "a"), ("t", "b")],
           [(one["topic"], one["name"]) for one in listed])
    shown = cron(place, "show", "a", topic="other")
    expect(listed[0]["at"], shown["at"])
    expect(("Europe/Berlin", 5000, "once", "allow", False),
           tuple(shown[name] for name in ("zone", "jitter_ms", "missed",
                                          "overlap", "paused")))
    expect(5, len(shown["next"]))
    expect(shown["next"][0], shown["next_ms"])
    text = place.weir("cron", "show", "b", "--topic", "t").out
    expect(5, len(re.findall(r"\d{4}-\d\d-\d\dT", text)))
    expect_in("every     15m", text)


@test
def a_schedule_that_cannot_be_read_is_shown_and_can_be_replaced(place):
    server = redis(place) if add(place, "s", "--every", "1h") else None
    good = server("HGET", "weir:{t}:cron", "s")
    begin, record = good.split(b"\x98", 1)[0], b"\x98" + good.split(
        b"\x98", 1)[1]
    values = {"a": b"garbage", "b": begin + b"\xc1", "d e": good,
              "c": begin + record.replace(b" once ", b" none "),
              "f": b"", "g": b"Z" + good[1:], "h": begin + record[:9] + b"\xff"}
    for name, value in values.items():
        server("HSET", "weir:{t}:cron", name, value)
    told = {one["name"]: one.get("error") for one in place.ok("cron", "list")}
    expect(set(values) | {"s"}, set(told))
    expect(None, told.pop("s"))
    for name, why in told.items():
        expect_true(why and len(why) > 10, name)
    expect("its name is none", told["d e"])
    text = place.weir("cron", "list").out
    expect_in("t  a  cannot be read: what is stored is no schedule", text)
    expect_in("cannot be read", place.ok("cron", "show", "c", "--topic",
                                         "t")["error"])
    place.weir("cron", "run", "c", "--topic", "t").expect_complaint(
        2, "cannot be read")
    expect("set", add(place, "a", "--every", "1h")["schedule"])
    for name in "bcfgh":
        expect("deleted", place.ok("cron", "delete", name, "--topic",
                                   "t")["schedule"])
    told = {one["name"] for one in place.ok("cron", "list")}
    expect({"a", "s", "d e"}, told)


@test
def a_schedule_rests_while_it_is_paused_and_goes_when_it_is_deleted(place):
    add(place, "s", "--every", "1s")
    cron(place, "pause", "s")
    expect([], place.ok("list", "t"))
    expect("unchanged", add(place, "s", "--every", "1s")["schedule"])
    expect(True, cron(place, "show", "s")["paused"])
    worker = place.work(place.echo())
    job_id = cron(place, "run", "s")["id"]
    eventually(lambda: ids(place) == [job_id], "one by hand")
    cron(place, "resume", "s")
    eventually(lambda: len(ids(place)) > 2, "it goes on")
    cron(place, "delete", "s")
    expect([], ticks(place))
    eventually(lambda: place.ok("list", "t") == [], "all it had added ran")
    known = set(ids(place))
    wait_until(time.time() * 1000 + 1500)
    stop_cleanly(worker)
    expect(set(), set(ids(place)) - known, "it adds no more")
    expect([], place.ok("cron", "list"))


@test
def a_tick_that_runs_is_deleted_with_its_job(place):
    add(place, "s", "--every", "1s")
    worker = place.work(place.echo())
    eventually(lambda: ids(place), "it runs")
    for _ in range(20):
        add(place, "s", "--every", "1s", "--body", "1")
        add(place, "s", "--every", "1s", "--body", "2")
        cron(place, "delete", "s")
        add(place, "s", "--every", "1s")
        await_tick(place)
    add(place, "s", "--every", "1h")
    eventually(lambda: [job["id"] for job in place.ok("list", "t")]
               == ["s@next"], "its jobs ran")
    stop_cleanly(worker)
    stats = place.stats("t")
    expect(1, stats["scheduled"] + stats["ready"])


@test
def somebodys_job_with_the_id_of_a_tick_stays_while_the_schedule_rests(place):
    add(place, "s", "--every", "1h")
    cron(place, "pause", "s")
    place.add("t", "s@next")
    add(place, "s", "--every", "2h")
    expect(["s@next"], ticks(place))
    place.weir("cron", "resume", "s", "--topic", "t") \
        .expect_complaint(2, "a job has the id NAME@next")
    place.ok("delete", "t", "s@next")
    cron(place, "resume", "s")
    expect(["s@next"], ticks(place))


@test
def ticks_stay_where_jobs_are_deleted(place):
    add(place, "s", "--every", "1h")
    place.add("t", "job", "--delay", "1h")
    expect({"topic": "t", "deleted": 1}, place.ok("purge", "t", "--yes"))
    expect(["s@next"], ticks(place))
    place.weir("delete", "t", "s@next").expect_complaint(2, "weir cron delete")
    place.weir("reschedule", "t", "s@next", "--delay", "1s") \
        .expect_complaint(2, "weir cron delete")
    place.weir("topic", "delete", "t", "--yes") \
        .expect_complaint(1, "it has schedules, such as s")
    place.weir("topic", "set", "t", "kind=list").expect_complaint(
        2, "the topic has schedules and stays of kind delay: weir cron delete")
    cron(place, "pause", "s")
    place.weir("topic", "delete", "t", "--yes") \
        .expect_complaint(1, "it has schedules, such as s")
    cron(place, "delete", "s")
    place.ok("topic", "delete", "t")
    expect([], redis(place)("KEYS", "weir:{t}:*"))


@test
def conditions_mean_jobs_and_no_ticks(place):
    add(place, "s", "--every", "1h")
    for verb, *more in (("delete",), ("reschedule", "--delay", "2h")):
        for chosen in (("--where", "true"), ("--state", "scheduled"),
                       ("--where", "true", "--dry-run")):
            result = place.weir(verb, "t", *chosen, *more)
            expect(0, result.code, result.err)
            expect("would %s 0 jobs\n" % verb if "--dry-run" in chosen
                   else verb.rstrip("e") + "ed 0\n", result.out)
    place.add("t", "job", "--delay", "1h")
    expect(1, place.ok("delete", "t", "--where", "true")["deleted"])
    expect(["s@next"], ticks(place))


@test
def the_page_says_of_a_tick_what_it_is(place):
    add(place, "s", "--every", "1h")
    web = Web(place, token=TOKEN)
    whose = {"Authorization": "Bearer " + TOKEN}
    eventually(lambda: web.get("/api/topics/t", **whose).code == 200,
               "it has read the topics")
    for verb, body in (("delete", b"{}"), ("reschedule", b'{"delay":"1s"}')):
        answer = web.post("/api/topics/t/jobs/s@next/" + verb, body, **whose)
        expect(400, answer.code)
        expect_in("is the tick of a schedule; see weir cron delete",
                  answer.text)
    expect(["s@next"], ticks(place))


@test
def a_tick_that_was_lost_is_made_anew_by_a_worker(place):
    add(place, "s", "--every", "1s")
    server = redis(place)
    for key in server("KEYS", "weir:{t}:*"):
        if key not in (b"weir:{t}:cron", b"weir:{t}:meta"):
            server("DEL", key)
    worker = place.work(place.echo())
    eventually(lambda: ids(place), "it goes on")
    stop_cleanly(worker)


@test
def until_empty_does_not_wait_for_ticks(place):
    add(place, "s", "--every", "1h")
    place.add("t", "job")
    expect(1, place.stats("t")["ticks"])
    place.drain(place.echo())
    expect(["job"], ids(place))
    expect(["s@next"], ticks(place))


@test
def export_leaves_ticks_out(place):
    add(place, "s", "--every", "1h")
    for job_id in ("a", "b"):
        place.add("t", job_id, "--delay", "2h")
    for more in ((), ("--limit", "2"), ("a", "s@next", "b")):
        lines = place.weir("export", "t", *more).out.splitlines()
        expect(["a", "b"], sorted(json.loads(line)["id"] for line in lines))


@test
def with_overlap_skip_the_job_before_has_to_be_over(place):
    add(place, "s", "--every", "1s", "--overlap", "skip", "--jitter", "1d")
    worker = place.work(place.echo())

    def jobs():
        return [job for job in place.ok("list", "t", "--state", "scheduled")
                if ID.match(job["id"])]

    first = eventually(jobs, "its job waits for the jitter to pass")
    expect(1, len(first))
    wait_until(first[0]["added_ms"] + 3000)
    expect([first[0]["id"]], [job["id"] for job in jobs()])
    place.ok("delete", "t", first[0]["id"])
    eventually(lambda: [job["id"] for job in jobs()] not in
               ([], [first[0]["id"]]), "the next one")
    expect(1, len(jobs()))
    stop_cleanly(worker)


def miss(place, missed):
    """Ids that come when nobody served for three seconds."""
    add(place, "s", "--every", "1s", "--missed", missed)
    worker = place.work(place.echo())
    eventually(lambda: ids(place), "it began")
    stop_cleanly(worker)
    before, until = set(ids(place)), time.time() * 1000 + 3000
    wait_until(until)
    worker = place.work(place.echo())
    found = eventually(lambda: [job_id for job_id in ids(place)
                                if job_id not in before], "it goes on")
    stop_cleanly(worker)
    return [job_id for job_id in found if moment_of(job_id) <= until]


@test
def of_times_that_nobody_saw_once_makes_one_job(place):
    found = [moment_of(job_id) for job_id in miss(place, "once")]
    expect_true(len(found) < 3, "of three times at most two were in time")


@test
def of_times_that_nobody_saw_all_makes_each_job(place):
    miss(place, "all")
    found = sorted(ids(place))
    first, last = moment_of(found[0]), moment_of(found[-1])
    expect(list(range(first, last + 1, 1000)),
           [moment_of(job_id) for job_id in found])


@test
def a_full_server_has_the_tick_again_when_there_is_room(place):
    add(place, "s", "--every", "1s", "--missed", "all")
    worker = place.work(place.echo())
    eventually(lambda: ids(place), "it runs")
    server = redis(place)
    server("CONFIG", "SET", "maxmemory", "1")
    until = time.time() * 1000 + 2500
    wait_until(until)
    server("CONFIG", "SET", "maxmemory", "0")
    eventually(lambda: len(ids(place)) > 5, "it goes on")
    stop_cleanly(worker)
    found = [line["id"] for line in place.lines("out")]
    expect(len(found), len(set(found)))


@test
def a_run_by_hand_that_is_refused_says_why(place):
    add(place, "s", "--every", "1h", "--body", '{"u":7}')
    run = ("cron", "run", "s", "--topic", "t")
    place.add("t", "1")
    place.ok("topic", "set", "t", "max_pending=1")
    place.weir(*run).expect_complaint(1, 'as many jobs wait in topic "t"')
    place.ok("topic", "set", "t", "max_pending=", "max_body=1")
    place.weir(*run).expect_complaint(2, "body of 4 bytes is larger")
    place.ok("topic", "set", "t", "max_body=", "unique=body.u")
    server = redis(place)
    server("CONFIG", "SET", "maxmemory", "1")
    place.weir(*run).expect_complaint(1, "OOM")
    server("CONFIG", "SET", "maxmemory", "0")
    holder = cron(place, "run", "s")["id"]
    place.weir(*run).expect_complaint(
        4, 'job "%s" of topic "t" has the unique key' % holder)
    expect(["1", holder], sorted(job["id"] for job in place.ok("list", "t")
                                 if not job["id"].endswith("@next")))


@test
def a_run_by_hand_of_a_moment_that_has_a_job_says_so(place):
    add(place, "s", "--every", "1h")
    begin = int(time.time() + 1) * 1000

    def job_id(ms):
        text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms // 1000))
        return "s@%s%sZ" % (text, ".%03d" % (ms % 1000) if ms % 1000 else "")

    place.ok("add", "t", "--jsonl", "-", stdin="".join(
        '{"id":"%s","delay":"1h"}\n' % job_id(begin + i)
        for i in range(60000)))
    wait_until(begin)
    result = place.weir("cron", "run", "s", "--topic", "t")
    result.expect_complaint(4, 'weir: a job "s@', '" exists already in topic '
                            '"t"; nothing was changed')


@test
def what_is_wrong_with_the_name_of_a_schedule_is_told(place):
    for name in ("a b", "", "x" * 41):
        for words in (("add", name, "--every", "1s"), ("pause", name),
                      ("show", name), ("run", name), ("delete", name)):
            place.weir("cron", *words, "--topic", "t").expect_complaint(
                2, '"%s" is no name of a schedule' % name)


@test
def jobs_of_a_schedule_have_no_key_and_those_by_hand_have_one(place):
    place.ok("topic", "set", "t", "unique=body.u", "key=body.k",
             "key_parallel=1")
    add(place, "s", "--every", "1s", "--body", '{"u":1,"k":"a"}')
    by_hand = cron(place, "run", "s")["id"]
    expect("a", place.ok("show", "t", by_hand)["key"])
    expect(4, place.weir("add", "t", "--body", '{"u":1}').code)
    (token,) = [line.split(" ")[0] for line in
                place.weir("take", "t", "--wait", "60s").out.splitlines()]
    worker = place.work(place.echo())
    eventually(lambda: len(ids(place)) >= 2, "its jobs run beside that one")
    stop_cleanly(worker)
    expect(1, place.ok("settle", "t", token, "--done")["settled"])


@test
def a_paused_topic_makes_no_jobs(place):
    add(place, "s", "--every", "1s")
    worker = place.work(place.echo())
    eventually(lambda: ids(place), "it runs")
    place.ok("pause", "t")
    eventually(lambda: place.stats("t")["running"] == 0, "nothing runs")
    count = place.stats("t")["added_total"]
    wait_until(time.time() * 1000 + 1500)
    expect(count, place.stats("t")["added_total"])
    place.ok("resume", "t")
    eventually(lambda: place.stats("t")["added_total"] > count, "it goes on")
    stop_cleanly(worker)


CONFIG = """
topic "t" { handler = "%s" options = { "file=%s" } }
cron "s" {
    to = t
    every = %s
    body = '{"n":1}'
}
"""


def write_config(place, every):
    return place.write("w.conf", CONFIG % (
        os.path.abspath(os.path.join(os.environ.get("WEIR_BUILD", "build"),
                                     "plugins", "echo.so")),
        place.path("out"), every))


@test
def workers_with_one_file_set_one_schedule_and_reload_changes_it(place):
    path = write_config(place, "1s")
    workers = [place.start("run", "--config", path) for _ in range(3)]
    for worker in workers:
        await_line(worker, "serving t")
    eventually(lambda: len(ids(place)) >= 2, "it runs")
    await_tick(place)
    expect([1000], [one["every_ms"] for one in place.ok("cron", "list")])
    write_config(place, "2s")
    for worker in workers:
        worker.send_signal(signal.SIGHUP)
    eventually(lambda: [one["every_ms"] for one in place.ok("cron", "list")]
               == [2000], "it is changed")
    for worker in workers:
        stop_cleanly(worker)
    expect(["s@next"], ticks(place))


@test
def check_names_the_line_of_a_schedule_that_is_wrong(place):
    path = place.write("w.conf", "\n".join((
        'topic "l" { handler = echo kind = list }',
        'cron "a" { to = t', 'at = "0 25 * * *" }',
        'cron "b" { every = 1s }',
        'cron "c" { to = l every = 1s }',
        'cron "a" { to = t every = 1s }',
        'cron "d" { to = t every = 1s zone = x }',
        'cron "e" { to = t evry = 1s every = 2s }', "")))
    use_good_plugins(place)
    result = place.weir("check", "--config", path)
    expect(2, result.code)
    for line in ('w.conf:3: at: hour: "25" is not 0 to 23',
                 'w.conf:4: cron "b" has no topic: write to = TOPIC',
                 'w.conf:5: topic "l" is of kind list',
                 "w.conf:6: cron a began on line 2 already",
                 "w.conf:7: zone: a zone belongs to at, not to every",
                 'w.conf:8: there is no option "evry" here: write every'):
        expect_in(line, result.err)


@test
def schedules_of_a_cluster_are_with_their_topics(place):
    use_good_plugins(place)
    cluster = share(place)
    topics = [cluster.topic(node, name="cron") for node in cluster.nodes]
    for topic in topics:
        add(place, "s", "--every", "1s", topic=topic)
    worker = place.work(*(place.echo(topic, name=topic) for topic in topics))
    eventually(lambda: all(ids(place, topic) for topic in topics),
               "each has a job")
    expect({(topic, "s") for topic in topics},
           {(one["topic"], one["name"]) for one in place.ok("cron", "list")
            if one["topic"] in topics})
    for topic in topics:
        cron(place, "delete", "s", topic=topic)
    stop_cleanly(worker)
