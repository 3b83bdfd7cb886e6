# SPDX-License-Identifier: MIT
"""weir doctor, and what weir run says about a server before it serves."""

import os
import select
import shutil
import socket
import subprocess
import threading
import time

from e2e import (BUILD, TEST_PLUGINS, Redis, await_line, expect, expect_in,
                 expect_true, stop_cleanly, test)
from fake import Fake
from redis_server import Server, use_good_plugins
from terminal import Terminal

GOOD = ("connection", "version", "replication", "cluster", "memory", "clients",
        "clock", "scripts", "rights", "files", "plugins")


def examine(place, code, *args):
    """Findings by check, the last of each."""
    use_good_plugins(place)
    result = place.weir("doctor", "--json", *args)
    expect(code, result.code, "exit code, %r %r" % (result.out, result.err))
    return {finding["check"]: finding for finding in result.json}


def expect_finding(findings, check, status, *words):
    finding = findings[check]
    expect(status, finding["status"], check)
    for word in words:
        expect_in(word, finding["text"] + "; " + finding["advice"])
    if status != "ok":
        expect_true(finding["advice"] != "", "there is advice: %r" % finding)


def expect_good_except(findings, *checks):
    for check in GOOD:
        if check not in checks:
            expect_finding(findings, check, "ok")


@test
def the_private_server_is_in_order(place):
    findings = examine(place, 0)
    expect_good_except(findings)
    expect_finding(findings, "eviction", "ok", "noeviction")
    expect_finding(findings, "persistence", "ok", "everysec")


@test
def each_check_is_a_line(place):
    use_good_plugins(place)
    result = place.weir("doctor")
    expect(0, result.code, result.err)
    for line in result.out.splitlines():
        expect_true(line.split()[0] in ("ok", "warning", "failed"), line)
    expect_in("ok       eviction     noeviction\n", result.out)


@test
def a_server_that_evicts_and_keeps_nothing_is_named(place):
    server = Server(place, "--maxmemory-policy", "allkeys-lru")
    findings = examine(place, 1, "--redis", server.url)
    expect_good_except(findings)
    expect_finding(findings, "eviction", "failed", "allkeys-lru",
                   "maxmemory-policy noeviction")
    expect_finding(findings, "persistence", "warning", "every job",
                   "appendonly yes")


@test
def an_append_only_file_that_nobody_syncs_is_a_warning(place):
    server = Server(place, "--appendonly", "yes", "--appendfsync", "no")
    expect_finding(examine(place, 0, "--redis", server.url), "persistence",
                   "warning", "appendfsync everysec")


@test
def snapshots_alone_are_a_warning(place):
    server = Server(place, "--save", "3600", "1")
    expect_finding(examine(place, 0, "--redis", server.url), "persistence",
                   "warning", "since the last snapshot")


@test
def a_server_near_its_maxmemory_is_named(place):
    server = Server(place)
    server.tell("CONFIG SET maxmemory 100kb")
    expect_finding(examine(place, 1, "--redis", server.url), "memory",
                   "failed", "jobs are refused", "maxmemory")


@test
def a_user_without_commands_hears_which(place):
    server = Server(place)
    server.log_in("-zadd -zmscore")
    mine = server.url_of("w:pw")
    findings = examine(place, 1, "--redis", mine)
    expect_finding(findings, "rights", "failed", "ZADD, ZMSCORE",
                   "+zadd +zmscore")
    expect_good_except(findings, "rights")
    server.tell("ACL SETUSER w +zadd +zmscore -evalsha")
    findings = examine(place, 1, "--redis", mine)
    expect_finding(findings, "rights", "failed", "EVALSHA", "+evalsha")
    expect_finding(findings, "scripts", "failed", "NOPERM", "EVALSHA")
    expect(":0", server.tell("DBSIZE"))


@test
def a_user_without_keys_or_channels_is_told(place):
    server = Server(place)
    server.log_in(keys="~other:*")
    mine = server.url_of("w:pw")
    expect_finding(examine(place, 1, "--redis", mine), "rights", "failed",
                   "~weir:*")
    server.tell("ACL SETUSER w resetchannels ~weir:* &other:*")
    expect_finding(examine(place, 1, "--redis", mine), "rights", "failed",
                   "&weir:wake:*")


@test
def a_user_who_may_not_ask_gets_warnings(place):
    server = Server(place)
    server.tell("ACL SETUSER w on >pw ~* &* +@all -info -config -multi -time")
    findings = examine(place, 0, "--redis", server.url_of("w:pw"))
    for check, word in (("settings", "INFO"), ("rights", "MULTI"),
                        ("clock", "NOPERM")):
        expect_in(word, findings[check]["text"] + findings[check]["advice"])
        expect("warning", findings[check]["status"])


@test
def a_password_is_used_and_a_wrong_one_told(place):
    server = Server(place, "--requirepass", "secret", waits_for="-NOAUTH")
    expect_good_except(examine(place, 0, "--redis",
                               server.url_of(":secret")))
    findings = examine(place, 5, "--redis", server.url_of(":wrong"))
    expect_finding(findings, "connection", "failed", "WRONGPASS", "password")
    expect_true("wrong@" not in str(findings), "no password is shown")


@test
def a_missing_password_is_told(place):
    server = Server(place, "--requirepass", "secret", waits_for="-NOAUTH")
    findings = examine(place, 5, "--redis", server.url)
    expect_finding(findings, "connection", "failed", "NOAUTH", "password")


@test
def a_replica_takes_no_jobs(place):
    server = Server(place, "--replicaof", "127.0.0.1", "1")
    findings = examine(place, 1, "--redis", server.url)
    expect_finding(findings, "replication", "failed",
                   "replica of 127.0.0.1 port 1", "link down", "primary")


@test
def a_primary_without_the_replicas_it_wants_is_named(place):
    server = Server(place, "--min-replicas-to-write", "1")
    expect_finding(examine(place, 1, "--redis", server.url), "replication",
                   "failed", "1 needed to write", "min-replicas-to-write")


@test
def a_server_that_is_loading_is_named(place):
    # While it loads it answers after each 2 MiB.
    server = Server(place, "--rdbcompression", "no")
    redis = Redis(server.path)
    for i in range(1000):
        redis.send("SET key:%d %s" % (i, "x" * 50000))
    for i in range(1000):
        expect("+OK", redis.line())
    redis.send("SAVE")
    expect("+OK", redis.line())
    redis.close()
    server.kill()
    server = Server(place, "--key-load-delay", "15000", waits_for="-LOADING")
    findings = examine(place, 1, "--redis", server.url)
    expect_finding(findings, "loading", "failed", "wait")
    expect_true("rights" not in findings, "nothing that cannot be known")


@test
def a_server_that_is_not_there_is_exit_5(place):
    findings = examine(place, 5, "--redis", "unix:///nowhere.sock")
    expect_finding(findings, "connection", "failed", "unix:///nowhere.sock",
                   "--redis")
    expect_finding(findings, "files", "ok")


@test
def plugins_that_cannot_be_loaded_are_named(place):
    os.mkdir(place.path("plugins"))
    for name in ("good.so", "wrong_abi.so"):
        shutil.copy(os.path.join(TEST_PLUGINS, name), place.path("plugins"))
    place.env["WEIR_PLUGIN_PATH"] = place.path("plugins")
    result = place.weir("doctor", "--json")
    expect(1, result.code)
    found = [f for f in result.json if f["check"] == "plugins"]
    expect("failed", found[0]["status"])
    expect_in("wrong_abi.so", found[0]["text"])
    expect(["ok", place.path("plugins") + ": good"],
           [found[1]["status"], found[1]["text"]])


@test
def few_files_are_a_warning(place):
    use_good_plugins(place)
    done = subprocess.run(
        ["sh", "-c", "ulimit -n 100; exec \"$0\" doctor", os.path.join(
            os.path.abspath(BUILD), "weir")], env=place.env, text=True,
        capture_output=True)
    expect(0, done.returncode, done.stderr)
    expect_in("warning  files        100 files", done.stdout)


@test
def the_server_of_a_configuration_is_looked_at(place):
    server = Server(place, "--maxmemory-policy", "volatile-ttl")
    place.write("weir.conf", 'redis { url = "%s" }\n' % server.url)
    findings = examine(place, 1, "--config", place.path("weir.conf"))
    expect_finding(findings, "eviction", "failed", "volatile-ttl")


# --- weir run -------------------------------------------------------------

@test
def a_worker_refuses_a_server_that_evicts(place):
    server = Server(place, "--maxmemory-policy", "allkeys-lru",
                    "--appendonly", "yes")
    use_good_plugins(place)
    serve = ("run", "--redis", server.url, "--handle", "t=echo",
             "--until-empty")
    place.weir(*serve, "--log-level", "warn").expect_complaint(
        2, "allkeys-lru", "noeviction", "--allow-eviction")
    result = place.weir(*serve, "--allow-eviction")
    expect(0, result.code, result.err)
    expect_in(" warn redis: maxmemory-policy is allkeys-lru", result.err)


@test
def a_configuration_may_allow_eviction(place):
    server = Server(place, "--maxmemory-policy", "allkeys-lru")
    use_good_plugins(place)
    for word, code in (("no", 2), ("yes", 0)):
        place.write("weir.conf",
                    'redis { url = "%s" }\n'
                    "worker { allow_eviction = %s }\n"
                    "topic t { handler = echo }\n" % (server.url, word))
        result = place.weir("run", "--until-empty", "--config",
                            place.path("weir.conf"))
        expect(code, result.code, result.err)


@test
def a_worker_says_once_that_nothing_is_kept(place):
    server = Server(place)
    use_good_plugins(place)
    place.ok("add", "t", "--redis", server.url)
    result = place.drain("t=echo", flags=("--redis", server.url))
    expect(1, result.err.count("nothing is written to disk"), result.err)


@test
def a_worker_on_a_replica_says_so(place):
    server = Server(place, "--replicaof", "127.0.0.1", "1")
    use_good_plugins(place)
    worker = place.work("t=echo", flags=("--redis", server.url))
    line = await_line(worker, "is a replica of 127.0.0.1")
    expect_in("give the address of the primary", line)
    stop_cleanly(worker)


@test
def a_worker_who_may_not_ask_says_so_and_works(place):
    server = Server(place)
    use_good_plugins(place)
    server.log_in("-info")
    result = place.drain("t=echo", flags=("--redis", server.url_of("w:pw")))
    expect_in("its settings are not known (NOPERM", result.err)


class Relay(Fake):
    """A way of WAY_S to a server; counts how often somebody waited for an
    answer before asking on."""

    WAY_S = 0.02

    def __init__(self, path):
        self.path, self.rounds = path, 0
        super().__init__()
        self.url = "redis://127.0.0.1:%d" % self.port

    def serve(self, client):
        server, asks = socket.socket(socket.AF_UNIX), False
        server.connect(self.path)
        try:
            while True:
                for end in select.select([client, server], [], [])[0]:
                    time.sleep(self.WAY_S)
                    data = end.recv(1 << 20)
                    if not data:
                        return
                    self.rounds += end is client and not asks
                    asks = end is client
                    (server if end is client else client).sendall(data)
        except OSError:
            pass
        finally:
            client.close()
            server.close()


@test
def a_worker_far_from_its_server_waits_for_few_answers_before_it_serves(place):
    server = Server(place)
    use_good_plugins(place)
    place.drain("t=echo", flags=("--redis", server.url))  # brings the scripts
    relay = Relay(server.path)
    place.drain("t=echo", flags=("--redis", relay.url))
    # 29, loaded or not.
    expect_true(0 < relay.rounds < 80, "%d rounds" % relay.rounds)
    relay.close()


@test
def a_worker_without_the_right_to_run_scripts_ends(place):
    server = Server(place)
    use_good_plugins(place)
    server.log_in("-evalsha")
    place.weir("run", "--redis", server.url_of("w:pw"), "--handle", "t=echo",
               "--log-level", "error").expect_complaint(1, "NOPERM",
                                                        "EVALSHA")


@test
def a_worker_without_a_command_hears_which(place):
    server = Server(place)
    use_good_plugins(place)
    server.log_in("-hkeys")
    result = place.drain("t=echo", flags=("--redis", server.url_of("w:pw")))
    expect_in("the user may not run HKEYS; ACL SETUSER with +hkeys",
              result.err)


@test
def who_is_not_let_in_hears_why(place):
    server = Server(place, "--requirepass", "secret", waits_for="-NOAUTH")
    use_good_plugins(place)
    wrong = server.url_of(":wrong")
    for url, word in ((wrong, "WRONGPASS"), (server.url, "NOAUTH")):
        place.weir("add", "t", "--redis", url).expect_complaint(
            5, "turned us away", word)
        result = place.weir("run", "--handle", "t=echo", "--redis", url)
        expect(5, result.code, result.err)
        expect_in(word, result.err.splitlines()[-1])


@test
def an_add_that_is_not_allowed_or_not_taken_says_why(place):
    server = Server(place)
    server.log_in("-zadd")
    place.weir("add", "t", "--redis", server.url_of("w:pw")).expect_complaint(
        1, "t add: ERR", "weir doctor")
    server.tell("CONFIG SET min-replicas-to-write 1")
    place.weir("add", "t", "--redis", server.url).expect_complaint(
        1, "NOREPLICAS", "weir doctor")


class Measureless:
    """A server that answers PING, and any other command with `head` and then
    `more` again and again, every `pause` seconds."""

    def __init__(self, path, head, more=b"", pause=0):
        self.url = "unix://" + path
        self.answer = head, more, pause
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        head, more, pause = self.answer
        client = self.listener.accept()[0]
        try:
            while True:
                if b"PING" in client.recv(65536):
                    client.sendall(b"+PONG\r\n")
                    continue
                client.sendall(head)
                while more:
                    client.sendall(more)
                    time.sleep(pause)
        except OSError:
            client.close()


@test
def who_answers_without_measure_is_left(place):
    late, large = "no answer within 3000 ms", "an answer of more than 64 MiB"
    either = ""  # which of them a flood meets first depends on the machine
    flood = b"x" * 65536
    cases = ((late, b""), (late, b"$2000\r\n", b"x", 0.5),
             (late, b"*1000\r\n", b":1\r\n", 0.5),
             (large, b"*2147483647\r\n"), (large, b"*1000000\r\n" * 7),
             (either, b"$2147483647\r\n", flood), (large, b"+", flood),
             ("", b"*1\r\n" * 2000000))
    for number, (why, *answer) in enumerate(cases):
        server = Measureless(place.path("m%d.sock" % number), *answer)
        findings = examine(place, 5, "--redis", server.url)
        expect_finding(findings, "connection", "failed", server.url, why)
        expect_true("scripts" not in findings, "it is not asked for more")


@test
def what_is_found_is_coloured_on_a_terminal_alone(place):
    use_good_plugins(place)
    for args, env, is_coloured in (
            ([], {}, True), ([], {"NO_COLOR": ""}, True),
            ([], {"NO_COLOR": "1"}, False), ([], {"TERM": "dumb"}, False),
            (["--json"], {}, False), (["--acl"], {}, False)):
        terminal = Terminal(place, "doctor", *args, **env)
        terminal.wait()
        expect(is_coloured, b"\033[32mok     \033[0m  " in terminal.shown,
               "green %r %r" % (args, env))
        expect(is_coloured, b"\033" in terminal.shown, "%r %r" % (args, env))
    expect_true("\033" not in place.weir("doctor").out, "none in a pipe")
    terminal = Terminal(place, "doctor", "--redis", "redis://127.0.0.1:1")
    expect(5, terminal.wait())
    expect_in(b"\033[31mfailed \033[0m  connection ", terminal.shown)
