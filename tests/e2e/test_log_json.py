# SPDX-License-Identifier: MIT
"""Lines of the log as objects: each event has its fields, and the text."""

import json
import os
import re
import time

from e2e import STAMP, TEST_PLUGINS, await_line, expect, expect_true, test
from redis_server import Clocked

OWN = {"level", "text", "time"}
LEFT = {"level": "warn", "topic": "t", "event": "left_dead", "count": 1}


def objects(err):
    lines = [json.loads(line) for line in err.splitlines()]
    for line in lines:
        expect_true(OWN <= set(line), line)
        expect_true(re.fullmatch(STAMP, line["time"]), line["time"])
    return lines


def events(err):
    """Lines of events, without time and text."""
    return [{name: line[name] for name in line if name not in ("time", "text")}
            for line in objects(err) if "event" in line]


def run(place, handler, *flags, topic="t"):
    return events(place.weir("run", "--handle", "%s=%s" % (topic, handler),
                             "--until-empty", "--log-format", "json",
                             *flags).err)


def event(name, level, topic="t", **fields):
    return {"level": level, "topic": topic, "event": name, **fields}


@test
def lines_may_be_json(place):
    place.ok("topic", "set", "t", "retry=none")
    config = place.write("weir.conf", 'worker { log_format = json }\n'
                         'topic t { handler = flaky  options = "fail=9" }\n')
    for how in (["--handle", "t=flaky?fail=9", "--log-format", "json"],
                ["--handle", "t=flaky?fail=9", "--json"],
                ["--config", config]):
        place.add("t", "1")
        lines = objects(place.weir("run", "--until-empty", *how).err)
        expect(["t 1: dead: exhausted at attempt 1: flaky: attempt 1 of 9 that "
                "fail", "t: dead jobs: 1; weir dead list t has why"],
               [line["text"] for line in lines if line["level"] == "warn"])
        expect([OWN], [set(line) for line in lines
                       if "nothing is left" in line["text"]])
        place.ok("purge", "t", "--yes")


@test
def a_retry_and_a_death_have_their_parts(place):
    place.ok("topic", "set", "t", "retry=10ms 20ms")
    place.add("t", "1")
    why = "flaky: attempt %d of 9 that fail"
    expect([event("retry", "info", id="1", attempt=1, retry=1, delay_ms=10,
                  retries=2, reason=why % 1),
            event("retry", "info", id="1", attempt=2, retry=2, delay_ms=20,
                  retries=2, reason=why % 2),
            event("dead", "warn", id="1", cause="exhausted", attempt=3,
                  reason=why % 3), LEFT], run(place, "flaky?fail=9"))


@test
def where_they_go_is_a_part(place):
    for topic, name, to in (("t", "retry", "on_retry=u"),
                            ("d", "dead", "on_dead=u")):
        place.ok("topic", "set", topic, "kind=list", to,
                 "retry=" + ("10ms" if name == "retry" else "none"))
        place.ok("add", topic, "--body", "1")
        expect([(name, "u")], [(line["event"], line["to"]) for line in
                               run(place, "flaky?fail=9", topic=topic)])


@test
def a_topic_that_repeats_its_ladder_has_no_number_of_retries(place):
    place.ok("topic", "set", "t", "retry=10ms ...")
    place.add("t", "1")
    expect([event("retry", "info", id="1", attempt=1, retry=1, delay_ms=10,
                  reason="flaky: attempt 1 of 1 that fail")],
           run(place, "flaky?fail=1"))


@test
def text_of_a_handler_is_text_of_json(place):
    place.ok("topic", "set", "t", "retry=none")
    place.add("t", "1")
    script = place.write("say", '#!/bin/sh\nprintf \'a "b"\\\\ \\033[1m\' >&2\n'
                         'exit 1\n')
    os.chmod(script, 0o755)
    dead = [line for line in run(place, "exec?command=" + script)
            if line["event"] == "dead"]
    expect_true('a "b"\\' in dead[0]["reason"], dead)


@test
def an_expiry_says_how_late_it_is(place):
    place.add("t", "1", "--ttl", "1ms")
    time.sleep(0.1)
    lines = run(place, "echo")
    expect_true(lines[0].pop("late_ms") >= 0, lines)
    expect([event("expired", "info", id="1")], lines)


@test
def a_timeout_and_what_comes_after_it_have_their_parts(place):
    config = place.write("weir.conf",
                         'topic "t" { handler = pending  timeout = 100ms\n'
                         '  options = { "how=late", "after=10ms" }\n'
                         '  retry = "1s" }\n'
                         'topic "u" { handler = pending\n'
                         '  options = { "after=3s" } }\n')
    place.add("t", "1")
    place.add("u", "1")
    lines = events(place.weir("run", "--until-empty", "--config", config,
                              "--json").err)
    expect([event("timeout", "info", id="1", attempt=1, retry=1, delay_ms=1000,
                  retries=1, reason="timeout"),
            event("late", "warn", id="1")],
           [line for line in lines if line["event"] in ("timeout", "late")][:2])


@test
def a_handler_that_holds_the_loop_is_an_event(place):
    place.add("t", "1")
    place.env["WEIR_BLOCK_WARN"] = "2s"
    worker = place.start("run", "--json", "--handle", "t=%s?how=spin"
                         % os.path.join(TEST_PLUGINS, "hostile.so"))
    line = json.loads(await_line(worker, "has held the loop for"))
    expect(["held", "t", "1", "hostile"],
           [line[name] for name in ("event", "topic", "id", "handler")])
    expect_true(line["held_ms"] >= 2000, repr(line))


@test
def a_crash_is_an_event_of_who_crashed_and_of_who_finds_the_job(place):
    path = os.path.join(TEST_PLUGINS, "crash_one.so")
    place.ok("topic", "set", "t", "max_crashes=2", "lease=300ms")
    place.add("t", "job")
    found = event("crash", "warn", id="job", crashes=1, max_crashes=2)
    for before in ([], [], [found]):  # the first one may be another job's
        expect(before + [event("crash", "error", id="job", cause="Aborted",
                               others=0, plugin=path)],
               run(place, path + "?where=run"))
    expect([event("dead", "warn", id="job", cause="crashed", attempt=1,
                  crashes=2), LEFT], run(place, "echo"))


@test
def an_end_by_exit_is_one_too(place):
    path = os.path.join(TEST_PLUGINS, "crash_one.so")
    place.add("t", "1")
    expect(event("crash", "error", id="1", cause="exit()", others=0,
                 plugin=path), run(place, path + "?where=exit")[-1])


@test
def evictions_and_drops_have_numbers(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "retry=none", "max_dead=1")
    place.add_lines("t", 3)
    found = [line for line in run(place, "flaky?fail=9")
             if line["event"] == "evicted"]
    expect(2, sum(line.pop("count") for line in found))
    expect(event("evicted", "warn", max_dead=1), found[0])
    place.ok("topic", "set", "g", "kind=bounded", "group_ttl=1h")
    place.ok("add", "g", "--jsonl", "-", stdin='{"group":"g1","body":1}\n' * 3)
    server.advance(3600001)
    expect([event("dropped", "info", "g", cause="ttl", group="g1", count=3)],
           run(place, "echo", topic="g"))


@test
def what_no_line_told_of_is_a_number(place):
    place.ok("topic", "set", "t", "retry=none")
    place.add_lines("t", 500)
    lines = [line for line in run(place, "flaky?fail=9")
             if line["event"] == "dead"]
    told = [line for line in lines if "id" in line]
    expect(500, len(told) + sum(line["more"] for line in lines
                                if "more" in line))


@test
def what_a_handler_logs_has_its_job(place):
    place.add("t", "1")
    lines = objects(place.weir("run", "--until-empty", "--json", "--log-level",
                               "debug", "--handle",
                               "t=exec?command=echo hello").err)
    expect([("t", "1", "t 1: hello")],
           [(line["topic"], line["id"], line["text"]) for line in lines
            if "hello" in line["text"] and "topic" in line])


@test
def mistakes_have_the_format_too(place):
    err = place.weir("stats", "nosuch", "--log-format", "json").err
    line = json.loads(err.splitlines()[-1])
    expect("error", line["level"])
    expect('there is no topic "nosuch"', line["text"])
