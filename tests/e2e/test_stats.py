# SPDX-License-Identifier: MIT
"""weir stats: which columns and topics it shows, in which order, and how it
watches: line by line, or on a terminal, which it leaves as it was."""

import json
import os
import re
import signal

from e2e import (communicate, eventually, expect, expect_in, expect_true, kill,
                 stop_cleanly, test, wait)
from terminal import Terminal

LONG = "a.topic.whose.name.has.forty.characters."
OPENED, FRAME = b"\033[?1049h\033[?25l\033[?7l", b"\033[H\033[J"
CLOSED = b"\033[?7h\033[?25h\033[?1049l"


def table(result):
    """Rows of cells, titles first."""
    expect(0, result.code, result.err)
    return [line.split() for line in result.out.splitlines()]


def steady(result):
    """The same without ages."""
    rows = table(result)
    at = rows[0].index("OLDEST")
    return [row[:at] + row[at + 1:] for row in rows]


def column(result, title):
    rows = table(result)
    return [row[rows[0].index(title)] for row in rows[1:]]


class Watch(Terminal):
    """weir stats --watch on a terminal."""

    def __init__(self, place, **how):
        super().__init__(place, "stats", "--watch", **how)

    def frame(self, wanted=b""):
        """Wait for a frame with `wanted` that is complete; its lines."""
        while True:
            frames = self.shown.split(FRAME)
            for frame in frames[1:-1]:
                if wanted in frame:
                    return frame.decode().split("\r\n")
            expect_true(self.read(), "%r before the end" % wanted)

    def end(self):
        """[exit code, what stood on the alternate screen, what behind it]."""
        code = self.wait()
        expect(1, self.shown.count(OPENED), "alternate screens")
        expect(1, self.shown.count(CLOSED), "ends of it")
        within, behind = self.shown.split(OPENED)[1].split(CLOSED)
        return [code, within, behind]


@test
def columns_that_are_zero_everywhere_are_left_out(place):
    place.add("t", "1")
    place.add("u", "1", "--delay", "1h")
    stats = place.weir("stats")
    expect([["TOPIC", "KIND", "SCHEDULED", "READY", "WORKERS"],
            ["t", "delay", "0", "1", "NONE"],
            ["u", "delay", "1", "0", "none"]], steady(stats))
    expect([], stats.sentences)
    expect([["TOPIC", "KIND", "READY", "WORKERS"], ["t", "delay", "1", "NONE"]],
           steady(place.weir("stats", "t")))
    titles, row = steady(place.weir("stats", "t", "--wide"))
    expect(["SCHEDULED", "READY", "RUNNING", "WORKERS", "UNSERVED", "ENDED",
            "DEAD", "RELAYING", "DONE", "RETRIED", "FAILED", "EXPIRED", "CRASHED",
            "DROPPED", "LOST", "P50", "P99"], titles[2:])
    expect(["0", "1", "0", "NONE", "0", "-"] + ["0"] * 9 + ["-", "-"], row[2:])
    place.ok("topic", "set", "empty", "kind=list")
    expect("TOPIC  KIND\nempty  list\n", place.weir("stats", "empty").out)


def oldest(place, topic):
    return place.stats(topic)["oldest_ms"]


@test
def the_age_of_the_oldest_ready_job_needs_no_worker(place):
    for topic, *options in (("kept",), ("entries", "kind=stream"),
                            ("fifo", "kind=sync", "delay=0ms"),
                            ("bounds", "kind=bounded"), ("raw", "kind=list")):
        place.ok("topic", "set", topic, *(options or ["kind=delay"]))
        place.ok("add", topic, "--jsonl", "-", stdin="".join(
            '{"body":%d%s}\n' % (i, ',"group":"g"' * (topic == "bounds"))
            for i in range(2)))
    place.ok("add", "mixed", "--jsonl", "-", stdin='{"delay":"20ms"}\n'
             '{"delay":"1h"}\n{"delay":"2h"}\n')
    place.add("later", "1", "--delay", "1h")
    for topic in ("kept", "entries", "fifo", "bounds", "mixed"):
        eventually(lambda: (oldest(place, topic) or 0) >= 300, topic)
        expect_true(oldest(place, topic) < 60000, topic)
    for topic in ("later", "raw"):
        expect(None, oldest(place, topic), topic)
    rows = table(place.weir("stats", "kept", "--wide"))
    expect_true(rows[1][rows[0].index("OLDEST")] != "-", repr(rows))
    expect("mixed", column(place.weir("stats", "[lm]*", "--sort", "oldest"),
                           "TOPIC")[0])
    place.drain("kept=echo")
    expect(None, oldest(place, "kept"))


@test
def jobs_of_a_dead_worker_tell_how_long_their_lease_has_been_over(place):
    kinds = {"kept": "delay", "entries": "stream", "bounds": "bounded",
             "fifo": "concurrent", "raw": "list", "alive": "delay"}
    for topic, kind in kinds.items():
        place.ok("topic", "set", topic, "kind=" + kind)
        place.ok("add", topic, *(["--group", "g"] * (topic == "bounds")))
    worker = place.work(flags=("--config", place.write("conf", "".join(
        'topic "%s" { handler = later lease = %s options = { "after=0ms", '
        '"file=%s" } }\n' % (topic, "1h" if topic == "alive" else "300ms",
                             place.path("out")) for topic in kinds))))
    eventually(lambda: all(place.stats(topic)["running"] == 1
                           for topic in kinds), "they run")
    kill(worker)
    for topic in kinds:
        if topic != "alive":
            eventually(lambda: (ended(place, topic) or 0) > 400, topic)
            expect(1, place.stats(topic)["running"], topic)
    expect(None, ended(place, "alive"))
    expect_true(column(place.weir("stats", "kept"), "ENDED")[0] != "-", "told")
    expect("alive", column(place.weir("stats", "--sort", "ended"),
                           "TOPIC")[-1])
    place.drain(*(place.echo(topic) for topic in kinds if topic != "alive"))
    for topic in kinds:
        expect(None, ended(place, topic), topic)


def ended(place, topic):
    return place.stats(topic)["lease_ended_ms"]


def fill(place, topic):
    """One of them in each of ten columns."""
    place.add(topic, "1")
    place.drain(topic + "=echo")
    place.add(topic, "2", "--retry", "1ms")
    place.drain(topic + "=flaky?fail=9")
    place.add(topic, "3")
    place.add(topic, "4", "--delay", "1h")


@test
def a_table_that_is_too_wide_names_what_it_leaves_out(place):
    fill(place, LONG)
    stats = place.weir("stats")  # a file has room for all
    expect([], stats.sentences)
    for title in ("READY", "P50", "P99", "RETRIED"):
        expect(1, len(column(stats, title)))
    place.env["COLUMNS"] = "80"
    stats = place.weir("stats")
    expect_true(max(map(len, stats.out.splitlines())) <= 80, stats.out)
    for title in ("READY", "SCHEDULED", "DEAD"):
        expect(["1"], column(stats, title))
    (sentence,) = stats.sentences
    expect_in("weir: there is no room for: p50, p99, ", sentence)
    expect_in("; --wide shows all", sentence)
    wide = place.weir("stats", "--wide")
    expect([], wide.sentences)
    expect(["1"], column(wide, "RETRIED"))
    sorted_by = place.weir("stats", "--sort", "p99")
    expect_in("P99", sorted_by.out)
    expect_true(max(map(len, sorted_by.out.splitlines())) <= 80, sorted_by.out)
    place.env["COLUMNS"] = "200"
    expect(["1"], column(place.weir("stats"), "RETRIED"))


@test
def several_topics_are_shown_by_their_names_and_patterns(place):
    for topic in ("a", "b", "c", "order.in", "order.out"):
        place.add(topic, "1")

    def shown(*operands):
        return [one["topic"] for one in place.ok("stats", *operands)["topics"]]
    expect(["a", "c"], shown("c", "a"))
    expect(["b", "order.in", "order.out"], shown("order.*", "b", "order.in"))
    place.weir("stats", "a", "order").expect_complaint(
        3, 'there is no topic "order"')
    place.weir("stats", "a", "x*").expect_complaint(
        3, 'there is no topic that matches "x*"')
    place.weir("stats", "a", "b c").expect_complaint(2, '"b c"')


@test
def topics_are_sorted_by_a_column(place):
    for topic, count in (("a", 1), ("b", 3), ("c", 3), ("d", 2)):
        place.add_lines(topic, count)
    place.ok("topic", "set", "e", "kind=list")
    place.ok("topic", "set", "f", "kind=bounded")
    for name, wanted in (("ready", "bcdaef"), ("topic", "abcdef"),
                         ("kind", "fabcde"), ("dead", "abcdef")):
        expect(list(wanted), column(place.weir("stats", "--sort", name),
                                    "TOPIC"), name)
        expect(list(wanted), [one["topic"] for one in
                              place.ok("stats", "--sort", name)["topics"]])
    place.weir("stats", "--sort", "redy").expect_complaint(
        2, '"redy"', "did you mean ready?")
    place.weir("stats", "--sort", "xylophone").expect_complaint(
        2, "weir stats --help")
    place.weir("stats", "--sort", "rate").expect_complaint(2, "--watch")


@test
def a_pattern_chooses_topics(place):
    for topic in ("order.close", "order.notify", "invoice", "order"):
        place.add(topic, "1", "--delay", "1h")
    for pattern, wanted in (("order.*", ["order.close", "order.notify"]),
                            ("*o*", ["invoice", "order", "order.close",
                                     "order.notify"]),
                            ("[io]*e", ["invoice", "order.close"]),
                            ("orde?", ["order"])):
        expect(wanted, column(place.weir("stats", pattern), "TOPIC"), pattern)
        expect(wanted, [one["topic"] for one in
                        place.ok("stats", pattern)["topics"]])
    for pattern in ("x*", "order.?"):
        place.weir("stats", pattern).expect_complaint(
            3, 'no topic that matches "%s"' % pattern)
    watch = place.start("stats", "new.*", "--watch", "--json")
    expect([], json.loads(watch.stdout.readline())["topics"])
    place.add("new.one", "1")
    eventually(lambda: json.loads(watch.stdout.readline())["topics"],
               "one that comes later is shown")
    stop_cleanly(watch)


@test
def watched_stats_are_a_block_each_second_when_piped(place):
    place.add("t", "1")
    watch = place.start("stats", "--watch")
    lines = [watch.stdout.readline() for _ in range(3)]
    expect_in("RATE", lines[0])
    expect("-", lines[1].split()[-1])
    expect("\n", lines[2])
    place.drain("t=echo")
    rates = []
    while not any(rates) and len(rates) < 60:
        lines = [watch.stdout.readline() for _ in range(3)]
        rates.append(float(re.match("[0-9.]+", lines[1].split()[-1]).group()))
    expect_true(rates[-1] > 0, "a rate: " + lines[1])
    watch.send_signal(signal.SIGINT)
    out, err = communicate(watch)
    expect(0, watch.returncode, err)


@test
def watched_stats_as_json_are_an_object_a_line(place):
    place.add("t", "1", "--delay", "1h")
    watch = place.start("stats", "t", "--watch", "--json")
    rates = [json.loads(watch.stdout.readline())["topics"][0]["rate"]
             for _ in range(2)]
    expect([None, 0.0], rates)
    stop_cleanly(watch)


@test
def watching_ends_when_nobody_reads(place):
    place.add("t", "1", "--delay", "1h")
    watch = place.start("stats", "--watch")
    watch.stdout.readline()
    watch.stdout.close()
    expect([-signal.SIGPIPE, ""], [wait(watch), watch.stderr.read()])
    watch.stdout = None


@test
def watched_stats_leave_the_terminal_as_it_was(place):
    place.add("t", "1", "--delay", "1h")
    for number in signal.SIGINT, signal.SIGTERM:
        terminal = Watch(place)
        terminal.frame(b"t ")
        terminal.frame(b"0/s")
        os.kill(terminal.pid, number)
        code, within, behind = terminal.end()
        expect([0, b""], [code, behind])
        expect_true(within.count(FRAME) >= 2, "it is redrawn")


@test
def watched_stats_say_on_the_former_screen_that_the_server_is_lost(place):
    place.add("t", "1", "--delay", "1h")
    terminal = Watch(place)
    terminal.frame(b"t ")
    place.weir("server", "stop")
    code, _, behind = terminal.end()
    expect(5, code)
    expect(1, behind.count(b"weir: "), behind)
    expect_in(b"weir: cannot reach the private redis-server", behind)


@test
def watched_stats_fit_the_terminal(place):
    for i in range(20):
        place.add("t%02d" % i, "1", "--delay", "1h")
    fill(place, LONG)
    redis = place.redis()
    redis.send("SET weir:{wrong}:meta x")
    redis.line()
    redis.send("SADD weir:topics wrong")
    redis.line()
    redis.close()
    terminal = Watch(place, lines=10, width=90)
    lines = terminal.frame(b"t02")
    expect(9, len(lines), lines)  # of which the last has no end
    expect_true(max(map(len, lines)) <= 90, lines)
    expect([LONG, "t00"], [line.split()[0] for line in lines[1:3]])
    expect("and 15 more", lines[7])
    expect_in("1 of 22 topics cannot be read", lines[8])
    os.kill(terminal.pid, signal.SIGTERM)
    expect(b"", terminal.end()[2])


@test
def a_terminal_that_can_do_nothing_gets_blocks(place):
    place.add("t", "1", "--delay", "1h")
    terminal = Watch(place, TERM="dumb")
    while terminal.shown.count(b"TOPIC") < 2:
        expect_true(terminal.read(), "it goes on")
    expect_true(b"\033" not in terminal.shown, terminal.shown)
    os.kill(terminal.pid, signal.SIGTERM)
    expect(0, terminal.wait())


@test
def who_serves_a_topic_is_counted_and_nobody_stands_out(place):
    place.add("later", "1", "--delay", "1h")
    place.add("now", "1")
    lines = place.weir("stats").out.splitlines()
    at = lines[0].split().index("WORKERS")
    expect(["none", "NONE"], [line.split()[at] for line in lines[1:]])
    expect(0, place.stats("now")["workers"])
    place.ok("pause", "now")
    expect_in(" none", place.weir("stats", "now").out)
    place.ok("resume", "now")
    workers = [place.work(place.echo("now"), flags=("--log-level", "error"))
               for _ in range(2)]
    eventually(lambda: place.stats("now")["workers"] == 2, "both serve it")
    expect(0, place.stats("later")["workers"])
    stop_cleanly(workers[0])  # the server may read its farewell afterwards
    eventually(lambda: place.stats("now")["workers"] == 1, "one serves it")
    expect_in("1", place.weir("stats", "now", "--sort", "workers").out)


@test
def jobs_of_a_worker_that_died_wait_for_another(place):
    place.add("t", "1")
    place.write("conf", 'topic "t" { handler = later lease = 1s options = { '
                '"file=%s" } }\n' % place.path("out"))
    worker = place.work(flags=("--config", place.path("conf")))
    eventually(lambda: place.stats("t")["workers"] == 1 and
               place.stats("t")["running"] == 1, "it runs")
    expect(["1"], column(place.weir("stats"), "WORKERS"))
    kill(worker)
    eventually(lambda: column(place.weir("stats"), "WORKERS") == ["NONE"],
               "nobody runs it any more")


@test
def a_topic_without_jobs_need_not_be_served(place):
    place.add("t", "1")
    place.drain(place.echo("t"))
    expect_true("WORKERS" not in place.weir("stats").out, "no such column")
    expect_in("WORKERS", place.weir("stats", "--wide").out)
