# SPDX-License-Identifier: MIT
"""The README, the commands of docs/operating.md for every day and the demo do
what they show."""

import os
import re
import signal
import subprocess

from e2e import (BUILD, ROOT, WEIR, communicate, eventually, expect, expect_in,
                 expect_true, run, test)
from redis_server import Server, refused, use_good_plugins


def text_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def block(page, begin):
    """The first block of code of a page that begins with this pattern."""
    return re.search(r"```%s.*?(?=```)" % begin, text_of(page),
                     re.S).group().split("\n", 1)[1]


def shell(place, script):
    done = run(["sh", "-euc", script], cwd=place.dir, env=place.env)
    expect(0, done.returncode, done.stderr)
    return done.stdout + done.stderr


def place_as_clone(place):
    """A directory in which the README's relative paths lead somewhere."""
    os.symlink(os.path.join(ROOT, "core"), place.path("core"))
    os.mkdir(place.path("build"))
    os.symlink(WEIR, place.path("build/weir"))


def first_commands():
    """Pairs (command, output) that follow the command that builds."""
    pairs = re.findall(r"^\$ (.*\n)((?:[^$].*\n)*)",
                       block("README.md", "console"), re.M)
    expect_in("./run build", pairs[0][0])
    expect(3, len(pairs))
    return pairs[1:]


def without_moments(text):
    """Without times, process ids and lateness, which differ in each run."""
    return re.sub(r"(?m)^[-\dT:.]+Z|(?<=pid )\d+|(?<=late_ms\":)[\d.]+", "#",
                  text)


@test
def the_first_commands_print_what_the_page_shows(place):
    place_as_clone(place)
    for command, output in first_commands():
        output = output.replace("/home/ada/.local/state/weir", place.data) \
            .replace("/home/ada/weir/build", os.path.dirname(WEIR))
        expect(without_moments(output),
               without_moments(shell(place, "exec 2>&1\n" + command)))


def run_commands_of_every_day(place):
    out = shell(place, block("docs/operating.md", "sh\nprintf"))
    for part in ("added 3, existing 0, refused 0", "7  scheduled  due ",
                 "deleted, was scheduled", "paused\nresumed\n",
                 "concurrency   100", "requeued 0", "order.close  delay",
                 "deleted 3"):
        expect_in(part, out)


@test
def the_commands_of_every_day_work(place):
    place_as_clone(place)
    run_commands_of_every_day(place)


@test
def the_configuration_is_one(place):
    place.write("weir.conf", block("docs/operating.md", "conf"))
    topics = place.ok("check", "--config", place.path("weir.conf"))["topics"]
    expect(["order.close", "order.notify"], [t["topic"] for t in topics])


@test
def all_of_it_works_with_the_least_rights(place):
    place_as_clone(place)
    server = Server(place)
    admin = server.guard(place.ok("doctor", "--acl")["acl"])
    place.env["WEIR_REDIS"] = server.url_of("weir:pw")
    out = shell(place, "".join(command for command, _ in first_commands()))
    expect_in('"id":"42","attempt":1', out)
    run_commands_of_every_day(place)
    use_good_plugins(place)
    place.write("weir.conf", block("docs/operating.md", "conf"))
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
        r"`(\S+\.c)`:\n\n```c\n(.*?)```\n\n```sh\n(.*?)```",
        text_of("README.md"), re.S).groups()
    place.write(name, source)
    out = shell(place, script.replace("cc ", "cc -Wall -Wextra -Werror ", 1))
    expect_in("order.close 1: closed", out)
    place.add("order.close", "2", "--body", '"nothing"')
    place.drain("order.close=" + place.path("build/close_order.so"))
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
    out, _ = communicate(demo)
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
    communicate(demo)
    expect_true(demo.returncode != 0, "an interrupted demo has failed")
    expect([], os.listdir(place.dir))
