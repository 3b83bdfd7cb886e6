# SPDX-License-Identifier: MIT
"""notify: jobs are POSTed to their url, and the answer is the verdict."""

import hashlib
import hmac
import json
import os
import socket
import subprocess
from urllib.parse import quote

from e2e import (eventually, expect, expect_in, expect_true, kill,
                 stop_cleanly, test, wait)
from http_peer import HttpPeer
from ports import free_port


def add(place, job_id, url, *args):
    place.add("t", job_id, "--url", url, *args)


def drain(place, *flags, **options):
    return place.drain(place.handler("notify", **options), flags=flags)


@test
def a_request_carries_the_body_and_names_its_job(place):
    peer = HttpPeer()
    body = {"order": 42, "note": "ä\n\"", "long": "x" * 5000}
    add(place, "order-42", peer.url("/200"), "--body", json.dumps(body))
    drain(place, header="X-Key: of%20mine%0AX-More: 1")
    expect(1, len(peer.requests))
    got = peer.requests[0]
    expect(body, json.loads(got.body))
    expect(["application/json", "t", "order-42", "1", "of mine", "1"],
           [got.headers.get(name) for name in (
               "Content-Type", "Weir-Topic", "Weir-Id", "Weir-Attempt",
               "X-Key", "X-More")])
    expect_true("Weir-Signature" not in got.headers, "it is not signed")
    expect(1, place.stats("t")["done_total"])


@test
def a_secret_signs_time_topic_id_and_body(place):
    peer = HttpPeer()
    add(place, "1", peer.url("/200"), "--body", '{"a":1}')
    drain(place, secret="hush")
    got = peer.requests[0]
    signed = "\n".join([got.headers["Weir-Timestamp"], "t", "1",
                        got.body.decode()])
    expect("sha256=" + hmac.new(b"hush", signed.encode(),
                                hashlib.sha256).hexdigest(),
           got.headers["Weir-Signature"])


@test
def each_answer_is_a_verdict(place):
    peer = HttpPeer()
    expected = {
        "/200": None, "/204": None, "/299": None, "/long": None,
        "/404": ["failed", "notify: answered 404: said so "],
        "/410": ["failed", "notify: answered 410: said so "],
        "/to/200": ["failed", "notify: answered 307: said so "],
        "/408": ["exhausted", "notify: answered 408: said so "],
        "/429": ["exhausted", "notify: answered 429: said so "],
        "/500": ["exhausted", "notify: answered 500: said so "],
        "/503": ["exhausted", "notify: answered 503: said so "],
    }
    for i, path in enumerate(expected):
        add(place, str(i), peer.url(path), "--retry", "none")
    result = drain(place)
    expect_in("t counters: accepted=4 put_off=4 refused=3 sent=11\n",
              result.err)
    for i, (path, wanted) in enumerate(expected.items()):
        if wanted:
            expect(wanted, place.dead(str(i)), path)
        else:
            expect(3, place.weir("show", "t", str(i)).code, path)
    expect(4, place.stats("t")["done_total"])


@test
def of_an_answer_its_beginning_is_kept(place):
    peer = HttpPeer()
    for count in (0, 79, 80, 81, 1000):
        add(place, str(count), peer.url("/404?say=%d" % count))
    drain(place)
    for count in (79, 80, 81, 1000):
        expect(["failed", "notify: answered 404: " + "x" * min(count, 80)],
               place.dead(str(count)))
    expect(["failed", "notify: answered 404"], place.dead("0"))


@test
def what_the_network_does_is_retried(place):
    peer = HttpPeer()
    refusing = "http://127.0.0.1:%d/" % free_port()
    add(place, "refuses", refusing, "--retry", "none")
    for what in ("close", "half", "hang", "trickle"):
        add(place, what, peer.url("/" + what), "--retry", "none")
    result = drain(place, timeout="10s")
    expect_in("t counters: errors=3 sent=5 timeouts=2\n", result.err)
    for job_id, words in (("refuses", "connect"), ("close", "Empty reply"),
                          ("half", " bytes "), ("hang", "timed out"),
                          ("trickle", "timed out")):
        reason, error = place.dead(job_id)
        expect("exhausted", reason)
        expect_in(words, error)


@test
def retry_after_is_followed_up_to_a_bound(place):
    peer = HttpPeer()
    add(place, "short", peer.url("/429?after=100"), "--retry", "1s...")
    add(place, "long", peer.url("/503?after=10000"), "--retry", "1s...")
    worker = place.work(place.handler("notify", max_wait="5m"))
    eventually(lambda: place.stats("t")["retried_total"] == 2, "both came")
    stop_cleanly(worker)
    due = {name: place.ok("show", "t", name)["due_ms"]
           for name in ("short", "long")}
    expect_true(180000 <= due["long"] - due["short"] <= 220000,
                "300 s and 100 s: %r" % due)


@test
def retry_after_may_be_a_date_and_nonsense_means_the_ladder(place):
    peer = HttpPeer()
    for job_id, after in (("date", "@200"), ("past", "@-100"),
                          ("nonsense", "soon"), ("negative", "-5"),
                          ("endless", "9223372036854775807")):
        add(place, job_id, peer.url("/429?after=" + after), "--retry", "1h")
    worker = place.work("t=notify")
    eventually(lambda: place.stats("t")["retried_total"] == 5, "all came")
    stop_cleanly(worker)
    due = {name: place.ok("show", "t", name)["due_ms"]
           for name in ("date", "past", "nonsense", "negative", "endless")}
    waits = due["endless"] - due["date"]
    expect_true(86180000 <= waits <= 86220000 or  # newer libcurl
                21380000 <= waits <= 21420000, "1 d or 6 h, not 200 s: %r" % due)
    for name in ("past", "nonsense", "negative"):
        waits = due[name] - due["date"]
        expect_true(3380000 <= waits <= 3420000,
                    "%s: 1 h, not 200 s: %r" % (name, due))


@test
def an_attempt_is_counted_until_it_is_done(place):
    peer = HttpPeer()
    add(place, "1", peer.url("/500"), "--retry", "100ms 100ms")
    drain(place)
    expect(["1", "2", "3"],
           [request.headers["Weir-Attempt"] for request in peer.requests])


@test
def redirects_are_followed_when_told_to(place):
    peer = HttpPeer()
    add(place, "1", peer.url("/to/200"), "--body", "[7]")
    add(place, "2", peer.url("/to/to/to/to/to/to/200"))
    drain(place, follow_redirects="yes")
    expect(1, place.stats("t")["done_total"])
    expect_in(b"[7]", [request.body for request in peer.requests
                       if request.path == "/200"])
    reason, error = place.dead("2")
    expect("failed", reason)
    expect_in("redirects", error)


@test
def a_redirect_keeps_method_headers_and_body_whatever_its_status(place):
    peer = HttpPeer()
    for status in ("301", "302", "303", "307", "308"):
        to = quote(peer.url("/200?after=0"))
        add(place, status, peer.url("/%s/%s" % (status, to)).replace(
            "//", "//me:hush@"), "--body", "[7]")
    drain(place, follow_redirects="yes", secret="hush", header="X-Key: mine")
    expect(5, place.stats("t")["done_total"])
    arrived = [request for request in peer.requests
               if request.path == "/200?after=0"]
    expect(5, len(arrived))
    for request in arrived:
        expect(["POST", b"[7]", "mine", "Basic bWU6aHVzaA=="],
               [request.method, request.body, request.headers.get("X-Key"),
                request.headers.get("Authorization")])
        expect_in("Weir-Signature", request.headers)


@test
def a_redirect_s_path_and_query_are_asked_for_as_they_are(place):
    peer = HttpPeer()
    path = "/%C3%BC%2F+?a=%C3%BC+%2B&b=c%20d&e"
    add(place, "1", peer.url("/away/" + quote(path)).replace(
        "//", "//m%C3%A9:h%40sh@", 1))
    add(place, "2", peer.url("/away/" + quote(peer.url(path).replace(
        "//", "//some:body@"))))
    drain(place, follow_redirects="yes")
    arrived = [request for request in peer.requests
               if not request.path.startswith("/away/")]
    expect([path] * 2, [request.path for request in arrived])
    expect({"1": "Basic bcOpOmhAc2g=", "2": None},
           {request.headers["Weir-Id"]: request.headers.get("Authorization")
            for request in arrived})


def make_certificate(place):
    """The files with key and certificate, and with the certificate alone."""
    both, key = place.path("both.pem"), place.path("key.pem")
    certificate = place.path("certificate.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                    "-subj", "/CN=127.0.0.1", "-days", "2", "-addext",
                    "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                    certificate], check=True, capture_output=True)
    with open(both, "w", encoding="utf-8") as file:
        for part in (key, certificate):
            with open(part, encoding="utf-8") as source:
                file.write(source.read())
    return both, certificate


@test
def a_redirect_that_leaves_scheme_host_or_port_fails(place):
    peer, other = HttpPeer(), HttpPeer()
    both, certificate = make_certificate(place)
    secure = HttpPeer(both)
    away = {
        "port": (peer, other.url("/200?key=hush")),
        "host": (peer, "http://localhost:%d/200?key=hush" % peer.port),
        "up": (peer, "https://me:hush@127.0.0.1:%d/200" % peer.port),
        "down": (secure, "http://127.0.0.1:%d/200#hush" % secure.port),
        "default": (peer, "http://127.0.0.1/hush"),
        "file": (peer, "file:///etc/hush"),
        "other": (peer, "//127.0.0.1:%d/hush" % other.port),
        "nothing": (peer, "http://"),
        "long": (peer, "http://%s/hush" % ("h" * 2000)),
    }
    for job_id, (start, url) in away.items():
        add(place, job_id, start.url("/away/" + quote(url)), "--retry", "none")
    drain(place, follow_redirects="yes", ca_file=certificate)
    for job_id, where in (
            ("port", other.url("")), ("host", "http://localhost:"),
            ("up", "https://127.0.0.1:%d" % peer.port),
            ("down", "http://127.0.0.1:%d" % secure.port),
            ("default", "http://127.0.0.1:80"), ("file", "file"),
            ("other", other.url("")), ("nothing", None),
            ("long", "http://" + "h" * 80)):
        reason, error = place.dead(job_id)
        expect("failed", reason, job_id)
        expect_in("redirected to what is no url" if where is None else
                  "redirected to another scheme, host or port: " + where,
                  error)
        expect_true("hush" not in error, error)
    expect([], other.requests)
    expect([8, 1], [len(peer.requests), len(secure.requests)],
           "each was asked once")


@test
def redirects_share_the_time_of_their_request(place):
    peer = HttpPeer()
    # Five times 200 ms; no single one is late.
    add(place, "1", peer.url("/late" * 5 + "/200"), "--retry", "none")
    result = drain(place, follow_redirects="yes", timeout="700ms")
    expect_in("sent=1 timeouts=1\n", result.err)
    expect("exhausted", place.dead("1")[0])
    expect_true(len(peer.requests) < 6, "it was given up")


@test
def link_local_addresses_are_not_connected_to(place):
    for i, url in enumerate(LINK_LOCAL):
        add(place, str(i), url, "--retry", "1h")
    result = drain(place)
    expect_in("t counters: errors=%d sent=%d\n"
              % (len(LINK_LOCAL), len(LINK_LOCAL)), result.err)
    for i, url in enumerate(LINK_LOCAL):
        reason, error = place.dead(str(i))
        expect(["failed", True], [reason, error.startswith(
            "notify: the address ")], url + ": " + error)
        expect_in("169.254.7.7 of host ", error)
        expect_in(" is not allowed", error)


# One address, in all the ways in which it can be written.
LINK_LOCAL = ("http://169.254.7.7/", "http://2851997447/",
              "http://0xa9fe0707:8080/", "http://0251.0376.07.07/",
              "http://169.254.1799/", "http://[::ffff:169.254.7.7]/")


@test
def only_what_is_allowed_is_connected_to(place):
    peer = HttpPeer()
    urls = {"address": peer.url("/200"),
            "name": "http://localhost:%d/200" % peer.port,
            "number": "http://2130706433:%d/200" % peer.port}
    for allow, served in (
            ("127.0.0.0/8", "address name number"),
            ("10.0.0.0/8 127.0.0.1", "address name number"),
            ("localhost", "name"), ("LOCALHOST *.example", "name"),
            ("public 10.0.0.0/8 127.0.0.2 *.localhost hooks.example", "")):
        for name, url in urls.items():
            add(place, name, url)
        del peer.requests[:]
        drain(place, allow=quote(allow))
        expect(sorted(served.split()),
               sorted(request.headers["Weir-Id"] for request in peer.requests),
               allow)
        for name in set(urls) - set(served.split()):
            reason, error = place.dead(name)
            expect("failed", reason)
            expect_in("notify: the address ", error)
            place.ok("delete", "t", name)


@test
def what_cannot_be_allowed_is_refused_with_a_sentence(place):
    result = place.weir("run", "--handle", "t=notify?allow=10.0.0.0/33")
    expect(2, result.code)
    expect_in('weir: t: plugin notify: option "allow": "10.0.0.0/33" is no '
              "host, address or network", result.err)


@test
def a_proxy_of_the_environment_is_used_unless_addresses_are_checked(place):
    proxy = HttpPeer()
    place.env["http_proxy"] = proxy.url("")
    add(place, "1", "http://hooks.invalid/200")
    drain(place)
    expect(["http://hooks.invalid/200"],
           [request.path for request in proxy.requests])
    add(place, "2", "http://hooks.invalid/200", "--retry", "none")
    drain(place, allow="hooks.invalid")
    expect("exhausted", place.dead("2")[0])
    expect(1, len(proxy.requests), "no name was resolved by it")


@test
def an_answer_that_is_not_http_is_retried(place):
    peer = HttpPeer()
    for what in ("garbage", "head", "hints"):
        add(place, what, peer.url("/" + what), "--retry", "none")
    result = drain(place)
    expect_in("t counters: errors=3 sent=3\n", result.err)
    for what, words in (("garbage", "HTTP/0.9"),
                        ("head", "header"), ("hints", "header")):
        reason, error = place.dead(what)
        expect("exhausted", reason, what)
        expect_in(words, error)


@test
def a_url_that_is_none_fails_with_a_sentence(place):
    place.add("t", "none")
    add(place, "file", "file:///etc/passwd")
    add(place, "odd", "http://[nope/")
    drain(place)
    expect(["failed", "notify: the job has no url"], place.dead("none"))
    expect(["failed", "notify: the url is neither http nor https"],
           place.dead("file"))
    expect("failed", place.dead("odd")[0])


@test
def certificates_are_checked_unless_told_otherwise(place):
    both, certificate = make_certificate(place)
    peer = HttpPeer(both)
    add(place, "1", peer.url("/200"), "--retry", "none")
    drain(place)
    reason, error = place.dead("1")
    expect("exhausted", reason)
    expect_in("certificate", error)
    expect(0, len(peer.requests))
    add(place, "2", peer.url("/200"), "--retry", "none")
    drain(place, ca_file=certificate)
    add(place, "3", peer.url("/200"), "--retry", "none")
    drain(place, verify="no")
    expect(2, place.stats("t")["done_total"])


def add_lines(place, count, url):
    place.add_lines("t", count, '{"id":"%%d","url":"%s"}' % url)


@test
def thousands_are_notified_with_hundreds_at_once_on_one_thread(place):
    peer = HttpPeer()
    add_lines(place, 10000, peer.url("/gate"))
    worker = place.work(
        place.handler("notify", per_host=500, total=500, timeout="5m"),
        flags=("--until-empty", "--concurrency", "500"))
    eventually(lambda: peer.at_once == 500, "hundreds are under way")
    threads = len(os.listdir("/proc/%d/task" % worker.pid))
    expect_true(threads <= 3, "the loop's, the keeper, one of a sanitizer's: "
                "%d threads" % threads)
    peer.open_gate()
    expect(0, wait(worker))
    expect(10000, place.stats("t")["done_total"])
    expect(10000, len({request.headers["Weir-Id"]
                       for request in peer.requests}))
    expect(10000, len(peer.requests), "each came once")
    expect(500, peer.most_at_once, "at once")
    expect_true(peer.connections <= 1000,
                "%d connections, they are used again" % peer.connections)


@test
def a_host_gets_no_more_connections_than_allowed(place):
    peer = HttpPeer()
    add_lines(place, 40, peer.url("/gate"))
    worker = place.work(place.handler("notify", per_host=4))
    eventually(lambda: peer.at_once == 4, "four are under way")
    peer.open_gate()
    eventually(lambda: place.stats("t")["done_total"] == 40, "all are done")
    stop_cleanly(worker)
    expect(4, peer.most_at_once)


@test
def no_notification_is_lost_with_a_worker(place):
    peer = HttpPeer()
    add_lines(place, 2500, peer.url("/brief"))  # suspects run alone
    for _ in range(3):
        seen = len(peer.requests)
        worker = place.work(place.handler("notify", per_host=500, total=500),
                            flags=("--lease", "1s", "--concurrency", "500"))
        eventually(lambda: len(peer.requests) > seen + 300, "it works")
        kill(worker)
    drain(place, "--concurrency", "500", per_host=500, total=500)
    expect(2500, len({request.headers["Weir-Id"]
                      for request in peer.requests}))
    expect(2500, place.stats("t")["done_total"])
    expect(0, place.stats("t")["dead"])


@test
def a_request_under_way_is_finished_or_given_up_at_a_stop(place):
    peer = HttpPeer()
    add(place, "1", peer.url("/slow"))
    add(place, "2", peer.url("/hang"))
    worker = place.work(place.handler("notify", timeout="3s"))
    eventually(lambda: len(peer.requests) == 2, "both are under way")
    stop_cleanly(worker)
    expect(1, place.stats("t")["done_total"])
    expect("scheduled", place.ok("show", "t", "2")["state"])


@test
def options_are_checked_and_secrets_not_shown(place):
    shown = place.ok("plugin", "info", "notify")
    secret = {option["name"]: option["secret"] for option in shown["options"]}
    expect([True, True, False],
           [secret[name] for name in ("secret", "header", "verify")])
    result = place.weir("run", "--handle", "t=notify?header=nothing")
    expect(2, result.code)
    expect_in('weir: t: plugin notify: option "header" wants lines like '
              '"Name: value"', result.err)
    result = place.weir("run", "--handle", "t=notify?timeout=1ms")
    result.expect_complaint(2, "from 10ms to 1h")


def own_name():
    """A name that is looked up; libcurl knows localhost by itself."""
    try:
        return socket.getaddrinfo(socket.gethostname(), 80, socket.AF_INET)[
            0][4][0] and socket.gethostname()
    except OSError:
        return "127.0.0.1"


@test
def requests_that_find_no_descriptor_lose_no_attempt(place):
    peer = HttpPeer(address="0.0.0.0")
    line = '{"id":"%s-%%d","retry":"none","url":"%s"}'
    for host in (own_name(), "127.0.0.%d"):
        place.add_lines("t", 30, line % (
            host.replace("%d", "net"), peer.url("/slow", host)))
    place.drain(place.handler("notify", total=100, per_host=100),
                ulimit="-n 40")
    place.expect_stats("t", done_total=60, dead=0, retried_total=0)
