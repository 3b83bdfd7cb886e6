# SPDX-License-Identifier: MIT
"""weir plugin try and new: a handler without a server, and a new one."""

import os
import re
import shutil

from e2e import BUILD, ROOT, WEIR, expect, expect_in, expect_true, run, test
from ports import listener


def attempt(place, *args):
    """weir plugin try --json; the exit code and what it printed."""
    result = place.weir("plugin", "try", *args, "--json")
    return result.code, result.json


@test
def each_verdict_has_its_exit_code(place):
    for options, code, verdict, delay_ms in (
            (["fail=0"], 0, "DONE", None),
            (["fail=1"], 10, "RETRY", 15000),
            (["verdict=fail"], 11, "FAIL", None),
            (["verdict=snooze", "delay=3m"], 12, "SNOOZE", 180000)):
        flags = [word for option in options for word in ("--option", option)]
        got = attempt(place, "flaky", *flags)
        expect((code, verdict, delay_ms),
               (got[0], got[1]["verdict"], got[1]["delay_ms"]))
    expect(False, os.path.exists(place.data), "a data directory was made")


@test
def the_attempt_decides_the_step_of_the_ladder(place):
    flags = ["--option", "fail=99", "--retry", "1s 2s"]
    for number, delay_ms, dead in ((1, 1000, None), (2, 2000, None),
                                   (3, None, "exhausted")):
        code, got = attempt(place, "flaky", *flags, "--attempt", str(number))
        expect((10, number, delay_ms, dead),
               (code, got["attempt"], got["delay_ms"], got["dead"]))


@test
def what_a_person_reads_names_verdict_delay_reason_and_log(place):
    result = place.weir("plugin", "try", "flaky", "--topic", "order.close",
                        "--id", "42")
    expect(10, result.code)
    lines = result.out.splitlines()
    expect(["verdict  RETRY", "delay    15s",
            "reason   flaky: attempt 1 of 1 that fail"], lines[:3])
    expect_true(re.fullmatch(r"time     \d+\.\d{3} ms", lines[3]), lines[3])
    expect_in("info order.close 42: flaky: attempt 1", result.err)


@test
def the_body_reaches_the_handler_and_json_stays_one_object(place):
    args = ("plugin", "try", "echo", "--topic", "t", "--body", '{"n":[1,2]}')
    expect_in('{"topic":"t","id":"1","attempt":1,', place.weir(*args).out)
    expect_in('"body":{"n":[1,2]}}\nverdict  DONE', place.weir(*args).out)
    result = place.weir(*args, "--json")
    expect("DONE", result.json["verdict"])
    expect_in('"body":{"n":[1,2]}', result.err)


def bodies(*numbers):
    return [word for number in numbers for word in ("--body", str(number))]


@test
def several_bodies_are_a_batch_of_their_group(place):
    for flags, group in ((["--group", "g-1"], "g-1"), ([], "")):
        path = place.path("out" + group)
        code, got = attempt(place, "batches", "--option", "file=" + path,
                            *bodies(7, 8, 9), *flags)
        with open(path, encoding="utf-8") as file:
            words = file.read().rstrip("\n").split(" ")
        expect([group, "1", "7", "8", "9"], words[:2] + words[4:])
        expect(0, code)
        expect([("1", "DONE"), ("2", "DONE"), ("3", "DONE")],
               [(job["id"], job["verdict"]) for job in got["jobs"]])


@test
def each_job_of_a_batch_has_its_verdict(place):
    flags = ["--option", "file=" + place.path("out"), "--option", "each=yes"]
    code, got = attempt(place, "batches", *flags, *bodies(2, 1), "--id", "a")
    expect([("a", "DONE", None), ("a.2", "FAIL", "failed")],
           [(job["id"], job["verdict"], job["dead"]) for job in got["jobs"]])
    expect(11, code)
    lines = place.weir("plugin", "try", "batches", *flags,
                       *bodies(2, 1)).out.splitlines()
    expect(["job      1", "verdict  DONE", "job      2", "verdict  FAIL"],
           [line for line in lines if line[:3] in ("job", "ver")])


@test
def several_bodies_are_jobs_in_turn_where_no_batches_are_taken(place):
    code, got = attempt(place, "flaky", "--option", "fail=1", *bodies(1, 2))
    expect((10, ["RETRY", "RETRY"]),
           (code, [job["verdict"] for job in got["jobs"]]))


@test
def what_cannot_be_a_batch_is_a_mistake(place):
    for flags, words in ((bodies(1, "{"), "--body: "),
                         (bodies(*range(257)), "--body: 256 at most"),
                         (["--group", "a b"], "group")):
        place.weir("plugin", "try", "flaky", *flags).expect_complaint(2, words)


@test
def a_handler_that_never_returns_is_ended(place):
    code, got = attempt(place, "hangs", "--timeout", "300ms")
    expect((13, "TIMEOUT", "timeout"), (code, got["verdict"], got["reason"]))


@test
def a_handler_that_returns_too_late_has_timed_out(place):
    code, got = attempt(place, "blocking", "--option", "for=200ms",
                        "--timeout", "50ms")
    expect((13, "TIMEOUT", "timeout", None),
           (code, got["verdict"], got["reason"], got["delay_ms"]))
    code, got = attempt(place, "blocking", "--option", "for=1600ms",
                        "--timeout", "3s", *bodies(1, 2))
    expect((0, ["DONE", "DONE"]),
           (code, [job["verdict"] for job in got["jobs"]]))


@test
def a_run_that_stays_pending_is_given_up(place):
    with listener() as server:
        url = "http://127.0.0.1:%d/" % server.getsockname()[1]
        code, got = attempt(place, "notify", "--url", url,
                            "--timeout", "300ms")
    expect((13, "TIMEOUT", "timeout", 15000),
           (code, got["verdict"], got["reason"], got["delay_ms"]))


@test
def a_run_that_is_finished_later_is_waited_for(place):
    code, got = attempt(place, "notify", "--url", "http://127.0.0.1:1/")
    expect((10, "RETRY"), (code, got["verdict"]))
    expect_in("Failed to connect", got["reason"])
    expect({"errors": 1, "sent": 1}, got["counters"])


@test
def the_jobs_that_it_adds_are_printed(place):
    args = ["ledger", "--option", "file=" + place.path("record"), "--option",
            "follow_to=other"]
    result = place.weir("plugin", "try", *args, "--id", "7")
    expect(["adds     trial 7.here in 0ms: null",
            "adds     other 7.there in 0ms: null"],
           result.out.splitlines()[-2:])
    code, got = attempt(place, *args)
    expect((0, "DONE"), (code, got["verdict"]))
    expect([{"topic": "trial", "id": "1.here", "delay_ms": 0, "body": None},
            {"topic": "other", "id": "1.there", "delay_ms": 0, "body": None}],
           got["follows"])
    expect([], attempt(place, "flaky")[1]["follows"])


@test
def what_the_plugin_counted_is_printed(place):
    result = place.weir("plugin", "try", "notify", "--url",
                        "http://127.0.0.1:1/")
    expect("counters errors=1 sent=1", result.out.splitlines()[-1])
    expect(False, "counters" in place.weir("plugin", "try", "flaky").out,
           "one that counts nothing")
    expect({}, attempt(place, "flaky")[1]["counters"])


@test
def options_of_the_plugin_stand_behind_it_as_in_handle(place):
    for plugin in ("flaky", os.path.join(BUILD, "plugins", "flaky.so")):
        code, got = attempt(place, plugin + "?verdict=snooze&delay=3%6d")
        expect((12, 180000), (code, got["delay_ms"]))
        code, got = attempt(place, plugin + "?verdict=snooze", "--option",
                            "delay=4m")
        expect((12, 240000), (code, got["delay_ms"]))
    for wrong, word in (("flaky?", '"" is not an option; write PLUGIN?key='),
                        ("flaky?x", '"x" is not an option'),
                        ("flaky?fail=%0", "hexadecimal"),
                        ("flaky?nosuch=1", "nosuch"), ("?a=b", "no plugin")):
        place.weir("plugin", "try", wrong).expect_complaint(2, word)


@test
def plugins_that_are_found_by_name_are_listed(place):
    mine = place.path("mine")
    os.mkdir(mine)
    shutil.copy(os.path.join(BUILD, "plugins", "echo.so"), mine)
    place.write("mine/notes.txt", "")
    place.env["WEIR_PLUGIN_PATH"] = mine
    listed = place.ok("plugin", "list")["plugins"]
    expect({"name": "echo", "file": mine + "/echo.so"}, listed[0])
    expect_in("flaky", [one["name"] for one in listed])
    lines = place.weir("plugin", "list").out.splitlines()
    expect(["echo", mine + "/echo.so"], lines[0].split())
    expect(len(listed), len(lines))


@test
def a_plugin_that_crashes_meets_a_sentence(place):
    for where in ("open", "run"):
        result = place.weir("plugin", "try", "crashes", "--option",
                            "where=" + where)
        result.expect_complaint(1, "crashes.so: it crashed: Killed")


@test
def mistakes_are_told_in_one_sentence(place):
    for args, words in (
            (["nothing"], ["there is no plugin \"nothing\""]),
            (["./nothing.so"], ["nothing.so"]),
            (["flaky", "--option", "x=1"], ["unknown option \"x\""]),
            (["flaky", "--option", "x"], ["\"x\" has no value"]),
            (["flaky", "--body", "{"], ["--body: "]),
            (["flaky", "--attempt", "0"], ["--attempt", "1 to 1000000"]),
            (["flaky", "--timeout", "5"], ["--timeout"]),
            (["flaky", "--retry", "soon"], ["--retry"]),
            (["flaky", "--topic", "a b"], ["a b"]),
            (["flaky", "--id", "{}"], ["{}"])):
        place.weir("plugin", "try", *args).expect_complaint(2, *words)


def weir_in(place, *args):
    """weir with the place as its directory."""
    return run([WEIR, *args], cwd=place.dir, env=place.env)


@test
def a_file_in_this_directory_needs_no_slash_anywhere(place):
    shutil.copy(os.path.join(BUILD, "plugins", "echo.so"), place.path("x.so"))
    place.write("weir.conf", 'topic "t" { handler = "x.so" }\n')
    for args in (("plugin", "info", "x.so"), ("plugin", "try", "x.so"),
                 ("check", "--config", "weir.conf"),
                 ("run", "--config", "weir.conf", "--until-empty"),
                 ("run", "--handle", "t=x.so", "--until-empty")):
        done = weir_in(place, *args)
        expect(0, done.returncode, "%r: %s" % (args, done.stderr))


def new(place, *args):
    return weir_in(place, "plugin", "new", *args)


@test
def a_new_plugin_has_a_source_a_test_and_a_readme(place):
    done = new(place, "close-order")
    expect((0, ""), (done.returncode, done.stderr))
    names = ["CMakeLists.txt", "README.md", "close-order.c",
             "test_close-order.c"]
    expect(["close-order/" + name for name in names], done.stdout.split())
    for name in names:
        with open(place.path("close-order/" + name)) as file:
            text = file.read()
        expect_true("@NAME@" not in text and "@PREFIX@" not in text, name)
    expect(names, sorted(os.listdir(place.path("close-order"))))


@test
def a_new_plugin_compiles_with_the_header_alone(place):
    expect(0, new(place, "hello").returncode)
    source = os.path.join(ROOT, "core", "include")
    done = run(
        ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
         "-I", source, "-o", place.path("hello.so"),
         place.path("hello/hello.c")])
    expect((0, ""), (done.returncode, done.stderr))
    result = place.weir("plugin", "try", place.path("hello.so"), "--body",
                        '{"name":"Ada"}')
    expect(0, result.code)
    expect_in("hello, Ada", result.err)


@test
def a_new_plugin_takes_the_place_of_nothing(place):
    os.mkdir(place.path("hello"))
    done = new(place, "hello")
    expect(4, done.returncode)
    expect_in("cannot make the directory hello", done.stderr)
    expect([], os.listdir(place.path("hello")))


@test
def a_name_that_is_none_is_refused(place):
    for name in ("Hello", "1st", "a/b", "", "-x", "a" * 41):
        done = new(place, "--", name)
        expect(2, done.returncode, name)
        expect_in("cannot be a plugin's name", done.stderr)


@test
def info_tells_bounds_with_their_units(place):
    said = place.weir("plugin", "info", "exec").out
    expect_in("max_output (size, 0 bytes to 16MiB, ", said)
    expect_in("grace (duration, 0ms to 1h, ", said)
    expect_in("per_host (integer, 1 to 10000, ",
              place.weir("plugin", "info", "notify").out)
