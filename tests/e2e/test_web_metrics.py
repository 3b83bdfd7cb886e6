# SPDX-License-Identifier: MIT
"""/metrics of weir web: what Prometheus reads of a server's topics."""

import concurrent.futures

from e2e import (eventually, expect, expect_in, expect_true, kill,
                 stop_cleanly, test)
from web import TOKEN, Web, calls_of, samples


def scrape(web, path="/metrics"):
    answer = web.get(path)
    expect(200, answer.code)
    expect("text/plain; version=0.0.4; charset=utf-8",
           answer.headers["Content-Type"])
    return samples(answer.text)


def eventually_has(web, name, value):
    eventually(lambda: scrape(web).get(name) == value, "%s %s" % (name, value))


@test
def topics_have_their_jobs_by_state_and_what_became_of_them(place):
    place.add("shop.order", "a")
    place.add("shop.order", "b", "--delay", "1h")
    place.drain(place.handler("flaky", "mail", fail="9"),
                flags=["--retry", "none"])
    place.add("mail", "c")
    place.drain(place.handler("flaky", "mail", fail="9"),
                flags=["--retry", "none"])
    place.add("seen", "d")
    place.drain(place.echo("seen"))
    place.ok("pause", "seen")
    server = place.redis()
    server.send("SADD weir:topics gone")  # a name is all that there is of it
    expect(":1", server.line())
    got = scrape(Web(place))
    topic = 'topic="shop.order"'
    expect(1, got["weir_up"])
    expect(3, got["weir_topics"])
    expect(1, got['weir_topic_info{%s,kind="delay"}' % topic])
    expect(1, got["weir_topic_up{%s}" % topic])
    expect([1, 1, 0, 0],
           [got['weir_topic_jobs{%s,state="%s"}' % (topic, state)]
            for state in ["scheduled", "ready", "running", "dead"]])
    expect_true(got["weir_topic_oldest_ready_seconds{%s}" % topic] > 0, "old")
    expect(2, got["weir_topic_added_total{%s}" % topic])
    expect(0, got["weir_topic_relaying{%s}" % topic])
    expect(1, got['weir_topic_jobs{topic="mail",state="dead"}'])
    expect(1, got['weir_topic_outcomes_total{topic="mail",outcome="failed"}'])
    expect(1, got['weir_topic_outcomes_total{topic="seen",outcome="done"}'])
    expect([0, 1], [got['weir_topic_paused{topic="%s"}' % name]
                    for name in ["mail", "seen"]])
    late = [got['weir_topic_lateness_seconds{topic="seen",quantile="%s"}' % q]
            for q in ["0.5", "0.99", "1"]]
    expect(sorted(late), late)
    expect_true('weir_topic_oldest_ready_seconds{topic="seen"}' not in got,
                "nothing is ready")


@test
def a_bounded_topic_has_what_it_gave_up_by_reason(place):
    place.ok("topic", "set", "b", "kind=bounded", "length=1")
    for number in range(3):
        place.weir("add", "b", "--group", "g", "--body", str(number))
    got = scrape(Web(place))
    expect(2, got['weir_topic_dropped_total{topic="b",reason="overflow"}'])
    expect(0, got['weir_topic_dropped_total{topic="b",reason="ttl"}'])


@test
def the_server_has_its_memory_and_its_replicas(place):
    place.add("t", "a")
    web = Web(place)
    server = '{server="unix:%s/redis.sock"}' % place.data
    eventually_has(web, "weir_server_up" + server, 1)
    got = scrape(web)
    expect_true(got["weir_server_memory_bytes" + server] > 1e5, "memory")
    expect([1, 0, 0, 0],
           [got["weir_server_%s%s" % (name, server)] for name in
            ["primary", "replicas", "memory_max_bytes", "evicted_total"]])
    place.ok("server", "stop")
    eventually_has(web, "weir_server_up" + server, 0)
    expect_true("weir_server_memory_bytes" + server not in scrape(web), "gone")


@test
def each_worker_has_what_it_told_last(place):
    place.work(place.echo("t"), flags=["--log-level", "error"])
    web = Web(place)
    eventually_has(web, "weir_workers", 1)
    got = scrape(web)
    of = {name.split("{")[0]: value for name, value in got.items()
          if name.startswith("weir_workers_") and 'worker="' in name}
    expect([1, 1, 0, 0, 0],
           [of["weir_workers_" + name] for name in
            ["connections_total", "topics", "held", "running", "stopping"]])
    expect_true(of["weir_workers_loop_lag_seconds"] >= 0, of)
    expect(1, of["weir_workers_info"])


@test
def a_topic_tells_who_serves_it_and_whose_lease_ended(place):
    place.add("t", "1")
    place.write("conf", 'topic "t" { handler = later lease = 1s options = { '
                '"file=%s" } }\n' % place.path("out"))
    worker = place.work(flags=("--config", place.path("conf")))
    web = Web(place)
    eventually_has(web, 'weir_topic_workers{topic="t"}', 1)
    eventually_has(web, 'weir_topic_jobs{topic="t",state="running"}', 1)
    ended = 'weir_topic_lease_ended_seconds{topic="t"}'
    expect_true(ended not in scrape(web), "its lease lasts")
    kill(worker)
    eventually_has(web, 'weir_topic_workers{topic="t"}', 0)
    eventually(lambda: scrape(web).get(ended, 0) > 0, "its lease ended")


@test
def a_server_that_is_away_is_told_and_what_was_known_stays(place):
    place.add("t", "a")
    web = Web(place)
    eventually_has(web, "weir_up", 1)
    place.ok("server", "stop")
    eventually_has(web, "weir_up", 0)
    got = scrape(web)
    expect(1, got['weir_topic_jobs{topic="t",state="ready"}'])
    stop_cleanly(web.process)


@test
def many_scrapers_cost_what_one_does(place):
    for number in range(20):
        place.add("t%02d" % number, "a")
    web = Web(place)
    scrape(web)
    with concurrent.futures.ThreadPoolExecutor(10) as pool:
        texts = list(pool.map(lambda _: web.get("/metrics").text, range(40)))
    expect(20, texts[0].count("weir_topic_up{"))
    calls = calls_of(place.redis())
    # each round asks for the names, the workers and each topic once, a scrape
    # for the workers; plus what made these
    rounds = calls["sscan"]
    expect_true(rounds < 41, "a round for each of 41 scrapes")
    expect_true(calls["evalsha"] <= 60 + 22 * rounds, calls)


@test
def with_a_token_prometheus_shows_it(place):
    web = Web(place, token=TOKEN)
    expect(401, web.get("/metrics").code)
    expect_in("weir_up 1", web.get("/metrics",
                                   Authorization="Bearer " + TOKEN).text)


@test
def it_ends_while_a_scrape_waits(place):
    place.add("t", "a")
    web = Web(place)
    scrape(web)
    server = place.redis()
    server.send("CLIENT PAUSE 60000 ALL")
    expect("+OK", server.line())
    with web.connect() as peer:
        peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        stop_cleanly(web.process)
        expect_in(b"HTTP/1.1 ", peer.recv(4096))
