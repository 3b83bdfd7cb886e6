# SPDX-License-Identifier: MIT
"""The rule that weir doctor --acl prints: with it all works, and no more."""

from e2e import eventually, expect, expect_in, expect_true, stop_cleanly, test
from redis_server import Server, guard, refused, use_good_plugins
from resp import Client, ReplyError
from sentinel import NAME, Sentinel

KINDS = ("delay", "bounded", "sync", "concurrent", "list", "stream")
BURYING = ("delay", "list", "stream")


def write_conf(place, name, handler, *kinds, more=""):
    """Topics of these kinds, each with the kind's name."""
    return place.write(name, "".join(
        "topic %s { kind = %s  handler = %s  %s }\n"
        % (kind, kind, handler, more) for kind in kinds))


def guarded(place, conf):
    """A server that lets in who has the rights for this file and nobody else.
    """
    use_good_plugins(place)
    server = Server(place)
    rule = place.ok("doctor", "--acl", "--config", conf)["acl"]
    admin = server.guard(rule)
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    return server, admin


def add(place, kind, *args):
    group = ("--group", "g") if kind == "bounded" else ()
    place.ok("add", kind, "--body", "1", *group, *args)


def work_off(place, conf):
    result = place.weir("run", "--until-empty", "--config", conf)
    expect(0, result.code, result.err)
    expect_true("NOPERM" not in result.err, result.err)


def look_at(place, kind):
    for state in ("ready", "running", "scheduled"):
        place.ok("list", kind, "--state", state)
    place.ok("stats", kind)
    place.ok("topic", "show", kind)


@test
def every_kind_works_with_the_rule_for_its_file(place):
    conf = write_conf(place, "good.conf", "echo", *KINDS)
    server, admin = guarded(place, conf)
    for kind in KINDS:
        place.ok("topic", "set", kind, "kind=" + kind)
        add(place, kind)
        place.ok("pause", kind)
        place.ok("resume", kind)
        look_at(place, kind)
    expect(len(KINDS), len(place.ok("topic", "list")["topics"]))
    work_off(place, conf)
    for kind in KINDS:
        place.expect_stats(kind, done_total=1)
        add(place, kind)
        place.ok("purge", kind, "--yes")
    place.add("delay", "a", "--delay", "1h")
    place.ok("reschedule", "delay", "a", "--delay", "2h")
    place.ok("show", "delay", "a")
    place.ok("delete", "delay", "a")
    for kind in KINDS:
        place.ok("topic", "delete", kind)
    expect([], refused(admin))


@test
def jobs_that_die_or_go_elsewhere_do_so_with_the_rule(place):
    flaky = 'flaky  options = "fail=1000"  retry = %s'
    conf = write_conf(place, "bad.conf", flaky % "1ms", *BURYING)
    server, admin = guarded(place, conf)
    moved = write_conf(place, "moved.conf", flaky % "1ms", *BURYING,
                       more="on_dead = gone")
    for kind in BURYING:
        place.ok("topic", "set", kind, "kind=" + kind)
        add(place, kind)
        add(place, kind)
    work_off(place, conf)
    for kind in BURYING:
        dead = place.ok("dead", "list", kind)
        expect(2, len(dead))
        place.ok("dead", "requeue", kind, dead[0]["id"])
        place.ok("dead", "purge", kind, "--all")
    work_off(place, moved)
    place.expect_stats("gone", added_total=3)
    expect([], refused(admin))


@test
def a_worker_that_waits_is_woken_with_the_rule(place):
    conf = write_conf(place, "good.conf", "echo", *KINDS)
    server, admin = guarded(place, conf)
    worker = place.start("run", "--config", conf)
    for turn in range(1, 3):
        for kind in KINDS:
            add(place, kind)
            eventually(lambda: place.stats(kind)["done_total"] == turn, kind)
    expect([], refused(admin))
    stop_cleanly(worker)


@test
def the_rule_of_one_topic_is_enough_for_it_and_for_no_other(place):
    use_good_plugins(place)
    server = Server(place)
    rule = place.ok("doctor", "--acl", "t")["acl"]
    admin = server.guard(rule)
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    conf = place.write("t.conf", "topic t { handler = echo }\n")
    worker = place.start("run", "--config", conf)
    place.add("t", "a")
    place.ok("cron", "add", "s", "--topic", "t", "--every", "1s")
    eventually(lambda: place.stats("t")["done_total"] >= 2, "both ran")
    place.ok("cron", "list", "--topic", "t")
    place.ok("cron", "delete", "s", "--topic", "t")
    eventually(lambda: place.ok("workers"), "it is seen")
    place.add("t", "b", "--delay", "1h")
    place.ok("list", "t", "--state", "scheduled")
    place.ok("show", "t", "b")
    place.ok("delete", "t", "b")
    place.ok("topic", "set", "t", "max_pending=5")
    stop_cleanly(worker)
    expect([], refused(admin))
    for line in (["add", "other", "--body", "1"], ["stats", "other"],
                 ["list", "other"], ["cron", "list", "--topic", "other"]):
        place.weir(*line).expect_complaint(
            1, "NOPERM", "weir:{other}:*", "weir doctor --acl other")
    admin("ACL", "SETUSER", "weir", "-hset")
    place.weir("add", "t", "--id", "c").expect_complaint(
        1, "weir:{t}:*", "weir doctor --acl t")
    admin("ACL", "SETUSER", "weir", "-evalsha")
    place.weir("stats", "t").expect_complaint(1, "evalsha", "--acl t")
    place.weir("doctor", "t").expect_complaint(2, "--acl")
    place.weir("doctor", "--acl", "a b").expect_complaint(2, "topic")


@test
def what_weir_does_not_need_is_refused(place):
    conf = place.write("one.conf", 'topic t { kind = list  key = "a[1]*"  '
                                   "handler = echo }\n")
    server, admin = guarded(place, conf)
    mine = Client(server.path)
    mine("AUTH", "weir", "pw")
    for line in ("GET other", "SET a1 x", "LPUSH a[1]x 1", "FLUSHALL",
                 "KEYS *", "CONFIG GET requirepass", "ACL LIST", "EVAL x 0",
                 "XADD weir:x * a b", "SUBSCRIBE other", "PUBLISH weir:x x",
                 "CLIENT LIST", "SHUTDOWN", "SCRIPT FLUSH"):
        try:
            expect("NOPERM", mine(*line.split()), line)
        except ReplyError as refusal:
            expect_in("NOPERM", str(refusal))
    expect(1, mine("LPUSH", "a[1]*", "1"))


@test
def behind_a_sentinel_both_rules_are_enough(place):
    use_good_plugins(place)
    server = Server(place)
    sentinel = Sentinel(place, "sentinel", server, 30000)
    eventually(sentinel.primary, "it answers")
    place.env["WEIR_REDIS"] = (
        "redis+sentinel://ann:pw@127.0.0.1:%d/%s?sentinel_user=bob"
        "&sentinel_password=pw" % (sentinel.port, NAME))
    rules = place.weir("doctor", "--acl").out.splitlines()
    expect([["ACL", "SETUSER", "ann"], ["ACL", "SETUSER", "bob"]],
           [rule.split()[:3] for rule in rules])
    admins = [server.guard(rules[0]), guard(sentinel.path, rules[1])]
    worker = place.work(place.echo())
    for turn in range(2):
        place.ok("add", "t")
        eventually(lambda: len(place.lines("out")) > turn, "it ran")
    place.weir("doctor")
    eventually(lambda: b" sub=1 " in admins[1]("CLIENT", "LIST"), "it listens")
    for admin in admins:
        expect([], refused(admin))
    stop_cleanly(worker)


@test
def the_rule_has_the_user_of_the_address(place):
    rule = place.weir("doctor", "--acl", "--redis",
                      "redis://ann:secret@10.0.0.1:1").out
    expect_in("ACL SETUSER ann on >PASSWORD ", rule)
    expect_true("secret" not in rule and rule.count("\n") == 1, rule)


@test
def a_name_that_cannot_stand_in_a_rule_is_refused(place):
    conf = place.write("one.conf", 'topic t { kind = list  key = "a b"  '
                                   "handler = echo }\n")
    place.weir("doctor", "--acl", "--config", conf).expect_complaint(
        2, 'the key "a b"', "by hand")
    place.weir("doctor", "--acl", "--redis",
               "redis://a%20b:p@127.0.0.1").expect_complaint(2, 'user "a b"')


@test
def who_may_serve_lists_alone_is_told(place):
    conf = write_conf(place, "list.conf", "echo", "list")
    server, admin = guarded(place, conf)
    result = place.weir("doctor")
    expect_in("is allowed, but for kind stream\n", result.out)
    admin("ACL", "SETUSER", "weir", "+xack")
    result = place.weir("doctor")
    expect(1, result.code)
    expect_in("may not run XADD, XDEL, ", result.out)
