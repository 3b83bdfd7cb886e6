# SPDX-License-Identifier: MIT
"""Commands on a machine that starts no more processes: one sentence, and an exit
code that does not blame the command line."""

from e2e import expect, expect_in, fail_forks, test


def refused(place, code, *args):
    result = place.weir(*args)
    expect((code, ""), (result.code, result.out), "%r" % (args,))
    expect(1, len(result.sentences), result.err)
    expect_in("Resource temporarily unavailable", result.err)
    return result.err


@test
def a_filter_without_a_process_fails_and_nothing_changes(place):
    place.add("t", "1")
    fail_forks(place, 0)
    for command in (("list",), ("export",), ("delete",), ("reschedule",),
                    ("dead", "list"), ("dead", "requeue"), ("dead", "purge")):
        more = ("--delay", "1h") if command == ("reschedule",) else ()
        expect_in("--where: cannot start a process for jq", refused(
            place, 1, *command, "t", "--where", "true", *more))
    place.expect_stats("t", ready=1)


@test
def workers_of_which_the_first_or_second_cannot_be_started_end(place):
    place.add("t", "1")
    for most in (0, 1):
        fail_forks(place, most)
        result = place.weir("run", "--workers", "2", "--handle", place.echo())
        expect(1, result.code)
        expect_in("worker %d cannot be started: Resource temporarily" %
                  (most + 1), result.err)


@test
def a_private_server_that_cannot_be_started_is_no_usage(place):
    for most in (0, 1):
        fail_forks(place, most)
        expect_in("cannot start redis-server", refused(place, 5, "stats"))


@test
def a_plugin_is_not_tried(place):
    fail_forks(place, 0)
    expect_in("cannot start a process", refused(place, 1, "plugin", "try",
                                                "echo"))
