# SPDX-License-Identifier: MIT
"""Adds that end when replicas or disks have the job."""

from e2e import communicate, eventually, expect, expect_in, expect_true, test
from redis_server import Server, guard, refused
from resp import Client, ReplyError


def pair(place, parameter=""):
    """A primary that weir uses and its replica."""
    primary = Server(place, name="primary")
    replica = Server(place, "--replicaof", "127.0.0.1", str(primary.port),
                     name="replica")
    info = Client(replica.path)
    eventually(lambda: b"master_link_status:up" in info("INFO", "replication"),
               "the replica follows")
    place.env["WEIR_REDIS"] = primary.url + parameter
    return primary, replica


def has_waitaof(server):
    try:
        Client(server.path)("WAITAOF", 0, 0, 1)
        return True
    except ReplyError:
        return False


@test
def an_add_that_a_replica_confirms_is_there(place):
    _, replica = pair(place, "?prefix=shop")
    expect("replica", place.ok("topic", "set", "t", "durability=replica")
           ["options"]["durability"])
    place.ok("add", "t", "--id", "a")
    client = Client(replica.path)
    expect(1, client("HEXISTS", "shop:{t}:ids", "a"))
    place.ok("topic", "set", "b", "kind=bounded", "durability=replica:1")
    place.ok("add", "b", "--group", "g")
    expect(1, client("LLEN", "shop:{b}:g:g"))
    place.ok("add", "u", "--id", "a", "--durability", "replica:1")
    expect(1, client("HEXISTS", "shop:{u}:ids", "a"))
    key = ("--unique", "k", "--durability", "replica:1")
    holder = place.ok("add", "u", *key)["id"]
    expect(1, client("HEXISTS", "shop:{u}:ids", holder))
    expect_in(holder, place.weir("add", "u", *key).err)
    lines = '{"id":"b","durability":"replica"}\n{"id":"c"}\n'
    expect({"added": 2, "existing": 0, "refused": 0},
           place.ok("add", "u", "--jsonl", "-", stdin=lines))
    expect(1, client("HEXISTS", "shop:{u}:ids", "b"))


@test
def an_add_that_no_replica_confirms_says_so_and_prints_its_id(place):
    pair(place)
    lines = place.write("lines", '{"id":"c","durability":"replica:2"}\n'
                                 '{"id":"d","durability":"server"}\n')
    many = place.start("add", "m", "--jsonl", lines)
    one = place.start("add", "t", "--id", "a", "--durability", "replica:2")
    made = place.weir("add", "t", "--durability", "replica:3")
    expect(1, made.code, made.err)
    expect_in("@", made.out)
    expect(["weir: t: added, but on 1 of 3 replicas"], made.sentences)
    out, err = communicate(one)
    expect(1, one.returncode, err)
    expect("a\n", out)
    expect("weir: t: added, but on 1 of 2 replicas\n", err)
    out, err = communicate(many)
    expect(1, many.returncode, err)
    expect("added 2, existing 0, refused 0\n", out)
    expect("weir: 1 of these were added, but not confirmed: "
           "m: added, but on 1 of 2 replicas\n", err)
    place.expect_stats("t", ready=2)
    place.expect_stats("m", ready=2)


@test
def what_is_no_durability_is_refused(place):
    server = Server(place)
    place.env["WEIR_REDIS"] = server.url
    for value in ("replica:0", "replica:x", "fsync:-1", "none", ""):
        place.weir("add", "t", "--durability", value).expect_complaint(
            2, '--durability: "%s" is none of these: write server, replica, '
               "replica:1 to replica:99, fsync, or fsync:0 to fsync:99" % value)
        if value:
            place.weir("topic", "set", "t", "durability=" + value) \
                .expect_complaint(2, 'durability: "%s" is none of' % value)
    result = place.weir("add", "t", "--jsonl", "-",
                        stdin='{"id":"a","durability":"often"}\n')
    expect(1, result.code)
    expect_in('stdin:1: durability: "often" is none of these', result.err)
    for kind in ("list", "stream", "sync", "concurrent"):
        place.ok("topic", "set", kind, "kind=" + kind)
        place.weir("topic", "set", kind, "durability=replica") \
            .expect_complaint(2, "durability: a topic of kind %s has no such "
                                 "option: only one of kind delay or bounded "
                                 "has" % kind)
        place.weir("add", kind, "--durability", "replica").expect_complaint(
            2, "topic %s is of kind %s: its jobs have no durability"
            % (kind, kind))
    expect(0, Client(server.path)("EXISTS", "weir:{t}:wait"))


@test
def a_server_that_cannot_confirm_gets_nothing(place):
    server = Server(place)
    place.env["WEIR_REDIS"] = server.url
    why = "set appendonly yes" if has_waitaof(server) else "Redis from 7.2"
    place.weir("add", "t", "--durability", "fsync").expect_complaint(
        2, "add: durability=fsync cannot be had, nothing was added: ", why)
    lines = place.weir("add", "t", "--jsonl", "-",
                       stdin='{"durability":"fsync:0"}\n')
    expect(2, lines.code, lines.err)
    expect("added 0, existing 0, refused 1\n", lines.out)
    expect_in(why, lines.err)
    expect(0, Client(server.path)("EXISTS", "weir:{t}:wait"))


@test
def a_disk_confirms_where_the_server_knows_how(place):
    server = Server(place, "--appendonly", "yes")
    place.env["WEIR_REDIS"] = server.url
    result = place.weir("add", "t", "--id", "a", "--durability", "fsync")
    is_known = has_waitaof(server)
    expect(0 if is_known else 2, result.code, result.err)
    expect("a\n" if is_known else "", result.out)
    server.kill()
    server.start()
    expect(is_known, bool(Client(server.path)("EXISTS", "weir:{t}:wait")))


@test
def the_rule_of_least_rights_confirms_replicas(place):
    primary, _ = pair(place)
    rule = place.ok("doctor", "--acl")["acl"]
    expect_true("waitaof" not in rule, rule)
    admin = guard(primary.path, rule)
    place.env["WEIR_REDIS"] = primary.url_of("weir:pw")
    place.ok("add", "t", "--durability", "replica")
    expect([], refused(admin))
    admin("ACL", "SETUSER", "weir", "-wait")
    place.weir("add", "t", "--durability", "replica").expect_complaint(
        2, "nothing was added: the user may not: allow it +wait")


@test
def a_worker_says_that_it_does_not_look_at_durability(place):
    place.env["WEIR_REDIS"] = Server(place).url
    conf = place.write("w.conf", "topic t {\n handler = echo\n options = "
                       '"file=%s"\n durability = "fsync:1"\n}\n'
                       % place.path("out"))
    result = place.weir("run", "--config", conf, "--until-empty")
    expect(0, result.code, result.err)
    expect_in(":4: durability is not looked at by weir run; store it with the "
              "topic: weir topic set t durability=fsync:1", result.err)
