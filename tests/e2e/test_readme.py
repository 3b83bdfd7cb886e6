# SPDX-License-Identifier: MIT
"""What the README and the demo show works as it is written there."""

import os
import re
import signal
import subprocess

from e2e import (BUILD, PATIENCE, ROOT, WEIR, eventually, expect, expect_in,
                 expect_true, test)
from redis_server import Server, refused, use_good_plugins


def readme():
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        return file.read()


def shell(place, script):
    done = subprocess.run(["sh", "-euc", script], cwd=place.dir, text=True,
                          env=place.env, capture_output=True, timeout=PATIENCE)
    expect(0, done.returncode, done.stderr)
    return done.stdout + done.stderr


def place_as_clone(place):
    """A directory in which the README's relative paths lead somewhere."""
    os.symlink(os.path.join(ROOT, "core"), place.path("core"))
    os.mkdir(place.path("build"))
    os.symlink(WEIR, place.path("build/weir"))


def run_first_commands(place):
    block = re.search(r"```sh\n(git clone.*?)```", readme(), re.S).group(1)
    lines = [line for line in block.splitlines() if line.startswith("build/")]
    expect(3, len(lines))
    out = shell(place, "\n".join(lines))
    expect_in('"id":"42","attempt":1', out)
    expect_in("order.close  delay", out)


@test
def the_first_commands_run_a_job(place):
    place_as_clone(place)
    run_first_commands(place)


def run_commands_of_every_day(place):
    block = re.search(r"```sh\n(printf.*?)```", readme(), re.S).group(1)
    out = shell(place, block)
    for part in ("added 3, existing 0, refused 0", "7  scheduled  due ",
                 "deleted, was scheduled", "paused\nresumed\n",
                 "concurrency   100", "requeued 0", "deleted 3"):
        expect_in(part, out)


@test
def the_commands_of_every_day_work(place):
    place_as_clone(place)
    run_commands_of_every_day(place)


@test
def the_configuration_is_one(place):
    text = re.search(r"```conf\n(.*?)```", readme(), re.S).group(1)
    place.write("weir.conf", text)
    topics = place.ok("check", "--config", place.path("weir.conf"))["topics"]
    expect(["order.close", "order.notify"], [t["topic"] for t in topics])


@test
def all_of_it_works_with_the_least_rights(place):
    place_as_clone(place)
    server = Server(place)
    admin = server.guard(place.ok("doctor", "--acl")["acl"])
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    run_first_commands(place)
    run_commands_of_every_day(place)
    use_good_plugins(place)
    text = re.search(r"```conf\n(.*?)```", readme(), re.S).group(1)
    place.write("weir.conf", text)
    place.ok("add", "order.notify")
    result = place.weir("run", "--until-empty", "--config",
                        place.path("weir.conf"), "--log-level", "warn")
    expect(0, result.code, result.err)
    checks = {line["check"]: line["status"] for line in place.ok("doctor")}
    expect("ok", checks["rights"])
    expect("ok", checks["scripts"])
    expect([], refused(admin))


@test
def the_smallest_plugin_compiles_and_handles_jobs(place):
    place_as_clone(place)
    name, source, script = re.search(
        r"`(\S+\.c)`:\n\n```c\n(.*?)```\n\n```sh\n(.*?)```", readme(),
        re.S).groups()
    place.write(name, source)
    out = shell(place, script.replace("cc ", "cc -Wall -Wextra -Werror ", 1))
    expect_in("order.close 1: closed", out)
    place.add("order.close", "2", "--body", '"nothing"')
    place.drain("order.close=" +
place.path("build/close_order.so"))
    (job,) = place.ok("dead", "list", "order.close")
    expect(["2", "the body has no order number"], [job["id"], job["error"]])


def start_demo(place):
    demo = subprocess.Popen(
        ["bash", os.path.join(ROOT, "docs", "demo", "demo.sh")], text=True,
        env={**place.env, "TMPDIR": place.dir,
             "WEIR_BUILD": os.path.abspath(BUILD)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True)
    place.started.append(demo)
    return demo


@test
def the_demo_closes_orders_but_not_the_paid_one(place):
    demo = start_demo(place)
    out, _ = demo.communicate(timeout=PATIENCE)
    expect(0, demo.returncode, out)
    for order in ("1001", "1002", "1003", "1005"):
        expect_in("closed  order " + order, out)
    expect_true("closed  order 1004" not in out, "1004 was deleted")
    expect_in("mail-1002  died", out)
    expect_in("order.notify  delay", out)
    expect_true("\033" not in out, "no colour when piped")
    expect([], os.listdir(place.dir))


@test
def an_interrupted_demo_leaves_nothing_behind(place):
    demo = start_demo(place)
    eventually(lambda: any(os.path.exists(place.path(name + "/redis.pid"))
                           for name in os.listdir(place.dir)), "it has begun")
    os.killpg(demo.pid, signal.SIGINT)
    demo.communicate(timeout=PATIENCE)
    expect_true(demo.returncode != 0, "an interrupted demo has failed")
    expect([], os.listdir(place.dir))
