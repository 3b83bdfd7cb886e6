# SPDX-License-Identifier: MIT
"""The interface for programs of weir web: what it tells of topics and jobs,
what it does to them, and what it refuses."""

import concurrent.futures
import json
import os
import re
import threading
import time
import urllib.parse

from e2e import eventually, expect, expect_in, expect_true, test, time_test
from web import TOKEN, Web, calls_of, crowd, sent_by


def act(web, path, code=200, **body):
    """A POST with the token, as a program sends it."""
    answer = web.post(path, json.dumps(body).encode(),
                      Authorization="Bearer " + TOKEN)
    expect(code, answer.code, answer.text)
    return answer.json


def get(web, path, code=200):
    answer = web.get(path, Authorization="Bearer " + TOKEN)
    expect(code, answer.code, "%s: %s" % (path, answer.text))
    return answer.json


def topics(web, query=""):
    return get(web, "/api/topics" + query)


def wait_for(web, topic, **wanted):
    """Until the snapshot has this of the topic."""
    def is_there():
        answer = web.get("/api/topics/" + topic,
                         Authorization="Bearer " + TOKEN)
        row = answer.json.get("topic", {})
        return all(row.get(name) == value for name, value in wanted.items()) \
            and row
    return eventually(is_there, "%s has %r" % (topic, wanted))


def fill(place):
    """A topic with jobs in three states."""
    place.add_lines("shop", 4, '{"id":"later-%d","delay":"1h","body":{"n":%d}}')
    place.add_lines("shop", 3, '{"id":"now-%d"}')
    place.add_lines("fail", 6, '{"id":"d%d","body":{"n":%d}}')
    place.drain(place.handler("flaky", "fail", fail="9", verdict="fail"))


@test
def topics_are_told_as_stats_has_them(place):
    fill(place)
    web = Web(place, token=TOKEN)
    wait_for(web, "shop", scheduled=4, ready=3)
    told = topics(web)
    stats = place.ok("stats")["topics"]
    expect([row["topic"] for row in stats],
           [row["topic"] for row in told["topics"]])
    for one, other in zip(stats, told["topics"]):
        for name in ("kind", "paused", "scheduled", "ready", "dead",
                     "added_total", "failed_total"):
            expect(one[name], other[name], name)
    expect([2, 0, 4, 3, 6], [told["sums"][name] for name in
                             ("topics", "paused", "scheduled", "ready",
                              "dead")])
    expect("ok", told["server"])


@test
def topics_are_found_sorted_and_paged(place):
    for i in range(5):
        place.add_lines("topic.%d" % i, (i * 3) % 5 + 1)
    place.add("other", "x")
    web = Web(place, token=TOKEN)
    wait_for(web, "topic.4", ready=3)

    def names(query):
        return [row["topic"] for row in topics(web, query)["topics"]]
    expect(["topic.3", "topic.1", "topic.4", "topic.2", "topic.0"],
           names("?q=TOPIC&sort=ready"))
    expect(["topic.0", "topic.2"],
           names("?q=topic&sort=ready&order=up&limit=2"))
    expect(["topic.4"], names("?q=topic&offset=4&limit=3"))
    expect([], names("?q=topic&offset=5"))
    expect(5, topics(web, "?q=topic&limit=1")["found"])
    expect(6, topics(web, "?limit=1")["sums"]["topics"])
    for bad in ("?sort=colour", "?limit=-1", "?limit=1001", "?offset=x"):
        get(web, "/api/topics" + bad, 400)


@test
def what_did_not_change_is_not_sent_again(place):
    place.add("quiet", "1", "--delay", "1h")
    web = Web(place, token=TOKEN)
    wait_for(web, "quiet", scheduled=1, rate=0.0)
    first = web.get("/api/topics", Authorization="Bearer " + TOKEN)
    again = web.get("/api/topics", Authorization="Bearer " + TOKEN,
                    If_None_Match=first.headers["ETag"])
    expect([304, b""], [again.code, again.body])
    place.add("quiet", "2", "--delay", "1h")
    wait_for(web, "quiet", scheduled=2)
    again = web.get("/api/topics", Authorization="Bearer " + TOKEN,
                    If_None_Match=first.headers["ETag"])
    expect(200, again.code)


@test
def jobs_come_a_page_at_a_time(place):
    place.add_lines("t", 25, '{"id":"j%d","delay":"1h","body":{"n":%d}}')
    web = Web(place, token=TOKEN)
    wait_for(web, "t", scheduled=25)
    seen, after = [], ""
    while after is not None:
        page = get(web, "/api/topics/t/jobs?state=scheduled&limit=10" +
                   ("&after=" + urllib.parse.quote(after) if after else ""))
        seen += [job["id"] for job in page["jobs"]]
        expect_true(all("body" not in job for job in page["jobs"]), "bodies")
        after = page["next"]
    expect(sorted("j%d" % i for i in range(25)), sorted(seen))
    expect([], get(web, "/api/topics/t/jobs?state=dead")["jobs"])
    get(web, "/api/topics/t/jobs?state=lost", 400)
    get(web, "/api/topics/t/jobs?after=%21", 400)


@test
def a_job_is_told_as_show_tells_it(place):
    place.add("t", "a/b?c", "--delay", "1h", "--body", '{"é":[1,2.5,null]}')
    web = Web(place, token=TOKEN)
    wait_for(web, "t", scheduled=1)
    expect(place.ok("show", "t", "a/b?c"),
           get(web, "/api/topics/t/jobs/a%2Fb%3Fc"))
    expect_in("no job", get(web, "/api/topics/t/jobs/none", 404)["error"])
    get(web, "/api/topics/t/jobs/%01", 400)
    expect_in("no topic", get(web, "/api/topics/u/jobs/x", 404)["error"])
    get(web, "/api/topics/t/jobs/x/y", 404)
    get(web, "/api/topics/t/else", 404)


@test
def a_topic_is_paused_and_resumed_at_once(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", ready=1, paused=False)
    act(web, "/api/topics/t/pause")
    expect(True, get(web, "/api/topics/t")["topic"]["paused"])
    expect(True, place.stats("t")["paused"])
    act(web, "/api/topics/t/resume")
    expect(False, get(web, "/api/topics/t")["topic"]["paused"])
    act(web, "/api/topics/t/stop", 404)


@test
def options_are_shown_and_set(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", ready=1)
    act(web, "/api/topics/t/options", concurrency="7", retry="1s 2s")
    expect({"concurrency": "7", "retry": "1s 2s"},
           get(web, "/api/topics/t/options")["options"])
    act(web, "/api/topics/t/options", retry="")
    expect({"concurrency": "7"},
           place.ok("topic", "show", "t")["options"])
    expect_in("concurrency", act(web, "/api/topics/t/options", 400,
                                 concurrency="many")["error"])
    act(web, "/api/topics/t/options", 400)
    act(web, "/api/topics/t/options", 400, concurrency=7)


@test
def one_job_is_given_another_time_deleted_or_requeued(place):
    fill(place)
    web = Web(place, token=TOKEN)
    wait_for(web, "shop", scheduled=4)
    due = act(web, "/api/topics/shop/jobs/later-1/reschedule",
              at="2040-01-31T08:30:00Z")["due_ms"]
    expect(2211611400000, due)
    expect(due, place.ok("show", "shop", "later-1")["due_ms"])
    act(web, "/api/topics/shop/jobs/later-2/reschedule", delay="0ms")
    expect("ready", place.ok("show", "shop", "later-2")["state"])
    for body in ({}, {"delay": "soon"}, {"delay": "1h", "at": "2040"}):
        act(web, "/api/topics/shop/jobs/later-1/reschedule", 400, **body)
    expect_in("dead", act(web, "/api/topics/fail/jobs/d1/reschedule", 400,
                          delay="1s")["error"])
    expect("scheduled",
           act(web, "/api/topics/shop/jobs/later-1/delete")["was"])
    act(web, "/api/topics/shop/jobs/later-1/delete", 404)
    act(web, "/api/topics/fail/jobs/d1/requeue")
    expect("ready", place.ok("show", "fail", "d1")["state"])
    act(web, "/api/topics/fail/jobs/d1/requeue", 404)
    expect(5, get(web, "/api/topics/fail")["topic"]["dead"])


def die(place, topic, texts):
    """Dead jobs whose errors are `texts`: a command that says so."""
    for i, text in enumerate(texts):
        place.add(topic, "x%d" % i, "--body", json.dumps(text))
    script = place.write("die.py", "import json, sys\n"
                         "sys.exit(json.load(sys.stdin)['body'])\n")
    place.drain(place.handler("exec", topic, command="python3%20" + script,
                              fail_codes=1))


@test
def dead_jobs_are_grouped_by_what_they_died_of(place):
    die(place, "t", ["timeout after 17 ms", "timeout after 9 ms",
                     "no such tenant", "timeout after 100 ms"])
    web = Web(place, token=TOKEN)
    wait_for(web, "t", dead=4)
    told = get(web, "/api/topics/t/groups")
    expect([3, 1], [group["count"] for group in told["groups"]])
    expect([True, 4], [told["complete"], told["looked_at"]])
    expect_in("timeout after # ms", told["groups"][0]["error"])
    key = told["groups"][0]["key"]
    expect(3, act(web, "/api/topics/t/dead/count", group=key)["found"])
    expect(4, place.stats("t")["dead"])
    expect({"found": 3, "failed": 0, "requeued": 3},
           act(web, "/api/topics/t/dead/requeue", group=key))
    expect("dead", place.ok("show", "t", "x2")["state"])
    place.expect_stats("t", dead=1, ready=3)


@test
def groups_are_those_of_what_a_filter_takes(place):
    die(place, "t", ["timeout after 17 ms", "timeout \u00fc after 9 ms",
                     "no such tenant", "timeout after 100 ms"])
    web = Web(place, token=TOKEN)
    wait_for(web, "t", dead=4)
    def asked(program):
        return get(web, "/api/topics/t/groups?where=" +
                   urllib.parse.quote(program))
    told = asked('.id != "x3" and (.error | test("timeout"))')
    expect([1, 1], [group["count"] for group in told["groups"]])
    expect([True, 4, 0], [told[name] for name in
                          ("complete", "looked_at", "failed")])
    for group in told["groups"]:
        whole = [one for one in get(web, "/api/topics/t/groups")["groups"]
                 if one["key"] == group["key"]]
        expect([group["reason"], group["error"]],
               [whole[0]["reason"], whole[0]["error"]])
    expect([[], 4], [asked(".id | error")[name] for name in
                     ("groups", "failed")])
    expect_in("where: syntax error", get(
        web, "/api/topics/t/groups?where=.a%20=", 400)["error"])


@test
def some_dead_jobs_all_since_a_moment_or_all_are_taken(place):
    place.add_lines("t", 5, '{"id":"old%d"}')
    place.drain(place.handler("flaky", fail="9", verdict="fail"))
    time.sleep(0.05)
    noon = max(job["due_ms"] for job in place.ok("dead", "list", "t")) + 1
    place.add_lines("t", 4, '{"id":"new%d"}')
    place.drain(place.handler("flaky", fail="9", verdict="fail"))
    web = Web(place, token=TOKEN)
    wait_for(web, "t", dead=9)
    expect({"found": 5, "failed": 0, "done": 0},
           act(web, "/api/topics/t/dead/count", until_ms=noon))
    expect({"found": 4, "failed": 0, "deleted": 4},
           act(web, "/api/topics/t/dead/delete", since_ms=noon))
    expect({"found": 3, "failed": 0, "requeued": 2},
           act(web, "/api/topics/t/dead/requeue",
               ids=["old1", "old2", "gone"]))
    for body in ({}, {"ids": []}, {"ids": [1]}, {"ids": "old3"},
                 {"ids": ["{}"]}, {"group": 7}, {"where": 7},
                 {"all": True, "since_ms": noon}, {"all": "false"},
                 {"all": 1}, {"since_ms": -1}, {"until_ms": -1},
                 {"since_ms": 0}, {"since_ms": "2026-01-01"},
                 {"until_ms": noon + 0.5}, {"until_ms": None},
                 {"since_ms": 1, "untill_ms": 1}, {"all": True, "dry": 1},
                 {"ids": ["old3"], "where": "true"}):
        act(web, "/api/topics/t/dead/delete", 400, **body)
    expect(3, place.stats("t")["dead"])
    expect({"found": 3, "failed": 0, "deleted": 3},
           act(web, "/api/topics/t/dead/delete", all=True))
    expect({"found": 0, "failed": 0, "deleted": 0},
           act(web, "/api/topics/t/dead/delete", all=True))


@test
def many_dead_jobs_go_by_a_group(place):
    place.add_lines("t", 3000)
    place.drain(place.handler("flaky", fail="9", verdict="fail"))
    web = Web(place, token=TOKEN)
    wait_for(web, "t", dead=3000)
    key = get(web, "/api/topics/t/groups")["groups"][0]["key"]
    expect({"found": 3000, "failed": 0, "deleted": 3000},
           act(web, "/api/topics/t/dead/delete", group=key))
    place.expect_stats("t", dead=0, ready=0)


def where(web, program, topic="t", **more):
    return get(web, "/api/topics/%s/jobs?%s" % (topic, urllib.parse.urlencode(
        {"state": "scheduled", "where": program, **more})))


@test
def jobs_are_filtered_by_a_jq_program_a_page_at_a_time(place):
    place.add_lines("t", 2500, '{"id":"j%d","delay":"1h","body":{"n":%d}}')
    web = Web(place, token=TOKEN)
    wait_for(web, "t", scheduled=2500)
    expect(["j7"], [job["id"] for job in where(web, ".body.n == 7")["jobs"]])
    seen, after = [], {}
    while after is not None:
        page = where(web, ".body.n % 100 == 3", limit="10", **after)
        seen += [job["id"] for job in page["jobs"]]
        after = page["next"] and {"after": page["next"]}
    expect(sorted("j%d" % n for n in range(3, 2500, 100)), sorted(seen))
    expect(7, where(web, "if .body.n < 7 then error(\"x\") else false end")
           ["failed"])
    expect(0, len(where(web, ".state == \"dead\"")["jobs"]))


@test
def a_filter_reads_large_bodies_once(place):
    place.add_lines("t", 120, '{"id":"j%d","delay":"1h","body":"' +
                    100000 * "x" + '"}')
    web = Web(place, token=TOKEN)
    wait_for(web, "t", scheduled=120)
    server = place.redis()
    before = sent_by(server)
    expect([], where(web, ".body == 1")["jobs"])
    sent = sent_by(server) - before
    expect_true(sent < 1.15 * 120 * 100000, "%d bytes were read" % sent)


@test
def a_program_that_crashes_jq_changes_nothing(place):
    die(place, "t", ["x"])
    web = Web(place, token=TOKEN)
    wait_for(web, "t", dead=1)
    for verb in ("delete", "requeue", "count"):
        error = act(web, "/api/topics/t/dead/" + verb, 400,
                    where="1.8e308 | todate")["error"]
        expect_in("where: the program crashed jq", error)
        expect_in("; nothing was changed", error)
    place.expect_stats("t", dead=1)


@test
def a_program_that_is_wrong_endless_or_greedy_is_refused(place):
    place.add_lines("t", 3, '{"id":"j%d","delay":"1h"}')
    place.env["WEIR_SECRET"] = "open sesame"
    web = Web(place, token=TOKEN)
    wait_for(web, "t", scheduled=3)
    for program, word in ((".body =", "where: syntax error"),
                          ("def f: f; f", "where: the program"),
                          ("[range(1e12)]", "where: the program")):
        answer = get(web, "/api/topics/t/jobs?" + urllib.parse.urlencode(
            {"where": program}), 400)
        expect_in(word, answer["error"])
    expect([], where(web, "$ENV.WEIR_SECRET")["jobs"])
    expect([], where(web, "env | length > 0")["jobs"])
    expect(3, len(where(web, "true")["jobs"]))


@test
def a_program_reads_no_file(place):
    place.add_lines("t", 3, '{"id":"j%d","delay":"1h"}')
    data = place.write("secret.json", '"open sesame"')
    place.write("known.jq", "def known: true;")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", scheduled=3)
    folder = os.path.dirname(data)
    for program in ('import "secret" as $d {search:"%s"}; $d[0] != null',
                    'include "known" {search:"%s"}; known',
                    'import "known" as k {search:"%s"}; k::known'):
        answer = get(web, "/api/topics/t/jobs?" + urllib.parse.urlencode(
            {"where": program % folder}), 400)
        expect_true("sesame" not in answer["error"], answer)
        place.weir("list", "t", "--where", program % folder).expect_complaint(
            2, "--where")


@test
def a_filter_does_not_hold_up_other_readers(place):
    place.add_lines("t", 3, '{"id":"j%d","delay":"1h"}')
    web = Web(place, token=TOKEN)
    wait_for(web, "t", scheduled=3)
    waiting = [web.connect() for _ in range(6)]
    for one in waiting:
        one.sendall(("GET /api/topics/t/jobs?where=def+f%%3Af%%3Bf HTTP/1.1"
                     "\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s"
                     "\r\n\r\n" % (web.port, TOKEN)).encode())
    expect(1, topics(web)["sums"]["topics"])
    codes = [one.recv(65536).split()[1] for one in waiting]
    expect([b"400"] * 4 + [b"503"] * 2, sorted(codes))
    for one in waiting:
        one.close()


@test
def a_filter_that_was_begun_is_not_cut_off_by_others(place):
    place.add_lines("long", 5000, '{"id":"j%d","delay":"1h","body":{"n":%d}}')
    place.add("short", "one", "--delay", "1h")
    web = Web(place, token=TOKEN)
    wait_for(web, "long", scheduled=5000)
    wait_for(web, "short", scheduled=1)
    ended, codes = threading.Event(), []

    def compete():
        while not ended.is_set():
            codes.append(web.get("/api/topics/short/jobs?where=last(range(300000))",
                                 Authorization="Bearer " + TOKEN).code)
    others = [threading.Thread(target=compete) for _ in range(6)]
    with web.connect() as peer:
        peer.sendall(("GET /api/topics/long/jobs?where=.body.n<0 "
                      "HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s"
                      "\r\nConnection: close\r\n\r\n" % TOKEN).encode())
        expect(200, web.get("/healthz").code)  # it was read by then
        for other in others:
            other.start()
        answer = b"".join(iter(lambda: peer.recv(65536), b""))
    ended.set()
    for other in others:
        other.join()
    expect_in(b"HTTP/1.1 ", answer)
    expect_true(b"HTTP/1.1 503 " not in answer, str(answer))
    expect_true(codes, "there were others")


@test
def dead_jobs_of_one_tenant_since_noon_are_requeued(place):
    place.add_lines("t", 6, '{"id":"old%d","body":{"tenant":"north"}}')
    place.drain(place.handler("flaky", fail="9", verdict="fail"))
    time.sleep(0.05)
    noon = max(job["due_ms"] for job in place.ok("dead", "list", "t")) + 1
    place.add_lines("t", 4, '{"id":"n%d","body":{"tenant":"north"}}')
    place.add_lines("t", 3, '{"id":"s%d","body":{"tenant":"south"}}')
    place.drain(place.handler("flaky", fail="9", verdict="fail"))
    web = Web(place, token=TOKEN)
    wait_for(web, "t", dead=13)
    expect({"found": 4, "failed": 0, "requeued": 4},
           act(web, "/api/topics/t/dead/requeue", since_ms=noon,
               where='.body.tenant == "north"'))
    expect({"n0", "n1", "n2", "n3"},
           {job["id"] for job in place.ok("list", "t", "--state", "ready")})
    act(web, "/api/topics/t/dead/delete", 400, where=".body =")
    expect(9, place.stats("t")["dead"])


@test
def events_of_a_bounded_topic_are_told_by_group(place):
    place.ok("topic", "set", "b", "kind=bounded", "length=2")
    for i in range(3):
        place.add("b", "e%d" % i, "--group", "north")
    place.add("b", "f", "--group", "south")
    web = Web(place, token=TOKEN)
    wait_for(web, "b", kind="bounded", dropped_total=1)
    expect([("north", 2), ("south", 1)],
           [(group["group"], group["count"]) for group in
            get(web, "/api/topics/b/groups?by=group")["groups"]])
    expect(1, get(web, "/api/topics/b")["topic"]["dropped"]["overflow"])


@test
def nothing_is_done_without_the_token_or_read_only(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    expect({"may_act": False, "may_read": False}, web.get("/api/session").json)
    expect(401, web.get("/api/topics").code)
    expect(401, web.post("/api/topics/t/pause").code)
    expect({"may_act": True, "may_read": True}, get(web, "/api/session"))
    web = Web(place, "--read-only", token=TOKEN)
    expect(False, get(web, "/api/session")["may_act"])
    act(web, "/api/topics/t/pause", 403)
    expect(False, place.stats("t")["paused"])
    web = Web(place)
    expect(False, web.get("/api/session").json["may_act"])
    expect(403, web.post("/api/topics/t/pause").code)


@test
def a_body_that_is_no_object_is_refused(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", ready=1)
    for body in (b"[1]", b"{", b"{}x", b"\xff", b"[" * 100, b'"a"', b"null"):
        answer = web.post("/api/topics/t/options", body,
                          Authorization="Bearer " + TOKEN)
        expect(400, answer.code, answer.text)


@test
def a_body_with_what_is_not_known_is_refused_and_nothing_done(place):
    fill(place)
    web = Web(place, token=TOKEN)
    wait_for(web, "shop", scheduled=4)
    told = {}
    for path, body in (
            ("shop/pause", {"forever": True}), ("shop/resume", {"x": 1}),
            ("shop/jobs/later-1/reschedule", {"delay": "0ms", "att": "x"}),
            ("shop/jobs/later-1/delete", {"dry": True}),
            ("fail/jobs/d1/requeue", {"delay": "1h"}),
            ("fail/dead/requeue", {"sinec_ms": 1, "all": True}),
            ("fail/dead/delete", {"all": True, "wher": ".id"})):
        told[path] = act(web, "/api/topics/" + path, 400, **body)["error"]
        expect_true(re.fullmatch('nothing is known of "[a-z_]+"', told[path]),
                    told[path])
    expect_in('"sinec_ms"', told["fail/dead/requeue"])
    expect_in('"att"', told["shop/jobs/later-1/reschedule"])
    place.expect_stats("shop", scheduled=4, ready=3, dead=0, paused=False)
    place.expect_stats("fail", dead=6)


@test
def a_topic_that_becomes_of_another_kind_is_shown_as_that(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", kind="delay", ready=1)
    for kind in ("list", "concurrent", "delay"):
        place.ok("purge", "t", "--yes")
        place.ok("topic", "set", "t", "kind=" + kind)
        place.ok("add", "t", "--body", "1")
        wait_for(web, "t", kind=kind, ready=1)
        jobs = get(web, "/api/topics/t/jobs?state=ready")["jobs"]
        expect(1, len(jobs))
        act(web, "/api/topics/t/pause")


@test
def a_kind_that_is_not_known_here_is_told(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", ready=1)
    server = place.redis()
    server.send("HSET weir:{t}:meta kind turnstile")
    server.line()
    def told():
        answer = web.get("/api/topics/t/jobs",
                         Authorization="Bearer " + TOKEN)
        return answer.code == 409 and answer.json["error"]
    expect('the topic is of kind "turnstile", which this version of weir does '
           'not know', eventually(told, "it is refused"))


@test
def a_server_that_goes_away_is_told_and_heard_of_again(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", ready=1)
    place.ok("server", "stop")
    told = eventually(lambda: topics(web)["server"] != "ok" and topics(web),
                      "that the server is away")
    expect_true(told["taken_ms"] > 0, "when it was told last")
    expect(1, told["sums"]["ready"])
    place.ok("stats")  # starts it again
    eventually(lambda: topics(web)["server"] == "ok", "that it is back")


@test
def the_last_hour_is_told_by_topic(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    wait_for(web, "t", ready=1)
    told = get(web, "/api/history?topics=t,none,,t")
    expect(["t"], list(told["topics"]))
    expect([120, 120, 30000],
           [len(told["topics"]["t"]["rate"]),
            len(told["topics"]["t"]["lateness_ms"]), told["step_ms"]])


@test
def nodes_are_told(place):
    place.add("t", "1")
    web = Web(place, token=TOKEN)
    node = eventually(lambda: get(web, "/api/nodes")["nodes"], "a node")[0]
    expect([True, "primary", 0], [node["up"], node["role"], node["replicas"]])
    expect_true(node["memory_bytes"] > 0 and node["clients"] > 0, str(node))


@test
def workers_are_told_by_topic_and_by_name(place):
    names = ["t%02d" % i for i in range(20)]
    place.add("t19", "1", "--delay", "1h")
    place.write("conf", 'worker { name = "one" }\n' + "".join(
        'topic "%s" { handler = echo concurrency = 3 }\n' % name
        for name in names))
    place.work(flags=("--config", place.path("conf")))
    web = Web(place, token=TOKEN)

    def told(query=""):
        return web.get("/api/workers" + query,
                       Authorization="Bearer " + TOKEN).json["workers"]

    eventually(told, "it is there")
    expect(names[:16], [topic["topic"] for topic in told()[0]["topics"]])
    expect(20, told()[0]["topics_total"])
    expect(names, [topic["topic"] for topic in told("?name=one")[0]["topics"]])
    expect([], told("?name=two"))
    expect([{"topic": "t19", "concurrency": 3, "held": 0, "running": 0}],
           told("?topic=t19")[0]["topics"])
    expect([], told("?topic=t99"))
    wait_for(web, "t19", workers=1)


@test
def many_workers_come_in_pages(place):
    web = Web(place, token=TOKEN)
    names = ["w%03d" % i for i in range(250)]
    place.add("t", "1", "--delay", "1h")

    def page(query=""):
        told = get(web, "/api/workers" + query)
        return (told["found"], told["offset"],
                [worker["name"] for worker in told["workers"]])

    with crowd(place, names, ("o", "t")):
        eventually(lambda: page()[0] == 250, "all are known")
        expect((250, 0, names[:100]), page())
        expect((250, 200, names[200:]), page("?offset=200"))
        expect((250, 7, names[7:9]), page("?offset=7&limit=2"))
        expect((250, 300, []), page("?offset=300"))
        expect((125, 120, names[241::2]), page("?topic=t&offset=120"))
        expect((1, 0, ["w007"]), page("?name=w007"))
    for wrong in ("?limit=1001", "?offset=-1", "?limit=x"):
        get(web, "/api/workers" + wrong, code=400)


@time_test
def ten_pages_cost_what_one_does(place):
    names = ["t%02d" % i for i in range(20)]
    for name in names:
        place.add(name, "1", "--delay", "1h")
    web = Web(place, token=TOKEN)
    wait_for(web, "t19", scheduled=1)
    server = place.redis()

    def look(_):
        """A page at its topics and one at a topic, for a while."""
        for _ in range(20):
            for path in ("/api/topics", "/api/topics/t07", "/api/workers"):
                get(web, path)
            time.sleep(0.2)

    begin, before = time.monotonic(), calls_of(server)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        list(pool.map(look, range(10)))
    after, past_s = calls_of(server), time.monotonic() - begin
    # a round and a question for workers each second at most
    rounds = after["sscan"] - before["sscan"]
    expect_true(0 < rounds <= past_s + 2, "%d in %f s" % (rounds, past_s))
    expect_true(after["evalsha"] - before["evalsha"] <=
                (len(names) + 2) * (past_s + 2), "%r %r" % (before, after))
