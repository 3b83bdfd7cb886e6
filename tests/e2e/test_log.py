# SPDX-License-Identifier: MIT
"""What weir run says on stderr, and how."""

import os
import re
import signal

from e2e import (STAMP, TEST_PLUGINS, eventually, expect, expect_in,
                 expect_true, signal_again, stop_cleanly, test)
from redis_server import Clocked, Server


def drain(place, *flags, fail=9, **how):
    return place.weir("run", "--handle", "t=flaky?fail=%d" % fail,
                      "--until-empty", *flags, **how)


def own_lines(result):
    """Those of jobs, without their stamps and what the handler says."""
    lines = [re.sub("^%s " % STAMP, "", line)
             for line in result.err.splitlines()]
    return [line for line in lines if re.match(r"\w+ t \d+: (retry|dead)", line)]


@test
def each_retry_and_each_death_is_a_line(place):
    place.ok("topic", "set", "t", "retry=10ms 20ms")
    place.add("t", "1")
    expect(["info t 1: retry 1 of 2 in 10ms: flaky: attempt 1 of 9 that fail",
            "info t 1: retry 2 of 2 in 20ms: flaky: attempt 2 of 9 that fail",
            "warn t 1: dead: exhausted at attempt 3: flaky: attempt 3 of 9 "
            "that fail"], own_lines(drain(place)))


@test
def dead_jobs_are_told_when_nothing_is_left(place):
    place.ok("topic", "set", "t", "retry=none")
    for job_id in "12":
        place.add("t", job_id)
    result = drain(place)
    expect_in("info nothing is left to run\n", result.err)
    expect_in("warn t: dead jobs: 2; weir dead list t has why\n", result.err)
    place.ok("dead", "purge", "t", "--all")
    expect_true("dead jobs" not in drain(place).err, "there are none")


@test
def a_login_that_is_refused_is_told_once(place):
    server = Server(place)
    server.guard(place.ok("doctor", "--acl")["acl"])
    for user, why in (("weir:wrong", "WRONGPASS"), ("nobody:pw", "WRONGPASS"),
                      ("", "NOAUTH")):
        place.env["WEIR_REDIS"] = server.url_of(user).replace("//@", "//")
        result = drain(place)
        expect(5, result.code)
        expect(1, result.err.count(why), result.err)


@test
def what_is_done_is_no_line(place):
    place.add("t", "1")
    result = drain(place, fail=0)
    expect([], own_lines(result))
    for line in result.err.splitlines():
        expect_true(re.match("%s info |weir: " % STAMP, line), line)


@test
def lines_of_many_jobs_are_counted(place):
    place.ok("topic", "set", "t", "retry=none")
    place.ok("add", "t", "--jsonl", "-", stdin="\n".join(
        '{"id":"%d"}' % i for i in range(500)))
    result = drain(place, "--log-level", "warn")
    counted = [int(number) for number in re.findall(
        "warn t: ([0-9]+) more deaths within a second", result.err)]
    lines = len(own_lines(result))
    expect(500, lines + sum(counted), result.err)
    expect_true(10 <= lines <= 100, "%d lines" % lines)  # ten a second


def evicted(result):
    return sum(int(n) for n in re.findall(
        r" warn t: (\d+) dead evicted: no more than max_dead \(2\) are kept\n",
        result.err))


@test
def dead_jobs_beyond_max_dead_are_lines(place):
    place.ok("topic", "set", "t", "retry=none", "max_dead=2")
    place.add_lines("t", 5)
    expect(3, evicted(drain(place)))
    expect(2, place.stats("t")["dead"])


@test
def those_of_a_stream_are_lines_too(place):
    place.ok("topic", "set", "t", "kind=stream", "retry=none", "max_dead=2")
    place.ok("add", "t", "--jsonl", "-", stdin='{"body":1}\n' * 5)
    expect(3, evicted(drain(place)))
    expect(2, place.stats("t")["dead"])


@test
def a_group_that_its_worker_drops_is_a_line(place):
    server = Clocked(place)
    place.ok("topic", "set", "t", "kind=bounded", "group_ttl=1h")
    place.ok("add", "t", "--jsonl", "-", stdin='{"group":"g1","body":1}\n' * 3)
    server.advance(3600001)
    expect_in(" info t: group g1: 3 dropped: ttl\n", drain(place).err)


@test
def a_handler_that_holds_the_loop_beyond_block_warn_is_named(place):
    slow = place.handler("ledger", file="out", block="100ms", block_id="1")
    place.add("t", "1")
    expect_true("held the loop" not in place.drain(slow).err, "1 h is more")
    place.add("t", "1")
    place.env["WEIR_BLOCK_WARN"] = "20ms"
    expect_in(" warn t 1: ledger held the loop for ", place.drain(slow).err)
    place.env["WEIR_BLOCK_WARN"] = "2h"
    place.weir("run", "--handle", slow).expect_complaint(
        2, "WEIR_BLOCK_WARN", "1ms to 1h")


@test
def a_flag_beats_the_file(place):
    config = place.write("weir.conf", 'worker { log_format = json }\n'
                         'topic t { handler = flaky }\n')
    err = place.weir("run", "--until-empty", "--config", config,
                     "--log-format", "text").err
    expect_true(re.search("^%s info serving t" % STAMP, err, re.M), err)


@test
def an_unknown_format_is_a_mistake(place):
    place.weir("stats", "--log-format", "xml").expect_complaint(
        2, '--log-format: "xml" is none of text, json')


@test
def the_journal_gets_priorities_for_times(place):
    place.ok("topic", "set", "t", "retry=none")
    place.add("t", "1")
    path = place.path("journal")
    with open(path, "w") as journal:
        at = os.fstat(journal.fileno())
        place.env["JOURNAL_STREAM"] = "%d:%d" % (at.st_dev, at.st_ino)
        worker = place.start("run", "--handle", "t=flaky?fail=9",
                             stderr=journal)
        eventually(lambda: place.stats("t")["dead"] == 1, "it is dead")
        stop_cleanly(worker)
    with open(path) as journal:
        lines = journal.read().splitlines()
    expect_in("<6>serving t with", "\n".join(lines))
    expect_in("<4>t 1: dead: exhausted", "\n".join(lines))
    for line in lines:
        expect_true(re.match(r"<[3-7]>(?!\d{4}-)", line), line)


@test
def what_is_not_the_journal_gets_times(place):
    place.env["JOURNAL_STREAM"] = "1:2"
    err = drain(place).err
    expect_true(re.search("^%s info serving t" % STAMP, err, re.M), err)


@test
def at_log_level_error_nothing_is_said_of_what_goes_well(place):
    place.add("t", "1")
    result = drain(place, "--log-level", "error", fail=0)
    expect([0, ""], [result.code, result.err])


def unread_pipe(place):
    """A named pipe that is full, and that only this test has open."""
    path = os.path.join(place.dir, "errors")
    os.mkfifo(path)
    ends = (os.open(path, os.O_RDONLY | os.O_NONBLOCK),
            os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    for size in (4096, 1):
        try:
            while True:
                os.write(ends[1], b"." * size)
        except BlockingIOError:
            pass
    return path, ends


@test
def a_log_that_is_not_read_holds_up_no_job_and_no_signal(place):
    path, ends = unread_pipe(place)
    place.ok("topic", "set", "t", "retry=1ms 1ms 1ms")
    for done, flags in ((1, ()), (2, ("--workers", "2"))):
        with open(path, "wb", buffering=0) as errors:
            worker = place.start("run", "--handle", "t=flaky?fail=2", *flags,
                                 stderr=errors)
        place.add("t", str(done))
        eventually(lambda: place.stats("t")["done_total"] == done,
                   "the job is done")
        worker.send_signal(signal.SIGTERM)
        expect(0, worker.wait())
    for end in ends:
        os.close(end)


@test
def a_third_signal_ends_a_worker_whose_log_is_not_read(place):
    path, ends = unread_pipe(place)
    place.add("t", "1")
    with open(path, "wb", buffering=0) as errors:
        worker = place.start("run", "--handle", "t=%s?how=spin" %
                             os.path.join(TEST_PLUGINS, "hostile.so"),
                             stderr=errors)
    eventually(lambda: place.stats("t")["running"] == 1, "the job runs")

    def has_ended():
        signal_again(worker)
        return worker.poll() is not None

    eventually(has_ended, "it ends")
    expect(1, worker.wait())
    for end in ends:
        os.close(end)
