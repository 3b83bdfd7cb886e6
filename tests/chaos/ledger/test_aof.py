# SPDX-License-Identifier: MIT
"""What a crash leaves of the server's append-only file: any part of it from the
start. Each script is one block there, between MULTI and EXEC, and counts as a
whole or not at all; so all that is there always fits together (walker.py)."""

import io
import os

from ledger import TOPIC, Ledger
from e2e import eventually, expect, expect_true, test
from scripts import script_texts
from server import Client, Server
from tap import read_command
from walker import expect_sound

STRIDE = int(os.environ.get("WEIR_CHAOS_STRIDE", "1"))
TOPICS = [TOPIC, "other", "grave"]
PLANS = ["now"] * 20 + ["soon"] * 5 + ["fail"] * 3 + ["delete", "reschedule"]
TEXTS = {name: text for name, text in script_texts().values()}


def commands_of(data):
    """Pairs: the words of a command, and where it ends."""
    file = io.BytesIO(data)
    pairs = []
    while True:
        words = read_command(file)
        if words is None:
            return pairs
        pairs.append((words, file.tell()))


def steps_of(data):
    """Lists of such pairs: blocks, and commands that stand alone."""
    steps, is_open = [], False
    for pair in commands_of(data):
        if is_open:
            steps[-1].append(pair)
        else:
            steps.append([pair])
        is_open = pair[0][0] == b"MULTI" or is_open and pair[0][0] != b"EXEC"
    return steps


def file_of_a_run(place):
    """The file of a server where jobs were added, ran, failed, were retried,
    moved, deleted, rescheduled and added others."""
    server = Server(place, "first", fsync="always").start()
    expect(0, place.weir("topic", "set", TOPIC, "on_dead=grave", "--redis",
                         server.url).code)
    ledger = Ledger(place, server, lease_ms=300, options=[
        "work=1ms", "retry_every=5", "follow_to=other"])
    ledger.start_worker("--concurrency", "3")
    for _ in range(3):
        for plan, job in zip(PLANS, ledger.add(PLANS)):
            if plan == "delete":
                ledger.delete(job)
            elif plan == "reschedule":
                ledger.reschedule(job)
    ledger.drain()
    ledger.heart.stop()
    server.kill()
    with open(server.aof(), "rb") as file:
        return file.read()


@test
def what_is_there_fits_together_behind_each_step(place):
    data = file_of_a_run(place)
    server = Server(place, "second").start()
    client, steps = Client(server.socket), steps_of(data)
    for number, step in enumerate(steps):
        for words, _ in step:
            client.call(*words)
        expect_sound(server, TOPICS, "step %d, %r" % (number, step[-2:]))
    print("%d steps of %d bytes" % (len(steps), len(data)))


@test
def a_file_that_is_cut_anywhere_fits_together(place):
    data = file_of_a_run(place)
    server = Server(place, "second", fsync="always").start()
    server.kill()
    cuts = 0
    for number, step in enumerate(steps_of(data)[::STRIDE]):
        begin, end = step[0][1] - 1, step[-1][1]
        for at in sorted({begin + (end - begin) * (number % 7) // 7, end}):
            with open(server.aof(), "wb") as file:
                file.write(data[:at])
            server.start()
            expect_sound(server, TOPICS, "cut at %d" % at)
            # What comes behind a cut must not complete it.
            server.call("EVAL", "redis.call('SET', 'a', '1') "
                        "redis.call('SET', 'b', '1')", "0")
            server.kill()
            server.start()
            expect_sound(server, TOPICS, "cut at %d, next start" % at)
            server.kill()
            cuts += 1
    print("cut at %d of %d bytes" % (cuts, len(data)))


def keys(*names):
    return ["weir:{%s}:%s" % (TOPIC, name) for name in names]


def claim(server, room):
    """Returns the token and the nodes."""
    reply = server.call("EVAL", TEXTS["delay/claim"], "8", *keys(
        "wait", "run", "lease", "ids", "meta", "idle", "held", "due"), room,
        60000, 400, "", 0, "delay")
    return reply[1], reply[5::2]


def settle(server, token, node):
    seq, topic = node[:12], TOPIC
    head = server.call("EVAL", "return {string.byte(redis.call('GETRANGE', "
                       "KEYS[1], 5, 6), 1, 2)}", "1", *keys("p:" + seq))
    nodes = (b"\x95\x0b\xb0" + node.encode() + b"\xcd" +
             token.to_bytes(2, "big") + b"\xcd" +
             (head[0] + 256 * head[1]).to_bytes(2, "big") + b"\xa0")
    server.call("EVAL", TEXTS["delay/settle"], "11", *keys(
        "run", "lease", "ids", "meta", "wait", "dead", "rec", "idle", "held",
        "due", "p:" + seq), topic, nodes, "", b"\x91\xcd" + token.to_bytes(2, "big"),
        "", "", 1000, 0)


@test
def a_claim_that_was_cut_in_two_leaves_no_job_behind(place):
    """What was seen of Redis 7.0: it shortens such a file to the last whole
    command, in the middle of a block, and the next block completes that at the
    start after next. Here nodes of jobs that are done wait again then; they
    are done twice, and their pack is gone before the others'."""
    server = Server(place, fsync="always").start()
    ledger = Ledger(place, server)
    ledger.add(["now"] * 32)
    claim(server, 5)
    server.kill()
    with open(server.aof(), "rb") as file:
        data = file.read()
    os.truncate(server.aof(), data.rindex(b"$7\r\nclaimed\r\n"))
    server.start()
    token, nodes = claim(server, 16)
    for node in nodes:
        settle(server, token, node)
    server.kill()
    server.start()
    expect_sound(server, [TOPIC], "the second start")
    ledger.start_worker()
    eventually(lambda: server.call("EXISTS", *keys("wait", "run")) == 0,
               "all jobs end")
    ledger.alive.pop().end()
    ledger.heart.stop()
    ledger.check_server()
    expect_true(len(ledger.runs()) == 16, "the other half ran")
