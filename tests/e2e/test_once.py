# SPDX-License-Identifier: MIT
"""Jobs with unique keys, by the weir command."""

import json
import subprocess

from cluster import Cluster, slot_of
from e2e import eventually, expect, expect_in, expect_true, test
from redis_server import Server
from resp import Client
from wire_puller import Wire


def made(place, *args):
    """The id of a job that is added."""
    return place.ok("add", "t", *args)["id"]


def expect_held(place, holder, key, *args):
    result = place.weir("add", "t", *args)
    expect(4, result.code, result.err)
    expect(['weir: job "%s" of topic "t" has the key "%s"; nothing was '
            "changed" % (holder, key)], result.sentences)


def take(place, count):
    """Tokens of jobs that run from now on."""
    lines = place.weir("take", "t", "--limit", str(count)).out.splitlines()
    expect(count, len(lines))
    return [line.split(" ")[0] for line in lines]


def known(place):
    return place.weir("stats", "t").code == 0


def waiting(place):
    stats = place.stats("t")
    return stats["scheduled"] + stats["ready"]


def dues(place):
    """Of what waits, in ms."""
    return sorted(job["due_ms"] for job in place.ok("list", "t"))


@test
def a_job_whose_key_another_one_has_is_refused_and_told_whose(place):
    first = made(place, "--unique", "k")
    expect_held(place, first, "k", "--unique", "k")
    expect_held(place, first, "k", "--unique", "k", "--id", "a")
    made(place, "--unique", "other", "--id", "a")
    expect_held(place, "a", "other", "--unique", "other")
    result = place.weir("add", "t", "--unique", "new", "--id", "a")
    expect(4, result.code)
    expect(['weir: a job "a" exists already in topic "t"; nothing was changed'],
           result.sentences)
    place.ok("delete", "t", first)
    made(place, "--unique", "k")
    expect(2, waiting(place))


@test
def a_key_is_free_when_its_job_is_done(place):
    place.ok("add", "t", "--id", "1", "--unique", "k")
    place.drain(place.echo())
    place.ok("add", "t", "--id", "2", "--unique", "k")
    place.ok("add", "t", "--id", "3", "--unique", "day", "--for", "1d")
    place.drain(place.echo())
    expect_held(place, "3", "day", "--unique", "day", "--for", "1d")
    expect(["1", "2", "3"], [line["id"] for line in place.lines("out")])


@test
def a_running_job_has_its_key_until_done_and_not_until_start(place):
    place.add("t", "1", "--unique", "done")
    place.add("t", "2", "--unique", "start", "--for", "until-start")
    tokens = take(place, 2)
    expect_held(place, "1", "done", "--unique", "done")
    expect_held(place, "1", "done", "--unique", "done", "--else", "replace")
    place.ok("add", "t", "--unique", "start", "--for", "until-start",
             "--delay", "1h")
    place.ok("settle", "t", *tokens, "--done")
    place.ok("add", "t", "--unique", "done")


@test
def a_job_that_is_retried_has_its_key_and_gives_up_its_place(place):
    place.add("t", "1", "--unique", "k")
    place.ok("settle", "t", *take(place, 1), "--retry", "--delay", "1h")
    expect_held(place, "1", "k", "--unique", "k")
    last = made(place, "--unique", "k", "--else", "replace", "--delay", "1h")
    expect([last], [job["id"] for job in place.ok("list", "t")])
    place.ok("reschedule", "t", last, "--delay", "0ms")
    tokens = take(place, 1)
    expect(1, waiting(place) + len(tokens))
    place.ok("settle", "t", *tokens, "--fail")
    place.add("t", "2", "--unique", "k")
    place.ok("dead", "requeue", "t", last)
    expect_held(place, "2", "k", "--unique", "k")
    expect(2, waiting(place))


@test
def a_job_takes_the_place_of_one_that_waits(place):
    place.ok("add", "t", "--unique", "k", "--delay", "1h", "--body", "1")
    last = made(place, "--unique", "k", "--else", "replace", "--body", "2",
                "--delay", "1h")
    expect([last], [job["id"] for job in place.ok("list", "t")])
    expect(2, place.ok("show", "t", last)["body"])
    place.ok("topic", "set", "t", "max_pending=1")
    expect(1, place.weir("add", "t").code)
    made(place, "--unique", "k", "--else", "replace")
    expect(1, waiting(place))


@test
def a_debounced_job_is_due_max_wait_after_the_first_at_the_latest(place):
    how = ("--unique", "k", "--else", "debounce", "--max-wait", "2h")
    made(place, *how, "--delay", "1h")
    first = dues(place)[0] - 3600000
    made(place, *how, "--delay", "90m")
    expect_true(dues(place)[0] >= first + 5400000, "it is put off")
    made(place, *how, "--delay", "5h")
    made(place, *how, "--delay", "5h")
    expect_true(abs(dues(place)[0] - first - 7200000) < 1000 and
                len(dues(place)) == 1, dues(place))


@test
def of_throttled_jobs_the_first_and_the_last_of_a_window_run(place):
    how = ("--unique", "k", "--else", "throttle", "--for", "1h")
    for i in range(5):
        made(place, *how, "--body", str(i))
    expect([0, 4], [job["body"] for job in sorted(
        (place.ok("show", "t", job["id"]) for job in place.ok("list", "t")),
        key=lambda job: job["due_ms"])])
    expect(3600000, dues(place)[1] - dues(place)[0])


def uniques(place, topic="t"):
    """Unique keys by id, as far as jobs have some."""
    return {job["id"]: job["unique"] for job in place.ok("list", topic)
            if "unique" in job}


@test
def who_looks_at_a_job_sees_the_key_that_it_was_added_with(place):
    place.ok("topic", "set", "t", "unique=body.order", "retry=1h",
             "on_dead=gone")
    made(place, "--id", "said", "--unique", "k", "--else", "replace")
    made(place, "--id", "found", "--body", '{"order":7}')
    made(place, "--id", "none", "--body", '{"order":[]}')
    made(place, "--id", "zero", "--body", '{"order":"a\\u0000"}')
    wire = Wire(place)
    wire.push("pushed", {"order": 8})
    wire.push("zero2", {"order": "b\0"})
    wire.push("own", 1, "r0", "unique", "l")
    keys = {"said": "k", "found": "7", "pushed": "8", "own": "l"}
    expect(keys, uniques(place))
    expect("k", place.ok("show", "t", "said")["unique"])
    expect_in("\nunique    k\n", place.weir("show", "t", "said").out)
    expect(["found"], [job["id"] for job in place.ok(
        "list", "t", "--where", '.unique == "7"')])
    tokens = take(place, 7)
    place.ok("settle", "t", *tokens, "--retry")
    expect(keys, uniques(place))  # written anew
    for job_id in keys:
        place.ok("reschedule", "t", job_id, "--delay", "0ms")
    place.ok("settle", "t", *take(place, 4), "--fail")
    eventually(lambda: place.stats("gone")["ready"] == 4, "they moved")
    expect({}, uniques(place, "gone"))
    expect({}, uniques(place))


@test
def a_dead_job_keeps_its_key_for_when_it_is_requeued(place):
    place.add("t", "a", "--unique", "k")
    place.ok("settle", "t", *take(place, 1), "--fail")
    expect("k", place.ok("show", "t", "a")["unique"])
    place.ok("dead", "requeue", "t", "a")
    expect({"a": "k"}, uniques(place))
    jobs = place.write("jobs", place.weir("export", "t").out)
    place.ok("purge", "t", "--yes")
    expect(0, place.weir("import", "t", jobs).code)
    expect({}, uniques(place))  # as once.md says


@test
def a_topic_finds_the_key_in_the_body(place):
    place.ok("topic", "set", "t", "unique=body.order.id")
    body = '{"order":{"id":%s}}'
    first = made(place, "--body", body % "7")
    result = place.weir("add", "t", "--id", "x", "--body", body % '"7"')
    expect(4, result.code)
    expect(['weir: job "%s" of topic "t" has the unique key that is in the '
            "body; nothing was changed" % first], result.sentences)
    for free in ("{}", body % "null", body % "1.5", "3", body % "[]"):
        made(place, "--body", free)
        made(place, "--body", free)
    expect_held(place, first, "7", "--unique", "7")
    made(place, "--unique", "own", "--body", body % "7")
    place.ok("topic", "set", "t", "unique=")
    made(place, "--body", body % "7")


@test
def what_is_stored_of_keys_counts_for_a_producer_that_runs(place):
    lines = place.start("add", "t", "--jsonl", "-", stdin=subprocess.PIPE)
    lines.stdin.write('{"body":1}\n{"body":1}\n')
    lines.stdin.flush()
    eventually(lambda: known(place) and waiting(place) == 2, "both are there")
    place.ok("topic", "set", "t", "unique=body", "unique_else=replace")
    lines.stdin.write('{"body":1}\n')  # its answer tells of the change
    lines.stdin.flush()
    eventually(lambda: waiting(place) == 3, "it was no unique one yet")
    out, err = lines.communicate('{"body":1}\n' * 3)
    expect(0, lines.returncode, err)
    expect("added 6, existing 0, refused 0\n", out)
    expect(4, waiting(place))


@test
def lines_may_have_keys(place):
    lines = ('{"unique":"a"}\n{"unique":"a"}\n{"unique":"a","else":"replace"}\n'
             '{"unique":"b","for":"1h","else":"throttle"}\n'
             '{"unique":"b","for":"1h","else":"throttle"}\n'
             '{"unique":"c","else":"debounce","max_wait":"1m","delay":"1h"}\n'
             '{"unique":"d","for":"never"}\n{"max_wait":"1m"}\n'
             '{"unique":"d","past":{"attempt":1}}\n')
    result = place.weir("add", "t", "--jsonl", "-", stdin=lines)
    expect(1, result.code, result.err)
    expect("added 5, existing 1, refused 3\n", result.out)
    expect_in('stdin:7: for: "never" is not a duration', result.err)
    expect_in("stdin:8: max_wait says something of a key: give unique, too",
              result.err)
    expect_in("stdin:9: a job with a past takes no key: leave unique out",
              result.err)
    expect(4, waiting(place))


@test
def what_is_wrong_with_a_key_is_told_before_a_server_is_asked(place):
    place.env["WEIR_REDIS"] = "redis://127.0.0.1:1"
    for args, sentence in (
            (("--for", "1h"), "--for says something of a key: give --unique, "
                              "too"),
            (("--unique", ""), "--unique: a key of 0 bytes: wanted 1 to 2048"),
            (("--unique", "k", "--else", "drop"),
             '--else: "drop" is none of these: write one of '
             "reject|replace|debounce|throttle"),
            (("--unique", "k", "--else", "throttle"),
             "--else: throttle needs a duration, the window in which one job "
             "starts: give --for, as in 10m"),
            (("--unique", "k", "--max-wait", "1h"),
             "--max-wait: only debounce has it: give --else debounce, or leave "
             "it out")):
        place.weir("add", "t", *args).expect_complaint(2, sentence)


@test
def other_kinds_have_no_keys(place):
    place.ok("topic", "set", "l", "kind=list")
    place.weir("add", "l", "--unique", "k").expect_complaint(
        2, "topic l is of kind list: its jobs have no unique keys, leave "
           "unique out")
    place.weir("topic", "set", "l", "unique=body").expect_complaint(
        2, "unique: a topic of kind list has no such option")


@test
def what_comes_with_a_verdict_or_from_a_file_has_no_key(place):
    place.ok("topic", "set", "t", "unique=body")
    made(place, "--body", "1", "--delay", "1h")
    jobs = place.write("jobs", place.weir("export", "t").out)
    place.ok("purge", "t", "--yes")
    made(place, "--body", "1", "--delay", "1h")
    expect(0, place.weir("import", "t", jobs).code)
    expect(2, waiting(place))


@test
def a_topic_forgets_its_keys_when_it_is_deleted(place):
    made(place, "--unique", "k", "--for", "1d")
    place.drain(place.echo())
    expect(4, place.weir("add", "t", "--unique", "k").code)
    place.ok("topic", "delete", "t")
    made(place, "--unique", "k")


def calls(server):
    """Calls of scripts, those that were sent again too."""
    stats = server.told("INFO commandstats")
    return int(stats.split("cmdstat_evalsha:calls=")[1].split(",")[0]
               if "cmdstat_evalsha:" in stats else 0)


@test
def producers_whose_connections_break_add_one_job_for_each_key(place):
    server = Server(place)
    place.env["WEIR_REDIS"] = server.url
    client = Client(server.path)
    keys, producers = 4000, 8
    lines = place.write("lines", "".join(
        '{"unique":"k%d","for":"1d"}\n' % i for i in range(keys)))
    running = [place.start("add", "t", "--json", "--jsonl", lines)
               for _ in range(producers)]
    for _ in range(12):  # each may take 5 s, and a producer gives up after 60 s
        before = calls(server)
        client("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        eventually(lambda: calls(server) >= before + 8 or
                   all(one.poll() is not None for one in running),
                   "some more calls were made")
    told = []
    for one in running:
        out, err = one.communicate()
        # 0: it was ahead of all others
        expect_true(one.returncode in (0, 4), err)
        told.append(json.loads(out))
    expect(keys, sum(one["added"] for one in told), str(told))
    expect(keys * (producers - 1), sum(one["existing"] for one in told))
    expect(keys, waiting(place))


@test
def a_user_with_the_printed_rights_may_use_keys(place):
    server = Server(place)
    server.guard(place.ok("doctor", "--acl")["acl"])
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    for how in ("reject", "replace", "debounce"):
        place.weir("add", "t", "--unique", "k", "--else", how)
    made(place, "--unique", "k", "--else", "throttle", "--for", "1h")
    expect(4, place.weir("add", "t", "--unique", "k").code)


@test
def keys_go_with_a_slot_that_moves(place):
    cluster = Cluster(place, primaries=2)
    cluster.use(place)
    slot = slot_of("weir:{t}:wait")
    for i in range(20):
        made(place, "--unique", "k%d" % i, "--delay", "1h")
    to = cluster.next_to(slot)
    cluster.open_slot(slot, to)
    lines = place.write("lines", "".join(
        '{"unique":"k%d","else":"replace","delay":"2h"}\n' % (i % 30)
        for i in range(90)))
    running = [place.start("add", "t", "--jsonl", lines) for _ in range(3)]
    cluster.move_keys(slot, to)
    cluster.close_slot(slot, to)
    for one in running:
        out, err = one.communicate()
        expect(0, one.returncode, err)
        expect("added 90, existing 0, refused 0\n", out)
    expect(30, waiting(place))
    expect_true(min(dues(place)) > max(dues(place)) - 600000, "all are new")


@test
def an_option_that_is_ignored_is_told_to_who_adds(place):
    ignored = {
        "unique_else=throttle": "unique_else: throttle needs a duration",
        "max_wait=5s": "max_wait: only debounce has it"}
    for i, (option, why) in enumerate(ignored.items()):
        topic = "t%d" % i
        place.ok("topic", "set", topic, "unique=body.u", option)
        told = "warn %s: the stored option is ignored: %s" % (topic, why)
        for args, lines in ((("--body", '{"u":1}'), None),
                            (("--jsonl", "-"), '{"body":{"u":1}}\n' * 2)):
            result = place.weir("add", topic, *args, stdin=lines)
            expect(0, result.code, result.err)
            expect(1, result.err.count(told), result.err)
            result = place.weir("add", topic, *args, "--log-level", "error",
                                stdin=lines)
            expect([], result.sentences)


@test
def a_key_that_is_no_utf8_is_refused(place):
    for option in ("--key", "--unique"):
        place.weir("add", "t", option, "k\udcff").expect_complaint(
            2, option + ": invalid UTF-8 at byte 2")
    expect([], place.ok("topics")["topics"])
    place.ok("add", "t", "--key", "\u00fc", "--unique", "\u20ac")
