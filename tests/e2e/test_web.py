# SPDX-License-Identifier: MIT
"""weir web as a server: who is let in, what it refuses, that it lives."""

import os
import re
import resource

from e2e import (eventually, expect, expect_in, expect_true, rest,
                 stop_cleanly, test)
from ports import listener
from web import TOKEN, Web


@test
def it_says_where_it_listens_and_that_it_lives(place):
    web = Web(place)
    expect("ok\n", web.get("/healthz").text)
    expect("ok\n", web.get("/readyz").text)
    page = web.get("/")
    expect(200, page.code)
    expect_in("<title>weir", page.text)
    err = stop_cleanly(web.process)
    expect_in("SIGTERM: ending", err)


@test
def it_is_not_ready_while_the_server_is_away(place):
    web = Web(place)
    place.ok("server", "stop")
    away = web.get("/readyz")
    expect(503, away.code)
    expect_in("connection", away.text)
    expect(200, web.get("/healthz").code)
    stop_cleanly(web.process)


@test
def all_answers_are_against_frames_and_guesses(place):
    web = Web(place)
    for path in ["/", "/page.js", "/healthz", "/nothing", "/%zz"]:
        headers = web.get(path).headers
        expect("nosniff", headers["X-Content-Type-Options"], path)
        expect("DENY", headers["X-Frame-Options"], path)
        expect_in("frame-ancestors 'none'", headers["Content-Security-Policy"])
        expect_true("unsafe" not in headers["Content-Security-Policy"], path)


@test
def elsewhere_than_on_this_machine_it_wants_a_token(place):
    result = place.weir("web", "--listen", ":0")
    result.expect_complaint(2, "--token-file", "[::]:")
    web = Web(place, token=TOKEN, listen=":0")
    expect(200, web.get("/healthz").code)


@test
def an_address_that_is_none_or_taken_is_refused(place):
    for address in ["8080", "localhost", "::1:80", "127.0.0.1:65536", "a:b",
                    "example.org:80", "127.0.0.1:", "[127.0.0.1:80"]:
        place.weir("web", "--listen", address).expect_complaint(
            2, "--listen", address)
    with listener() as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        place.weir("web", "--listen", address).expect_complaint(
            1, "--listen", address, "in use")


@test
def a_token_file_that_holds_none_is_refused(place):
    short = place.write("short", "0123456789abcde\n")
    place.weir("web", "--token-file", short).expect_complaint(
        2, "--token-file", short, "16")
    long = place.write("long", "x" * 257)
    place.weir("web", "--token-file", long).expect_complaint(2, "256")
    written = place.write("written", "0123456789abcdef")
    os.chmod(written, 0o602)
    place.weir("web", "--token-file", written).expect_complaint(
        2, "--token-file", written, "chmod o-w")
    place.weir("web", "--token-file", place.path("none")).expect_complaint(
        2, "--token-file", "No such file")
    place.weir("web", "--token-file", place.dir).expect_complaint(2, place.dir)


def log_in(web, **headers):
    """Headers of a browser that has shown the token."""
    answer = web.post("/login", TOKEN, **headers)
    expect(200, answer.code)
    return {"Cookie": answer.headers["Set-Cookie"].split(";")[0],
            "Weir_Key": answer.json["key"]}


def may(web, session):
    """Whether /api/session, a read, and an act are open to the session."""
    told = web.get("/api/session", **session).json
    read = web.get("/api/topics", **session).code
    act = web.post("/api/topics/t/pause", Sec_Fetch_Site="same-origin",
                   **session).code
    expect_true((read == 200) == told["may_read"], str((told, read)))
    expect_true((act != 401) == told["may_act"], str((told, act)))
    return told["may_read"], told["may_act"]


@test
def a_browser_shows_the_token_once(place):
    web = Web(place, token=TOKEN)
    expect(401, web.post("/login", "wrong").code)
    expect(403, web.post("/login", TOKEN, Origin="http://evil.example").code)
    answer = web.post("/login", TOKEN,
                      Origin="http://127.0.0.1:%d" % web.port)
    expect(200, answer.code)
    cookie = answer.headers["Set-Cookie"]
    expect_true(re.fullmatch(r"weir%d=[0-9a-f]{64}; Path=/; HttpOnly; "
                             r"SameSite=Strict" % web.port, cookie), cookie)
    expect_true(TOKEN not in cookie, "the token is in the cookie")
    expect_true(re.fullmatch("[0-9a-f]{64}", answer.json["key"]),
                answer.text)
    expect_true(answer.json["key"] not in cookie, "the key is in the cookie")
    for path, body in (("/login", TOKEN), ("/logout", b"")):
        for name, value in (("Origin", "http://evil.example"),
                            ("Origin", "null"), ("Sec_Fetch_Site", "same-site"),
                            ("Sec_Fetch_Site", "cross-site")):
            foreign = web.post(path, body, **{name: value})
            expect([403, None], [foreign.code, foreign.headers["Set-Cookie"]])


@test
def what_another_port_gets_of_a_session_opens_nothing(place):
    web = Web(place, token=TOKEN)
    session = log_in(web)
    expect((True, True), may(web, session))
    for half in ("Cookie", "Weir_Key"):
        expect((False, False), may(web, {half: session[half]}))
    other = log_in(web)
    expect((False, False), may(web, {"Cookie": other["Cookie"],
                                     "Weir_Key": session["Weir_Key"]}))
    name = "weir%d=" % web.port  # set by another port for a longer path
    expect((True, True), may(web, {
        **session, "Cookie": name + "x; " + session["Cookie"]}))
    expect((False, False), may(web, {
        **session, "Cookie": session["Cookie"].replace(name, "weir1=")}))


@test
def a_session_ends_at_its_logout_and_no_other_does(place):
    web = Web(place, token=TOKEN)
    one, other = log_in(web), log_in(web)
    gone = web.post("/logout", **one)
    expect(204, gone.code)
    expect_in("=; ", gone.headers["Set-Cookie"])
    expect_in("Max-Age=0", gone.headers["Set-Cookie"])
    expect((False, False), may(web, one))
    expect((True, True), may(web, other))
    again = log_in(web, Cookie=other["Cookie"])
    expect((False, False), may(web, other))
    expect((True, True), may(web, again))
    web.post("/logout", Cookie=again["Cookie"] + "x")
    web.post("/logout")
    expect((True, True), may(web, again))


@test
def the_session_that_was_used_least_recently_makes_room(place):
    web = Web(place, token=TOKEN)
    first, second = log_in(web), log_in(web)
    for _ in range(62):
        log_in(web)
    expect((True, True), may(web, first))
    log_in(web)
    expect((True, True), may(web, first))
    expect((False, False), may(web, second))


@test
def over_tls_a_cookie_is_bound_to_its_host(place):
    web = Web(place, token=TOKEN)
    tls = {"X_Forwarded_Proto": "https"}
    answer = web.post("/login", TOKEN, **tls)
    expect_true(re.fullmatch(r"__Host-weir%d=[0-9a-f]{64}; Path=/; HttpOnly; "
                             r"SameSite=Strict; Secure" % web.port,
                             answer.headers["Set-Cookie"]),
                answer.headers["Set-Cookie"])
    session = log_in(web, **tls)
    expect((True, True), may(web, {**session, **tls}))
    expect((False, False), may(web, session))
    planted = session["Cookie"].replace("__Host-", "")
    expect((False, False), may(web, {**session, **tls, "Cookie": planted}))


@test
def a_foreign_name_that_leads_here_reads_nothing(place):
    web = Web(place)
    answer = web.get("/", Host="rebound.example")
    expect(403, answer.code)
    expect({"error": "the Host header names another machine"}, answer.json)


@test
def what_cannot_be_answered_is_told(place):
    web = Web(place)
    expect({"error": "there is nothing at this address"},
           web.get("/index.html/x").json)
    expect(404, web.get("/..%2Fetc%2Fpasswd").code)
    expect(400, web.get("/%00").code)
    expect("GET, HEAD", web.post("/healthz").headers["Allow"])
    expect("POST", web.get("/login").headers["Allow"])
    expect(405, web.ask("DELETE", "/").code)
    head = web.ask("HEAD", "/")
    expect([200, b""], [head.code, head.body])
    expect(str(len(web.get("/").body)), head.headers["Content-Length"])


@test
def what_is_no_http_is_refused_and_not_repeated(place):
    web = Web(place)
    for code, request in (
            (b"400", b"POST /<script> HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: <script>\r\n\r\n"),
            (b"414", b"GET /<script>" + 20000 * b"a" + b" HTTP/1.1\r\n\r\n"),
            (b"431", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: <script>" +
                     20000 * b"a" + b"\r\n\r\n"),
            (b"505", b"GET /<script> HTTP/9.9\r\n\r\n")):
        with web.connect() as peer:
            peer.sendall(request)
            answer = b""
            while b"</html>" not in answer:
                more = peer.recv(4096)
                expect_true(more, "an answer to %r" % request[:40])
                answer += more
        expect_in(b" " + code + b" ", answer)
        expect_true(b"<script>" not in answer, answer)
    expect(200, web.get("/healthz").code)


@test
def a_body_beyond_1_mib_or_of_a_login_beyond_1_kib_is_refused(place):
    web = Web(place, token=TOKEN)
    act = ("POST /api/topics/t/pause HTTP/1.1\r\nHost: localhost\r\n"
           "Authorization: Bearer %s\r\n" % TOKEN).encode()
    with web.connect() as peer:
        peer.sendall(act + b"Content-Length: 1048577\r\n"
                     b"Expect: 100-continue\r\n\r\n")
        expect_in(b" 413 ", peer.recv(4096))
    chunk = b"10000\r\n" + 65536 * b"x" + b"\r\n"
    with web.connect() as peer:
        peer.sendall(act + b"Transfer-Encoding: chunked\r\n\r\n" +
                     17 * chunk + b"0\r\n\r\n")
        expect_in(b" 413 ", peer.recv(4096))
    expect(404, web.post("/api/topics/t/pause", 1024 * 1024 * "x",
                         Authorization="Bearer " + TOKEN).code)
    expect(413, web.post("/login", 1025 * "x").code)
    expect(401, web.post("/login", 1024 * "x").code)


@test
def a_client_that_has_a_file_is_told_so(place):
    web = Web(place)
    first = web.get("/page.css")
    again = web.get("/page.css", If_None_Match=first.headers["ETag"])
    expect([304, b""], [again.code, again.body])
    other = web.get("/page.css", If_None_Match='"0000000000000000"')
    expect([200, first.body], [other.code, other.body])


@test
def a_client_that_hangs_up_hurts_nobody(place):
    web = Web(place)
    for request in [b"", b"GET / HT", b"GET /readyz HTTP/1.1\r\nHost: localhost"
                    b"\r\n\r\n", b"POST /login HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Length: 100\r\n\r\nabc", b"\0\xff\r\n\r\n",
                    b"GET / HTTP/1.1\r\n" + 40000 * b"x"]:
        with web.connect() as peer:
            peer.sendall(request)
    expect(200, web.get("/healthz").code)
    stop_cleanly(web.process)


@test
def it_ends_while_requests_wait(place):
    web = Web(place)
    server = place.redis()
    server.send("CLIENT PAUSE 60000 ALL")
    expect("+OK", server.line())
    with web.connect() as peer:
        peer.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stop_cleanly(web.process)
        expect_in(b" 503 ", peer.recv(4096))


def cpu_s(process):
    with open("/proc/%d/stat" % process.pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def is_idle(process):
    before = cpu_s(process)
    rest(0.5)
    return cpu_s(process) - before < 0.1


@test
def a_thousand_open_connections_keep_nobody_from_an_answer(place):
    web = Web(place)
    resource.setrlimit(resource.RLIMIT_NOFILE,
                       (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    peers = [web.connect() for _ in range(1000)]
    for number, peer in enumerate(peers):
        # half a request; a slow reader that takes nothing of what it asked for
        peer.sendall(b"GET / HTTP/1.1\r\nHost: loc" if number % 2 else
                     3 * b"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n")
    expect(200, web.get("/readyz").code)
    eventually(lambda: is_idle(web.process),
               "they cost nothing while they do nothing")
    for peer in peers[1::2]:
        peer.sendall(b"alhost\r\n\r\n")
    expect_in(b"HTTP/1.1 200 ", peers[999].recv(4096))
    for peer in peers:
        peer.close()
    stop_cleanly(web.process)
