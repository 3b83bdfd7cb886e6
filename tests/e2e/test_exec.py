# SPDX-License-Identifier: MIT
"""exec: a command runs for each job, and its exit status is the verdict."""

import json
import os
import re
import signal
import subprocess
from urllib.parse import quote

from e2e import (WEIR, await_line, eventually, expect, expect_in, expect_true,
                 is_alive, signal_again, stop_cleanly, test, wait)


def execute(place, command, topic="t", **options):
    quoted = {name: quote(str(value)) for name, value in options.items()}
    return place.handler("exec", topic, command=quote(command), **quoted)


def script(place, text, name="script"):
    path = place.write(name, "#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def drain(place, command, *flags, **options):
    return place.drain(execute(place, command, **options), flags=flags)


def pids(place, name):
    """Those that were written to a file, one a line."""
    try:
        with open(place.path(name), encoding="utf-8") as file:
            return [int(line) for line in file.read().split()]
    except FileNotFoundError:
        return []


@test
def the_job_is_on_the_standard_input_as_json(place):
    body = {"order": 42, "text": "ä\"\n", "long": "x" * 300000}
    with open(place.path("body"), "w", encoding="utf-8") as file:
        json.dump(body, file)
    place.add("t", 'a"\\b', "--body-file", place.path("body"), "--url",
              "http://h/")
    place.add("t", "plain")
    drain(place, script(place, 'cat >"%s/$$.json"\n' % place.dir))
    jobs = {}
    for name in os.listdir(place.dir):
        if name.endswith(".json"):
            with open(place.path(name), encoding="utf-8") as file:
                job = json.load(file)
            jobs[job["id"]] = job
    expect(["t", 1, "http://h/", body],
           [jobs['a"\\b'][key] for key in ("topic", "attempt", "url", "body")])
    expect([None, None, 0], [jobs["plain"][key]
                             for key in ("url", "body", "failures")])
    expect(2, place.stats("t")["done_total"])


@test
def the_exit_status_is_the_verdict(place):
    command = script(place, """
        case $(cat) in
        *'"id":"0"'*) exit 0 ;;
        *'"id":"75"'*) exit 75 ;;
        *'"id":"3"'*) echo one; echo two >&2; exit 3 ;;
        *'"id":"9"'*) kill -9 $$ ;;
        esac
        exit 1\n""")
    for job_id in ("0", "75", "3", "9", "1"):
        place.add("t", job_id, "--retry", "none")
    result = drain(place, command, fail_codes="75, 3")
    expect_in("t counters: done=1 failed=2 retried=2 started=5\n", result.err)
    expect(1, place.stats("t")["done_total"])
    expect(["failed", "exec: exit status 75"], place.dead("75"))
    expect(["failed", "exec: exit status 3: two"], place.dead("3"))
    expect(["exhausted", "exec: killed by signal 9"], place.dead("9"))
    expect(["exhausted", "exec: exit status 1"], place.dead("1"))


@test
def a_command_that_fails_is_retried_unless_its_status_is_named(place):
    command = script(place, 'cat >/dev/null; echo >>"%s"; exit 1\n'
                     % place.path("runs"))
    place.add("t", "1", "--retry", "1ms 1ms")
    drain(place, command)
    expect(["exhausted", "exec: exit status 1"], place.dead("1"))
    with open(place.path("runs"), encoding="utf-8") as file:
        expect(3, len(file.read()))


@test
def exit_statuses_that_are_none_are_refused(place):
    for codes in ("0", "256", "-1", "64-78", "1 x", "1;2"):
        result = place.weir("run", "--until-empty", "--handle",
                            execute(place, "true", fail_codes=codes))
        expect(2, result.code)
        expect_in('option "fail_codes" has exit statuses from 1 to 255, with '
                  "blanks between", result.err)
    result = place.weir("run", "--until-empty", "--handle", execute(
        place, "true", fail_codes="1", mode="stream"))
    expect_in('option "fail_codes" needs mode=once: children of mode=stream '
              'answer "fail"', result.err)


@test
def words_are_split_as_a_shell_does_and_nothing_is_expanded(place):
    show = script(place, 'cat >/dev/null; for a in "$@"; do echo "<$a>"; done')
    place.add("t", "1")
    result = drain(place, show + """ a 'b  c'"d"'$e' "f\\"\\g\\$h" i\\ j '' *""",
                   "--log-level", "info")
    got = [line.partition("<")[2] for line in result.err.splitlines()
           if "<" in line]
    expect(["a>", "b  cd$e>", 'f"\\g$h>', "i j>", ">", "*>"], got)


@test
def output_is_logged_line_by_line_up_to_a_bound(place):
    command = script(place, "cat >/dev/null; echo first; printf 'a\\033b\\n';"
                     "i=0; while [ $i -lt 200 ]; do echo $i-0123456789;"
                     "i=$((i + 1)); done; printf last")
    place.add("t", "1")
    result = drain(place, command, "--log-level", "info", max_output="1KiB")
    expect_in("first", result.err)
    expect_in("a b", result.err)
    expect_true("150-0123456789" not in result.err, "it is cut")
    expect_in("bytes of output not shown", result.err)


@test
def many_short_lines_take_no_more_of_the_log_than_allowed(place):
    place.add("t", "1")
    result = drain(place, "sh -c 'yes y | head -n 32000; echo at the end'",
                   "--log-level", "info")
    lines = output_lines(result)
    expect("y", lines[0])
    shown = lines.count("y")
    expect("exec: %d bytes of output not shown, in %d lines"
           % (32000 - shown + len("at the end"), 32001 - shown), lines[-1])
    taken = sum(len(line) + 1 for line in result.err.splitlines()
                if " info t 1: " in line)
    expect_true(60000 < taken <= 65536, "%d bytes of the log" % taken)


@test
def a_long_line_is_logged_in_parts_and_nothing_of_it_is_lost(place):
    command = script(place, "cat >/dev/null; for n in $MOST $((MOST + 1)); do "
                     "printf \"%0${n}d\\n\" 7; done")
    for topic, job_id, most in (("t" * 40, "i" * 128, 340),
                                ("t" * 40, "i" * 127, 341),
                                ("t", "i" * 8, 499), ("t", "i" * 7, 500),
                                ("t", "i", 500)):
        place.add(topic, job_id)
        place.env["MOST"] = str(most)
        result = place.drain(execute(place, command, topic, env="PATH MOST"),
                             flags=("--log-level", "info"))
        lines = [line.partition(" %s: " % job_id)[2]
                 for line in result.err.splitlines()
                 if " %s: " % job_id in line]
        zeroes = "0" * (most - 1)
        expect([zeroes + "7", zeroes + "0", "7"], lines)


def output_lines(result):
    """What the only job of a topic printed, without its outcome."""
    return [line.partition("t 1: ")[2] for line in result.err.splitlines()
            if "t 1: " in line and not re.search("t 1: (retry|dead)", line)]


@test
def of_the_last_line_its_beginning_is_in_the_reason(place):
    command = script(place, "cat >/dev/null; printf '%0'$LEN'd' 7; exit 255")
    for count in (140, 141, 500, 501, 640, 641):
        place.add("t", str(count), "--retry", "none")
        place.env["LEN"] = str(count)
        drain(place, command, env="PATH LEN")
        # The last line is what is left of parts of 500.
        digits = "0" * (count - 1) + "7"
        expect(["exhausted", "exec: exit status 255: "
                + digits[500 if count > 500 else 0:][:140]],
               place.dead(str(count)))


@test
def what_a_terminal_would_obey_takes_no_more_of_the_log_than_allowed(place):
    place.add("t", "1")
    result = drain(place, script(place, r"""
        cat >/dev/null
        yes "$(printf '\302\233%.0s' $(seq 100))" | head -n 2000"""),
                   "--log-level", "info")
    taken = sum(len(line) + 1 for line in result.err.splitlines()
                if " info t 1: " in line)
    expect_true(60000 < taken <= 65536, "%d bytes of the log" % taken)
    expect("?" * 200, output_lines(result)[0])


@test
def nothing_of_what_is_no_utf_8_is_lost(place):
    place.add("t", "1")
    result = drain(place, script(place, r"""
        cat >/dev/null
        head -c 200000 /dev/zero | tr '\0' '\377'"""), "--log-level", "info",
                   max_output="1MiB")
    expect(200000, sum(line.count("?") for line in output_lines(result)))


@test
def a_long_line_is_not_parted_within_a_character(place):
    text = "日本語👍é" * 1000
    place.write("text", text + "\n")
    for indent in range(4):
        place.add("t", "1", "--retry", "none")
        result = drain(place, script(place, "printf %%%ds; cat '%s'; exit 1\n"
                                     % (indent, place.path("text"))),
                       "--log-level", "info")
        parts = [line for line in output_lines(result)
                 if not line.startswith("exec: ")]
        expect(" " * indent + text, "".join(parts))
        expect_true(all(497 <= len(part.encode()) <= 500
                        for part in parts[:-1]), "the parts are full")
        place.ok("delete", "t", "1")


@test
def a_reason_does_not_end_within_a_character(place):
    for count in (139, 140):
        place.add("t", str(count), "--retry", "none")
        drain(place, script(place, "printf '%%0%dd日本👍'; exit 1\n"
                            % (count - 4)))
        expect(["exhausted", "exec: exit status 1: " + "0" * (count - 4) + "日"],
               place.dead(str(count)))


@test
def only_the_named_environment_is_passed_on(place):
    place.add("t", "1")
    place.env["MINE"], place.env["OTHER"] = "a b", "no"
    place.env["PATH"] = os.defpath  # the user's may be longer than a line
    result = drain(place, "env", "--log-level", "info", env="MINE PATH NOT_SET")
    expect(["MINE=a b", "PATH=" + place.env["PATH"]],
           sorted(output_lines(result)))


@test
def only_the_three_streams_are_passed_on(place):
    place.add("t", "1")
    result = drain(place, "ls /proc/self/fd", "--log-level", "info")
    # 3 is the directory that ls reads.
    expect(["0", "1", "2", "3"], output_lines(result))


@test
def signals_are_as_a_fresh_program_expects_them(place):
    place.add("t", "1")
    result = drain(place, "grep Sig /proc/self/status", "--log-level", "info")
    masks = dict(line.split() for line in output_lines(result))
    expect(0, int(masks["SigIgn:"], 16) & 0x7fffffff, "ignored signals")
    expect(0, int(masks["SigBlk:"], 16), "blocked signals")


def write_config(place, command, timeout):
    return place.write("weir.conf", """
topic "t" { handler = exec  timeout = %s  retry = none
  options = { "command=%s", "grace=300ms" } }""" % (timeout, command))


@test
def a_timeout_ends_the_whole_group_even_one_that_ignores_it(place):
    command = script(place, "trap '' TERM\n(trap '' TERM; sleep 1000) &\n"
                     "echo $$ $! >>%s\nsleep 1000\nsleep 1000\n"
                     % place.path("pids"))
    place.add("t", "1")
    config = write_config(place, command, "3s")
    worker = place.work(flags=("--config", config))
    group = eventually(lambda: pids(place, "pids"), "it runs")
    expect(2, len(group))
    eventually(lambda: place.stats("t")["dead"] == 1, "it timed out")
    expect(["exhausted", "timeout"], place.dead("1"))
    for pid in group:
        eventually(lambda: not is_alive(pid), "process %d is ended" % pid)
    stop_cleanly(worker)


@test
def what_still_runs_when_the_worker_ends_is_killed(place):
    command = script(place, "trap '' TERM\nsleep 1000 &\necho $$ $! >>%s\n"
                     "wait\nsleep 1000\n" % place.path("pids"))
    place.add("t", "1")
    worker = place.work(execute(place, command))
    group = eventually(lambda: pids(place, "pids"), "it runs")
    worker.send_signal(signal.SIGTERM)
    await_line(worker, "finishing")
    signal_again(worker)
    expect(0, wait(worker))
    for pid in group:
        eventually(lambda: not is_alive(pid), "process %d is ended" % pid)


@test
def a_child_that_goes_on_does_not_hold_the_job_up(place):
    command = script(place, "sleep 1000 &\necho $! >>%s\nexit 0\n"
                     % place.path("pids"))
    place.add("t", "1")
    drain(place, command)
    expect(1, place.stats("t")["done_total"])
    for pid in pids(place, "pids"):
        os.kill(pid, signal.SIGKILL)


@test
def many_commands_run_at_once(place):
    place.add_lines("t", 300)
    os.mkfifo(place.path("gate"))
    gate = os.open(place.path("gate"), os.O_RDWR)
    worker = place.work(execute(place, script(
        place, "echo $$ >>%s\nread -r _ <%s\n" % (place.path("pids"),
                                                 place.path("gate")))),
        flags=("--concurrency", "50"))
    eventually(lambda: len(pids(place, "pids")) == 50, "50 run at once")
    os.write(gate, b"\n" * 300)
    eventually(lambda: place.stats("t")["done_total"] == 300, "all are done")
    stop_cleanly(worker)
    os.close(gate)


@test
def commands_that_cannot_be_are_refused_with_a_sentence(place):
    for command, words in (
            ("no-such-program-here x", "no program no-such-program-here"),
            ("/etc/passwd", "no program /etc/passwd"),
            ("sh -c 'echo", "a quote that is not closed"),
            ("  ", "names no command")):
        result = place.weir("run", "--until-empty", "--handle",
                            execute(place, command))
        expect(2, result.code)
        expect_in("weir: t: plugin exec: option \"command\"", result.err)
        expect_in(words, result.err)
    result = place.weir("run", "--handle", "t=exec")
    result.expect_complaint(2, 'option "command" is required')


@test
def commands_that_find_no_descriptor_lose_no_attempt(place):
    place.add_lines("t", 60, '{"id":"%d","retry":"none"}')
    command = script(place, "cat >/dev/null; sleep 0.1\n")
    err = place.drain(execute(place, command), ulimit="-n 40").err
    expect_in("t: exec: cannot start the command: Too many open files; jobs "
              "wait for 1000 ms and lose no attempt", err)
    place.expect_stats("t", done_total=60, dead=0, retried_total=0)


@test
def children_that_find_no_descriptor_lose_no_attempt(place):
    place.add_lines("t", 60, '{"id":"%d","retry":"none"}')
    command = script(place, """
        while read -r line; do
            run=${line#*:}
            sleep 0.02
            echo "{\\"run\\":${run%%,*},\\"verdict\\":\\"done\\"}"
        done\n""")
    place.drain(execute(place, command, mode="stream", children=40),
                ulimit="-n 40")
    place.expect_stats("t", done_total=60, dead=0, retried_total=0)


def zombies_below(pid):
    """How many descendants of a process have ended and were not reaped."""
    parents, states = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        states[int(name)], parents[int(name)] = fields[0], int(fields[1])

    def is_below(one):
        return one == pid or one in parents and is_below(parents[one])

    return sum(state == "Z" and is_below(one) for one, state in states.items())


@test
def the_first_process_reaps_what_commands_leave_behind(place):
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    place.add_lines("t", 20)
    command = script(place, """
        cat >/dev/null
        (sleep 0.01 </dev/null >/dev/null 2>&1 &)
        sleep 0.05\n""")
    process = subprocess.Popen(
        ["unshare", *user, "--pid", "--fork", "--mount-proc",
         WEIR, "run", "--handle", execute(place, command)], text=True,
        env=place.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    place.started.append(process)
    eventually(lambda: place.stats("t")["done_total"] == 20, "they are done")
    eventually(lambda: not zombies_below(process.pid), "no zombie is left")
    with open("/proc/%d/task/%d/children" % (process.pid, process.pid),
              encoding="utf-8") as file:
        os.kill(int(file.read()), signal.SIGTERM)
    expect(0, wait(process))
