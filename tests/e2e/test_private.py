# SPDX-License-Identifier: MIT
"""The private server as the command uses it, and servers that are not there."""

import fcntl
import os
import re
import shutil
import signal
import socket

from e2e import (WEIR, Redis, communicate, eventually, expect, expect_in,
                 expect_true, is_alive, kill, run, stop_cleanly, test)
from patience import Clock
from ports import free_port


@test
def the_first_command_starts_the_server_and_says_so_once(place):
    first = place.weir("add", "t", "--id", "1")
    expect_in("weir: private redis-server in %s (started, pid " % place.data,
              first.err)
    expect("", place.weir("add", "t", "--id", "2").err)


@test
def at_log_level_warn_nothing_is_said_about_it(place):
    result = place.weir("add", "t", "--log-level", "warn")
    expect(0, result.code)
    expect("", result.err)


@test
def commands_at_once_start_one_server(place):
    running = [place.start("add", "t", "--id", str(i)) for i in range(8)]
    said = [communicate(process)[1] for process in running]
    expect([0] * 8, [process.returncode for process in running])
    expect(1, sum("(started, pid" in text for text in said))
    expect(8, place.stats("t")["ready"])


@test
def the_server_does_not_hold_the_commands_output_open(place):
    """A caller that reads to the end must not wait for the server."""
    done = run('"%s" add t --id 1 | cat' % WEIR, shell=True, env=place.env)
    expect("1\n", done.stdout)


@test
def jobs_survive_stop_and_start(place):
    place.add("t", "1", "--delay", "1h", "--body", '"kept"')
    expect(0, place.weir("server", "stop").code)
    expect("kept", place.ok("show", "t", "1")["body"])


def kill_server(place):
    pid = place.server_pid()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not is_alive(pid), "the server is gone")


def file_of(place):
    """The append-only file, or the one that grows (since 7.0)."""
    folder = place.data + "/appendonlydir"
    if not os.path.isdir(folder):
        return place.data + "/appendonly.aof"
    return os.path.join(folder, max(name for name in os.listdir(folder)
                                    if name.endswith(".incr.aof")))


def is_writing(place):
    redis = place.redis()
    redis.send("INFO persistence")
    lines = [redis.line()]
    while not lines[-1].startswith("aof_buffer_length:"):
        lines.append(redis.line())
    redis.close()
    return ("aof_rewrite_in_progress:0" not in lines or
            lines[-1] != "aof_buffer_length:0")


def leave_half_a_step(place):
    """Of the second of two adds; the server may write a second later."""
    def written():
        with open(file_of(place), "rb") as file:
            data = file.read()
        return data if data.count(b"$5\r\nadded\r\n") == 2 else None

    place.add("t", "whole")
    place.add("t", "cut")
    data = eventually(written, "both are written")
    kill_server(place)
    os.truncate(file_of(place), data.rindex(b"$5\r\nadded\r\n"))


@test
def a_step_that_a_crash_cut_in_two_does_not_come_back(place):
    leave_half_a_step(place)
    place.add("t", "next")  # starts it
    eventually(lambda: not is_writing(place), "all is in the new file")
    kill_server(place)
    found = {name: place.weir("show", "t", name).code
             for name in ("whole", "cut", "next")}
    expect({"whole": 0, "cut": 3, "next": 0}, found, "exit codes of show")


def start_and_leave(place, command):
    """A server is started by `command`; who did that is gone."""
    other = place.path("other")
    os.mkdir(other)
    with open(os.path.join(other, "redis-server"), "w") as file:
        file.write("#!/bin/sh\n" + command % shutil.which("redis-server"))
    os.chmod(os.path.join(other, "redis-server"), 0o755)
    path = place.env["PATH"]
    place.env["PATH"] = other + ":" + path
    gone = place.start("topic", "list")
    place.env["PATH"] = path
    eventually(lambda: place.server_pid() not in (0, None) and
               is_alive(place.server_pid()), "the server is started")
    kill(gone)


@test
def a_file_is_mended_though_who_started_the_server_is_gone(place):
    leave_half_a_step(place)
    start_and_leave(place, 'exec %s "$@" --key-load-delay 100000\n')
    place.add("t", "next")
    eventually(lambda: not is_writing(place), "all is in the new file")
    kill_server(place)
    found = {name: place.weir("show", "t", name).code
             for name in ("whole", "cut", "next")}
    expect({"whole": 0, "cut": 3, "next": 0}, found, "exit codes of show")


@test
def one_that_does_not_listen_yet_is_waited_for(place):
    """It is in redis.pid before it listens."""
    gate = place.path("gate")
    os.mkfifo(gate)
    start_and_leave(place, "cd %s && echo $$ >redis.pid && read -r _ <%s\n"
                    % (place.data, gate) + 'exec %s "$@"\n')
    add = place.start("add", "t", "--id", "next")
    eventually(lambda: add.poll() is not None or is_locked(place),
               "it looks for the server")
    with open(gate, "w") as file:
        file.write("\n")
    _, err = communicate(add)
    expect(0, add.returncode, err)
    expect("ready", place.ok("show", "t", "next")["state"])


def is_locked(place):
    with open(os.path.join(place.data, "lock")) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@test
def a_folder_of_somebody_else_does_not_hold_the_directory_up(place):
    if os.geteuid() != 0:
        return print("note: only root can give a folder away")
    place.add("t", "1")
    os.mkdir(place.data + "/other")
    os.chown(place.data + "/other", 65534, 65534)
    place.add("t", "2")
    expect(2, place.stats("t")["ready"])


@test
def status_tells_about_a_running_server(place):
    place.add("t", "1")
    status = place.ok("server", "status")
    expect(True, status["running"])
    expect(place.server_pid(), status["pid"])
    expect([place.data, place.data + "/redis.sock"],
           [status["dir"], status["socket"]])
    expect_true(status["memory_bytes"] > 0 and "." in status["version"],
                "memory and version in %r" % status)
    text = place.weir("server", "status").out
    expect_in("state    running", text)
    (url,) = re.findall(r"^url +(.*)$", text, re.M)
    expect(1, place.ok("stats", "t", "--redis", url)["topics"][0]["ready"])


@test
def status_of_a_stopped_server_is_exit_3(place):
    for _ in range(2):  # without and with the directory
        result = place.weir("server", "status", "--json")
        expect(3, result.code)
        expect([False, None], [result.json["running"], result.json["pid"]])
        os.makedirs(place.data, exist_ok=True)
    expect_in("state    stopped", place.weir("server", "status").out)


@test
def status_does_not_start_a_server(place):
    place.weir("server", "status")
    expect_true(not os.path.exists(place.data), "nothing was made")


@test
def stop_waits_until_the_server_is_gone(place):
    place.add("t", "1")
    pid = place.server_pid()
    expect(0, place.weir("server", "stop").code)
    expect_true(not is_alive(pid), "the server is gone")
    place.weir("server", "stop").expect_complaint(3, place.data)


@test
def a_data_directory_on_the_command_line_comes_first(place):
    other = place.path("other")
    expect(0, place.weir("add", "t", "--data", other).code)
    expect(True, place.ok("server", "status", "--data", other)["running"])
    expect_true(not os.path.exists(place.data), "WEIR_DATA was not used")
    expect(0, place.weir("server", "stop", "--data", other).code)


@test
def without_a_data_directory_the_xdg_one_is_used(place):
    env = {"WEIR_DATA": "", "XDG_STATE_HOME": place.path("state")}
    expect(0, place.weir("add", "t", env=env).code)
    expect_true(os.path.exists(place.path("state/weir/redis.sock")),
                "the socket is in the state directory")
    expect(0, place.weir("server", "stop", env=env).code)


@test
def without_xdg_the_home_directory_is_used(place):
    env = {"WEIR_DATA": "", "XDG_STATE_HOME": "", "HOME": place.path("home")}
    expect(0, place.weir("add", "t", env=env).code)
    expect(0, place.weir("server", "stop", env=env).code)
    expect_true(os.path.isdir(place.path("home/.local/state/weir")),
                "the directory is below home")


@test
def the_address_in_the_environment_is_used(place):
    place.add("t", "1")
    env = {"WEIR_DATA": place.path("other"),
           "WEIR_REDIS": "unix://%s/redis.sock" % place.data}
    result = place.weir("show", "t", "1", env=env)
    expect(0, result.code, result.err)
    expect("", result.err)


def expect_unreachable(place, *args):
    clock = Clock(9.0)
    result = place.weir(*args)
    expect_true(not clock.is_over(),
                "it does not wait for the 10 s of a reply")
    return result.expect_complaint(5, "cannot reach redis")


@test
def a_socket_that_is_not_there_is_exit_5_soon(place):
    address = "unix://" + place.path("x.sock")
    for command in (["stats"], ["show", "t", "1"], ["add", "t"],
                    ["run", "--handle", "t=echo", "--log-level", "error"]):
        result = expect_unreachable(place, *command, "--redis", address)
        for word in (address, "No such file or directory", "--redis URL"):
            expect_in(word, result.err)


@test
def a_port_where_nobody_listens_is_exit_5_soon(place):
    address = "127.0.0.1:%d" % free_port()
    result = expect_unreachable(place, "stats", "--redis",
                                "redis://" + address)
    expect_in(address, result.err)
    expect_in("refused", result.err)


@test
def a_server_that_does_not_answer_is_exit_5_soon(place):
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(place.path("silent.sock"))
        silent.listen(16)
        expect_unreachable(place, "stats", "--redis",
                           "unix://" + place.path("silent.sock"))


@test
def a_server_that_wants_a_password_is_exit_5_with_its_words(place):
    place.add("t", "1")
    redis = Redis(os.path.join(place.data, "redis.sock"))
    redis.send("CONFIG SET requirepass s3cret")
    expect("+OK", redis.line())
    redis.close()
    address = "unix://%s/redis.sock" % place.data
    place.weir("stats", "--redis", address) \
        .expect_complaint(5, address, "NOAUTH")


@test
def a_missing_redis_server_is_named(place):
    place.weir("stats", env={"PATH": "/nowhere"}) \
        .expect_complaint(5, "redis-server", "PATH")


@test
def a_worker_outlives_a_restart_of_its_server(place):
    place.ok("add", "t", "--jsonl", "-", stdin="{}\n" * 3000)
    worker = place.work(place.echo())
    eventually(lambda: len(place.lines("out")) == 3000, "the first jobs ran")
    os.kill(place.server_pid(), signal.SIGKILL)
    eventually(lambda: not is_alive(place.server_pid()), "the server is dead")
    place.add("t", "2")  # starts it again
    eventually(lambda: len(place.lines("out")) > 3000, "the last job ran")
    err = stop_cleanly(worker)
    expect(3001, len(place.lines("out")), err)
    # It has several connections and speaks of one, and perhaps of a claim.
    expect(1, err.count("redis: connection lost ("), err)
    expect(2, err.count("redis: connected to"), err)


SOMEBODY = 65534


def refused(place, *words):
    """Every command says why and starts nothing."""
    for args in (("add", "t"), ("server", "status"), ("server", "stop"),
                 ("run", "--handle", "t=echo"), ("doctor",)):
        place.weir(*args).expect_complaint(2, *words)


def plant(place):
    """A link where the server writes its number; what it would destroy."""
    victim = place.write("victim", "0")
    os.mkdir(place.data, 0o700)
    os.symlink(victim, os.path.join(place.data, "redis.pid"))
    return victim


def expect_unharmed(victim):
    with open(victim) as file:
        expect("0", file.read())


@test
def a_data_directory_of_somebody_else_is_not_used(place):
    if os.geteuid() != 0:
        return print("note: needs root")
    victim = plant(place)
    os.chown(place.data, SOMEBODY, SOMEBODY)
    refused(place, "the data directory %s belongs to somebody else (uid 65534)"
            % place.data)
    os.symlink(place.data, place.path("link"))
    place.weir("add", "t", "--data", place.path("link")).expect_complaint(
        2, place.data, "somebody else")
    expect_unharmed(victim)


@test
def one_that_others_may_write_to_is_not_used(place):
    os.mkdir(place.data)
    for mode in (0o777, 0o1777, 0o770, 0o702):
        os.chmod(place.data, mode)
        refused(place, "others may write to the data directory " + place.data,
                "chmod go-w")
    expect([], os.listdir(place.data))
    place.env["WEIR_DATA"] = place.data + "/own"
    place.add("t", "1")
    expect(0, place.weir("server", "stop").code)
    place.env["WEIR_DATA"] = place.data
    os.chmod(place.data, 0o755)
    place.add("t", "1")


@test
def what_somebody_else_put_into_it_is_named_and_not_used(place):
    if os.geteuid() != 0:
        return print("note: needs root")
    victim = plant(place)
    link = os.path.join(place.data, "redis.pid")
    os.chown(link, SOMEBODY, SOMEBODY, follow_symlinks=False)
    refused(place, "redis.pid in the data directory %s belongs to somebody "
            "else (uid 65534); remove it" % place.data)
    expect_unharmed(victim)
    os.unlink(link)
    place.add("t", "1")


@test
def a_server_of_somebody_else_is_not_spoken_to(place):
    if os.geteuid() != 0:
        return print("note: needs root")
    os.mkdir(place.data, 0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.join(place.data, "redis.sock"))
        os.seteuid(SOMEBODY)  # who listens is who the peer is
        listener.listen()
        os.seteuid(0)
        for args in (("add", "t"), ("server", "status"), ("server", "stop")):
            place.weir(*args).expect_complaint(
                2, place.data + "/redis.sock is no server of this user")
        listener.setblocking(False)
        for _ in range(3):  # each command was there, and said nothing
            with listener.accept()[0] as peer:
                expect(b"", peer.recv(1))
