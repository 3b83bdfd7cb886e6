# SPDX-License-Identifier: MIT
"""Sentinels that are as wrong as they can be."""

import time

from e2e import (await_line, eventually, expect, expect_in, expect_true,
                 stop_cleanly, test)
from patience import Stopwatch
from redis_server import Server, use_good_plugins
from sentinel import NAME, Fake, ask, calls, clients, ids, ran

KINDS = ("delay", "bounded", "list", "stream", "sync", "concurrent")


def fake_url(*fakes, query=""):
    return "redis+sentinel://%s/%s%s" % (
        ",".join("127.0.0.1:%d" % one.port for one in fakes), NAME, query)


def use_fakes(place, *fakes, **args):
    use_good_plugins(place)
    place.env["WEIR_REDIS"] = fake_url(*fakes, **args)


@test
def a_name_that_no_sentinel_knows_is_a_mistake(place):
    server = Server(place)
    use_fakes(place, Fake(), Fake())
    words = ("no sentinel knows a primary named " + NAME,)
    place.weir("add", "t").expect_complaint(2, *words)
    place.weir("stats").expect_complaint(2, *words)
    result = place.weir("run", "--handle", "t=echo")
    expect(2, result.code)
    expect_in(words[0], result.sentences[-1])
    use_fakes(place, Fake(), Fake(server.port))
    place.add("t", "1")


@test
def a_worker_waits_while_sentinels_have_forgotten_the_name(place):
    server, fake = Server(place), Fake()
    fake.primary = server.port
    use_fakes(place, fake)
    worker = place.work(place.echo())
    place.add("t", "0")
    ran(place, "0")
    fake.primary = None
    server.tell("CLIENT KILL TYPE normal")
    await_line(worker, "no sentinel knows a primary named " + NAME)
    fake.primary = server.port
    place.add("t", "1")
    ran(place, "1")
    stop_cleanly(worker)


@test
def who_answered_is_asked_first_the_next_time(place):
    server = Server(place)
    mute, good = Fake(server.port), Fake(server.port)
    mute.is_silent = True
    use_fakes(place, mute, good)
    worker = place.work(place.echo())
    place.add("t", "1")
    ran(place, "1")
    before = len(mute.questions())
    expect_true(before > 0, "it was asked")
    server.tell("CLIENT KILL TYPE normal")
    asked = len(good.questions())
    eventually(lambda: len(good.questions()) > asked, "it is asked")
    eventually(lambda: clients(server), "it is back")
    expect(before, len(mute.questions()))
    stop_cleanly(worker)


@test
def a_replica_that_is_named_is_asked_again_until_it_is_a_primary(place):
    server = Server(place, "--replicaof", "127.0.0.1", "1")
    fake = Fake(server.port)
    use_fakes(place, fake)
    place.weir("stats").expect_complaint(5, "it is no primary")
    worker = place.work(place.echo())
    before = calls(server, "role")
    eventually(lambda: calls(server, "role") > before + 3, "it is asked again")
    expect(0, calls(server))
    server.tell("REPLICAOF NO ONE")
    place.add("t", "1")
    ran(place, "1")
    stop_cleanly(worker)


def commands_a_second(fakes, server):
    """From the one process to sentinels and the server. A busy machine makes it
    fewer. An answer of the server counts its own question."""
    def heard():
        return sum(len(one.heard) for one in fakes) + total(server)
    watch, before = Stopwatch(), heard()
    time.sleep(2)  # time is the subject
    return (heard() - before - 1) / watch.seconds()


def total(server):
    """Commands that a server got; 0: it is away."""
    told = ask(server.path, "INFO", "stats")
    if not told:
        return 0
    return int(told.decode().partition(
        "total_commands_processed:")[2].split()[0])


@test
def a_worker_without_a_primary_sends_less_than_20_commands_a_second(place):
    server = Server(place)
    fakes = [Fake(server.port), Fake(server.port)]
    use_fakes(place, *fakes)
    for kind in KINDS:
        place.ok("topic", "set", kind, "kind=" + kind)
    worker = place.work(*(place.echo(kind, kind) for kind in KINDS))
    eventually(lambda: len(clients(server)) >= 6, "it is connected")
    server.tell("REPLICAOF 127.0.0.1 1")
    server.tell("CLIENT KILL TYPE normal")
    rate = commands_a_second(fakes, server)
    server.tell("REPLICAOF NO ONE")
    print("commands in a second with a replica: %g" % rate)
    expect_true(rate < 20, "%g commands in a second" % rate)
    place.add("delay", "0")
    ran(place, "0", "delay")
    server.kill()
    rate = commands_a_second(fakes, server)
    print("commands in a second without a primary: %g" % rate)
    expect_true(rate < 20, "%g commands in a second" % rate)
    server.start()
    place.add("delay", "1")
    ran(place, "1", "delay")
    stop_cleanly(worker)


@test
def every_connection_leaves_a_primary_that_was_replaced(place):
    old, new = Server(place, name="a"), Server(place, name="b")
    first, second = Fake(old.port), Fake(old.port)
    use_fakes(place, first, second)
    for kind in KINDS:
        place.ok("topic", "set", kind, "kind=" + kind)
    worker = place.work(*(place.echo(kind, kind) for kind in KINDS))
    eventually(lambda: len(clients(old)) >= 6, "it is connected")
    eventually(lambda: second.ears, "it listens")
    second.say_switch(old.port, new.port)
    eventually(lambda: not clients(old) and len(clients(new)) >= 6, "it moves")
    second.is_silent = True  # the other one has not heard of it
    before = len(first.questions())
    new.tell("CLIENT KILL TYPE normal")
    eventually(lambda: len(first.questions()) > before, "it is asked")
    expect([], clients(old))
    first.primary = new.port
    eventually(lambda: clients(new), "it is back")
    place.ok("topic", "set", "delay", "kind=delay")
    place.add("delay", "1")
    ran(place, "1", "delay")
    stop_cleanly(worker)


@test
def a_switch_that_nobody_told_of_is_noticed_by_asking(place):
    old, new = Server(place, name="a"), Server(place, name="b")
    fake = Fake(old.port)
    use_fakes(place, fake)
    worker = place.work(place.echo())
    eventually(lambda: clients(old), "it is connected")
    fake.primary = new.port
    eventually(lambda: not clients(old) and clients(new), "it moves")
    stop_cleanly(worker)


@test
def sentinels_that_others_know_are_listened_to(place):
    old, new = Server(place, name="a"), Server(place, name="b")
    first, second = Fake(old.port), Fake(old.port)
    first.others = [second.port]
    use_fakes(place, first)
    worker = place.work(place.echo())
    eventually(lambda: second.ears, "it listens to both")
    first.close()
    second.say_switch(old.port, new.port)
    eventually(lambda: not clients(old) and clients(new), "it moves")
    stop_cleanly(worker)


@test
def sentinels_and_servers_have_logins_of_their_own(place):
    server = Server(place, "--requirepass", "secret", waits_for="-NOAUTH")
    fake = Fake(server.port, password=["su", "s p"])
    use_fakes(place, fake)
    place.env["WEIR_REDIS"] = fake_url(
        fake, query="?sentinel_user=su&sentinel_password=s%20p").replace(
            "://", "://:secret@")
    place.add("t", "1")
    place.drain(place.echo())
    expect(1, len(ids(place)))
    result = place.weir("stats", "--redis", fake_url(
        fake, query="?sentinel_user=su&sentinel_password=no"))
    result.expect_complaint(5, "WRONGPASS")


@test
def a_primary_may_be_named_by_its_host(place):
    server = Server(place)
    fake = Fake(server.port)
    fake.host = "localhost"
    use_fakes(place, fake)
    place.add("t", "1")
    place.drain(place.echo())
    expect(1, len(ids(place)))
