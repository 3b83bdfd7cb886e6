# SPDX-License-Identifier: MIT
"""A client, or a worker, that was opened before a fork, or copied: jobs that
were acknowledged are there, once."""

import asyncio
import copy
import os
import pickle
import subprocess
import sys
import threading
import traceback
from unittest import mock

import library
from e2e import (communicate, eventually, expect, expect_in, expect_true, run,
                 test)

import redis
import weir
import weir.aio

CHILDREN, JOBS = 4, 200


def socket_of(place):
    place.weir("add", "other")  # starts the server
    return os.path.join(place.data, "redis.sock")


def open_client(place, **options):
    return weir.Client(redis.Redis(unix_socket_path=socket_of(place)),
                       **options)


def in_child(run):
    """Forks; returns what waits for the child, which must end well."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            run()
            status = 0
        except BaseException:
            traceback.print_exc()
        os._exit(status)
    return lambda: expect(0, os.waitpid(pid, 0)[1])


def add_some(client, who):
    for i in range(JOBS):
        expect(True, client.add("t", [who, i]).is_new)


def bodies(place):
    """Of all jobs that are there."""
    seen = []
    worker, ended = library.run_in("threads", socket_of(place), {
        "t": lambda job: seen.append(tuple(job.body))})
    eventually(lambda: not {"ready", "running"}.intersection(
        name for name, count in place.stats("t").items() if count), "all ran")
    worker.stop()
    ended.result()
    return sorted(seen)


def expect_all(place, who):
    found = bodies(place)
    wanted = {(one, i) for one in who for i in range(JOBS)}
    expect((0, len(wanted)), (len(wanted.difference(found)), len(found)),
           "lost, there")


@test
def children_of_a_fork_add_all_that_they_acknowledge(place):
    client = open_client(place)
    add_some(client, 0)
    for wait in [in_child(lambda who=who: add_some(client, who))
                 for who in range(1, CHILDREN)]:
        wait()
    add_some(client, CHILDREN)
    expect_all(place, range(CHILDREN + 1))


@test
def a_child_of_a_child_and_its_parents_add_at_once(place):
    client = open_client(place)

    def child():
        wait = in_child(lambda: add_some(client, 3))
        add_some(client, 2)
        wait()
    client.add_many("t", [])
    wait = in_child(child)
    add_some(client, 1)
    wait()
    expect_all(place, (1, 2, 3))


@test
def a_client_that_added_nothing_before_the_fork_has_a_name_of_its_own(place):
    client = open_client(place)
    for wait in [in_child(lambda who=who: add_some(client, who))
                 for who in range(CHILDREN)]:
        wait()
    expect_all(place, range(CHILDREN))


@test
def a_child_with_the_process_id_of_its_parent_has_names_of_its_own(place):
    client, pid = open_client(place), os.getpid()
    add_some(client, 0)

    def child(who):  # as the first process of a namespace
        with mock.patch("os.getpid", lambda: pid):
            add_some(client, who)
    waits = [in_child(lambda who=who: child(who)) for who in (1, 2)]
    add_some(client, 3)
    for wait in waits:
        wait()
    expect_all(place, range(4))


@test
def a_fork_while_another_thread_adds_does_not_stop_the_child(place):
    client, is_over = open_client(place), threading.Event()
    added = []

    def add():
        while not is_over.is_set():
            added.append(client.add("t", (0, len(added))))
    thread = threading.Thread(target=add)
    thread.start()
    try:
        eventually(lambda: added, "it adds")
        for who in range(1, 9):
            in_child(lambda who=who: client.add("t", (who, 0)))()
    finally:
        is_over.set()
        thread.join()
    expect(len(added) + 8, place.stats("t")["ready"])


# A module, since a process that is spawned imports what it runs.
SHARED = """
import os, redis, weir
client = weir.Client(redis.Redis(unix_socket_path=os.environ["SOCKET"]))
client.counts("t")
def add(who):
    for i in range(%d):
        assert client.add("t", (who, i)).is_new
""" % JOBS

PREFORK = """
import multiprocessing, sys, shared
context = multiprocessing.get_context(sys.argv[1])
if sys.argv[1] == "forkserver":
    context.set_forkserver_preload(["shared"])
children = [context.Process(target=shared.add, args=(who,)) for who in range(%d)]
for child in children:
    child.start()
for child in children:
    child.join()
with context.Pool(2) as pool:
    pool.map(shared.add, range(%d, %d))
sys.exit(any(child.exitcode for child in children))
""" % (CHILDREN, CHILDREN, 2 * CHILDREN)


def share(place, method):
    place.write("shared.py", SHARED)
    path = library.FOLDER + os.pathsep + place.dir
    done = run([sys.executable, "-c", PREFORK, method],
               env={**place.env, "PYTHONPATH": path,
                    "SOCKET": socket_of(place)})
    expect((0, ""), (done.returncode, done.stderr))
    expect_all(place, range(2 * CHILDREN))


@test
def processes_of_multiprocessing_share_a_client(place):
    share(place, "fork")


@test
def processes_that_multiprocessing_spawns_have_clients_of_their_own(place):
    share(place, "spawn")


@test
def processes_of_a_fork_server_share_the_client_that_it_imported(place):
    share(place, "forkserver")


@test
def copies_and_threads_share_one_name(place):
    client = open_client(place)
    client.add("t", ("first", 0))
    other = weir.Client.__new__(weir.Client)
    other.__dict__.update(client.__dict__)
    clients = [client, copy.copy(client), copy.deepcopy(client), other]
    waits = [library.in_thread(lambda one=one, who=who: add_some(one, who))
             for who, one in enumerate(clients)]
    for wait in waits:
        wait.result()
    expect(len(clients) * JOBS + 1, place.stats("t")["ready"])


@test
def what_cannot_be_sent_to_another_process_says_so(place):
    server = redis.Redis(unix_socket_path=socket_of(place))
    for one in (weir.Client(server), weir.aio.Client(server),
                weir.Worker(server, {"t": print})):
        try:
            pickle.dumps(one)
        except TypeError as error:
            expect_in("open one in each process", str(error))
        else:
            raise AssertionError("it was pickled")


@test
def an_asyncio_client_works_in_a_child(place):
    client = weir.aio.Client(redis.Redis(unix_socket_path=socket_of(place)))

    async def add(who):
        for i in range(JOBS):
            await client.add("t", (who, i))
    asyncio.run(add(0))
    waits = [in_child(lambda who=who: asyncio.run(add(who)))
             for who in range(1, CHILDREN)]
    asyncio.run(add(CHILDREN))
    for wait in waits:
        wait()
    expect_all(place, range(CHILDREN + 1))


@test
def a_client_that_a_child_closes_stays_open_for_its_parent(place):
    client = open_client(place)
    client.add("t", ("a", 0))
    in_child(client.close)()
    in_child(lambda: client.add("t", ("b", 0)) and client.close())()
    server = redis.Redis(unix_socket_path=socket_of(place))
    before = server.info("stats")["total_connections_received"]
    client.add("t", ("c", 0))
    expect(before, server.info("stats")["total_connections_received"])
    expect(3, place.stats("t")["ready"])


@library.in_both
def workers_made_before_a_fork_have_names_of_their_own(place, kind):
    path = socket_of(place)
    server = redis.Redis(unix_socket_path=path)

    async def stop(job):
        worker.stop()
    worker = weir.Worker(server, {"t": lambda job: worker.stop()}) \
        if kind == "threads" else weir.aio.Worker(server, {"t": stop})

    def serve():
        if kind == "threads":
            worker.run()
        else:
            asyncio.run(worker.run())
    waits = [in_child(serve) for _ in range(3)]
    key = "weir:{weir:topics}:workers"
    eventually(lambda: server.hlen(key) == 3, "they are seen")
    expect_true(all(name.split() for name in server.hkeys(key)), "names")
    client = open_client(place)
    for i, wait in enumerate(waits):
        eventually(lambda i=i: server.hlen(key) == 3 - i or
                           client.add("t", i), "it stopped")
        client.add("t", i)
    for wait in waits:
        wait()
    expect_true(place.stats("t")["done_total"] >= 3, "each ran one")


FORKER = """
import asyncio, os, signal, sys, redis, weir, weir.aio
kind, path = sys.argv[1:]
def handle(job):
    child = os.fork()
    if child:
        if job.body == "wait":
            os.kill(child, signal.SIGTERM)
        print(job.body, os.waitpid(child, 0)[1], flush=True)
    elif job.body == "raise":
        raise ValueError("of the child")
    elif job.body == "exit":
        sys.exit(0)
    elif job.body == "wait":
        signal.pause()
async def handle_async(job):
    handle(job)
server = redis.Redis(unix_socket_path=path)
if kind == "threads":
    weir.Worker(server, {"t": handle}, concurrency=1).run()
else:
    asyncio.run(weir.aio.Worker(server, {"t": handle_async},
                                concurrency=1).run())
"""


@library.in_both
def a_child_that_a_handler_forks_is_no_second_worker(place, kind):
    path, client = socket_of(place), open_client(place)
    ends = [("return", 0), ("raise", 256), ("exit", 0), ("wait", 15),
            ("return", 0)]
    client.add_many("t", [how for how, _ in ends])
    worker = subprocess.Popen(
        [sys.executable, "-c", FORKER, kind, path], text=True,
        env={**place.env, "PYTHONPATH": library.FOLDER},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.started.append(worker)
    for how, status in ends:
        expect("%s %d\n" % (how, status), worker.stdout.readline())
    worker.terminate()
    out, err = communicate(worker)
    expect((0, ""), (worker.returncode, out))
    expect_in("ValueError: of the child", err)
    expect(len(ends), place.stats("t")["done_total"])
