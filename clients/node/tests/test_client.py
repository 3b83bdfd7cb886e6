# SPDX-License-Identifier: MIT
"""The tests in JavaScript, the package, and the examples of the README."""

import os
import re
import subprocess

from e2e import (PATIENCE, communicate, eventually, expect, expect_in,
                 expect_true, run, test)
from library import ENV, FOLDER, SOURCES, node
from resp import Client


def run_tests(name):
    done = node("--test", "--test-reporter=tap", "tests/%s.test.js" % name,
                patience=5 * PATIENCE)
    print(done.stdout if done.returncode else "", done.stderr, sep="")
    expect(0, done.returncode, "exit code of " + name)
    count, = re.findall(r"^# pass (\d+)$", done.stdout, re.M)
    expect_true(int(count) > 0, "tests ran")


@test
def the_arguments_are_what_its_tests_say(place):
    run_tests("check")


@test
def the_client_does_what_its_tests_say(place):
    run_tests("client")


@test
def the_worker_does_what_its_tests_say(place):
    run_tests("worker")


@test
def the_vectors_of_the_wire_hold(place):
    run_tests("vectors")


@test
def a_packed_library_has_scripts_and_types(place):
    done = run(["npm", "pack", "--pack-destination", place.dir], cwd=FOLDER,
               env=ENV)
    expect(0, done.returncode, done.stderr)
    name = done.stdout.split()[-1]
    listed = run(["tar", "tzf", place.path(name)], check=True).stdout.split()
    for file in ("index.js", "index.d.ts", "lib/worker.js", "README.md",
                 "scripts/delay/pull.lua", "scripts/store/beat.lua"):
        expect_in("package/" + file, listed)
    expect_true(not any("tests" in file for file in listed), listed)


@test
def the_examples_of_the_readme_run(place):
    place.weir("add", "other")  # starts the server
    url = "unix://" + os.path.join(place.data, "redis.sock")
    with open(os.path.join(SOURCES, "README.md"), encoding="utf-8") as file:
        blocks = re.findall(r"```js\n(.*?)```", file.read(), re.S)
    expect(2, len(blocks))
    for number, block in enumerate(blocks):
        path = os.path.join(FOLDER, "example%d.mjs" % number)
        with open(path, "w", encoding="utf-8") as file:
            file.write(block.replace("redis://127.0.0.1", url)
                       .replace("'weir'", "'./index.js'"))
    done = node("example0.mjs")
    expect((0, ""), (done.returncode, done.stderr))
    expect_in("order-42", done.stdout)
    expect_in("ready", done.stdout)
    worker = subprocess.Popen(["node", "example1.mjs"], cwd=FOLDER, env=ENV,
                              text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.started.append(worker)
    expect("order 42\n", worker.stdout.readline())
    worker.terminate()
    _, err = communicate(worker)
    expect((0, ""), (worker.returncode, err))


@test
def ticks_of_schedules_are_left_to_weir(place):
    place.ok("cron", "add", "s", "--topic", "t", "--every", "1h")
    path = os.path.join(place.data, "redis.sock")
    server = Client(path)
    tick = server("HGET", "weir:{t}:ids", "s@next") + b"0000"
    server("ZADD", "weir:{t}:wait", "1", tick)  # it is due first
    place.ok("add", "t", "--body", "1")
    worker = subprocess.Popen(
        ["node", "tests/worker.js", path, place.path("record"), "1", "0", "0"],
        cwd=FOLDER, env=ENV, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    place.started.append(worker)
    eventually(lambda: place.stats("t")["done_total"] == 1, "the job runs")
    expect(b"1", server("ZSCORE", "weir:{t}:wait", tick))
    worker.terminate()
    communicate(worker)
