# SPDX-License-Identifier: MIT
"""Adding, showing, deleting and counting jobs."""

import json
import time

from e2e import expect, expect_in, expect_true, test

SHOWN = {"topic", "id", "state", "attempt", "failures", "timeouts", "crashes",
         "snoozes", "due_ms", "url", "retry", "reason", "body"}
COUNTED = {"topic", "kind", "paused", "scheduled", "ready", "running", "dead",
           "relaying", "done_total", "retried_total", "failed_total", "expired_total",
           "crashed_total", "dropped_total", "lateness_ms"}


def body_of(place, text):
    """What comes back of a body, through the server, as JSON text."""
    added = place.ok("add", "types", "--body", text)
    result = place.weir("show", "types", added["id"], "--json")
    expect(0, result.code)
    return json.loads(result.out, parse_float=str, parse_int=str)["body"]


@test
def add_prints_the_id_it_was_given(place):
    result = place.weir("add", "t", "--id", "42")
    expect(0, result.code, result.err)
    expect("42\n", result.out)
    expect({"topic": "t", "id": "43"}, place.add("t", "43"))


@test
def an_id_made_by_weir_sorts_by_time_and_can_be_shown(place):
    ids = []
    for _ in range(8):  # each by a process of its own
        ids.append(place.ok("add", "t")["id"])
        time.sleep(0.05)
    first = ids[0]
    expect("@", first[0])
    expect(sorted(ids), ids)
    expect(first, place.ok("show", "t", first)["id"])


@test
def the_same_id_twice_is_exit_4_and_leaves_the_first_untouched(place):
    place.add("t", "42", "--delay", "1h", "--body", '"first"')
    before = place.ok("show", "t", "42")
    place.weir("add", "t", "--id", "42", "--body", '"second"') \
        .expect_complaint(4, "\"42\"", "\"t\"", "exists")
    expect(before, place.ok("show", "t", "42"))


@test
def the_same_id_in_another_topic_is_another_job(place):
    place.add("one", "42", "--body", "1")
    place.add("two", "42", "--body", "2")
    expect(1, place.ok("show", "one", "42")["body"])
    expect(2, place.ok("show", "two", "42")["body"])


@test
def show_tells_everything_about_a_scheduled_job(place):
    place.add("t", "42", "--delay", "1h", "--url", "http://here/x",
              "--retry", "15s 3m", "--ttl", "2d", "--body", '{"n":[1,2]}')
    now_ms = time.time() * 1000
    job = place.ok("show", "t", "42")
    expect_true(SHOWN <= set(job), "all names are there: %r" % job)
    expect("scheduled", job["state"])
    expect([0] * 5, [job[name] for name in ("attempt", "failures", "timeouts",
                                            "crashes", "snoozes")])
    expect_true(abs(job["due_ms"] - now_ms - 3600000) < 30000,
                "due in an hour: %d" % job["due_ms"])
    expect("http://here/x", job["url"])
    expect("15s 3m", job["retry"])
    expect(2 * 86400000, job["ttl_ms"])
    expect(None, job["reason"])
    expect({"n": [1, 2]}, job["body"])


@test
def a_job_without_extras_shows_null_for_them(place):
    place.add("t", "42", "--delay", "1h")
    job = place.ok("show", "t", "42")
    for name in ("url", "retry", "reason", "error", "body"):
        expect(None, job[name], name)


@test
def show_without_json_is_text_for_people(place):
    place.add("t", "42", "--delay", "1h", "--body", '{"n":1}')
    result = place.weir("show", "t", "42")
    expect(0, result.code)
    expect_in("state     scheduled", result.out)
    expect_in('body      {"n":1}', result.out)


@test
def a_due_job_is_ready(place):
    place.add("t", "42")
    expect("ready", place.ok("show", "t", "42")["state"])


@test
def a_point_in_time_is_kept_to_the_millisecond(place):
    place.add("t", "42", "--at", "2033-05-18T05:33:20.125+02:00")
    expect(2000000000125, place.ok("show", "t", "42")["due_ms"])


@test
def a_point_in_the_past_is_due_at_once(place):
    place.add("t", "42", "--at", "1970-01-01T00:00:00Z")
    expect("ready", place.ok("show", "t", "42")["state"])


@test
def integers_keep_all_of_their_64_bits(place):
    for text in ("0", "-1", "9007199254740993", "9223372036854775807",
                 "9223372036854775808", "18446744073709551615",
                 "-9223372036854775808"):
        expect(text, body_of(place, text))


@test
def every_json_type_comes_back_as_it_went_in(place):
    for text in ("null", "true", "false", '""', '"x"', "[]", "{}",
                 '["a",[],{},null,true]', '{"a":{"b":{"c":[{"d":"e"}]}}}',
                 '"\\u0000\\u001f\\"\\\\/"', '"caf\\u00e9 \\ud83d\\ude00"',
                 '{"":"empty key","a.b":1}'):
        wanted = json.loads(text, parse_int=str, parse_float=str)
        expect(wanted, body_of(place, text), text)


@test
def fractions_come_back_with_the_same_value(place):
    for text in ("0.1", "-2.5", "1e300", "3.141592653589793", "5e-324"):
        expect(float(text), float(body_of(place, text)), text)


@test
def nesting_of_32_levels_comes_back(place):
    text = "[" * 32 + "]" * 32
    expect(json.loads(text), body_of(place, text))


@test
def a_body_of_one_mebibyte_passes(place):
    text = "x" * (1024 * 1024 - 5)
    place.write("big", json.dumps(text))
    place.add("t", "42", "--body-file", place.path("big"))
    expect(text, place.ok("show", "t", "42")["body"])


@test
def a_body_is_read_from_stdin(place):
    place.ok("add", "t", "--id", "42", "--body-file", "-", stdin='{"n": 1}\n')
    expect({"n": 1}, place.ok("show", "t", "42")["body"])


@test
def an_unknown_topic_is_exit_3_and_named(place):
    place.weir("show", "nope", "42").expect_complaint(3, "topic", "\"nope\"")
    place.weir("delete", "nope", "42").expect_complaint(3, "topic", "\"nope\"")
    place.weir("stats", "nope").expect_complaint(3, "topic", "\"nope\"")
    place.weir("dead", "list", "nope").expect_complaint(3, "topic", "\"nope\"")


@test
def an_unknown_id_is_exit_3_and_named_with_its_topic(place):
    place.add("t", "42")
    place.weir("show", "t", "43").expect_complaint(3, "\"43\"", "\"t\"")
    place.weir("delete", "t", "43").expect_complaint(3, "\"43\"", "\"t\"")
    place.weir("show", "t", "@0made", "--json").expect_complaint(3, "@0made")


@test
def delete_says_what_the_job_was(place):
    place.add("t", "1", "--delay", "1h")
    place.add("t", "2")
    expect({"topic": "t", "id": "1", "was": "scheduled"},
           place.ok("delete", "t", "1"))
    result = place.weir("delete", "t", "2")
    expect(0, result.code)
    expect("deleted, was ready\n", result.out)
    place.weir("show", "t", "1").expect_complaint(3)
    place.expect_stats("t", scheduled=0, ready=0)


@test
def a_deleted_id_can_be_added_again(place):
    place.add("t", "42")
    place.ok("delete", "t", "42")
    place.add("t", "42")


@test
def stats_count_by_state_and_name_everything(place):
    place.add("t", "1", "--delay", "1h")
    place.add("t", "2", "--delay", "1h")
    place.add("t", "3")
    stats = place.stats("t")
    expect_true(COUNTED <= set(stats), "all names are there: %r" % stats)
    expect(["t", "delay", False], [stats["topic"], stats["kind"],
                                   stats["paused"]])
    expect([2, 1, 0, 0], [stats[name] for name in
                          ("scheduled", "ready", "running", "dead")])
    expect({"p50", "p99", "max"}, set(stats["lateness_ms"]))


@test
def stats_without_a_topic_list_all_in_byte_order(place):
    for topic in ("b", "a", "C"):
        place.add(topic, "1", "--delay", "1h")
    expect(["C", "a", "b"], [t["topic"] for t in place.ok("stats")["topics"]])
    lines = place.weir("stats").out.splitlines()
    expect(4, len(lines))
    expect_in("SCHEDULED", lines[0])


@test
def stats_of_an_empty_server_are_an_empty_list(place):
    expect({"topics": []}, place.ok("stats"))


@test
def dead_list_of_a_topic_without_dead_jobs_is_empty(place):
    place.add("t", "42", "--delay", "1h")
    expect([], place.ok("dead", "list", "t"))
    expect("", place.weir("dead", "list", "t").out)


@test
def an_id_may_be_anything_printable(place):
    odd = "a:b/c?d=e&f#[x]\"'\\%s"
    place.add("t", odd)
    expect(odd, place.ok("show", "t", odd)["id"])
    expect(odd, place.ok("delete", "t", odd)["id"])
