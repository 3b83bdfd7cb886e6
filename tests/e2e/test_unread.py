# SPDX-License-Identifier: MIT
"""Printing where nobody reads any more, as behind `| head`: without a word, by
SIGPIPE as other programs end. Where writing fails otherwise it is told."""

import os
import re
import signal

from e2e import TEST_PLUGINS, WEIR, expect, expect_in, expect_true, run, test
from resp import Client


def unread(place, *args, stdin=None):
    """[how weir ended, stderr], its stdout being a pipe without a reader."""
    reader, writer = os.pipe()
    os.close(reader)
    done = run([WEIR, *args], stdin, stdout=writer, env=place.env)
    os.close(writer)
    return [done.returncode, done.stderr]


@test
def every_verb_that_prints_ends_without_a_word(place):
    place.add("t", "1", "--retry", "none")
    place.drain("t=flaky?fail=9&verdict=fail")
    place.add("t", "2", "--delay", "1h")
    plugin = os.path.join(TEST_PLUGINS, "minimal.so")
    for line in (
            "--help", "--version", "help", "help list", "list --help",
            "dead -h", "add t --delay 1h", "show t 2", "list t",
            "reschedule t 2 --delay 2h", "pause t", "resume t", "stats", "stats t", "stats --watch",
            "topics", "topic list", "topic show t", "topic set t weight=3",
            "dead list t", "dead requeue t 1", "dead purge t --all",
            "delete t 2", "purge t --yes", "doctor", "doctor --acl",
            "server status", "plugin info " + plugin,
            "plugin try " + plugin):
        for flags in ([], ["--json"]):
            if line in ("dead requeue t 1", "delete t 2") and flags:
                continue  # done
            expect([-signal.SIGPIPE, ""],
                   unread(place, *line.split(), *flags), line)


def bytes_sent(place):
    info = Client(os.path.join(place.data, "redis.sock"))("INFO", "stats")
    return int(re.search(rb"total_net_output_bytes:(\d+)", info)[1])


@test
def a_list_that_nobody_reads_is_not_asked_to_its_end(place):
    place.add_lines("t", 8000, '{"id":"%d","delay":"1h","body":"'
                    + "x" * 2000 + '"}')
    before = bytes_sent(place)
    expect([-signal.SIGPIPE, ""],
           unread(place, "list", "t", "--limit", "1000000", "--json"))
    sent = bytes_sent(place) - before
    expect_true(sent < 8000 * 2000 // 2, "%d bytes were sent" % sent)


@test
def all_jobs_are_added_though_nobody_reads_their_ids(place):
    lines = "\n".join('{"id":"%d"}' % i for i in range(20000))
    ended, err = unread(place, "add", "t", "--jsonl", "-", stdin=lines)
    expect(-signal.SIGPIPE, ended, err)
    expect(20000, place.stats("t")["ready"])


@test
def output_that_does_not_fit_on_the_disk_is_told(place):
    place.add("t", "1", "--delay", "1h")
    with open("/dev/full", "w") as full:
        done = run([WEIR, "list", "t"], stdout=full, env=place.env)
    expect(1, done.returncode)
    expect_in("weir: cannot write to stdout: No space left", done.stderr)
