# SPDX-License-Identifier: MIT
"""Jobs that leave one server and come to another one."""

import base64
import json

import msgpack

from e2e import eventually, expect, expect_in, test

FAILING = "t=flaky?fail=9&verdict=fail"
OTHER = "other"


def export(place, *args):
    result = place.weir("export", *args)
    expect(0, result.code, result.err)
    return result.out


def other(place):
    """Options of another private server."""
    return ["--data", place.path(OTHER)]


def without_past(text):
    """An event is added when it comes."""
    return [{name: value for name, value in json.loads(line).items()
             if name != "past"} for line in text.splitlines()]


def goes_there_and_back(place, text, topic="t"):
    """Imported elsewhere, and exported there, it is the same."""
    path = place.write("jobs", text)
    count = len(text.splitlines())
    result = place.weir("import", topic, path, *other(place))
    expect([0, "added %d, existing 0, refused 0\n" % count],
           [result.code, result.out], result.err)
    expect(text, export(place, topic, *other(place)))
    result = place.weir("import", topic, path)
    expect([4, "added 0, existing %d, refused 0\n" % count],
           [result.code, result.out], result.err)
    place.weir("server", "stop", *other(place))


@test
def waiting_and_dead_jobs_survive_the_trip(place):
    for i in range(5):
        place.add("t", "dead-%d" % i, "--body", '{"n":%d}' % i)
    place.ok("add", "t", "--body", '"made"')
    place.drain(FAILING)
    for i in range(4):
        place.ok("add", "t", "--delay", "1h", "--body", '{"n":%d}' % i)
    place.add_lines("t", 300, '{"id":"w%d","at":"2033-05-18T03:33:20.125Z",'
                              '"retry":"15s 3m ...","ttl":"2d",'
                              '"url":"http://x/","headers":{"a":"b"},'
                              '"body":[1.5,"\u00e9",null]}')
    text = export(place, "t")
    expect(310, len(text.splitlines()))
    dead = [json.loads(line) for line in text.splitlines()
            if "died" in line]
    expect(6, len(dead))
    for job in dead:
        past = job["past"]
        expect(["failed", 1, 1], [past["reason"], past["attempt"],
                                  past["failures"]])
        expect_in("flaky", past["error"])
    goes_there_and_back(place, text)


@test
def counters_of_a_job_that_is_tried_again_survive_the_trip(place):
    place.add("t", "1", "--retry", "1h ...")
    worker = place.work("t=flaky?fail=9")
    eventually(lambda: place.ok("show", "t", "1")["failures"] == 1, "it ran")
    worker.terminate()
    worker.wait()
    text = export(place, "t")
    expect(1, json.loads(text)["past"]["failures"])
    goes_there_and_back(place, text)


@test
def bodies_that_json_cannot_carry_survive_the_trip(place):
    bodies = [b"\x00\xff", msgpack.ExtType(5, b"abc"), {1: 2}, 2 ** 63, -1,
              1.0, "\u00e9\u0000", {"$bin": "AA=="}, [], {}, None]
    packed = [msgpack.packb(body) for body in bodies] + [
        msgpack.packb(1.5, use_single_float=True), b"\xcd\x00\x01",
        b"\xa1\xff", msgpack.packb(float("nan")), b"\x82\xa1a\x01\xa1a\x02"]
    lines = "".join(
        '{"id":"%d","at":"2033-05-18T03:33:20Z","msgpack":"%s","past":{}}\n'
        % (i, base64.b64encode(body).decode())
        for i, body in enumerate(packed))
    result = place.weir("import", "t", "-", stdin=lines)
    expect([0, "added %d, existing 0, refused 0\n" % len(packed)],
           [result.code, result.out], result.err)
    text = export(place, "t")
    got = {}
    for line in text.splitlines():
        job = json.loads(line)
        got[job["id"]] = base64.b64decode(job["msgpack"]) \
            if "msgpack" in job else msgpack.packb(job["body"])
    expect({str(i): body for i, body in enumerate(packed)}, got)
    goes_there_and_back(place, text)


@test
def events_survive_the_trip_in_their_groups(place):
    for args in ([], other(place)):
        expect(0, place.weir("topic", "set", "t", "kind=bounded",
                             *args).code)
    for i in range(6):
        place.add("t", str(i), "--group", "g%d" % (i % 2), "--body", str(i))
    text = export(place, "t")
    path = place.write("jobs", text)
    result = place.weir("import", "t", path, *other(place))
    expect([0, "added 6, existing 0, refused 0, dropped 0\n"],
           [result.code, result.out], result.err)
    there = export(place, "t", *other(place))
    expect(without_past(text), without_past(there))
    place.weir("server", "stop", *other(place))


@test
def some_are_exported(place):
    place.add_lines("t", 10, '{"id":"%d","delay":"1h"}')
    expect(["3", "7"], [json.loads(line)["id"] for line in export(
        place, "t", "--where", '.id == "3" or .id == "7"').splitlines()])
    expect(2, len(export(place, "t", "--limit", "2").splitlines()))
    expect("", export(place, "t", "--state", "dead"))
    place.weir("export", "nope").expect_complaint(3, 'no topic "nope"')


@test
def a_topic_of_another_kind_is_not_exported(place):
    for kind in ("list", "sync"):
        expect(0, place.weir("topic", "set", kind, "kind=" + kind).code)
        place.weir("export", kind).expect_complaint(
            2, "is of kind " + kind, "delay and bounded")
    result = place.weir("import", "list", "-",
                        stdin='{"body":1,"past":{"attempt":1}}\n')
    expect([1, 1], [result.code, len(result.sentences)])
    expect_in("its jobs have no past", result.sentences[0])


@test
def a_past_that_is_wrong_is_one_sentence_a_line(place):
    wrong = {
        '{"past":1}': "past: it is an object",
        '{"past":{"attempt":-1}}': "past: attempt: it takes a number",
        '{"past":{"attempt":4294967296}}': "past: attempt: it takes a number",
        '{"past":{"attempt":"1"}}': "past: attempt: it takes a number",
        '{"past":{"atempt":1}}': 'past: unknown name "atempt"',
        '{"past":{"error":1}}': "past: error: it takes a text",
        '{"past":{"died":"now"}}': 'past: died: "now" is not a time',
        '{"past":{"died":"2026-01-31T08:30:00Z"}}': "a dead job needs its id",
        '{"id":"1","delay":"1s","past":{"died":"2026-01-31T08:30:00Z"}}':
            "a dead job is not due",
        '{"msgpack":"x"}': "msgpack: it is not one value in base64",
        '{"msgpack":"wMA="}': "msgpack: it is not one value in base64",
        '{"msgpack":"wA==","body":1}': "body and msgpack exclude each other",
        '{"id":"@5KMhL-1-nN8n00"}': "an id does not begin with @",
        '{"id":"a b","past":{}}': "is not allowed",
    }
    for line, words in wrong.items():
        result = place.weir("import", "t", "-", stdin=line + "\n")
        expect([1, "added 0, existing 0, refused 1\n", 1],
               [result.code, result.out, len(result.sentences)], line)
        expect_in(words, result.sentences[0])
    place.weir("import", "t", "/nowhere").expect_complaint(2, "cannot open")
    place.weir("import", "t").expect_complaint(2, "import needs TOPIC FILE")
