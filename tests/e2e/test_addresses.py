# SPDX-License-Identifier: MIT
"""Where a server is: names, IPv6, and passwords that nobody else sees."""

import os
import socket
import subprocess

from e2e import (BUILD, await_line, eventually, expect, expect_in,
                 expect_true, kill, set_names, stop_cleanly, test)
from ports import free_port
from redis_server import Server
from resp import Client

SECRET = "hunter2secret"


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as free:
            free.bind(("::1", free_port()))
    except OSError:
        return False
    return True


def words_of(process):
    """What ps shows of it, once the program itself is there."""
    with open("/proc/%d/cmdline" % process.pid, "rb") as file:
        return file.read().decode().rstrip("\0").split("\0")


def locked_server(place, password=SECRET):
    return Server(place, "--requirepass", password, waits_for="-NOAUTH")


# --- names --------------------------------------------------------------------

@test
def a_host_name_does_in_every_command_and_file(place):
    server = Server(place)
    set_names(place, "cache.example 127.0.0.3 127.0.0.1\n")
    url = "redis://cache.example:%d" % server.port
    config = place.write("weir.conf", """redis { url = "%s" }
        topic t { handler = echo options = "file=%s" }
        """ % (url, place.path("out")))
    place.ok("add", "t", "--redis", url)
    expect(1, place.ok("stats", "t", "--redis", url)["topics"][0]["ready"])
    expect_in("ok       connection   %s\n" % url,
              place.weir("doctor", "--config", config).out)
    place.drain(flags=["--config", config])
    expect(1, len(place.lines("out")))


@test
def a_name_that_does_not_resolve_is_a_sentence_and_exit_5(place):
    set_names(place, "nowhere.example\n")
    url = "redis://nowhere.example"
    for command in (["add", "t"], ["stats"]):
        place.weir(*command, "--redis", url).expect_complaint(
            5, "cannot reach redis at redis://nowhere.example:6379: no address "
            "for host nowhere.example: ")
    for command in (["doctor"], ["run", "--handle", place.echo()]):
        result = place.weir(*command, "--redis", url)
        expect(5, result.code)
        expect_in("no address for host nowhere.example: ",
                  result.out + result.err)


@test
def a_resolver_that_does_not_answer_holds_nobody_up(place):
    os.mkfifo(place.path("fifo"))
    set_names(place, "slow.example <%s\n" % place.path("fifo"))
    url = "redis://slow.example"
    place.weir("add", "t", "--redis", url).expect_complaint(
        5, "redis://slow.example:6379")
    result = place.weir("doctor", "--redis", url)
    expect(5, result.code)
    expect_in("no address for host slow.example: the resolver does not answer",
              result.out)


@test
def a_worker_follows_a_name_although_the_old_server_lives_on(place):
    old = Server(place)
    Server(place, "--bind", "127.0.0.2", "--port", str(old.port), name="new")
    set_names(place, "cache.example 127.0.0.1\n")
    url = "redis://cache.example:%d" % old.port
    worker = place.start("run", "--redis", url, "--handle", place.echo())
    await_line(worker, "connected to")
    set_names(place, "cache.example 127.0.0.2\n")
    await_line(worker, "host cache.example is at 127.0.0.2 now")
    place.ok("add", "t", "--redis", url)
    eventually(lambda: place.lines("out"), "the job ran")
    eventually(lambda: old.told("CLIENT LIST").count(" name=") == 1,
               "nobody but who asks is left at the old one")
    stop_cleanly(worker)


def has_keeper(server):
    """Its connection has no name, and renews."""
    return any("name= " in line and "cmd=evalsha" in line
               for line in server.told("CLIENT LIST").splitlines())


@test
def leases_are_kept_where_the_name_moved_while_a_handler_holds_the_loop(place):
    old = Server(place)
    new = Server(place, "--bind", "127.0.0.2", "--port", str(old.port),
                 name="new")
    set_names(place, "cache.example 127.0.0.1\n")
    url = "redis://cache.example:%d" % old.port
    place.ok("add", "t", "--redis", url)
    place.start("run", "--redis", url, "--lease", "1s", "--handle",
                "t=hangs")
    eventually(lambda: has_keeper(old), "its keeper is there")
    set_names(place, "cache.example 127.0.0.2\n")
    eventually(lambda: has_keeper(new), "its keeper is at the new one")


@test
def an_ipv6_address_stands_in_brackets(place):
    expect_true(has_ipv6(), "this machine has the address ::1, which this "
                            "test needs")
    server = Server(place, "--bind", "::1")
    url = "redis://[::1]:%d" % server.port
    place.ok("add", "t", "--redis", url)
    expect_in("ok       connection   %s\n" % url,
              place.weir("doctor", "--redis", url).out)
    place.drain(place.echo(), flags=["--redis",
                                     "redis://localhost:%d" % server.port])
    expect(1, len(place.lines("out")))
    place.weir("add", "t", "--redis", "redis://::1").expect_complaint(
        2, "--redis: an IPv6 address must stand in brackets")


@test
def several_hosts_have_no_database(place):
    place.weir("add", "t", "--redis", "redis://a,b/1").expect_complaint(
        2, "--redis: several hosts are a cluster, which has no databases")


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
def a_password_in_a_file_of_its_own_is_no_secret_of_the_configuration(place):
    path = place.write("password", SECRET)
    for url, is_told in (("redis://:x@127.0.0.1", True),
                         ("redis://127.0.0.1?password_file=" + path, False)):
        config = place.write("weir.conf", 'redis { url = "%s" }\n'
                             'topic t { handler = echo }\n' % url)
        os.chmod(config, 0o644)
        result = place.weir("check", "--config", config)
        expect(0, result.code, result.err)
        expect(is_told, "a secret that everybody can read" in result.err)


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
