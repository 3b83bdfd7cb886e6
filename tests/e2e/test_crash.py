# SPDX-License-Identifier: MIT
"""The last line of a worker that a plugin crashes: time, plugin, topic, job."""

import json
import os
import re
import signal

from e2e import (STAMP, TEST_PLUGINS, eventually, expect, expect_in, expect_true,
                 kill, run, test)


def plugin(way):
    return os.path.join(TEST_PLUGINS, "crash_%s.so" % way)


def crash(place, way, where, *flags, topic="t"):
    """A worker that ends; its exit code and its last line. A sanitizer leaves
    the signal to weir."""
    place.env["ASAN_OPTIONS"] = "handle_segv=0"
    result = place.weir("run", "--handle",
                        "%s=%s?where=%s" % (topic, plugin(way), where),
                        "--until-empty", *flags)
    return result.code, result.err.splitlines()[-1]


def expect_line(said, text, code=-signal.SIGABRT):
    stamped = re.fullmatch("(%s) error (.*)" % STAMP, said[1])
    expect_true(stamped, "no line of the log: %r" % said[1])
    expect((code, text), (said[0], stamped.group(2)))


@test
def a_handler_that_crashes_is_told_with_its_job(place):
    for way in ("one", "thread"):
        place.add(way, "job-1")
        text = "%s job-1: %s crashed: Aborted" % (way, plugin(way))
        expect_line(crash(place, way, "run", topic=way), text)


@test
def one_that_ends_the_worker_is_told_with_its_job(place):
    place.add("t", "1")
    expect_line(crash(place, "one", "exit"),
                "t 1: %s ended the program by exit()" % plugin("one"), code=1)


@test
def of_a_batch_one_job_is_told_and_how_many_more(place):
    place.add_lines("t", 5)
    code, line = crash(place, "batch", "run")
    found = re.search(r" error t (\d) and (\d) more: (.*)", line)
    expect_true(found, line)
    expect((-signal.SIGABRT, "0", "4", plugin("batch") + " crashed: Aborted"),
           (code, *found.groups()))


@test
def a_callback_of_a_pending_job_is_told_with_its_topic(place):
    place.add("t", "1")
    expect_line(crash(place, "one", "timer"),
                "t: %s crashed: Aborted" % plugin("one"))


@test
def one_that_cancels_a_job_is_told_with_the_job(place):
    place.ok("topic", "set", "t", "timeout=1s")
    place.add("t", "1")
    expect_line(crash(place, "one", "cancel"),
                "t 1: %s crashed: Aborted" % plugin("one"))


@test
def at_its_beginning_and_end_and_a_flush_it_is_told_with_its_topic(place):
    place.add("t", "1")
    for where in ("open", "flush", "close"):
        expect_line(crash(place, "one", where),
                    "t: %s crashed: Aborted" % plugin("one"))


@test
def where_the_stack_names_nobody_the_job_does(place):
    place.add("t", "1")
    expect_line(crash(place, "one", "elsewhere"),
                "t 1: the program crashed within plugin crash: Aborted")


@test
def the_line_may_be_json(place):
    place.add("t", "1")
    code, line = crash(place, "one", "run", "--log-format", "json")
    line = json.loads(line)
    expect((-signal.SIGABRT, "error",
            "t 1: %s crashed: Aborted" % plugin("one")),
           (code, line["level"], line["text"]))
    expect_true(re.fullmatch(STAMP, line["time"]), line["time"])


def causes(place, *topics):
    """How the worker of each topic's job ended, as the next worker learned."""
    worker = place.work(*("%s=flaky?verdict=snooze&delay=1h" % topic
                          for topic in topics))
    try:
        for topic in topics:
            eventually(lambda: place.ok("show", topic, "1")["snoozes"] > 0,
                       "the job of %s comes back" % topic)
    finally:
        kill(worker)
    return [[(one["outcome"], one["error"])
             for one in place.ok("show", topic, "1")["attempts"]]
            for topic in topics]


@test
def a_crash_is_shown_with_its_signal_and_place(place):
    ways = {"one": ("run", "SIGABRT"), "batch": ("run", "SIGABRT"),
            "thread": ("run", "SIGABRT"), "timer": ("timer", "SIGABRT"),
            "flush": ("flush", "SIGABRT"), "exit": ("exit", "exit()"),
            "lost": ("elsewhere", "SIGABRT"), "fault": ("fault", "SIGSEGV")}
    for topic, (where, _) in ways.items():
        place.ok("topic", "set", topic, "lease=1s")
        place.add(topic, "1")
        way = topic if topic in ("batch", "thread") else "one"
        crash(place, way, where, topic=topic)
    for (topic, (where, cause)), told in zip(ways.items(),
                                             causes(place, *ways)):
        way = topic if topic in ("batch", "thread") else "one"
        wanted = re.escape(cause) if topic == "lost" else (
            r"%s in crash_%s\.so\+0x[0-9a-f]+" % (re.escape(cause), way))
        expect_true(len(told) == 1 and told[0][0] == "crash" and
                    re.fullmatch(wanted, told[0][1] or ""),
                    "%s: %r" % (topic, told))


@test
def the_place_is_the_line_that_crashed(place):
    place.ok("topic", "set", "t", "lease=1s")
    place.add("t", "1")
    crash(place, "one", "fault")
    (_, cause), = causes(place, "t")[0]
    offset = cause.rpartition("+")[2]
    found = run(["addr2line", "-fe", plugin("one"), offset])
    expect((0, "fault"), (found.returncode, found.stdout.split()[0]))


@test
def a_stack_without_an_end_is_told_on_each_thread(place):
    for way in ("one", "thread"):
        place.ok("topic", "set", way, "lease=1s")
        place.add(way, "1")
        code, line = crash(place, way, "deep", topic=way)
        expect(-signal.SIGSEGV, code)
        expect_in("%s 1: %s crashed: Segmentation fault" % (way, plugin(way)),
                  line)
    for way, told in zip(("one", "thread"), causes(place, "one", "thread")):
        expect_in("SIGSEGV in crash_%s.so+0x" % way, told[0][1])


@test
def of_two_threads_that_crash_at_once_one_is_told(place):
    place.ok("topic", "set", "t", "lease=1s")
    place.add("t", "1")
    place.add("t", "2")
    expect(-signal.SIGSEGV, crash(place, "thread", "together")[0])
    (_, cause), = causes(place, "t")[0]
    expect_in("SIGSEGV in crash_thread.so+0x", cause)


@test
def a_worker_that_is_killed_tells_no_cause(place):
    place.ok("topic", "set", "t", "lease=1s")
    place.add("t", "1")
    crashes = os.path.join(TEST_PLUGINS, "crashes.so")
    place.weir("run", "--handle", "t=" + crashes)
    expect([[("crash", None)]], causes(place, "t"))
