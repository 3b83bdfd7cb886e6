# SPDX-License-Identifier: MIT
"""What weir doctor says of sentinels and replicas."""

from e2e import eventually, expect, expect_in, expect_true, test
from redis_server import Server, guard, use_good_plugins
from sentinel import NAME, Fake, Sentinel, Trio, ask


def look(place, *args):
    """Exit code and findings by check."""
    use_good_plugins(place)
    result = place.weir("doctor", "--json", *args)
    return result.code, {line["check"]: line for line in result.json}


def expect_line(found, check, status, *words):
    line = found[check]
    expect(status, line["status"], "%s: %r" % (check, line))
    for word in words:
        expect_in(word, line["text"] + "; " + line["advice"])
    expect(status == "ok", line["advice"] == "", "%r" % line)


@test
def sentinels_that_agree_and_have_their_quorum_are_in_order(place):
    trio = Trio(place)
    code, found = look(place)
    expect(0, code)
    expect_line(found, "sentinels", "ok",
                "3 of 3 name 127.0.0.1:%d" % trio.servers[0].port)
    expect_line(found, "quorum", "ok", "3 usable Sentinels")


@test
def a_sentinel_that_names_another_primary_fails(place):
    trio, other = Trio(place), Server(place)
    last = trio.sentinels[2]
    expect("OK", ask(last.path, "SENTINEL", "REMOVE", NAME))
    expect("OK", ask(last.path, "SENTINEL", "MONITOR", NAME, "127.0.0.1",
                     str(other.port), "1"))
    code, found = look(place)
    expect(1, code)
    expect_line(found, "sentinels", "failed",
                "127.0.0.1:%d names 127.0.0.1:%d, 127.0.0.1:%d names "
                "127.0.0.1:%d" % (trio.sentinels[0].port, trio.servers[0].port,
                                  last.port, other.port),
                "SENTINEL REMOVE orders")
    expect_line(found, "connection", "ok")


@test
def two_of_three_sentinels_away_are_no_quorum(place):
    trio = Trio(place)
    for one in trio.sentinels[:2]:
        one.process.kill()
    ask(trio.sentinels[2].path, "SENTINEL", "SET", NAME,
        "down-after-milliseconds", "1000")  # of sentinels, too
    eventually(lambda: look(place)[1]["quorum"]["status"] != "ok",
               "the last one notices")
    code, found = look(place)
    expect(1, code)
    expect_line(found, "sentinels", "warning",
                "1 of 3 names 127.0.0.1:%d" % trio.servers[0].port,
                "127.0.0.1:%d: Connection refused" % trio.sentinels[1].port,
                "start it")
    expect_line(found, "quorum", "failed",
                "127.0.0.1:%d: NOQUORUM" % trio.sentinels[2].port,
                "start sentinels")
    expect_line(found, "connection", "ok")


@test
def sentinels_that_know_no_such_name_are_told(place):
    server = Server(place)
    fakes = [Fake(server.port), Fake()]
    url = "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d/%s" % (
        fakes[0].port, fakes[1].port, NAME)
    code, found = look(place, "--redis", url)
    expect(0, code)
    expect_line(found, "sentinels", "warning", "1 of 2 names 127.0.0.1:",
                "127.0.0.1:%d: it knows no primary named orders"
                % fakes[1].port)
    fakes[0].primary = None
    code, found = look(place, "--redis", url)
    expect(2, code)
    expect_line(found, "sentinels", "failed", "0 of 2 name a primary")
    expect_line(found, "connection", "failed",
                "no sentinel knows a primary named orders", "the name")


@test
def sentinels_that_are_all_away_are_exit_5(place):
    use_good_plugins(place)
    code, found = look(place, "--redis", "redis+sentinel://127.0.0.1:1/x")
    expect(5, code)
    expect_line(found, "sentinels", "failed", "0 of 1 name a primary",
                "127.0.0.1:1: Connection refused")
    expect_line(found, "connection", "failed", "no sentinel answers")
    expect_true("quorum" not in found, "nothing that cannot be known")


@test
def a_sentinel_that_may_not_tell_its_quorum_is_a_warning(place):
    server = Server(place)
    sentinel = Sentinel(place, "sentinel", server, 30000)
    eventually(sentinel.primary, "it answers")
    url = ("redis+sentinel://127.0.0.1:%d/%s?sentinel_user=bob"
           "&sentinel_password=pw" % (sentinel.port, NAME))
    rule = place.ok("doctor", "--acl", "--redis", url)["sentinel_acl"]
    guard(sentinel.path, rule.replace(" +sentinel|ckquorum", ""))
    code, found = look(place, "--redis", url)
    expect(0, code)
    expect_line(found, "sentinels", "ok", "1 of 1 names")
    expect_line(found, "quorum", "warning", "NOPERM", "+sentinel|ckquorum")
    expect_line(found, "replication", "warning", "0 replicas connected",
                "min-replicas-to-write 1")


@test
def a_primary_that_needs_no_replica_to_write_is_a_warning(place):
    trio = Trio(place)
    for url in (trio.url, trio.servers[0].url):
        expect_line(look(place, "--redis", url)[1], "replication", "warning",
                    "primary, 1 replica connected, 0 needed to write",
                    "min-replicas-to-write 1", "min-replicas-max-lag 2")
    trio.servers[0].tell("CONFIG SET min-replicas-to-write 1")
    eventually(lambda: look(place)[1]["replication"]["status"] == "ok",
               "its replica counts")
