# SPDX-License-Identifier: MIT
"""Headers of jobs: from whoever adds them to handlers and what these call."""

import json
import os
from urllib.parse import quote

from e2e import (eventually, expect, expect_in, expect_true, kill,
                 stop_cleanly, test)
from http_peer import HttpPeer

TRACE = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7"
                        "-01", "tracestate": "a=1"}
FULL = {"k%02d" % i: "v" * 253 for i in range(16)}
SCRIPT = """#!/bin/sh
tee -a "%s" | grep -q '"attempt":1,' && exit %d
exit 0
"""


def flags(headers):
    return [word for name, value in headers.items()
            for word in ("--header", "%s=%s" % (name, value))]


def make(place, *options, topic="t"):
    place.ok("topic", "set", topic, *options)


def handler(place, status, topic="t"):
    """Notes its jobs; the first run of each ends so, all others are done."""
    path = place.write("script", SCRIPT % (place.path("jobs"), status))
    os.chmod(path, 0o755)
    return place.handler("exec", topic, command=quote(path))


def handled(place):
    """Topic, id, attempt and headers of what was handled."""
    with open(place.path("jobs"), encoding="utf-8") as file:
        jobs = [json.loads(line) for line in file]
    return [(job["topic"], job["id"], job["attempt"], job["headers"])
            for job in jobs]


def shown(place, job_id, topic="t"):
    job = place.ok("show", topic, job_id)
    listed = {one["id"]: one for one in place.ok("list", topic)}
    expect(job, listed[job_id])
    return job["headers"]


@test
def headers_are_shown_listed_and_given_to_handlers(place):
    place.add("t", "42", *flags(TRACE))
    place.add("t", "43")
    expect(TRACE, shown(place, "42"))
    expect(None, shown(place, "43"))
    text = place.weir("show", "t", "42").out
    expect_in("headers   traceparent: 00-4bf", text)
    expect_in("\n          tracestate: a=1\n", text)
    expect_true("header" not in place.weir("show", "t", "43").out, "no line")
    place.drain(handler(place, 0))
    expect([("t", "42", 1, TRACE), ("t", "43", 1, None)],
           sorted(handled(place), key=str))


@test
def they_stay_when_the_job_is_rescheduled_retried_dies_and_is_requeued(place):
    place.add("t", "42", "--delay", "1h", "--retry", "10ms", *flags(FULL))
    place.ok("reschedule", "t", "42", "--delay", "0ms")
    place.add("t", "43", "--retry", "none", *flags(TRACE))
    place.drain(handler(place, 75))
    expect(TRACE, shown(place, "43"))
    expect(TRACE, place.ok("dead", "list", "t")[0]["headers"])
    place.ok("dead", "requeue", "t", "43")
    expect(TRACE, shown(place, "43"))
    place.drain(handler(place, 0))
    expect([("t", "42", 1, FULL), ("t", "42", 2, FULL), ("t", "43", 1, TRACE),
            ("t", "43", 1, TRACE)], sorted(handled(place), key=str))


@test
def a_job_that_dies_takes_them_to_the_topic_of_on_dead(place):
    make(place, "on_dead=u")
    place.add("t", "42", "--retry", "none", *flags(FULL))
    place.drain(handler(place, 75))
    expect(FULL, shown(place, "42", "u"))  # without what weir keeps there
    place.drain(handler(place, 0, "u"))
    expect([("t", "42", 1, FULL), ("u", "42", 2, FULL)], handled(place))


@test
def a_killed_worker_leaves_them_to_the_next_one(place):
    make(place, "lease=1s")
    place.add("t", "42", *flags(TRACE))
    path = place.write("script", "#!/bin/sh\ncat >>%s\nexec sleep 600\n"
                       % place.path("jobs"))
    os.chmod(path, 0o755)
    worker = place.work(place.handler("exec", command=quote(path)))
    eventually(lambda: os.path.exists(place.path("jobs")) and handled(place),
               "it runs")
    kill(worker)
    place.drain(handler(place, 0))
    expect([("t", "42", 1, TRACE)] * 2,
           [(topic, job_id, 1, headers)
            for topic, job_id, _, headers in handled(place)])


@test
def lines_have_them_whatever_the_pack_and_the_due_times(place):
    lines = ['{"id":"%d","retry":"10ms","headers":{"n":"%d","x":null}}' % (i, i)
             for i in range(2)]
    result = place.weir("add", "t", "--jsonl", "-", stdin="\n".join(lines))
    expect(1, result.code)
    expect_in("stdin:1: headers: they are texts, 16 at most", result.err)
    for topic, count in (("u", 300), ("t", 20)):
        lines = ['{"id":"%d","delay":"%dms","retry":"10ms",'
                 '"headers":{"n":"%d"}}' % (i, i % 3 * 20, i)
                 for i in range(count)]
        lines.append('{"id":"none","headers":{},"retry":"10ms"}')
        lines.append('{"id":"null","headers":null,"retry":"10ms"}')
        result = place.weir("add", topic, "--jsonl", "-",
                            stdin="\n".join(lines))
        expect("added %d, existing 0, refused 0\n" % (count + 2), result.out,
               result.err)
    for job in place.ok("list", "u", "--limit", "400"):
        expect({"n": job["id"]} if job["id"].isdigit() else None,
               job["headers"])
    place.drain(handler(place, 75))
    got = handled(place)
    expect(44, len(got))
    for _, job_id, _, headers in got:
        expect({"n": job_id} if job_id.isdigit() else None, headers)


@test
def other_kinds_keep_them_or_refuse_them(place):
    make(place, "kind=concurrent", "delay=200ms")
    place.add("t", "42", *flags(TRACE))
    make(place, "kind=bounded", "retry=10ms", "linger=0ms", topic="b")
    place.ok("add", "b", "--id", "42", "--group", "g", *flags(TRACE))
    for topic in ("t", "b"):
        expect(TRACE, place.ok("list", topic)[0]["headers"])
        place.drain(handler(place, 75, topic))
    expect([(topic, "42", run, TRACE) for topic in ("b", "t")
            for run in (1, 2)], sorted(handled(place), key=str))
    for kind in ("list", "stream"):
        make(place, "kind=" + kind, topic=kind)
        place.weir("add", kind, "--header", "a=1", "--body", "1") \
            .expect_complaint(2, "its entries are plain")


@test
def what_is_no_header_is_refused_with_one_sentence(place):
    name, value = "a name is letters, digits", "a value is visible ASCII"
    for header, words in (("a", '"a" has no =; it takes name=value'),
                          ("=1", name), ("a b=1", name), ("a:b=1", name),
                          ("weir.id=1", "names that begin with weir."),
                          ("a=", value), ("a= 1", value), ("a=1\r\nb: 2", value),
                          ("a=\u00e4", value),
                          ("a=" + 256 * "x", "257 bytes, 256 at most")):
        place.weir("add", "t", "--header", header).expect_complaint(2, words)
        line = json.dumps({"headers": dict([header.split("=", 1)])}) \
            if "=" in header else '{"headers":{"a":1}}'
        result = place.weir("add", "t", "--jsonl", "-", stdin=line)
        expect((1, 1), (result.code, result.err.count("stdin:1: header")),
               result.err)
        place.weir("plugin", "try", "echo", "--header", header) \
            .expect_complaint(2, words)
    place.weir("add", "t", "--header", "a=1", "--header", "A=2") \
        .expect_complaint(2, '"A" is given twice')
    place.weir("add", "t", *flags({"k%d" % i: "1" for i in range(17)})) \
        .expect_complaint(2, "--header: 17 of them, 16 at most")
    place.weir("add", "t", "--header", "a=1", "--jsonl", "-", stdin="") \
        .expect_complaint(2, 'write "headers" into each line')
    place.weir("list", "t").expect_complaint(3, "no topic")


@test
def plugin_try_gives_them_to_the_handler(place):
    result = place.weir("plugin", "try", "exec", "--option", "command=cat",
                        "--log-level", "info", *flags(TRACE))
    expect(0, result.code)
    expect_in(json.dumps({"headers": TRACE}, separators=(",", ":"))[1:-1],
              result.err)


@test
def notify_sends_them_but_not_those_that_are_its_own(place):
    peer = HttpPeer()
    others = {"Host": "evil", "content-type": "text/plain", "X-Key": "theirs",
              "Weir-Id": "43", "Transfer-Encoding": "chunked",
              "Content-Length": "1", "Connection": "close",
              "Authorization": "Bearer x", "Expect": "100-continue",
              "Forwarded": "for=10.0.0.1", "x-forwarded-for": "10.0.0.1",
              "X-Forwarded-Host": "evil", "X-Real-IP": "10.0.0.1",
              "Via": "1.1 evil"}
    place.add("t", "42", "--url", peer.url("/200"), "--body", "1",
              *flags(dict(TRACE, **others)))
    place.drain(place.handler("notify", header="X-Key: of%20mine"))
    got = peer.requests[0]
    names = [name.lower() for name in got.headers]
    expect(len(names), len(set(names)), "no name comes twice")
    expect(TRACE, {name: got.headers.get(name) for name in TRACE})
    expect(["application/json", "42", "of mine", None, None, "1"],
           [got.headers.get(name) for name in (
               "Content-Type", "Weir-Id", "X-Key", "Transfer-Encoding",
               "Authorization", "Content-Length")])
    expect([], [name for name in names if name in (
        "forwarded", "x-real-ip", "via") or name.startswith("x-forwarded-")])
    expect_true(got.headers.get("Host") != "evil", "the host is the url's")
    expect(1, place.stats("t")["done_total"])


@test
def a_worker_that_gives_jobs_back_leaves_their_headers(place):
    make(place, "concurrency=1")
    for number in range(20):
        place.add("t", str(number), *flags({"n": str(number)}))
    path = place.write("slow", "#!/bin/sh\ncat >>%s\nsleep 1\n"
                       % place.path("jobs"))
    os.chmod(path, 0o755)
    worker = place.work(place.handler("exec", command=quote(path)))
    eventually(lambda: os.path.exists(place.path("jobs")) and handled(place),
               "one runs")
    stop_cleanly(worker)
    place.drain(handler(place, 0))
    got = handled(place)
    expect_true(len(got) >= 20, "all were handled: %d" % len(got))
    for _, job_id, _, headers in got:
        expect({"n": job_id}, headers)
