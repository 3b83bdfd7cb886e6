# SPDX-License-Identifier: MIT
"""Where a server is: passwords that nobody else sees."""

import os
import subprocess

from e2e import (BUILD, await_line, eventually, expect, expect_in,
                 expect_true, kill, stop_cleanly, test)
from redis_server import Server
from resp import Client

SECRET = "hunter2secret"


def words_of(process):
    """What ps shows of it, once the program itself is there."""
    with open("/proc/%d/cmdline" % process.pid, "rb") as file:
        return file.read().decode().rstrip("\0").split("\0")


def locked_server(place, password=SECRET):
    return Server(place, "--requirepass", password, waits_for="-NOAUTH")


# --- secrets ------------------------------------------------------------------


@test
def a_password_is_seen_neither_in_ps_nor_in_logs(place):
    server = locked_server(place)
    url = server.url_of("default:" + SECRET)
    worker = place.start("--redis", url, "--log-level", "debug", "run",
                         "--handle", place.echo())
    await_line(worker, "connected to")
    words = words_of(worker)
    expect_in("redis://default:***@127.0.0.1:%d" % server.port, words)
    expect_true(SECRET not in str(words), words)
    place.start("add", "t", "--redis=" + url)
    eventually(lambda: place.lines("out"), "the job ran")
    server.kill()
    await_line(worker, "connection lost")
    err = stop_cleanly(worker)
    expect_true(SECRET not in err, err)


@test
def no_command_shows_the_password_it_was_given(place):
    server = locked_server(place)
    for login in (":" + SECRET, "nobody:" + SECRET, ":%s0" % SECRET):
        for command in (["doctor"], ["add", "t"], ["stats"], ["doctor",
                        "--json"], ["run", "--handle", place.echo(),
                                    "--until-empty"]):
            result = place.weir(*command, "--redis", server.url_of(login),
                                "--log-level", "debug")
            expect_true(SECRET not in result.out + result.err,
                        "%r: %s%s" % (command, result.out, result.err))


@test
def weir_bench_hides_its_password_too(place):
    server = locked_server(place)
    bench = subprocess.Popen(
        [os.path.join(BUILD, "weir-bench"), "wake", "--redis",
         server.url_of(":" + SECRET), "--jobs", "100000"], text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.started.append(bench)
    eventually(lambda: "redis://:***@127.0.0.1:%d" % server.port
               in words_of(bench), "the password is hidden")
    kill(bench)


# --- where else a password may stand ------------------------------------------


@test
def a_password_comes_from_a_file_or_the_environment(place):
    server = locked_server(place)
    url = "redis://127.0.0.1:%d" % server.port
    path = place.write("password", SECRET + "\n")
    place.ok("add", "t", "--redis", "%s?password_file=%s" % (url, path))
    place.weir("add", "t", "--redis", url).expect_complaint(5, "NOAUTH")
    for flags, env in ((["--redis", url], {}), ([], {"WEIR_REDIS": url})):
        env["WEIR_REDIS_PASSWORD"] = SECRET
        expect(0, place.weir("add", "t", *flags, env=env).code)
        expect_in("ok       connection",
                  place.weir("doctor", *flags, env=env).out)


@test
def a_worker_follows_a_password_that_changes(place):
    server = locked_server(place)
    path = place.write("password", SECRET)
    url = "redis://127.0.0.1:%d?password_file=%s" % (server.port, path)
    worker = place.start("run", "--redis", url, "--handle", place.echo())
    await_line(worker, "connected to")
    admin = Client(server.path)
    admin("AUTH", SECRET)
    admin("CONFIG", "SET", "requirepass", "another")
    place.write("password", "another")
    admin("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    await_line(worker, "connected to")
    place.ok("add", "t", "--redis", url)
    eventually(lambda: place.lines("out"), "the job ran")


@test
def a_private_server_is_not_given_the_password_of_another(place):
    result = place.weir("add", "t", env={"WEIR_REDIS_PASSWORD": SECRET})
    expect(0, result.code, result.err)


@test
def a_file_without_a_password_is_wrong_usage(place):
    url = "redis://127.0.0.1?password_file=/no/such"
    place.weir("add", "t", "--redis", url).expect_complaint(
        2, "password_file=/no/such", "No such file")
    path = place.write("weir.conf", 'redis { url = "%s" }\n'
                       'topic t { handler = echo }\n' % url)
    place.weir("check", "--config", path).expect_complaint(
        2, "%s:1: url: password_file=" % path)
