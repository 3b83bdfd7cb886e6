# SPDX-License-Identifier: MIT
"""bash completion of weir: what TAB offers, asked from a real bash."""

import os
import shutil

from e2e import BUILD, ROOT, WEIR, expect, expect_in, expect_true, run, test
from terminal import Terminal

FILE = os.path.join(ROOT, "adapters", "cli", "completion.bash")
SCRIPT = """
source "$1"
COMP_LINE=$2 COMP_POINT=${#2} COMP_WORDS=(weir) COMP_CWORD=0
_weir "$3" 2>&1
printf '%s\\n' "${COMPREPLY[@]}"
"""


def complete(place, line, weir=WEIR):
    done = run(["bash", "-c", SCRIPT, "bash", FILE, line, weir],
               env=place.env, cwd=place.dir)
    expect([0, ""], [done.returncode, done.stderr])
    return sorted(done.stdout.split())


@test
def commands_are_completed(place):
    expect(["add"], complete(place, "weir ad"))
    expect(["topic", "topics"], complete(place, "weir top"))
    expect(["renew", "reschedule", "resume", "run"], complete(place, "weir r"))
    for name in ("dead", "list", "purge", "topic", "check"):
        expect_in(name, complete(place, "weir "))


@test
def commands_of_a_group_are_completed(place):
    expect(["list", "purge", "requeue"], complete(place, "weir dead "))
    expect(["set", "show"], complete(place, "weir topic s"))
    expect(["list"], complete(place, "weir --log-level warn topic l"))
    expect(["requeue"], complete(place, "weir help dead r"))
    expect(["show"], complete(place, "weir help sh"))


@test
def options_of_the_command_are_completed(place):
    expect(["--json", "--jsonl"], complete(place, "weir add t --js"))
    expect(["--state"], complete(place, "weir list --st"))
    expect(["--watch", "--wide"], complete(place, "weir stats --w"))
    expect(["--data"], complete(place, "weir --da"))
    expect_in("--until-empty", complete(place, "weir run --"))


@test
def values_of_options_are_completed(place):
    expect(["debug"], complete(place, "weir stats --log-level d"))
    expect(["ready", "running"], complete(place, "weir list t --state r"))
    expect(["p50", "p99"], complete(place, "weir stats --sort p"))
    open(place.path("weir.conf"), "w").close()
    expect(["weir.conf"], complete(place, "weir check --config we"))


@test
def topics_are_completed(place):
    for topic in ("order.close", "order.notify", "a:b"):
        place.add(topic, "1", "--delay", "1h")
    expect(["a:b", "order.close", "order.notify"],
           complete(place, "weir show "))
    expect(["order.close"], complete(place, "weir stats order.c"))
    expect(["order.notify"], complete(place, "weir dead requeue order.n"))
    expect(["b"], complete(place, "weir pause a:"))
    expect([], complete(place, "weir show order.close "))


@test
def topics_of_the_server_that_the_line_names_are_completed(place):
    place.add("order.close", "1", "--delay", "1h")
    socket = os.path.join(place.data, "redis.sock")
    expect(["order.close"],
           complete(place, "weir stats --redis unix://%s or" % socket))
    expect([], complete(place, "weir stats --data %s or" % place.path("x")))


@test
def options_of_a_topic_are_completed(place):
    expect(["retry=", "retry_jitter="],
           complete(place, "weir topic set t ret"))
    expect_in("kind=", complete(place, "weir topic set t weight=1 "))
    expect_in("max_pending=", complete(place, "weir topic set t "))


@test
def topics_and_plugins_are_completed_behind_handle(place):
    place.add("order.close", "1", "--delay", "1h")
    expect(["order.close="], complete(place, "weir run --handle or"))
    expect(["minimal"], complete(place, "weir run --handle t=mini"))
    expect(["echo"], complete(place, "weir run --handle t=ec"))
    expect([], complete(place, "weir run --handle t=xylo"))
    os.mkdir(place.path("dir"))
    place.write("dir/mine.so", "")
    expect(["./dir/mine.so"], complete(place, "weir run --handle t=./dir/mi"))
    expect_in("minimal", complete(place, "weir plugin try mini"))
    expect(["info"], complete(place, "weir plugin inf"))


@test
def a_weir_that_is_named_by_its_path_is_completed(place):
    os.mkdir(place.path("build"))
    os.symlink(WEIR, place.path("build/weir"))
    place.env["HOME"] = place.dir
    for name in ("build/weir", "./build/weir", "~/build/weir"):
        expect(["check"], complete(place, name + " che", name))
        bash = Terminal(place, "--norc", "--noprofile", "-i", program="bash",
                        PS1="$ ", cwd=place.dir)
        os.write(bash.fd, b"source %s\n%s che\t\n"
                 % (FILE.encode(), name.encode()))
        while b"check needs --config" not in bash.shown:
            expect_true(bash.read(), "%r" % bash.shown)
        os.write(bash.fd, b"exit\n")
        bash.wait()


@test
def completing_starts_no_server(place):
    expect([], complete(place, "weir show "))
    expect_true(not os.path.exists(place.data), "no data directory")


@test
def a_file_below_home_stays_below_home(place):
    place.env["HOME"] = place.dir
    place.write("weir conf", "")
    expect_in("~/weir\\", complete(place, "weir check --config ~/we"))


@test
def a_name_that_holds_a_command_runs_none(place):
    name = "$(touch${IFS}ran).so"
    plugins = place.path("plugins")
    os.mkdir(plugins)
    place.env["WEIR_PLUGIN_PATH"] = plugins
    for folder in (plugins, place.dir):
        shutil.copy(os.path.join(BUILD, "plugins", "echo.so"),
                    os.path.join(folder, name))
    for line in ("weir run --handle t=", "weir run --handle t=./",
                 "weir plugin check ", "weir check --config ",
                 "weir plugin check $"):
        offered = complete(place, line)
        expect_true(not os.path.exists(place.path("ran")), line)
        expect_true(name not in offered, "it is quoted")
    expect_in("\\$\\(touch\\$\\{IFS\\}ran\\)", complete(place, "weir run --handle t="))
