# SPDX-License-Identifier: MIT
"""Plugins that are broken, or do what they must not do: each meets a sentence,
and no job is lost to it."""

import os
import re
import shutil
import signal

from e2e import (ROOT, STAMP, TEST_PLUGINS, await_line, communicate,
                 eventually, expect, expect_in, expect_true, run, signal_again,
                 stop_cleanly, test)

HOSTILE = os.path.join(TEST_PLUGINS, "hostile.so")
ABORTED = -signal.SIGABRT


def work(place, how, env=None):
    """A worker with the plugin, that ends; what it said."""
    return place.weir("run", "--handle", "t=%s?how=%s" % (HOSTILE, how),
                      "--until-empty", env=env)


def expect_last(result, code, line):
    """Its last line without the time."""
    last = re.sub("^%s " % STAMP, "", result.err.splitlines()[-1])
    expect((code, line), (result.code, last))


@test
def a_plugin_that_ends_the_worker_is_named_and_loses_no_job(place):
    place.add("t", "1")
    for how, code, line in (
            ("open_crash", ABORTED, "t: %s crashed: Aborted"),
            ("open_exit", 1, "t: %s ended the program by exit()"),
            ("open_quit", 1, "t: %s ended the program by _exit()"),
            ("run_crash", ABORTED, "t 1: %s crashed: Aborted"),
            ("run_exit", 1, "t 1: %s ended the program by exit()"),
            ("run_quit", 1, "t 1: %s ended the program by _exit()")):
        expect_last(work(place, how), code, "error " + line % HOSTILE)
    place.drain("t=echo")
    expect(1, place.stats("t")["done_total"])


@test
def one_that_crashes_when_it_is_closed_has_settled_its_jobs(place):
    place.add("t", "1")
    expect_last(work(place, "close_crash"), ABORTED,
                "error t: %s crashed: Aborted" % HOSTILE)
    expect(1, place.stats("t")["done_total"])


@test
def one_that_ends_the_program_where_it_is_loaded_is_named(place):
    config = place.write("weir.conf", 'topic t { handler = "%s" }\n' % HOSTILE)
    for args in (("plugin", "info", HOSTILE), ("check", "--config", config),
                 ("run", "--config", config)):
        for how, code, what in (
                ("load_crash", ABORTED, "crashed: Aborted"),
                ("load_exit", 1, "ended the program by exit()")):
            result = place.weir(*args, env={"HOSTILE": how})
            result.expect_complaint(code, HOSTILE + " " + what)


@test
def a_trial_tells_a_plugin_that_ends_the_program_from_a_verdict(place):
    for env, how in (({"HOSTILE": "load_exit"}, "well"), ({}, "open_exit"),
                     ({}, "run_exit")):
        result = place.weir("plugin", "try", HOSTILE, "--option",
                            "how=" + how, env=env)
        result.expect_complaint(1, "ended the program with exit code 0")


@test
def a_third_sigterm_ends_a_handler_without_an_end(place):
    place.env["WEIR_BLOCK_WARN"] = "100ms"
    place.add("t", "1")
    worker = place.work("t=%s?how=spin" % HOSTILE)
    await_line(worker, "it spins")
    line = await_line(worker, "has held the loop for 2 s")
    expect_in("t 1: hostile has", line)
    expect_in("and nothing else runs", line)
    sent = []

    def has_ended():  # two that come late on a busy machine may count as one
        signal_again(worker)
        sent.append(1)
        return worker.poll() is not None

    eventually(has_ended, "it ends")
    expect_true(len(sent) >= 3, "three were needed")
    _, err = communicate(worker)
    expect((1, "weir: SIGTERM for the third time: ending at once"),
           (worker.returncode, err.splitlines()[-1]))
    expect(1, place.stats("t")["running"])


@test
def a_trial_ends_with_its_plugin_though_a_child_of_that_goes_on(place):
    result = place.weir("plugin", "try", HOSTILE, "--option",
                        "how=leave_child", "--timeout", "3s")
    expect((0, 1), (result.code, result.out.count("verdict")))
    expect_in("DONE", result.out)


@test
def what_is_no_verdict_fails_the_job(place):
    for how, number in (("verdict_77", "77"), ("verdict_minus", "-1"),
                        ("verdict_each", "6")):
        place.add("t", how)
        result = work(place, how)
        expect(0, result.code)
        expect_in("t %s: the handler gave %s, which is no verdict"
                  % (how, number), result.err)
        expect("the handler returned no verdict",
               place.ok("show", "t", how)["error"])


@test
def a_run_that_is_finished_before_it_returns_is_finished_once(place):
    place.add("t", "1")
    worker = place.work("t=%s?how=finish_early" % HOSTILE)
    eventually(lambda: place.stats("t")["done_total"] == 1, "it is done")
    stop_cleanly(worker)
    place.expect_stats("t", done_total=1, failed_total=0, scheduled=1)
    expect("scheduled", place.ok("show", "t", "next")["state"])


@test
def what_it_logs_stays_one_line_and_cannot_be_forged(place):
    place.add("t", "1")
    result = work(place, "log_bytes")
    expect(0, result.code)
    expect_in("info t 1: one\\nweir: forged\\x1b[31m\n", result.err)
    expect_in("error t 1: no level\n", result.err)
    expect_true("\033" not in result.err, repr(result.err))
    result = work(place, "open_bytes")
    expect(2, result.code)
    expect_in("weir: t: plugin hostile: \\n\\x1b\\x1b", result.err)
    expect_true("\033" not in result.err, repr(result.err))


@test
def a_descriptor_that_is_not_open_gets_no_watch(place):
    place.add("t", "1")
    result = work(place, "watch_none")
    expect_in("t: plugin hostile wants to watch -1, which is no open "
              "descriptor", result.err)
    expect(1, place.stats("t")["done_total"])


@test
def a_timer_that_is_started_at_the_close_never_fires(place):
    place.add("t", "1")
    result = work(place, "close_timer")
    expect(0, result.code)
    expect_in("t: plugin hostile was closed and left 1 timers and 0 watched",
              result.err)
    result = place.weir("plugin", "try", HOSTILE, "--option",
                        "how=close_timer")
    expect(0, result.code)
    expect_in("plugin hostile was closed and left 1 timers", result.err)


@test
def files_that_are_no_plugins_are_told_in_a_sentence(place):
    with open(HOSTILE, "rb") as file:
        whole = file.read()
    for name, part in (("half.so", whole[:len(whole) // 3]),
                       ("head.so", whole[:100]), ("empty.so", b"")):
        with open(place.path(name), "wb") as file:
            file.write(part)
    os.mkfifo(place.path("pipe.so"))
    for name, word in (("half.so", "ends too early"),
                       ("head.so", "ends too early"),
                       ("empty.so", "file too short"),
                       ("pipe.so", "it is no file"),
                       (".", "Is a directory")):
        path = place.path(name)
        for command in ("info", "try"):
            place.weir("plugin", command, path) \
                .expect_complaint(2, path, word)


@test
def a_library_that_is_missing_is_told_with_the_plugin_that_wants_it(place):
    source = os.path.join(ROOT, "tests", "e2e", "plugins", "hostile.c")
    include = os.path.join(ROOT, "core", "include")
    run(
        ["sh", "-euc", "echo 'int there(void) { return 1; }' > there.c; "
         "cc -shared -fPIC -o libthere.so there.c; "
         "cc -std=c11 -shared -fPIC -I %s -o wants.so %s "
         "-Wl,--no-as-needed -L. -lthere; rm libthere.so"
         % (include, source)], cwd=place.dir, check=True)
    path = place.path("wants.so")
    place.weir("plugin", "info", path).expect_complaint(
        2, "plugin %s cannot be loaded: libthere.so: " % path)


def refuse_all(place, folder, wanted):
    """No command runs what the plugin does where it is loaded."""
    file = os.path.join(folder, "hostile.so")
    config = place.write("weir.conf", "topic t { handler = hostile }\n")
    place.env.update(WEIR_PLUGIN_PATH=folder, HOSTILE="load_exit")
    for args in (("plugin", "info", file), ("plugin", "try", file),
                 ("check", "--config", config), ("run", "--config", config),
                 ("run", "--handle", "t=" + file)):
        place.weir(*args).expect_complaint(2, "hostile.so", wanted)
    result = place.weir("doctor", "--json")
    expect(1, result.code, result.err)
    expect_in("everybody may write to", [f["text"] for f in result.json
                                         if f["check"] == "plugins"][0])


@test
def what_everybody_may_have_put_there_is_not_loaded(place):
    folder = place.path("plugins")
    os.mkdir(folder)
    shutil.copy(HOSTILE, folder)
    file = os.path.join(folder, "hostile.so")
    os.chmod(folder, 0o777)
    refuse_all(place, folder, "everybody may write to")
    os.mkdir(place.path("links"))  # the link's own folder is no better
    os.symlink(file, place.path("links/hostile.so"))
    refuse_all(place, place.path("links"), "everybody may write to its folder")
    os.chmod(folder, 0o755)
    os.chmod(file, 0o666)
    refuse_all(place, folder, "everybody may write to it;")
    os.chmod(file, 0o644)
    place.weir("plugin", "info", file).expect_complaint(1, "exit()")


@test
def in_a_folder_as_tmp_only_ones_own_and_root_s_are_loaded(place):
    folder = place.path("plugins")
    os.mkdir(folder)
    os.chmod(folder, 0o1777)
    shutil.copy(HOSTILE, folder)
    file = os.path.join(folder, "hostile.so")
    expect(0, place.weir("plugin", "info", file).code)
    if os.geteuid() != 0:
        return print("note: needs root")
    os.chown(file, 65534, 65534)
    refuse_all(place, folder, "everybody may write to its folder")


@test
def a_folder_of_another_user_is_that_users_to_answer_for(place):
    if os.geteuid() != 0:
        return print("note: needs root")
    folder = place.path("plugins")
    os.mkdir(folder)
    shutil.copy(HOSTILE, folder)
    for path in (folder, os.path.join(folder, "hostile.so")):
        os.chmod(path, 0o775)
        os.chown(path, 65534, 65534)
    expect(0, place.weir("plugin", "info", folder + "/hostile.so").code)
