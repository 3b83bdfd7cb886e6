# SPDX-License-Identifier: MIT
"""Two projects on one server, told apart by prefix= in their addresses."""

import os

from e2e import (BUILD, eventually, expect, expect_in, expect_true,
                 stop_cleanly, test)
from redis_server import Server, refused, use_good_plugins
from resp import Client

KINDS = ("delay", "bounded", "sync", "concurrent", "list", "stream")
BURYING = ("delay", "list", "stream")
LONGEST = "P" * 32


class Project:
    """Topics of each kind, with the kind's name. The list is a key of its own;
    the stream is one for all projects."""

    def __init__(self, place, server, prefix):
        self.place, self.prefix = place, prefix
        parameter = "" if prefix == "weir" else "?prefix=" + prefix
        self.env = {"WEIR_REDIS": server.url + parameter}
        self.conf = self.write("plain", lambda kind: self.echo(kind))

    def echo(self, kind):
        return 'handler = echo  options = "file=%s"' % self.place.path(
            "%s.%s" % (self.prefix, kind))

    def write(self, name, more, kinds=KINDS):
        """A file that serves these kinds."""
        keys = {"list": "key = all.list.%s" % self.prefix,
                "stream": "key = all.stream", "sync": "delay = 0ms",
                "concurrent": "delay = 0ms"}
        name = "%s.%s.conf" % (self.prefix, name)
        return self.place.write(name, "worker { name = w1 }\n" + "".join(
            "topic %s { kind = %s  %s  %s }\n" % (
                kind, kind, keys.get(kind, ""), more(kind))
            for kind in kinds))

    def ok(self, *args):
        self.place.env.update(self.env)
        return self.place.ok(*args)

    def make(self):
        for kind in KINDS:
            self.ok("topic", "set", kind, "kind=" + kind)
        self.ok("topic", "set", "sync", "delay=0ms")
        self.ok("topic", "set", "concurrent", "delay=0ms")
        self.ok("topic", "set", "list", "key=all.list." + self.prefix)
        self.ok("topic", "set", "stream", "key=all.stream", "start=0")

    def add(self, kind, *args):
        group = ("--group", "g") if kind == "bounded" else ()
        self.ok("add", kind, "--body", '"%s"' % self.prefix, *group, *args)

    def work(self, conf=None):
        """A worker whose name another project's has as well."""
        self.place.env.update(self.env)
        return self.place.start("run", "--config", conf or self.conf)

    def drain(self, conf=None):
        self.place.env.update(self.env)
        result = self.place.weir("run", "--until-empty", "--config",
                                 conf or self.conf)
        expect(0, result.code, result.err)

    def ran(self, kind):
        return [line["body"] for line in self.place.lines(
            "%s.%s" % (self.prefix, kind))]

    def totals(self, kind):
        stats = self.ok("stats", kind)["topics"][0]
        return [stats[name] for name in ("added_total", "done_total", "ready",
                                         "dead")]


def two(place, *prefixes):
    use_good_plugins(place)
    server = Server(place)
    projects = [Project(place, server, prefix) for prefix in prefixes]
    for project in projects:
        project.make()
    return server, projects


def expect_only(server, *prefixes):
    """Keys are those of these projects, and the user's."""
    for key in Client(server.path)("KEYS", "*"):
        head = key.decode().split(":")[0]
        expect_true(head in prefixes or head.startswith("all."), key)


def messages(listener, count):
    """So many channels and topics."""
    return [tuple(part.decode() for part in listener.reply()[2:])
            for _ in range(count)]


@test
def an_add_wakes_workers_of_its_project_alone(place):
    server, (ours, theirs) = two(place, "weir", "orders")
    workers = [ours.work(), theirs.work()]
    redis = Client(server.path)
    listener = Client(server.path)
    expect([b"psubscribe", b"*", 1], listener("PSUBSCRIBE", "*"))
    for project in (theirs, ours):
        for kind in ("delay", "bounded", "sync", "concurrent"):
            idle = "%s:{%s}:idle" % (project.prefix, kind)
            eventually(lambda: redis("ZCARD", idle), "%s sleeps" % idle)
            project.add(kind)
            eventually(lambda: project.ran(kind) == [project.prefix], kind)
            expect([(project.prefix + ":wake:w1", kind)],
                   [(channel, topic.split()[0])
                    for channel, topic in messages(listener, 1)])
        project.add("list")
        eventually(lambda: project.ran("list") == [project.prefix], "a list")
    for worker in workers:
        stop_cleanly(worker)
    for project in (ours, theirs):
        for kind in KINDS[:-1]:
            expect([1, 1, 0, 0], project.totals(kind))
    expect_only(server, "weir", "orders")


@test
def each_project_gets_every_entry_of_one_stream(place):
    server, (ours, theirs) = two(place, "weir", "orders")
    ours.add("stream")
    theirs.add("stream")
    for project in (ours, theirs):
        project.drain()
        expect(["weir", "orders"], project.ran("stream"))
    names = [group[1] for group in
             Client(server.path)("XINFO", "GROUPS", "all.stream")]
    expect([b"orders", b"weir"], sorted(names))


@test
def what_one_project_does_is_not_seen_by_the_other(place):
    server, (ours, theirs) = two(place, "weir", "orders")
    for kind in KINDS[:-1]:
        for project in (ours, theirs):
            project.add(kind)
            project.add(kind)
        ours.ok("pause", kind)
        expect([2, 0, 2, 0], theirs.totals(kind))
        ours.ok("purge", kind, "--yes")
        expect(2, len(theirs.ok("list", kind, "--state", "ready")))
        expect([], ours.ok("list", kind, "--state", "ready"))
    theirs.drain()
    for kind in KINDS[:-1]:
        expect([2, 2, 0, 0], theirs.totals(kind))
        expect(0, ours.totals(kind)[1])
    theirs.add("delay", "--id", "a", "--delay", "1h")
    ours.add("delay", "--id", "a", "--delay", "1h")
    theirs.ok("delete", "delay", "a")
    ours.ok("reschedule", "delay", "a", "--delay", "2h")
    theirs.ok("add", "more")
    expect_true("more" not in ours.ok("topic", "list")["topics"], "a topic")
    expect_in("more", theirs.ok("topic", "list")["topics"])
    expect_only(server, "weir", "orders")


@test
def jobs_that_die_and_move_stay_in_the_project(place):
    server, (ours, theirs) = two(place, "weir", LONGEST)
    fails = 'handler = flaky  options = "fail=9"  retry = none  '
    dead = theirs.write("dead", lambda kind: fails, BURYING)
    moved = theirs.write("moved", lambda kind: fails + "on_dead = gone",
                         BURYING)
    for kind in BURYING:
        theirs.add(kind)
    theirs.drain(dead)
    for kind in BURYING:
        found = theirs.ok("dead", "list", kind)
        expect(1, len(found))
        theirs.ok("dead", "requeue", kind, found[0]["id"])
    theirs.drain(moved)
    expect(3, theirs.totals("gone")[0])
    expect_true("gone" not in ours.ok("topic", "list")["topics"], "a topic")
    expect_only(server, "weir", LONGEST)


@test
def what_times_out_while_the_loop_is_held_stays_in_the_project(place):
    server, (shop,) = two(place, "orders")
    trace = os.path.abspath(os.path.join(BUILD, "tests/plugins/trace.so"))
    conf = shop.write("held", lambda kind: (
        'handler = "%s"  options = { "file=%s", "ms=3000" }  retry = none  '
        "timeout = 100ms  on_dead = gone" % (trace, place.path("trace"))),
        ("delay",))
    redis = Client(server.path)
    shop.add("delay")
    worker = shop.work(conf)
    eventually(lambda: redis("HLEN", "orders:{delay}:relay"), "the keeper wrote")
    eventually(lambda: redis("SISMEMBER", "orders:topics", "gone"), "a topic")
    eventually(lambda: redis("EXISTS", "orders:{gone}:wait"), "it moved")
    stop_cleanly(worker)
    expect_only(server, "orders")


@test
def the_longest_names_fit(place):
    server, (shop,) = two(place, LONGEST)
    topic = "t" * 40
    shop.ok("topic", "set", topic, "kind=bounded")
    shop.ok("add", topic, "--group", "g" * 128, "--id", "i" * 128)
    conf = place.write("long.conf", "worker { name = %s }\n"
                       "topic %s { handler = echo }\n" % ("w" * 40, topic))
    shop.drain(conf)
    expect([1, 1, 0, 0], shop.totals(topic))
    expect_only(server, LONGEST)


@test
def the_doctor_names_the_prefix_and_looks_at_its_rights(place):
    server, (shop,) = two(place, "orders")
    place.env.update(shop.env)
    rule = place.weir("doctor", "--acl").out
    expect_in(" ~orders:* &orders:wake:* -@all ", rule)
    admin = server.guard(rule)
    place.env["WEIR_REDIS"] = server.url_of("weir:pw") + "?prefix=orders"
    found = {line["check"]: line for line in place.ok("doctor")}
    expect_in("?prefix=orders", found["connection"]["text"])
    expect("ok", found["rights"]["status"])
    place.ok("add", "t")
    place.drain("t=echo")
    expect([], refused(admin))
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    result = place.weir("doctor")
    expect_in("may not use keys or channels weir:*; ACL SETUSER with ~weir:* "
              "&weir:wake:*", result.out)
    expect_in("NOPERM", place.weir("add", "t").err)
