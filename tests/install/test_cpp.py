# SPDX-License-Identifier: MIT
"""<weir/plugin.hpp> and <weir/weir.hpp>: what handlers throw stays with their
jobs, and what is documented compiles. Here, as the sanitizers of a C program do
not bear a plugin's exceptions."""

import re
import shutil
import signal

from e2e import (ROOT, eventually, expect, expect_in, expect_true,
                 stop_cleanly, test)
from prefix import blocks, install, shell

FLAGS = "-Wall -Wextra -Wpedantic -Wshadow -Werror -fvisibility=hidden"
SOURCES = ROOT + "/tests/install/cpp/"
EXAMPLES = ROOT + "/docs/examples/"


def plugin(place, name, flags="", to="it.so"):
    shell(place, "g++ -std=c++17 %s %s -shared -fPIC $(pkg-config --cflags "
                 "weir-plugin) -o %s %s%s.cc" % (FLAGS, flags, to, SOURCES,
                                                 name))
    return place.path(to)


def program(place, path):
    shell(place, "g++ -std=c++17 %s $(pkg-config --cflags weir) -o it %s "
                 "$(pkg-config --libs weir) -lev" % (FLAGS, path))


def verdict(place, path, what, *flags):
    tried = place.weir("plugin", "try", path, "--option", "what=" + what,
                       "--json", *flags)
    return [tried.json.get(name) for name in ("verdict", "reason")]


@test
def both_compilers_take_the_examples_in_both_standards(place):
    install(place)
    for compiler in ("g++", "clang++"):
        for standard in ("17", "20"):
            shell(place, "%s -std=c++%s %s $(pkg-config --cflags weir) "
                         "-fsyntax-only %sshout.cc %sclose.cc"
                  % (compiler, standard, FLAGS, EXAMPLES, EXAMPLES))


@test
def the_example_of_the_tutorial_is_the_one_that_is_built(place):
    page = ROOT + "/docs/plugins.md"
    with open(page, encoding="utf-8") as file:
        shown = re.search(r"```cpp\n(.*?)```", file.read(), re.S).group(1)
    with open(EXAMPLES + "shout.cc", encoding="utf-8") as file:
        expect(shown, file.read().split("\n", 2)[2])
    install(place)
    shutil.copy(EXAMPLES + "shout.cc", place.path("shout.cc"))
    (script,) = [block for block in blocks(page) if block.startswith("c++")]
    expect_in("AHOY!", shell(place, script))
    expect_in('mark (text, default "!")',
              shell(place, "weir plugin info ./shout.so"))


@test
def the_example_of_a_host_closes_its_orders(place):
    install(place)
    program(place, EXAMPLES + "close.cc")
    place.ok("topic", "list")
    out = shell(place, "./it unix://%s/redis.sock" % place.data)
    expect(["closed order %d" % n for n in (1, 2, 3)],
           sorted(out.splitlines()))
    stats = place.stats("order.close")
    expect([3, 1], [stats["done_total"], stats["retried_total"]])


@test
def what_a_handler_throws_is_its_verdict(place):
    install(place)
    path = plugin(place, "throws")
    for what, wanted in (
            ("none", ["DONE", None]),
            ("error", ["RETRY", "the till is locked"]),
            ("failure", ["FAIL", "no till at all"]),
            ("number", ["RETRY", "an exception that is no std::exception"]),
            ("retry", ["RETRY_AFTER", "asked for"]),
            ("snooze", ["SNOOZE", None]),
            ("handle", ["RETRY", "thrown with a handle"]),
            ("dropped", ["RETRY", "the handle was dropped"]),
            ("denied", ["RETRY", "a file: Permission denied"]),
            ("flush", ["RETRY", "flush failed"])):
        expect(wanted, verdict(place, path, what))
    blocking = plugin(place, "throws", "-DBLOCKING", "blocking.so")
    expect(["RETRY", "the till is locked"], verdict(place, blocking, "error"))
    expect(["FAIL", "no till at all"], verdict(place, blocking, "failure"))


@test
def what_a_handler_lacks_costs_its_job_no_attempt(place):
    install(place)
    path = plugin(place, "throws")
    for what in "memory", "files", "threads", "refused", "short":
        expect(["SNOOZE", None], verdict(place, path, what), what)


@test
def what_opening_throws_refuses_the_plugin(place):
    install(place)
    path = plugin(place, "throws")
    for what, sentence in (("open", "no such till"),
                           ("code", "the till is on fire")):
        refused = place.weir("plugin", "try", path, "--option", "what=" + what)
        expect_true(refused.code > 0, "it is refused")
        expect_in(sentence, refused.err)


@test
def a_batch_answers_for_each_job_or_throws_for_all(place):
    install(place)
    path = plugin(place, "batch")
    for topic, numbers in (("each", (1, 2, 3)), ("all", (1, 2, 0))):
        for n in numbers:
            place.add(topic, str(n), "--body", '{"n":%d}' % n)
    worker = place.start("run", "--handle", "each=" + path, "--handle",
                         "all=" + path)
    eventually(lambda: place.stats("all")["retried_total"] == 3,
               "all of a batch are retried")
    eventually(lambda: [place.stats("each")[name] for name in (
        "done_total", "dead")] == [2, 1], "each has its verdict")
    stop_cleanly(worker)


@test
def what_is_thrown_through_c_ends_the_worker_at_the_handler(place):
    install(place)
    path = plugin(place, "throws", "-DBARE")
    place.add("t", "1")
    ended = place.weir("run", "--handle", "t=" + path, "--until-empty")
    expect(-signal.SIGABRT, ended.code)
    expect_in("t 1: %s crashed: Aborted" % path, ended.err.splitlines()[-1])
    expect_in("the till is locked", ended.err)


@test
def a_host_hears_what_its_calls_were_refused_with(place):
    install(place)
    program(place, SOURCES + "host.cc")
    place.ok("topic", "list")
    out = shell(place, "./it unix://%s/redis.sock" % place.data).splitlines()
    for name, code in (("url", "WEIR_EINVAL"), ("loop", "WEIR_EINVAL"),
                       ("json", "WEIR_EINVAL"), ("again", "WEIR_EEXISTS"),
                       ("option", "WEIR_EINVAL"), ("wait", "WEIR_EINVAL")):
        (line,) = [line for line in out if line.startswith(name + ": ")]
        expect_in(": %s " % code, line)
    expect(2, out.count("no error"))
    expect_in('t {"n":1} t-1 1 none after 1', out)
    expect_in('t {"n":2} t-1 1 none after 0', out)
    for line in ("added: no error", 'no error, 2 taken: {"n":1}',
                 "settled: no error", 'back: {"n":2}', "room"):
        expect_in(line, out)
    expect([1, 1], [place.stats("taken")[name]
                    for name in ("done_total", "retried_total")])
    expect("left: WEIR_ECANCELED", out[-1])
