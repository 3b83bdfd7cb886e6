# SPDX-License-Identifier: MIT
"""weir run --metrics: what one worker did and has."""

import os
import re

from e2e import (await_line, eventually, expect, expect_in, expect_true,
                 stop_cleanly, test)
from ports import listener
from web import Client, samples


def work(place, *handlers, flags=()):
    worker = place.work(*handlers, flags=("--metrics", "127.0.0.1:0", *flags))
    line = await_line(worker, "metrics at http://")
    return worker, Client(int(re.search(r":(\d+)/metrics", line).group(1)))


def scrape(client):
    answer = client.get("/metrics")
    expect(200, answer.code)
    return samples(answer.text)


def eventually_has(client, name, value):
    eventually(lambda: scrape(client).get(name) == value,
               "%s %s" % (name, value))


@test
def a_worker_counts_claims_runs_and_outcomes(place):
    worker, client = work(place, place.echo("good"),
                          place.handler("flaky", "bad", fail="9"),
                          flags=["--retry", "none"])
    for number in range(3):
        place.add("good", str(number))
    place.add("bad", "a")
    eventually_has(client, 'weir_worker_outcomes_total{outcome="done"}', 3)
    eventually_has(client, 'weir_worker_outcomes_total{outcome="dead"}', 1)
    eventually_has(client, "weir_worker_held", 0)
    got = scrape(client)
    expect([1, 4, 4, 0],
           [got["weir_worker_%s_total" % name] for name in
            ["connections", "claimed", "started", "refused"]])
    expect_true(got["weir_worker_claims_total"] >= 2, "claims")
    expect_true(got["weir_worker_loop_lag_seconds"] >= 0, "a lag")
    for topic, count in [("good", 3), ("bad", 1)]:
        for name in ["run", "lateness"]:
            family = "weir_worker_%s_seconds" % name
            label = '{topic="%s"}' % topic
            expect(count, got[family + "_count" + label])
            expect(count, got['%s_bucket{topic="%s",le="+Inf"}'
                              % (family, topic)])
            expect_true(got[family + "_sum" + label] >= 0, "a sum")
    buckets = [value for name, value in got.items()
               if name.startswith('weir_worker_run_seconds_bucket{topic="good"')]
    expect(24, len(buckets))
    expect(sorted(buckets), buckets)
    stop_cleanly(worker)


@test
def a_worker_is_ready_while_it_serves_and_the_server_answers(place):
    worker, client = work(place, place.echo("t"))
    eventually(lambda: client.get("/readyz").code == 200, "it is ready")
    expect(200, client.get("/healthz").code)
    place.ok("server", "stop")
    expect(503, client.get("/readyz").code)
    expect(200, client.get("/healthz").code)
    worker.kill()


@test
def without_the_option_nothing_listens(place):
    worker = place.work(place.echo("t"))
    await_line(worker, "serving t")
    with open("/proc/%d/net/tcp" % worker.pid) as file:
        listening = {line.split()[9] for line in file
                     if line.split()[3] == "0A"}
    mine = set()
    for fd in os.listdir("/proc/%d/fd" % worker.pid):
        try:
            mine.add(os.readlink("/proc/%d/fd/%s" % (worker.pid, fd)))
        except FileNotFoundError:
            pass
    expect(set(), {"socket:[%s]" % inode for inode in listening} & mine)
    stop_cleanly(worker)


@test
def an_address_that_is_taken_ends_it_before_it_serves(place):
    with listener() as taken:
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        result = place.weir("run", "--handle", place.echo("t"),
                            "--metrics", address)
    expect(1, result.code)
    expect_in("weir: --metrics: cannot listen at %s" % address, result.err)
    expect_true("serving" not in result.err, result.err)
    result = place.weir("run", "--handle", place.echo("t"), "--metrics", "x")
    expect(2, result.code)
    expect_in('weir: --metrics: "x" is no ADDRESS:PORT', result.err)


@test
def a_silent_server_does_not_keep_health_checks_out(place):
    worker, client = work(place, place.echo("t"))
    eventually(lambda: client.get("/readyz").code == 200, "it is ready")
    server = place.redis()
    server.send("CLIENT PAUSE 60000 ALL")
    expect("+OK", server.line())
    peers = []
    for _ in range(40):
        peers.append(client.connect())
        peers[-1].sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        expect(200, client.get("/healthz").code)
    texts = [peer.recv(4096) for peer in peers]
    for text in texts:
        expect_true(text.startswith(b"HTTP/1.1 503 "), repr(text))
    expect(8, sum(b"too many requests" not in text for text in texts))
    for peer in peers:
        peer.close()
    server.close()
    worker.kill()
    worker.wait()
