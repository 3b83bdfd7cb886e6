# SPDX-License-Identifier: MIT
"""The last line of a worker that a plugin crashes: time, plugin, topic, job."""

import json
import os
import re
import signal

from e2e import STAMP, TEST_PLUGINS, expect, expect_true, test


def plugin(way):
    return os.path.join(TEST_PLUGINS, "crash_%s.so" % way)


def crash(place, way, where, *flags, topic="t"):
    """A worker that ends; its exit code and its last line."""
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
