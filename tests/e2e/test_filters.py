# SPDX-License-Identifier: MIT
"""Jobs chosen by conditions, by several ids and by ids from a file: listed,
deleted, rescheduled, requeued, purged."""

import json
import re

from e2e import expect, expect_in, expect_true, test
from web import sent_by

FAILING = "t=flaky?fail=9&verdict=fail"


def ids(jobs):
    return [job["id"] for job in jobs]


def add_numbered(place, count, delay="1h"):
    lines = "".join(
        '{"id":"%d","delay":"%s","body":{"n":%d,"who":"w%d"}}\n'
        % (i, delay, i, i % 3) for i in range(count))
    expect(0, place.weir("add", "t", "--jsonl", "-", stdin=lines).code)


def gone(result):
    """How many ids are not there, those that are named, how many more."""
    expect(1, len(result.sentences), result.err)
    match = re.fullmatch(r"weir: (\d+) of the ids that were given (?:is|are) "
                         r"not there: (.*?)(?: and (\d+) more)?",
                         result.sentences[0])
    expect_true(match, result.err)
    return (int(match[1]), sorted(match[2].split(", ")), int(match[3] or 0))


def where(place, expr, *args):
    return ids(place.ok("list", "t", "--where", expr, *args))


@test
def a_program_sees_what_show_prints(place):
    add_numbered(place, 10)
    place.add("t", "odd", "--delay", "1h", "--body",
              '{"n":1.5,"s":"a\\u0001\\"b"}', "--ttl", "1d", "--url", "http://x")
    for name, value in place.ok("show", "t", "odd").items():
        expr = '.id == "odd" and .%s == %s' % (name, json.dumps(value))
        expect(["odd"], where(place, expr), expr)


@test
def list_prints_those_of_which_the_program_is_true(place):
    add_numbered(place, 10)
    expect(["8", "9"], where(place, ".body.n > 7"))
    expect(["8", "9"], where(place, "select(.body.n > 7)"))
    expect([], where(place, "null"))
    expect(10, len(where(place, "0")))
    expect(["7"], where(place, ".body.n > 6", "--limit", "1"))
    expect(["4", "7"], where(place, '.body.who == "w1" and .body.n > 1'))


@test
def several_ids_are_listed_and_narrowed_by_conditions(place):
    add_numbered(place, 10)
    expect(["7", "3"], ids(place.ok("list", "t", "7", "3")))
    expect(["7"], ids(place.ok("list", "t", "7", "3", "--where",
                               ".body.n > 5")))
    path = place.write("ids", "1\n\n2\r\n")
    expect(["9", "1", "2"],
           ids(place.ok("list", "t", "9", "--ids-from", path)))
    result = place.weir("list", "t", "1", "nope", "--json")
    expect(3, result.code)
    expect(["1"], ids(result.json))
    expect(["weir: 1 of the ids that were given is not there: nope"],
           result.sentences)


@test
def an_id_that_is_given_twice_is_taken_once(place):
    add_numbered(place, 300)
    path = place.write("ids", "2\n9\n9\n3\n")
    expect(["9", "2"], ids(place.ok("list", "t", "9", "2", "9")))
    expect(["2", "9", "3"],
           ids(place.ok("list", "t", "2", "2", "--ids-from", path)))
    result = place.weir("delete", "t", "2", "2")
    expect([0, "deleted 1\n", ""], [result.code, result.out, result.err])
    expect("would delete 9\nwould delete 3\nwould delete 2 jobs\n",
           place.weir("delete", "t", "9", "3", "3", "--dry-run").out)
    every = "".join("%d\n" % (i % 300) for i in range(900) if i % 300 != 2)
    expect("deleted 299\n",
           place.weir("delete", "t", "--ids-from", "-", stdin=every).out)


@test
def ids_that_are_not_there_are_named(place):
    add_numbered(place, 2)
    result = place.weir("delete", "t", "0", "a", "b", "a")
    expect([3, "deleted 1 of 3\n"], [result.code, result.out])
    expect((2, ["a", "b"], 0), gone(result))
    many = "".join("x%d\n" % i for i in range(500))
    result = place.weir("list", "t", "--ids-from", "-", stdin=many)
    count, named, more = gone(result)
    expect([500, 5, 495], [count, len(set(named)), more])
    expect(set(), set(named) - set(many.split()))


@test
def times_are_compared_with_the_due_time(place):
    place.add("t", "soon", "--delay", "1h")
    place.add("t", "late", "--delay", "3h")
    place.add("t", "fixed", "--at", "2033-05-18T03:33:20Z")
    expect(["soon"], ids(place.ok("list", "t", "--before", "2h")))
    expect(["late", "fixed"], ids(place.ok("list", "t", "--after", "2h")))
    expect(["late"],
           ids(place.ok("list", "t", "--after", "2h", "--before", "1d")))
    at = "2033-05-18T03:33:20Z"
    expect(["fixed"], ids(place.ok("list", "t", "--after", at)))
    expect(["soon", "late"], ids(place.ok("list", "t", "--before", at)))
    for day, wanted in (("2033-05-18", ["fixed"]), ("2033-05-19", [])):
        expect(wanted, ids(place.ok("list", "t", "--after", day)), day)
    expect([], ids(place.ok("list", "t", "--before", "now")))
    expect(3, len(place.ok("list", "t", "--after", "now")))


@test
def the_dead_are_chosen_by_reason_and_time_of_death(place):
    for name in ("a", "b", "c"):
        place.add("t", name)
    place.drain(FAILING)
    place.add("t", "waits", "--delay", "1h")
    expect(3, len(place.ok("dead", "list", "t", "--reason", "failed")))
    expect([], place.ok("dead", "list", "t", "--reason", "exhausted"))
    expect([], place.ok("dead", "list", "t", "--before", "-1h"))
    expect(3, len(place.ok("dead", "list", "t", "--after", "-1h")))
    expect({"topic": "t", "requeued": 1, "meant": 1, "gone": 0},
           place.ok("dead", "requeue", "t", "--where", '.id == "b"'))
    expect({"topic": "t", "deleted": 2, "meant": 2, "gone": 0},
           place.ok("dead", "purge", "t", "--reason", "failed"))
    place.expect_stats("t", scheduled=1, ready=1, dead=0)


@test
def only_dead_jobs_are_requeued_or_purged_by_id(place):
    place.add("t", "dead")
    place.drain(FAILING)
    place.add("t", "waits", "--delay", "1h")
    for verb in ("requeue", "purge"):
        result = place.weir("dead", verb, "t", "waits", "nope",
                            "--where", "true")
        expect(3, result.code)
        expect((2, ["nope", "waits"], 0), gone(result))
    expect("requeued 1 of 2\n",
           place.weir("dead", "requeue", "t", "dead", "waits").out)
    place.expect_stats("t", scheduled=1, ready=1, dead=0)


@test
def those_that_are_meant_are_deleted_and_no_others(place):
    add_numbered(place, 300)
    result = place.weir("delete", "t", "--where", ".body.n % 2 == 0")
    expect([0, "deleted 150\n"], [result.code, result.out])
    expect([str(i) for i in range(1, 300, 2)],
           ids(place.ok("list", "t", "--limit", "1000")))
    expect("deleted 2\n", place.weir("delete", "t", "1", "3").out)
    expect("deleted 5\n", place.weir("delete", "t", "--state", "scheduled",
                                     "--limit", "5").out)
    place.expect_stats("t", scheduled=143)


@test
def those_that_are_meant_are_rescheduled(place):
    add_numbered(place, 20)
    place.add("t", "now")
    result = place.weir("reschedule", "t", "--where", ".body.n < 5 or "
                        '.id == "now"', "--delay", "3h")
    expect([0, "rescheduled 6\n"], [result.code, result.out])
    expect(6, len(place.ok("list", "t", "--after", "2h")))
    place.expect_stats("t", scheduled=21, ready=0)


@test
def what_runs_or_is_dead_is_not_meant_by_reschedule(place):
    place.add("t", "dead")
    place.drain(FAILING)
    place.add("t", "waits", "--delay", "1h")
    expect("rescheduled 1\n",
           place.weir("reschedule", "t", "--where", "true", "--delay",
                      "3h").out)
    result = place.weir("reschedule", "t", "dead", "waits", "--delay", "4h")
    expect([3, "rescheduled 1 of 2\n"], [result.code, result.out])


@test
def a_dry_run_tells_ids_and_changes_nothing(place):
    add_numbered(place, 5)
    before = place.ok("list", "t")
    expect("would delete 3\nwould delete 4\nwould delete 2 jobs\n",
           place.weir("delete", "t", "--where", ".body.n > 2",
                      "--dry-run").out)
    expect({"topic": "t", "ids": ["0", "1"], "meant": 2},
           place.ok("delete", "t", "--limit", "2", "--state", "scheduled",
                    "--dry-run"))
    expect({"topic": "t", "ids": [], "meant": 0},
           place.ok("reschedule", "t", "--where", "false", "--delay", "1d",
                    "--dry-run"))
    expect("would delete 1\nwould delete 1 job\n",
           place.weir("delete", "t", "1", "--dry-run").out)
    expect(before, place.ok("list", "t"))


@test
def a_job_on_which_the_program_fails_is_passed_over_and_told_once(place):
    add_numbered(place, 5)
    result = place.weir("delete", "t", "--where",
                        'if .body.n == 3 then true else .body.n | test("x") '
                        "end")
    expect([1, "deleted 1\n"], [result.code, result.out])
    expect(2, len(result.sentences))
    expect_in('(job "0")', result.sentences[0])
    expect("weir: --where failed on 4 jobs in all, which were passed over",
           result.sentences[1])
    place.expect_stats("t", scheduled=4)


@test
def an_error_of_jq_without_a_text_is_told_in_words(place):
    add_numbered(place, 1)
    for program in ('"" | error', '"\\n\\nmore" | error'):
        result = place.weir("list", "t", "--where", program)
        expect_in("an error without a text", result.sentences[0])


@test
def a_program_that_crashes_jq_is_named_and_ends_the_command(place):
    add_numbered(place, 3)
    expr = "if .body.n < 2 then true else 1.8e308 | todate end"
    for words, args in (
            ("nothing was changed", ["delete", "t"]),
            ("nothing was changed", ["delete", "t", "--dry-run"]),
            ("nothing was changed", ["delete", "t", "0", "2"]),
            ("nothing was changed", ["reschedule", "t", "--delay", "1d"]),
            ("not all jobs were looked at", ["list", "t"]),
            ("not all jobs were looked at", ["export", "t"])):
        result = place.weir(*args, "--where", expr)
        expect(1, result.code, args)
        expect(1, len(result.sentences), result.err)
        for word in (expr, "crashed jq", '"2"', words):
            expect_in(word, result.sentences[0])
    place.expect_stats("t", scheduled=3)


@test
def what_was_deleted_before_jq_crashed_is_told(place):
    add_numbered(place, 4500)
    result = place.weir("delete", "t", "--where",
                        "if .body.n < 4400 then .body.n % 4 == 0 else "
                        "1.8e308 | todate end")
    expect([1, "deleted 1000\n"], [result.code, result.out])
    expect_in("; 1000 jobs were deleted before", result.sentences[0])
    place.expect_stats("t", scheduled=3500)


@test
def a_list_reads_little_more_than_it_shows(place):
    add_numbered(place, 6000)
    server = place.redis()
    marks = [sent_by(server)]
    for args in (["--limit", "10000"], ["--where", "false"], ["--limit", "10"]):
        place.ok("list", "t", *args)
        marks.append(sent_by(server))
    whole, filtered, few = (b - a for a, b in zip(marks, marks[1:]))
    told = "bytes read: %d, with --where %d, of 10 jobs %d" % (
        whole, filtered, few)
    expect_true(whole < 6000 * 60 and filtered < 1.3 * whole, told)
    expect_true(few < whole / 10, told)


@test
def mistakes_are_one_sentence_and_change_nothing(place):
    add_numbered(place, 3)
    wrong = place.write("wrong", "0\na b\n1\n")
    for code, words, args in (
            (2, "--where: syntax error", ["--where", ".body +"]),
            (2, "--where: foo/0 is not defined", ["--where", "foo"]),
            (2, "--where: there is no program", ["--where", " "]),
            (2, "--where: ", ["--where", 'import "x" as x; .']),
            (2, '--before: "soon" is not a time', ["--before", "soon"]),
            (2, "--limit: ", ["--state", "ready", "--limit", "0"]),
            (2, '--before: "2026-02-30" is not a time',
             ["--before", "2026-02-30"]),
            (2, "--state: ", ["--state", "gone"]),
            (2, '--reason: "exhasted" is none of exhausted, failed',
             ["--reason", "exhasted"]),
            (2, "delete needs ids, or a condition", []),
            (2, "delete needs ids, or a condition", ["--dry-run"]),
            (2, "delete needs ids, or a condition", ["--limit", "5"]),
            (2, "--ids-from: cannot open", ["--ids-from", "/nowhere"]),
            (1, "--ids-from: cannot read", ["--ids-from", "/"])):
        result = place.weir("delete", "t", *args)
        expect(code, result.code, args)
        expect(1, len(result.sentences), result.err)
        expect_in(words, result.sentences[0])
    place.weir("dead", "purge", "t", "--all", "--where", "true") \
        .expect_complaint(2, "--all and conditions exclude each other")
    place.expect_stats("t", scheduled=3)
    result = place.weir("delete", "t", "--ids-from", wrong)
    expect([1, "deleted 2\n"], [result.code, result.out])
    expect_in("wrong:2: id \"a b\"", result.sentences[0])
    place.weir("delete", "nope", "--where", "true").expect_complaint(
        3, 'there is no topic "nope"')


@test
def ids_come_from_stdin(place):
    add_numbered(place, 1000)
    some = "".join("%d\n" % i for i in range(0, 1000, 2))
    expect("deleted 500\n", place.weir("delete", "t", "--ids-from", "-",
                                       stdin=some).out)
    place.expect_stats("t", scheduled=500)


@test
def a_list_that_workers_change_ends_and_loses_nothing_that_stays(place):
    add_numbered(place, 2000)
    place.add_lines("t", 3000, '{"id":"r%d"}')
    worker = place.start("run", "--handle", place.echo(), "--until-empty")
    seen = where(place, '.id | startswith("r") | not', "--limit", "100000")
    expect([str(i) for i in range(2000)], seen)
    expect("deleted 1000\n",
           place.weir("delete", "t", "--where",
                      ".state == \"scheduled\" and .body.n < 1000").out)
    worker.kill()
    worker.wait()


@test
def events_of_a_bounded_topic_are_filtered_and_not_changed(place):
    expect(0, place.weir("topic", "set", "t", "kind=bounded").code)
    for i in range(5):
        place.add("t", str(i), "--group", "g%d" % (i % 2), "--body", str(i))
    expect(["1", "3"], sorted(where(place, '.group == "g1"')))
    result = place.weir("delete", "t", "--where", '.group == "g1"')
    expect(2, result.code)
    expect(1, len(result.sentences), result.err)
    expect(5, len(place.ok("list", "t")))


@test
def entries_of_a_list_are_chosen_among_the_dead(place):
    expect(0, place.weir("topic", "set", "t", "kind=list").code)
    for i in range(6):
        expect(0, place.weir("add", "t", "--body", str(i)).code)
    place.drain(FAILING)
    expect(6, len(place.ok("dead", "list", "t")))
    expect("requeued 2\n", place.weir("dead", "requeue", "t", "--where",
                                      ".body > 3").out)
    expect("deleted 4\n", place.weir("dead", "purge", "t", "--where",
                                     "true").out)
    place.expect_stats("t", ready=2, dead=0)
