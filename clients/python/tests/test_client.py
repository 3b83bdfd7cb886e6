# SPDX-License-Identifier: MIT
"""Jobs that the package adds are jobs as weir's own are."""

import asyncio
import os
import re
import signal
import socketserver

import library
from e2e import BUILD, ROOT, expect, expect_in, expect_true, test
from library import in_thread
from proxy import Proxy
from server import Server

import redis
import weir
import weir.aio
from weir import client as wire


def socket_of(place):
    place.weir("add", "other")  # starts the server
    return os.path.join(place.data, "redis.sock")


def open_client(place, **options):
    return weir.Client(redis.Redis(unix_socket_path=socket_of(place)),
                       **options)


def refused(what, fn, *args, **options):
    try:
        fn(*args, **options)
    except Exception as error:
        expect(what, type(error))
        return str(error)
    raise AssertionError("%r %r: nothing was raised" % (args, options))


@test
def the_scripts_are_those_that_weir_runs(place):
    folder = os.path.join(library.FOLDER, "weir", "scripts")
    names = os.listdir(folder)
    expect(len(wire.SCRIPTS), len(names))
    for name in names:
        kind = "store" if name == "beat.lua" else "delay"
        with open(os.path.join(folder, name), "rb") as ours, \
                open(os.path.join(BUILD, "scripts", kind, name),
                     "rb") as theirs:
            expect(theirs.read(), ours.read(), name)


@test
def its_packs_are_those_of_the_vectors(place):
    path = os.path.join(ROOT, "docs", "wire-vectors.jsonl")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    packs = set(re.findall('"hex": "(573100[0-9a-f]{50,})"', text))
    expect_true(packs, "there are packs")
    for data in map(bytes.fromhex, packs):
        header_len = int.from_bytes(data[5:8], "little")
        records = [wire.record_in(data, slot) for slot in range(data[2] + 1)]
        ids = wire.unpackb(data[8:header_len]) if data[4] else None
        expect((data, header_len), wire.pack_of(records, ids))


@test
def a_job_with_an_id_is_added_once(place):
    client = open_client(place)
    expect(("a", True), client.add("t", {"n": 1}, id="a", retry="15s 3m",
                                   url="http://a/", ttl=60,
                                   headers={"trace": "x"}))
    expect(("a", False), client.add("t", {"n": 2}, id="a"))
    job = place.ok("show", "t", "a")
    expect(("ready", {"n": 1}, "15s 3m", "http://a/", {"trace": "x"}),
           tuple(job[name] for name in
                 ("state", "body", "retry", "url", "headers")))
    expect_in("t", [one["topic"] for one in place.ok("stats")["topics"]])


@test
def a_job_without_an_id_gets_one(place):
    client = open_client(place)
    made = client.add("t", "ä", delay=3600)
    expect(True, made.is_new)
    job = place.ok("show", "t", made.id)
    expect(("scheduled", "ä"), (job["state"], job["body"]))


@test
def packs_have_their_jobs_ids_and_options(place):
    client = open_client(place)
    ids = ["job-%d" % i for i in range(3000)]
    many = client.add_many("t", [{"n": i} for i in range(3000)], ids,
                           retry="1h", headers={"a": "b"})
    expect((ids, [], []), many)
    job = place.ok("show", "t", "job-2999")
    expect(({"n": 2999}, "1h", {"a": "b"}),
           (job["body"], job["retry"], job["headers"]))
    expect(3000, place.stats("t")["ready"])
    again = client.add_many("t", [None] * 3, ["new", "job-7", "job-2999"])
    expect([1, 2], again.exists)
    made = client.add_many("t", list(range(700))).ids
    expect(700, len(set(made)))
    expect(699, place.ok("show", "t", made[699])["body"])


@test
def large_bodies_are_spread_over_packs(place):
    client = open_client(place)
    many = client.add_many("t", [b"x" * 100000] * 9 + [b"y" * 1000000])
    expect(10, place.stats("t")["ready"])
    expect(1000000, len(client.look("t", many.ids[9]).body))


@test
def what_cannot_be_is_refused_and_adds_nothing(place):
    client = open_client(place)
    for args, options in (
            (("a b", 1), {}), (("t", 1), {"id": "{}"}),
            (("t", 1), {"id": "@" + "0" * 14}), (("t", 1), {"retry": "soon"}),
            (("t", 1), {"id": "x", "url": "u" * 2049}),
            (("t", "x" * 1048577), {}), (("t", "x" * 1048577), {"id": "b"})):
        refused(ValueError, client.add, *args, **options)
    expect_in("1 ids for 2 jobs", refused(ValueError, client.add_many, "t",
                                          [1, 2], ["a"]))
    refused(TypeError, client.add_many, "t", [1, object()])
    expect("", client.counts("t")["kind"])


@test
def what_push_takes_is_an_option_of_add(place):
    client = open_client(place)
    first = client.add("t", 1, delay=1000, unique="k", unique_for="1h",
                       retry="1s", ttl=5, url="http://a/", headers={"a": "b"})
    expect(True, first.is_new)
    expect((first.id, False), client.add("t", 1, unique="k"))
    expect(("a", True), client.add("t", 1, id="a", unique="k", delay=1000,
                                   unique_else="debounce", max_wait="1h"))
    expect(None, client.look("t", first.id))
    expect("k", client.look("t", "a").options["unique"])
    made = client.add("t", 1, key="ä", priority="high", retry="1s", ttl=5,
                      url="http://a/", headers={"a": "b"}).id
    expect({"key": "ä", "priority": 2, "retry": "1s", "ttl_ms": 5000,
            "url": "http://a/", "headers": {"a": "b"}},
           client.look("t", made).options)
    place.ok("topic", "set", "t", "max_pending=2")
    refused(weir.Full, client.add, "t", 1, key="k")
    place.ok("topic", "set", "u", "kind=list")
    refused(weir.WrongKind, client.add, "u", 1, key="k")


@test
def an_id_that_comes_twice_is_added_once(place):
    client = open_client(place)
    expect([1, 3], client.add_many("t", [1, 2, 3, 4],
                                   ["a", "a", "b", "a"]).exists)
    expect([1, 3], [client.look("t", one).body for one in "ab"])


@test
def a_push_without_an_id_is_repeated_and_adds_one_job(place):
    proxy = Proxy(socket_of(place))
    client = weir.Client(redis.Redis(port=proxy.port))
    for count in range(1, 450, 15):
        proxy.cut_after(count)
        expect(True, client.add("t", "x" * 30, key="k").is_new)
    expect_true(proxy.cuts > 10, "there were cuts")
    expect(30, client.counts("t")["added"])
    proxy.close()


@test
def numbers_and_bytes_arrive_as_they_were_given(place):
    client = open_client(place)
    body = [(1 << 64) - 1, -(1 << 63), 9007199254740993, 0.1, b"\xff", "ä\0"]
    expect(body, client.look("t", client.add("t", body).id).body)


@test
def the_body_fits_what_the_topic_takes_now(place):
    client = open_client(place)
    client.add("t", 1)
    place.ok("topic", "set", "t", "max_body=2MiB")
    expect(True, client.add("t", "x" * 1048577).is_new)


@test
def what_is_larger_than_the_server_takes_is_refused_soon(place):
    for name in "proto-max-bulk-len", "client-query-buffer-limit":
        server = Server(place, name)
        server.options += ["--" + name, "1048576"]
        server.start()
        plain = redis.Redis(unix_socket_path=server.socket)
        plain.hset("weir:{t}:options", "max_body", "8MiB")
        client = weir.Client(plain)
        client.add("t", 1)
        for options in {}, {"id": "a"}, {"priority": "high"}:
            try:
                client.add("t", "x" * 2000000, **options)
            except (weir.client.Error, redis.ResponseError) as error:
                expect_in("bulk", str(error))
            else:
                raise AssertionError("it was added")
        client.add("t", 2)
        expect(2, client.counts("t")["waiting"])
        server.kill()


@test
def a_body_that_claims_more_than_it_has_is_looked_at_and_deleted(place):
    client = open_client(place)
    bomb = b"\xdd\1\xff\xff\xff" * 60 + b"\xc0"
    made = client.add("t", b"x" * (len(bomb) - 3)).id
    server = redis.Redis(unix_socket_path=socket_of(place))
    key, = server.keys("weir:{t}:p:*")
    server.set(key, server.get(key)[:-len(bomb)] + bomb)
    for call in (client.look, client.delete):
        found = call("t", made)
        expect((None, "ready"), (found.body, found.state))
        expect_true(found.malformed, "it says why")
    expect(None, client.look("t", made))


@test
def the_tick_of_a_schedule_is_not_told_as_deleted(place):
    client = open_client(place)
    place.ok("cron", "add", "c", "--topic", "t", "--every", "1h")
    expect_in("tick of a schedule", refused(weir.Error, client.delete, "t",
                                            "c@next"))


@test
def a_server_that_stopped_is_not_waited_for_beyond_the_timeout(place):
    client, short = open_client(place), {"timeout": 0.05}
    other = open_client(place, **short)
    for one in (client, other):
        one.add("t", 1)
    os.kill(place.server_pid(), signal.SIGSTOP)
    try:
        for call in (lambda: client.add("t", 1, **short),
                     lambda: client.add("t", 1, key="k", **short),
                     lambda: client.look("t", "a", **short),
                     lambda: client.counts("t", **short),
                     lambda: other.add_many("t", [1])):
            expect_in("no answer from the server at unix://",
                      refused(redis.TimeoutError, call))
    finally:
        os.kill(place.server_pid(), signal.SIGCONT)
    expect(True, client.add("t", 1).is_new)


class Forgetful(socketserver.StreamRequestHandler):
    """A server, or a proxy before several, that has no script."""

    def handle(self):
        for line in self.rfile:
            words = []
            for _ in range(int(line[1:])):
                words.append(self.rfile.read(int(self.rfile.readline()[1:])))
                self.rfile.readline()
            self.wfile.write({
                b"EVALSHA": b"-NOSCRIPT No matching script.\r\n",
                b"HGET": b"$-1\r\n", b"SCRIPT": b"+OK\r\n"}.get(
                    words[0], b":1\r\n"))


@test
def a_server_that_has_no_script_after_a_load_is_an_error(place):
    with socketserver.ThreadingUnixStreamServer(place.path("socket"),
                                                Forgetful) as server:
        server.daemon_threads = True
        in_thread(server.serve_forever)
        client = weir.Client(redis.Redis(unix_socket_path=place.path("socket")))
        expect_in("forgets scripts", refused(weir.Error, client.counts, "t"))
        expect_in("forgets scripts", refused(weir.Error, client.add, "t", 1,
                                             key="k"))
        client.close()
        server.shutdown()


@test
def a_full_topic_says_so(place):
    client = open_client(place)
    place.ok("topic", "set", "t", "max_pending=2")
    expect([2, 3], client.add_many("t", [1, 2, 3, 4]).full)
    refused(weir.Full, client.add, "t", 1)
    refused(weir.Full, client.add, "t", 1, id="a")
    expect(2, client.counts("t")["waiting"])


@test
def a_topic_of_another_kind_takes_no_job(place):
    client = open_client(place)
    place.ok("topic", "set", "t", "kind=list")
    expect_in("list", refused(weir.WrongKind, client.add, "t", 1, id="a"))
    refused(weir.WrongKind, client.add_many, "t", [1])


@test
def jobs_are_looked_at_and_deleted(place):
    client = open_client(place)
    place.add("t", "a", "--delay", "1h", "--body", '{"n":1}')
    made = client.add("t", 2).id
    found = client.look("t", "a")
    expect(("scheduled", {"n": 1}, 0), (found.state, found.body,
                                        found.attempt))
    expect("ready", client.delete("t", made).state)
    for gone in (made, "b", "@" + "0" * 14):
        expect(None, client.look("t", gone))
    client.delete("t", "a")
    expect((0, 2), (client.counts("t")["waiting"],
                    client.counts("t")["added"]))


@test
def a_prefix_is_another_project(place):
    client = open_client(place, prefix="shop")
    client.add("t", 1, id="a")
    client.add_many("t", [1, 2])
    expect(3, client.counts("t")["waiting"])
    url = "unix://%s/redis.sock?prefix=shop" % place.data
    expect("ready", place.ok("show", "t", "a", "--redis", url)["state"])


@test
def a_server_that_forgot_its_scripts_gets_them_again(place):
    client = open_client(place)
    client.add("t", 1, id="a")
    redis.Redis(unix_socket_path=socket_of(place)).script_flush()
    client.add("t", 1, id="b")
    client.add_many("t", [1])
    expect(3, client.counts("t")["waiting"])


@test
def answers_that_are_lost_change_nothing(place):
    proxy = Proxy(socket_of(place))
    client = weir.Client(redis.Redis(port=proxy.port))
    added = 0
    for count in list(range(1, 3000, 171)) + list(range(3000, 60000, 4777)):
        proxy.cut_after(count)
        many = client.add_many("t", ["x" * 30] * 1500)
        expect(([], []), many[1:])
        added += 1500
        client.add("t", 1, id="one-%d" % count)
        client.add("t", 1)
        added += 2
        expect(added, client.counts("t")["waiting"], "cut at %d" % count)
    expect_true(proxy.cuts > 20, "there were cuts")
    expect(added, client.counts("t")["added"])
    proxy.close()


@test
def a_server_that_stays_away_is_an_error(place):
    client = open_client(place)
    client.add("t", 1, id="a")
    os.kill(place.server_pid(), signal.SIGKILL)
    wire.PATIENCE = 0.2
    refused(redis.ConnectionError, client.add, "t", 1, id="b")


@test
def a_wrong_password_is_an_error_at_once(place):
    path = socket_of(place)
    redis.Redis(unix_socket_path=path).config_set("requirepass", "y")
    client = weir.Client(redis.Redis(unix_socket_path=path, password="x"))
    wire.PATIENCE = 1e9
    try:
        client.add("t", 1, id="a")
    except redis.RedisError as error:  # of a class that depends on redis-py
        expect_in("invalid username-password", str(error))
    else:
        raise AssertionError("nothing was raised")


@test
def asyncio_does_the_same(place):
    async def use(path):
        client = weir.aio.Client(redis.Redis(unix_socket_path=path))
        expect(("a", True), await client.add("t", 1, id="a"))
        many, one = await asyncio.gather(
            client.add_many("t", list(range(1000)), retry="1h"),
            client.add("t", 1, delay=60))
        expect(1002, (await client.counts("t"))["waiting"])
        expect(999, (await client.look("t", many.ids[999])).body)
        expect("scheduled", (await client.delete("t", one.id)).state)
        expect(None, await client.look("t", one.id))
        await client.close()
    asyncio.run(use(socket_of(place)))
    expect(1001, place.stats("t")["ready"])


@test
def the_rights_of_weir_and_incr_are_enough(place):
    path = socket_of(place)
    server = redis.Redis(unix_socket_path=path)
    rule = place.weir("doctor", "--acl").out.replace("PASSWORD", "pw").split()
    server.execute_command(*rule, "+incr")
    settings = {"unix_socket_path": path, "username": "weir", "password": "pw"}
    client = weir.Client(redis.Redis(**settings))
    client.add_many("t", [1])
    client.add("t", {"again": True}, id="a", retry="1ms")
    client.delete("t", client.add("t", 3, delay=60).id)
    ran = []

    def handle(job):
        ran.append(job.attempt)
        if job.body == {"again": True} and job.attempt == 1:
            raise weir.Retry("once")
        if len(ran) == 3:
            worker.stop()

    worker = weir.Worker(redis.Redis(**settings), {"t": handle})
    worker.run()
    expect([1, 1, 2], sorted(ran))
    expect([], [entry["object"] for entry in server.acl_log()
                if not entry["object"].startswith("client|")])
