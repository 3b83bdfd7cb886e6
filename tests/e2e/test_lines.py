# SPDX-License-Identifier: MIT
"""weir add --jsonl: many jobs from lines of JSON, told apart by number, and
drained exactly once."""

import json
import os
import pty
import subprocess

from e2e import (WEIR, communicate, eventually, expect, expect_in, expect_true,
                 run, test, wait)

MANY = int(os.environ.get("WEIR_LINES", "100000"))


def write(place, name, lines):
    return place.write(name, "".join(line + "\n" for line in lines))


def add(place, text, *args):
    return place.weir("add", "t", "--jsonl", "-", *args, stdin=text)


def counts(added, existing, refused):
    return "added %d, existing %d, refused %d\n" % (added, existing, refused)


@test
def every_name_of_a_line_reaches_its_job(place):
    line = {"id": "42", "delay": "1h", "body": {"n": [1, "é\n", None]},
            "retry": "15s 3m", "ttl": "2d", "url": "http://here/x"}
    result = add(place, json.dumps(line) + "\n")
    expect([0, counts(1, 0, 0)], [result.code, result.out])
    job = place.ok("show", "t", "42")
    expect([line["body"], "15s 3m", 2 * 86400000, "http://here/x"],
           [job["body"], job["retry"], job["ttl_ms"], job["url"]])
    expect("scheduled", job["state"])


@test
def a_point_in_time_may_stand_in_a_line(place):
    add(place, '{"id":"1","at":"2033-05-18T03:33:20Z"}')
    expect(2000000000000, place.ok("show", "t", "1")["due_ms"])


@test
def ids_are_made_where_a_line_has_none(place):
    expect(counts(3, 0, 0), add(place, '{}\n{"id":null}\n{"body":1}\n').out)
    expect(3, place.stats("t")["added_total"])


@test
def blank_lines_and_a_missing_last_newline_are_fine(place):
    result = add(place, '\n{"id":"1"}\r\n  \t\n{"id":"2"}')
    expect([0, counts(2, 0, 0), []],
           [result.code, result.out, result.sentences])


@test
def no_lines_are_no_jobs(place):
    result = add(place, "")
    expect([0, counts(0, 0, 0)], [result.code, result.out])


@test
def wrong_lines_are_told_by_number_and_the_others_are_added(place):
    path = write(place, "jobs", [
        '{"id":"1"}', '{"id":"2","dealy":"3s"}', "", '{"id":"3","delay":"15"}',
        '{"id":"4"', '[1]', '{"id":5}', '{"id":"a b"}',
        '{"id":"6","body":[18446744073709551616]}', '{"id":"7"} x',
        '{"id":"8","delay":"1s","at":"2033-05-18T03:33:20Z"}',
        '{"id":"9","colour":1}', '{"id":"10"}'])
    result = place.weir("add", "t", "--jsonl", path)
    expect([1, counts(2, 0, 10)], [result.code, result.out])
    wanted = [
        (2, 'unknown name "dealy"; did you mean "delay"?'),
        (4, 'delay: "15" is not a duration'),
        (5, "unexpected end of data at byte 10"),
        (6, "a job is an object, such as {"),
        (7, "id: it takes a text, in double quotes"),
        (8, "id"),
        (9, "integer beyond 64 bits at byte 19"),
        (10, "unexpected character at byte 12"),
        (11, "delay and at exclude each other; give one"),
        (12, 'unknown name "colour"; a job has id, delay, at'),
    ]
    expect(len(wanted), len(result.sentences), result.err)
    for sentence, (line, words) in zip(result.sentences, wanted):
        expect_in("weir: %s:%d: %s" % (path, line, words), sentence)
    for job_id in "2346789":
        place.weir("show", "t", job_id).expect_complaint(3)
    place.ok("show", "t", "10")


@test
def ids_that_exist_are_counted_and_left_alone(place):
    place.add("t", "1", "--body", '"first"')
    result = add(place, '{"id":"1","body":"second"}\n{"id":"2"}\n{"id":"2"}\n')
    expect([4, counts(1, 2, 0)], [result.code, result.out])
    expect("first", place.ok("show", "t", "1")["body"])


@test
def refused_lines_beat_existing_ids_in_the_exit_code(place):
    place.add("t", "1")
    expect(1, add(place, '{"id":"1"}\nnonsense\n').code)


@test
def counts_are_json_on_demand(place):
    result = add(place, '{"id":"1"}\n{"id":"1"}\nx\n', "--json")
    expect({"added": 1, "existing": 1, "refused": 1}, result.json)


@test
def a_body_too_large_is_refused_with_its_line(place):
    result = add(place, '{"id":"1","body":"%s"}\n{"id":"2"}\n' % ("x" * 2**20))
    expect([1, counts(1, 0, 1)], [result.code, result.out])
    expect_in('stdin:1: body of 1048581 bytes is larger than max_body of '
              'topic "t" (1MiB)', result.sentences[0])
    place.ok("topic", "set", "t", "max_body=2MiB")
    result = add(place, '{"body":"%s"}\n{"id":"3"}\n{"body":"%s"}\n'
                 % ("x" * 2**20, "x" * 2**21))
    expect([1, counts(2, 0, 1)], [result.code, result.out])
    expect_in('stdin:3: body of 2097157 bytes is larger than max_body of '
              'topic "t" (2MiB)', result.sentences[0])


@test
def a_body_no_topic_takes_is_refused_with_its_line(place):
    result = add(place, '{"body":"%s"}\n{"id":"2"}\n' % ("x" * 2**24))
    expect([1, counts(1, 0, 1)], [result.code, result.out])
    expect_in("stdin:1: body of 16777221 bytes is larger than max_body can be "
              "(16MiB)", result.sentences[0])


@test
def jobs_beyond_max_pending_are_refused_with_their_lines(place):
    place.ok("topic", "set", "t", "max_pending=3")
    result = add(place, "".join('{"id":"%d"}\n' % i for i in range(6)))
    expect([1, counts(3, 0, 3), 3],
           [result.code, result.out, len(result.sentences)])
    for line, sentence in zip((4, 5, 6), result.sentences):
        expect_in('stdin:%d: as many jobs wait in topic "t" as its '
                  'max_pending allows (3)' % line, sentence)
    place.weir("add", "t").expect_complaint(1, "max_pending allows (3)")
    expect(3, place.stats("t")["added_total"])


@test
def a_line_beyond_64_mebibytes_is_refused_and_skipped(place):
    with open(place.path("long"), "w") as file:
        file.write('{"id":"1"}\n{"id":"2","body":"')
        for _ in range(66):
            file.write("x" * 2**20)
        file.write('"}\n{"id":"3"}\n')
    result = place.weir("add", "t", "--jsonl", place.path("long"))
    expect([1, counts(2, 0, 1)], [result.code, result.out])
    expect_in(":2: the line is longer than 64 MiB", result.sentences[0])


@test
def lines_that_come_slowly_are_added_as_they_come(place):
    place.add("t", "0", "--delay", "1h")
    process = subprocess.Popen(
        [WEIR, "add", "t", "--jsonl", "-"], env=place.env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.started.append(process)
    process.stdin.write('{"id":"1"}\n{"id":"2"}\n{"id":')
    process.stdin.flush()
    eventually(lambda: place.stats("t")["added_total"] == 3, "two are added")
    out, _ = communicate(process, '"3"}\n')
    expect([0, counts(3, 0, 0)], [process.returncode, out])


@test
def an_interrupted_file_ends_with_its_counts(place):
    place.add("t", "0", "--delay", "1h")
    process = subprocess.Popen(
        [WEIR, "add", "t", "--jsonl", "-"], env=place.env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.started.append(process)
    process.stdin.write('{"id":"1"}\n')
    process.stdin.flush()
    eventually(lambda: place.stats("t")["added_total"] == 2, "it is added")
    process.send_signal(2)
    wait(process)
    out, err = process.communicate()
    expect([1, counts(1, 0, 0)], [process.returncode, out])
    expect_in("stopped behind line 1 of stdin", err)


@test
def progress_is_shown_on_a_terminal_only(place):
    path = write(place, "jobs", ('{"id":"%d"}' % i for i in range(200000)))
    place.ok("stats")
    master, slave = pty.openpty()
    process = subprocess.Popen([WEIR, "add", "t", "--jsonl", path],
                               env=place.env, text=True, stderr=slave,
                               stdout=subprocess.PIPE)
    place.started.append(process)
    os.close(slave)
    shown = b""
    try:
        while True:
            shown += os.read(master, 4096)
    except OSError:
        pass
    os.close(master)
    expect(counts(200000, 0, 0), communicate(process)[0])
    expect_in("\r\033[K[", shown.decode())
    expect_in(" lines, ", shown.decode())
    piped = add(place, '{"id":"x"}\n')
    expect([], piped.sentences)


@test
def an_unreachable_server_is_exit_5(place):
    result = place.weir("add", "t", "--jsonl", "-", "--redis",
                        "unix://" + place.path("none.sock"),
                        stdin='{"id":"1"}\n')
    result.expect_complaint(5, "none.sock")


def drained_by_two(place, count):
    """`count` lines, two workers; ids that ran, in order of the files."""
    path = write(place, "jobs", ('{"id":"%d","body":{"n":%d}}' % (i, i)
                                 for i in range(count)))
    done = run([WEIR, "add", "t", "--jsonl", path], patience=600,
               env=place.env)
    expect([0, counts(count, 0, 0)], [done.returncode, done.stdout],
           done.stderr)
    workers = [place.start("run", "--until-empty", "--handle",
                           place.echo(name=name))
               for name in ("one", "two")]
    for worker in workers:
        _, err = communicate(worker, patience=600)
        expect(0, worker.returncode, err)
    ran = []
    for name in ("one", "two"):
        with open(place.path(name), encoding="utf-8") as file:
            ran += [json.loads(line)["id"] for line in file]
    return ran


@test
def many_lines_are_drained_exactly_once_by_two_workers(place):
    ran = drained_by_two(place, MANY)
    expect(MANY, len(ran))
    expect(MANY, len(set(ran)))
    stats = place.stats("t")
    expect([0, 0, 0, 0, MANY],
           [stats[name] for name in ("scheduled", "ready", "running", "dead",
                                     "done_total")])
    expect_true(stats["crashed_total"] == 0, "nobody crashed")
