#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sources in docs/embedding.md compile against the headers and do what the
text says, and what it points to is there."""

import os
import re
import subprocess

from e2e import (BUILD, PATIENCE, ROOT, await_line, expect, expect_true, run,
                 test)


def page():
    with open(os.path.join(ROOT, "docs", "embedding.md"),
              encoding="utf-8") as file:
        return file.read()


def shell(place, script):
    done = run(["sh", "-euc", script], patience=PATIENCE * 3, cwd=place.dir,
               env=place.env)
    expect(0, done.returncode, script + done.stdout + done.stderr)
    return done.stdout


def build_host(place, number):
    """Compile one of the page's sources; the words that run it on a private
    server."""
    source = re.findall(r"```c\n(.*?)```", page(), re.S)[number]
    place.write("host.c", source)
    shell(place, "${CC:-cc} ${CFLAGS-} -std=c11 -Wall -Wextra -Werror "
                 "-I %s/core/include -o host host.c "
                 "-L %s/lib -Wl,-rpath,%s/lib -lweir -lev"
          % (ROOT, os.path.abspath(BUILD), os.path.abspath(BUILD)))
    place.ok("topic", "list")  # starts the server
    return ["./host", "unix://%s/redis.sock" % place.data]


def run_host(place, number):
    return shell(place, " ".join(build_host(place, number)))


@test
def a_host_on_libev_handles_what_it_adds(place):
    expect("hello, Ada\n", run_host(place, 0))


@test
def a_host_with_a_thread_hears_of_what_it_adds(place):
    expect("a: no error\nb: no error\n", run_host(place, 1))


@test
def a_handler_waits_on_the_loop_of_a_thread(place):
    expect("greet: no error\n", run_host(place, 2))


@test
def more_jobs_are_added_than_there_is_room_for(place):
    host = subprocess.Popen(build_host(place, 3), cwd=place.dir, text=True,
                            stdout=subprocess.PIPE)
    place.started.append(host)
    expect("200000 jobs: no error, had to wait\n", host.stdout.read())
    _, status, usage = os.wait4(host.pid, 0)
    host.returncode = os.waitstatus_to_exitcode(status)
    expect(0, host.returncode)
    if "sanitize" not in os.environ.get("CFLAGS", ""):  # which keep memory
        expect_true(usage.ru_maxrss < 150 * 1024, "%d KiB" % usage.ru_maxrss)


@test
def the_examples_compile_as_the_page_says(place):
    examples = os.path.join(ROOT, "docs", "examples")
    names = [name for name in os.listdir(examples) if name.endswith(".c")]
    expect_true(len(names) > 1, "there are examples")
    for name in names:
        needs = {"embed_glib.c": "glib-2.0", "embed_uv.c": "libuv"}.get(name)
        flags = "$(pkg-config --cflags %s)" % needs if needs else ""
        shell(place, "${CC:-cc} -std=c11 -Wall -Wextra -Werror -c "
                     "-I %s/core/include -o %s.o %s %s"
              % (ROOT, name, os.path.join(examples, name), flags))


@test
def an_example_that_waits_for_a_server_says_so(place):
    for name, *words in (("embed",), ("embed_epoll",), ("embed_glib",),
                         ("embed_uv",), ("drain",), ("tills",),
                         ("producer", "t"), ("handover", place.dir)):
        program = subprocess.Popen(
            [os.path.join(BUILD, "examples", name), "redis://127.0.0.1:1",
             *words], text=True, stdin=subprocess.PIPE,
            stderr=subprocess.PIPE)
        place.started.append(program)
        await_line(program, name + ": redis: no connection to")
        program.kill()


@test
def a_source_of_the_page_that_waits_for_a_server_says_so(place):
    for number in range(4):
        build_host(place, number)
        host = subprocess.Popen(["./host", "redis://127.0.0.1:1"], text=True,
                                cwd=place.dir, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)
        place.started.append(host)
        await_line(host, "redis: no connection to")
        host.kill()


@test
def its_links_lead_somewhere(place):
    for link in re.findall(r"\]\(([^)]*)\)", page()):
        expect_true(os.path.exists(os.path.join(ROOT, "docs", link)), link)
