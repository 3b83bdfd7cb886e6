# SPDX-License-Identifier: MIT
"""exec with mode=stream: children stay, a line of JSON in for each job, a line
out for its verdict."""

import json
import os
import re
import shutil
import signal
import sys
import time
from urllib.parse import quote

from e2e import (ROOT, await_line, end_cleanly, eventually, expect, expect_in,
                 expect_true, is_alive, kill, run_together, stop_cleanly, test,
                 wait)
from resp import Client

run_together(3)

# What every child of these tests begins with: jobs() are those that come, with
# the worker's other lines among them; say() answers.
BEGINNING = """#!%s
import json, os, signal, subprocess, sys, time
open(DIR + "/pids", "a").write("%%d\\n" %% os.getpid())
def say(run=None, verdict="done", **more):
    print(json.dumps(dict(run=run, verdict=verdict, **more)), flush=True)
def log(text):
    print(text, file=sys.stderr, flush=True)
def note(job):
    open(DIR + "/seen", "a").write(json.dumps(job) + "\\n")
def jobs():
    for line in sys.stdin:
        yield json.loads(line)
""" % sys.executable


def child(place, text, name="child"):
    path = place.write(name, BEGINNING.replace("DIR", repr(place.dir)) + text)
    os.chmod(path, 0o755)
    return path


def shell_child(place, cases):
    """One that is at its first job sooner than a python is; `cases` are of a
    line, all others are answered with done."""
    path = place.write("child", """#!/bin/sh
echo $$ >> DIR/pids
while IFS= read -r line; do
    printf '%%s\\n' "$line" >> DIR/seen
    run=${line#*:} run=${run%%%%[,\\}]*} verdict=done
    case $line in %s esac
    echo "{\\"run\\":$run,\\"verdict\\":\\"$verdict\\"}"
done
""".replace("DIR", place.dir) % cases.replace("DIR", place.dir))
    os.chmod(path, 0o755)
    return path


def stream(place, command, **options):
    return place.handler("exec", command=quote(command), mode="stream",
                         **options)


def drain(place, command, *flags, **options):
    return place.drain(stream(place, command, **options), flags=flags)


def configured(place, command, topic="", before="", **options):
    words = ["command=" + command, "mode=stream"]
    words += ["%s=%s" % item for item in options.items()]
    made = place.write("new.conf", """%s
        topic "t" { handler = exec %s
        options = { %s } }""" % (before, topic,
                                 ", ".join('"%s"' % w for w in words)))
    os.rename(made, place.path("weir.conf"))
    return place.path("weir.conf")


def pids(place):
    try:
        with open(place.path("pids"), encoding="utf-8") as file:
            return [int(line) for line in file.read().splitlines(True)
                    if line.endswith("\n")]
    except FileNotFoundError:
        return []


def bodies(place, *values):
    for i, value in enumerate(values):
        place.add("t", str(i), "--body", json.dumps(value), "--retry", "none")


def past(place, job_id):
    job = place.ok("show", "t", job_id)
    return {name: job[name] for name in ("failures", "timeouts")}


DONE = "for job in jobs():\n    note(job)\n    say(job['run'])\n"


@test
def a_child_stays_and_has_one_job_after_the_other(place):
    place.add("t", "a", "--body", '{"n":1}', "--url", "http://h/")
    place.add_lines("t", 40)
    result = drain(place, child(place, DONE))
    expect_in("t counters: done=41 started=1\n", result.err)
    expect(1, len(pids(place)))
    jobs = place.lines("seen")
    expect(["run", "topic", "id", "attempt", "failures", "timeouts", "crashes",
            "snoozes", "token", "due_ms", "added_ms", "url", "headers", "body"],
           list(jobs[0]))
    expect(41, len({job["run"] for job in jobs}))
    expect([["t", 1, "http://h/", {"n": 1}]],
           [[job["topic"], job["attempt"], job["url"], job["body"]]
            for job in jobs if job["id"] == "a"])
    expect(41, place.stats("t")["done_total"])


@test
def the_line_is_the_verdict(place):
    bodies(place, {}, {"verdict": "retry", "reason": "ü \"busy\"\n"},
           {"verdict": "fail", "reason": "no such \U0001f600"},
           {"verdict": "snooze", "delay_ms": 7200000.0, "other": [{"a": "}"}]})
    place.add("t", "4", "--retry", "1s", "--body",
              '{"verdict":"retry","delay_ms":3600000}')
    worker = place.work(stream(place, child(
        place, "for job in jobs():\n    say(job['run'], **job['body'])\n")))
    eventually(lambda: place.ok("show", "t", "4")["failures"] == 1,
               "all had their verdicts")
    stop_cleanly(worker)
    expect(1, place.stats("t")["done_total"])
    expect(["exhausted", "ü \"busy\" "], place.dead("1"))
    expect(["failed", "no such \U0001f600"], place.dead("2"))
    expect([1, 0], [place.ok("show", "t", "3")[name]
                    for name in ("snoozes", "failures")])
    hours = [(place.ok("show", "t", job_id)["due_ms"] / 1000 - time.time())
             / 3600 for job_id in ("3", "4")]
    expect_true(1.9 < hours[0] <= 2 and 0.9 < hours[1] <= 1,
                "due in %r hours" % hours)


@test
def answers_come_in_any_order_when_they_say_which_run(place):
    bodies(place, *range(8))
    drain(place, child(place, """
some = []
for job in jobs():
    some.append(job)
    if len(some) == 8:
        for job in reversed(some):
            say(job["run"], "fail", reason="of %s" % job["id"])
"""), window=8)
    for i in range(8):
        expect(["failed", "of %d" % i], place.dead(str(i)))


@test
def what_is_no_verdict_is_logged_and_the_child_goes_on(place):
    bodies(place, 0, {"verdict": "ok"}, {}, {"verdict": "snooze"})
    result = drain(place, child(place, """
for job in jobs():
    print("loading\\033[1m", "{", '{"run":"1","verdict":"done"}', "", sep="\\n")
    print("x" * 200000)
    if job["body"] == 0:
        say(job["run"])
    else:
        print(json.dumps(dict(job["body"], run=job["run"])), flush=True)
    say(job["run"])
"""))
    expect_in(" warn t: exec: no verdict: loading [1m\n", result.err)
    expect_in(" warn t: exec: no verdict: {\n", result.err)
    expect_in(' warn t: exec: no verdict: {"run":"1","verdict":"done"}\n',
              result.err)
    expect_in(" warn t: exec: no verdict: xxx", result.err)
    expect_in("a verdict for no job that the child has: {\"run\": 1",
              result.err)
    expect(1, place.stats("t")["done_total"])
    expect(["exhausted", "exec: a verdict that is none of done, retry, snooze, "
            "fail"], place.dead("1"))
    expect(["exhausted", "exec: an answer without a verdict"], place.dead("2"))
    expect(["exhausted", "exec: a snooze without delay_ms"], place.dead("3"))
    expect(1, len(pids(place)))


POISON = """
for job in jobs():
    note(job)
    if job["body"] == "poison":
        %s
    say(job["run"])
"""


@test
def of_a_child_that_ends_only_the_job_that_it_was_at_is_blamed(place):
    bodies(place, "", "", "poison", "", "", "", "", "")
    result = drain(place, child(place, POISON % "log('ouch'); sys.exit(3)"),
                   window=8)
    expect(["exhausted", "exec: the child ended: exit status 3: ouch"],
           place.dead("2"))
    expect_in(" warn t: exec: the child ended: exit status 3: ouch\n",
              result.err)
    expect(7, place.stats("t")["done_total"])
    expect([0] * 7, [job["failures"] for job in place.lines("seen")
                     if job["body"] == ""])
    expect_true(all(job["attempt"] == 1 for job in place.lines("seen")),
                "no attempt is used up")
    expect(2, len(pids(place)))


@test
def a_job_that_takes_too_long_ends_its_child_and_no_other_is_blamed(place):
    bodies(place, "", "poison", "", "", "")
    command = shell_child(place, """
        *poison*) sleep 1000 & echo $! >> DIR/pids; wait ;;""")
    worker = place.work(flags=("--config", configured(
        place, command, "timeout = 10s", window=8, grace="300ms")))
    eventually(lambda: place.stats("t")["done_total"] == 4, "the others ran")
    stop_cleanly(worker)
    expect(["exhausted", "timeout"], place.dead("1"))
    expect([0], list({job["failures"] + job["timeouts"]
                      for job in place.lines("seen")}))
    for pid in pids(place):
        eventually(lambda: not is_alive(pid), "process %d is ended" % pid)


@test
def a_child_is_told_of_a_run_that_is_given_up_and_stays(place):
    bodies(place, "long")
    command = shell_child(place,
                          "*cancel*) verdict=retry ;; *long*) continue ;;")
    worker = place.work(flags=("--config", configured(
        place, command, "timeout = 3s", window=4, cancel="yes", grace="10s")))
    eventually(lambda: place.stats("t")["dead"] == 1, "it timed out")
    place.add("t", "next")
    eventually(lambda: place.stats("t")["done_total"] == 1, "the next one runs")
    stop_cleanly(worker)
    seen = place.lines("seen")
    expect({"cancel": seen[0]["run"]}, seen[1])
    expect("next", seen[2]["id"])
    expect(1, len(pids(place)))


@test
def a_child_that_does_not_answer_to_being_told_is_ended(place):
    bodies(place, "poison")
    command = shell_child(place, "*poison*) sleep 1000 ;;")
    worker = place.work(flags=("--config", configured(
        place, command, "timeout = 3s", cancel="yes", grace="300ms")))
    eventually(lambda: place.stats("t")["dead"] == 1, "it timed out")
    eventually(lambda: pids(place) and not is_alive(pids(place)[0]),
               "the child is ended")
    place.add("t", "next")
    eventually(lambda: place.stats("t")["done_total"] == 1, "the next one runs")
    stop_cleanly(worker)
    expect(2, len(pids(place)))


@test
def runs_that_are_given_up_later_do_not_prolong_the_grace_of_one(place):
    command = shell_child(place, "*) continue ;;")
    worker = place.work(flags=("--config", configured(
        place, command, "timeout = 1s", window=1024, cancel="yes",
        grace="2s")))
    added = []

    def is_ended():
        added.append(place.ok("add", "t", "--retry", "none"))
        return pids(place) and not is_alive(pids(place)[0])

    eventually(is_ended, "the child is ended")
    expect_true(len(added) < 900, "its window was not full")
    stop_cleanly(worker)


@test
def children_that_end_at_once_start_more_seldom_and_blame_no_job(place):
    place.add_lines("t", 30, '{"id":"%d","retry":"none"}')
    worker = place.work(stream(place, child(place, "sys.exit(1)\n"),
                               children=4))
    for ms in (100, 200, 400, 800):
        expect_in("the child ended: exit status 1",
                  await_line(worker, "the next one starts in %d ms" % ms))
    stop_cleanly(worker)
    expect(0, place.stats("t")["dead"])


@test
def a_command_that_is_gone_blames_no_job(place):
    command = child(place, DONE)
    place.add("t", "1")
    config = configured(place, command)
    os.chmod(command, 0o755)
    worker = place.work(flags=("--config", config))
    eventually(lambda: place.stats("t")["done_total"] == 1, "it runs")
    os.rename(command, command + ".away")
    os.kill(pids(place)[0], signal.SIGKILL)
    await_line(worker, "the child ended: killed by signal 9")
    place.add("t", "2")
    await_line(worker, "cannot start the command: No such file or directory")
    os.rename(command + ".away", command)
    eventually(lambda: place.stats("t")["done_total"] == 2, "it runs again")
    stop_cleanly(worker)
    expect([0, 0], [job["failures"] for job in place.lines("seen")])


@test
def a_stop_waits_for_the_answer_and_for_the_child_to_end(place):
    place.add("t", "1")
    worker = place.work(stream(place, child(place, """
for job in jobs():
    note(job)
    while not os.path.exists(DIR + "/go"):
        time.sleep(0.01)
    say(job["run"])
note("ended")
""".replace("DIR", repr(place.dir)))))
    eventually(lambda: place.lines("seen"), "it runs")
    worker.send_signal(signal.SIGTERM)
    await_line(worker, "finishing")
    place.write("go", "")
    expect(0, wait(worker))
    expect("ended", place.lines("seen")[-1])
    expect(1, place.stats("t")["done_total"])


@test
def a_child_that_does_not_end_is_killed_when_the_worker_stops(place):
    place.add("t", "1")
    worker = place.work(stream(place, child(place, """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for job in jobs():
    say(job["run"])
time.sleep(1000)
"""), grace="300ms"))
    eventually(lambda: place.stats("t")["done_total"] == 1, "it ran")
    stop_cleanly(worker)
    expect([False], [is_alive(pid) for pid in pids(place)])


@test
def a_child_that_hangs_ends_with_the_drain_and_blames_no_job(place):
    bodies(place, "", "poison", "", "")
    command = child(place, POISON % "time.sleep(1000)")
    worker = place.work(flags=("--config", configured(
        place, command, window=4, grace="300ms", before="worker { drain = 500ms }")))
    eventually(lambda: len(place.lines("seen")) == 2, "it hangs")
    stop_cleanly(worker)
    expect([False], [is_alive(pid) for pid in pids(place)])
    for job_id in "123":
        job = place.ok("show", "t", job_id)
        expect(["ready", 0, 0, 0],
               [job[name] for name in ("state", "failures", "timeouts",
                                       "crashes")])


@test
def a_deleted_job_is_not_interrupted_nor_are_those_beside_it(place):
    place.add_lines("t", 2)
    command = child(place, """
for job in jobs():
    note(job)
    if job["id"] == "1":
        while not os.path.exists(DIR + "/go"):
            time.sleep(0.01)
        for run in job["run"] - 1, job["run"]:
            say(run)
""".replace("DIR", repr(place.dir)))
    worker = place.work(flags=("--config", configured(
        place, command, "lease = 3s", window=2)))
    eventually(lambda: len(place.lines("seen")) == 2, "it has both")
    expect("running", place.ok("delete", "t", "0")["was"])
    redis, leases = Client(os.path.join(place.data, "redis.sock")), set()
    eventually(lambda: leases.add(str(redis(
        "ZRANGE", "weir:{t}:lease", 0, -1, "WITHSCORES"))) or
        len(leases) > 2, "leases are renewed twice")
    place.write("go", "")
    eventually(lambda: place.stats("t")["done_total"] == 1, "the other is done")
    stop_cleanly(worker)
    expect([1, 2], [len(pids(place)), len(place.lines("seen"))])


@test
def events_of_a_bounded_topic_run_once_where_a_child_ends(place):
    place.ok("topic", "set", "t", "kind=bounded")
    lines = "".join('{"group":"g%d","body":%d}\n' % (i % 3, i)
                    for i in range(30))
    place.ok("add", "t", "--jsonl", "-", stdin=lines)
    result = drain(place, child(place, """
for job in jobs():
    if job["body"] == 10 and not os.path.exists(DIR + "/gone"):
        open(DIR + "/gone", "w").close()
        sys.exit(1)
    note([job["group"], job["body"], job["failures"]])
    say(job["run"])
""".replace("DIR", repr(place.dir))), "--retry", "300ms", window=3)
    expect_in("exit status 1", result.err)
    expect([["g%d" % (i % 3), i, int(i == 10)] for i in range(30)],
           sorted(place.lines("seen"), key=lambda event: event[1]))


@test
def each_of_several_workers_has_children_of_its_own(place):
    command = child(place, """
for job in jobs():
    note(os.getppid())
    time.sleep(0.05)
    say(job["run"])
""")
    worker = place.work(stream(place, command), flags=("--workers", "2"))

    def is_shared():
        place.add_lines("t", 10, "{}")
        return len(set(place.lines("seen"))) == 2

    eventually(is_shared, "both have jobs")
    worker.send_signal(signal.SIGTERM)
    end_cleanly(worker)
    expect(0, place.stats("t")["running"])
    expect([False, False], [is_alive(pid) for pid in pids(place)])


@test
def children_end_with_a_worker_that_is_killed_and_their_jobs_run_again(place):
    place.add("t", "1")
    command = child(place, """
for job in jobs():
    if not os.path.exists(DIR + "/go"):
        open(DIR + "/go", "w").close()
        continue
    note(job)
    say(job["run"])
""".replace("DIR", repr(place.dir)))
    config = configured(place, command, "lease = 1s")
    worker = place.work(flags=("--config", config))
    eventually(lambda: os.path.exists(place.path("go")), "it has the job")
    kill(worker)
    eventually(lambda: not is_alive(pids(place)[0]), "the child sees the end")
    worker = place.work(flags=("--config", config))
    eventually(lambda: place.stats("t")["done_total"] == 1, "it runs again")
    stop_cleanly(worker)
    expect([1], [job["crashes"] for job in place.lines("seen")])


@test
def bodies_of_any_size_go_through(place):
    place.ok("topic", "set", "t", "max_body=16MiB")
    sizes = [1, 65000, 65536, 15 * 1024 * 1024]
    for i, size in enumerate(sizes):
        with open(place.path("body"), "w", encoding="utf-8") as file:
            json.dump("x" * size, file)
        place.add("t", str(i), "--body-file", place.path("body"))
    drain(place, child(place, """
time.sleep(0.2)
for job in jobs():
    note([job["id"], len(job["body"])])
    say(job["run"])
"""), window=4)
    expect([[str(i), size] for i, size in enumerate(sizes)],
           sorted(place.lines("seen")))


@test
def a_flood_of_output_takes_no_more_of_the_log_than_allowed(place):
    place.add_lines("t", 3)
    result = drain(place, child(place, """
for job in jobs():
    for i in range(20000):
        sys.stderr.write("noise %d\\n" % i)
    sys.stderr.flush()
    say(job["run"])
"""), "--log-level", "info", max_output="8KiB")
    expect(3, place.stats("t")["done_total"])
    taken = sum(len(line) + 1 for line in result.err.splitlines()
                if ": noise " in line)
    expect_true(0 < taken <= 3 * 8192, "%d bytes of the log" % taken)
    dropped = re.findall(r" warn t (\d): exec: \d+ bytes of output not shown",
                         result.err)
    expect(["0", "1", "2"], sorted(set(dropped)))


@test
def with_one_job_at_a_time_output_is_logged_with_it(place):
    place.add("t", "7")
    result = drain(place, child(place, """
for job in jobs():
    log("at work")
    say(job["run"])
"""), "--log-level", "info")
    expect_in(" info t 7: at work\n", result.err)


@test
def what_a_child_leaves_behind_ends_with_it_and_holds_nothing_up(place):
    bodies(place, "poison", "")
    result = drain(place, child(place, POISON % """
        sleeper = subprocess.Popen(["sleep", "1000"])
        open(DIR + "/pids", "a").write("%d\\n" % sleeper.pid)
        os._exit(4)""".replace("DIR", repr(place.dir))))
    expect_in("exit status 4", result.err)
    expect(1, place.stats("t")["done_total"])
    for pid in pids(place):
        eventually(lambda: not is_alive(pid), "process %d is ended" % pid)


@test
def a_child_that_takes_no_more_is_replaced_and_no_job_is_blamed(place):
    place.add_lines("t", 6)
    drain(place, child(place, """
coming = jobs()
note(next(coming))
say()
note(next(coming))
os.close(0)
say()
if len(open(DIR + "/seen").readlines()) < 4:
    time.sleep(1000)
""".replace("DIR", repr(place.dir))), grace="100ms")
    expect(6, place.stats("t")["done_total"])
    expect([0] * 6, [job["failures"] for job in place.lines("seen")])
    expect(3, len(pids(place)))


@test
def a_child_that_closes_its_output_has_to_end(place):
    bodies(place, 1)
    result = drain(place, child(place, """
for job in jobs():
    os.close(1)
    time.sleep(1000)
"""), grace="100ms")
    expect_in("the child ended: killed by signal 9", result.err)
    expect(["exhausted", "exec: the child ended: killed by signal 9"],
           place.dead("0"))


@test
def a_changed_command_has_the_jobs_that_come_after_a_reload(place):
    place.add("t", "1")
    worker = place.work(flags=("--config", configured(
        place, child(place, DONE))))
    eventually(lambda: place.stats("t")["done_total"] == 1, "the first runs")
    configured(place, child(place, DONE.replace("note(job)", "note('new')"),
                            "other"))
    worker.send_signal(signal.SIGHUP)
    eventually(lambda: not is_alive(pids(place)[0]), "the first child is ended")
    place.add("t", "2")
    eventually(lambda: place.stats("t")["done_total"] == 2, "the second runs")
    stop_cleanly(worker)
    expect("new", place.lines("seen")[-1])
    expect(2, len(pids(place)))


@test
def there_are_no_more_children_than_allowed_and_each_gets_jobs(place):
    place.add_lines("t", 60)
    result = drain(place, child(place, """
for job in jobs():
    note(os.getpid())
    time.sleep(0.05)
    say(job["run"])
"""), children=3)
    expect_in("done=60 started=3", result.err)
    expect(3, len(set(place.lines("seen"))))


@test
def options_of_children_need_the_mode(place):
    for options in ({"children": 2}, {"window": 2}, {"cancel": "yes"}):
        result = place.weir("run", "--handle", place.handler(
            "exec", command="true", **options))
        expect(2, result.code)
        expect_in('weir: t: plugin exec: options "children", "window", '
                  '"cancel" need mode=stream\n', result.err)


def example(name):
    return os.path.join(ROOT, "docs", "examples", name)


@test
def the_example_in_python_answers_and_goes_on_after_a_fault(place):
    bodies(place, {"name": "Ada"}, 7)
    result = drain(place, sys.executable + " " + example("stream.py"),
                   "--log-level", "info")
    expect_in(" info t 0: greets Ada\n", result.err)
    expect(1, place.stats("t")["done_total"])
    expect(["exhausted", "TypeError(\"'int' object is not subscriptable\")"],
           place.dead("1"))


@test
def the_example_in_shell_answers(place):
    bodies(place, {"name": "Ada"}, None)
    result = drain(place, example("stream.sh"), "--log-level", "info")
    expect_in(' info t 0: {"name":"Ada"}\n', result.err)
    expect(1, place.stats("t")["done_total"])
    expect(["failed", "no body"], place.dead("1"))


@test
def the_example_in_node_has_many_jobs_and_stops_those_given_up(place):
    expect_true(shutil.which("node") is not None, "there is a node")
    place.add("t", "first", "--body", '{"ms":1}')
    command, options = example("stream.mjs"), {"window": 16, "cancel": "yes"}
    worker = place.work(flags=("--config",
                               configured(place, command, **options)))
    eventually(lambda: place.stats("t")["done_total"] == 1, "it is started")
    configured(place, command, "timeout = 10s", **options)
    worker.send_signal(signal.SIGHUP)
    await_line(worker, "reload: changed t (timeout ")
    bodies(place, {"ms": 1}, {"ms": 3600000}, {"ms": 2}, None)
    eventually(lambda: place.stats("t")["dead"] == 2, "one timed out")
    place.add("t", "next", "--body", '{"ms":1}')
    eventually(lambda: place.stats("t")["done_total"] == 4, "the others ran")
    stop_cleanly(worker)
    expect(["exhausted", "timeout"], place.dead("1"))
    expect_in("Cannot read properties of null", place.dead("3")[1])
