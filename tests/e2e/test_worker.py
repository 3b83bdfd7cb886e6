# SPDX-License-Identifier: MIT
"""weir run: jobs are handled on time, once, climb their ladders, and are not
lost with a worker."""

import datetime
import json
import os
import signal
import subprocess
import time

from e2e import (WEIR, Redis, end_cleanly, eventually, expect, expect_in,
                 expect_true, hears_sigterm, kill, rest, stop_cleanly, test,
                 wait)


def trace(place, topic="t", **options):
    return place.handler("trace", topic, file="trace", **options)


@test
def a_job_with_a_delay_starts_when_due_and_never_before(place):
    for i in range(5):
        place.add("t", str(i), "--delay", "3s", "--body", '{"n":%d}' % i)
    due = {str(i): place.ok("show", "t", str(i))["due_ms"] for i in range(5)}
    result = place.drain("t=echo", trace(place, "other"))
    lines = [json.loads(line) for line in result.out.splitlines()]
    expect(sorted(due), sorted(line["id"] for line in lines))
    for line in lines:
        expect({"n": int(line["id"])}, line["body"])
        expect(["t", 1], [line["topic"], line["attempt"]])
        expect_true(line["late_ms"] >= 0, "not early: %r" % line)


@test
def no_job_starts_before_its_due_time_on_the_clock(place):
    for i in range(10):
        place.add("t", str(i), "--delay", "%dms" % (100 + 37 * i))
    due = {str(i): place.ok("show", "t", str(i))["due_ms"] for i in range(10)}
    place.drain(trace(place))
    lines = place.lines("trace")
    expect(10, len(lines))
    for line in lines:
        expect_true(line["at_ms"] >= due[line["id"]], "not early: %r" % line)


@test
def jobs_run_in_the_order_of_their_due_times(place):
    base = datetime.datetime.now(datetime.timezone.utc)
    for job_id, seconds in (("c", 6.4), ("a", 6), ("b", 6.2)):
        due = base + datetime.timedelta(seconds=seconds)
        place.add("t", job_id, "--at", due.strftime("%Y-%m-%dT%H:%M:%S.") +
                  "%03dZ" % (due.microsecond // 1000))
    place.drain(place.echo())
    expect(["a", "b", "c"], [line["id"] for line in place.lines("out")])


@test
def counters_are_logged_at_the_end_as_many_as_there_may_be(place):
    for job_id in ("1", "2"):
        place.add("t", job_id)
    place.add("quiet", "1")
    result = place.drain("t=blocking?counters=33", "quiet=blocking")
    lines = [line.split("t counters: ")[1] for line
             in result.err.splitlines() if "counters: " in line]
    expect(["counter_with_a_long_name_%02d=2" % i for i in range(32)],
           " ".join(lines).split(" "))
    expect(1, result.err.count("t: counter \"counter_with_a_long_name_32\" is "
                               "ignored"))


@test
def a_deleted_job_is_never_handled(place):
    place.add("t", "gone", "--delay", "1s")
    place.add("t", "stays", "--delay", "1s")
    place.ok("delete", "t", "gone")
    place.drain(place.echo())
    expect(["stays"], [line["id"] for line in place.lines("out")])


@test
def a_job_that_always_fails_climbs_its_ladder_and_is_dead(place):
    place.add("t", "42", "--retry", "200ms 400ms 800ms", "--body", '"x"')
    place.drain(trace(place, fail=99))
    lines = place.lines("trace")
    expect([1, 2, 3, 4], [line["attempt"] for line in lines])
    for before, after, step in zip(lines, lines[1:], (200, 400, 800)):
        waited = after["at_ms"] - before["at_ms"]
        expect_true(step <= waited < step + 10000,
                    "%d ms for the step of %d" % (waited, step))
    (job,) = place.ok("dead", "list", "t")
    expect(["42", "dead", "exhausted", "told to retry", "x"],
           [job[name] for name in ("id", "state", "reason", "error", "body")])
    expect([4, 4], [job["attempt"], job["failures"]])
    expect(job, place.ok("show", "t", "42"))
    place.expect_stats("t", dead=1, retried_total=3, failed_total=1)
    expect_in("exhausted: told to retry", place.weir("dead", "list", "t").out)


@test
def the_ladder_of_the_worker_counts_where_the_job_has_none(place):
    place.add("t", "own", "--retry", "none")
    place.add("t", "none")
    place.drain(trace(place, fail=99), flags=("--retry", "10ms 10ms"))
    ids = [line["id"] for line in place.lines("trace")]
    expect([1, 3], [ids.count("own"), ids.count("none")])


@test
def a_job_that_fails_twice_succeeds_on_the_third_attempt(place):
    place.add("t", "42", "--retry", "50ms ...")
    place.drain("t=flaky?fail=2")
    place.expect_stats("t", done_total=1, retried_total=2, dead=0)
    place.weir("show", "t", "42").expect_complaint(3)


@test
def a_job_that_fails_for_good_is_dead_at_once(place):
    place.add("t", "42")
    place.drain("t=flaky?fail=9&verdict=fail")
    (job,) = place.ok("dead", "list", "t")
    expect(["failed", 1], [job["reason"], job["attempt"]])


@test
def a_snooze_uses_no_attempt(place):
    place.add("t", "42", "--retry", "none")
    place.drain(trace(place, fail=3, verdict="snooze"))
    expect([1] * 4, [line["attempt"] for line in place.lines("trace")])
    expect(1, place.stats("t")["done_total"])


@test
def a_job_not_started_within_its_ttl_is_dropped_and_counted(place):
    place.add("t", "late", "--ttl", "50ms")
    place.add("t", "patient", "--ttl", "1h")
    time.sleep(0.1)
    place.drain(place.echo())
    expect(["patient"], [line["id"] for line in place.lines("out")])
    expect(1, place.stats("t")["expired_total"])


@test
def a_dead_id_exists_and_can_be_deleted(place):
    place.add("t", "42")
    place.drain("t=flaky?fail=9&verdict=fail")
    place.weir("add", "t", "--id", "42").expect_complaint(4, "\"42\"")
    expect("dead", place.ok("delete", "t", "42")["was"])
    expect([], place.ok("dead", "list", "t"))


@test
def the_bound_of_dead_jobs_pushes_out_the_oldest(place):
    for i in range(4):
        place.add("t", str(i), "--delay", "%dms" % (200 * i))
    place.drain("t=flaky?fail=9&verdict=fail", flags=("--max-dead", "2"))
    expect(["2", "3"], [job["id"] for job in place.ok("dead", "list", "t")])
    expect(1, min(1, place.stats("t")["dropped_total"]))


@test
def bodies_reach_the_handler_as_they_were_added(place):
    bodies = ["18446744073709551615", "-9223372036854775808", '"é😀"',
              '{"a":[1,2.5,null,true,{"b":"c"}]}']
    for i, body in enumerate(bodies):
        place.add("t", str(i), "--body", body)
    place.drain(place.echo())
    got = {line["id"]: line["body"] for line in place.lines("out")}
    expect({str(i): json.loads(body) for i, body in enumerate(bodies)}, got)


@test
def several_topics_have_a_handler_each(place):
    place.add("one", "1")
    place.add("two", "2")
    place.drain(place.echo("one"), trace(place, "two"))
    expect(["1"], [line["id"] for line in place.lines("out")])
    expect(["2"], [line["id"] for line in place.lines("trace")])


@test
def two_workers_share_the_work_and_no_job_runs_twice(place):
    place.add_many("t", 120, "--delay", "2s")
    workers = [place.work(trace(place), flags=(
        "--until-empty", "--concurrency", "2", "--prefetch", "0"))
        for _ in range(2)]
    for worker in workers:
        end_cleanly(worker)
    ids = sorted(int(line["id"]) for line in place.lines("trace"))
    expect(list(range(120)), ids)
    expect(120, place.stats("t")["done_total"])


@test
def until_empty_waits_for_what_another_worker_runs(place):
    place.add("t", "42")
    holder = place.work(trace(place, verdict="hold"), flags=("--lease", "3s"))
    eventually(lambda: place.lines("trace"), "the job is held")
    waiter = place.work(place.echo(), flags=("--until-empty",))
    rest()
    expect(None, waiter.poll(), "it waits")
    holder.kill()
    end_cleanly(waiter)
    expect(["42"], [line["id"] for line in place.lines("out")])


@test
def a_job_deleted_while_it_runs_never_runs_again(place):
    place.add("t", "42")
    holder = place.work(trace(place, verdict="hold"), flags=("--lease", "1s"))
    eventually(lambda: place.lines("trace"), "the job is held")
    result = place.weir("delete", "t", "42", "--json")
    expect([0, "running"], [result.code, result.json["was"]])
    expect_in("not interrupted", result.err)
    holder.kill()
    place.drain(place.echo())
    expect([], place.lines("out"))
    place.weir("show", "t", "42").expect_complaint(3, "\"42\"")


@test
def until_empty_tells_when_what_is_left_is_paused(place):
    place.add("t", "1", "--delay", "1h")
    redis = Redis(os.path.join(place.data, "redis.sock"))
    redis.send("HSET weir:{t}:meta paused 1")
    redis.line()
    redis.close()
    result = place.weir("run", "--until-empty", "--handle", place.echo(),
                        "--log-level", "error")
    result.expect_complaint(1, "\"t\"", "paused", "1 jobs")


@test
def until_empty_ends_at_once_where_nothing_is(place):
    place.drain(place.echo())


@test
def a_worker_killed_with_jobs_in_hand_loses_none(place):
    place.add_many("t", 20)
    victim = place.work(trace(place, verdict="hold"), flags=("--lease", "1s"))
    eventually(lambda: place.lines("trace"), "a job is held")
    kill(victim)
    place.drain(place.echo())
    ids = sorted(int(line["id"]) for line in place.lines("out"))
    expect(list(range(20)), ids)


@test
def sigterm_ends_a_worker_with_exit_0(place):
    place.add("t", "1")
    worker = place.work(place.echo())
    eventually(lambda: place.lines("out"), "the job ran")
    err = stop_cleanly(worker)
    expect_in("info SIGTERM", err)
    place.expect_stats("t", done_total=1, running=0, ready=0)


@test
def a_worker_that_ended_is_not_registered_as_idle(place):
    kinds = ("delay", "bounded", "sync", "concurrent")
    for kind in kinds:
        place.ok("topic", "set", kind, "kind=" + kind)
    redis = Redis(os.path.join(place.data, "redis.sock"))

    def sleepers(kind):
        redis.send("ZCARD weir:{%s}:idle" % kind)
        return redis.line()

    worker = place.work(*(place.echo(kind) for kind in kinds))
    for kind in kinds:
        eventually(lambda: sleepers(kind) == ":1", "it sleeps: " + kind)
    stop_cleanly(worker)
    for kind in kinds:  # the server may read its last words after ours
        eventually(lambda: sleepers(kind) == ":0", "it is gone: " + kind)
    redis.close()


@test
def a_worker_with_a_pending_job_is_registered_behind_others(place):
    place.ok("topic", "set", "bounded", "kind=bounded")
    place.add("delay", "1")
    place.ok("add", "bounded", "--id", "1", "--group", "g")
    later = [place.handler("later", topic, after="9s", file="out")
             for topic in ("delay", "bounded")]
    redis = Redis(os.path.join(place.data, "redis.sock"))

    def ask(command):
        redis.send(command)
        return redis.line()

    worker = place.work(*later)
    for topic in ("delay", "bounded"):
        idle = "weir:{%s}:idle" % topic
        eventually(lambda: ask("ZCARD " + idle) == ":1", "it sleeps: " + topic)
        expect("*2", ask("ZPOPMAX " + idle))
        name = [redis.line() for _ in range(4)][1]
        expect(":1", ask("PUBLISH weir:wake:%s %s" % (name, topic)))
        eventually(lambda: ask("ZCARD " + idle) == ":1", "it looked: " + topic)
        expect(":1", ask("ZCOUNT %s -inf (0" % idle), topic)
    worker.kill()
    redis.close()


@test
def sigint_ends_a_worker_with_exit_0(place):
    worker = place.work(place.echo())
    eventually(lambda: place.server_pid(), "the server runs")
    place.add("t", "1")
    eventually(lambda: place.lines("out"), "the job ran")
    worker.send_signal(signal.SIGINT)
    end_cleanly(worker)


@test
def sigusr1_and_sigusr2_do_nothing(place):
    worker = place.work(place.echo())
    eventually(lambda: hears_sigterm(worker), "it has its handlers")
    worker.send_signal(signal.SIGUSR1)
    worker.send_signal(signal.SIGUSR2)
    place.add("t", "1")
    eventually(lambda: place.lines("out"), "the job ran")
    stop_cleanly(worker)


@test
def a_signal_that_is_passed_on_twice_counts_once(place):
    place.add("t", "1")
    worker = place.work(place.handler("later", after="1s", file="out"))
    eventually(lambda: os.path.exists(place.path("out")) and
               os.path.getsize(place.path("out")), "the job runs")
    worker.send_signal(signal.SIGTERM)
    worker.send_signal(signal.SIGINT)
    err = end_cleanly(worker)
    expect(1, err.count("finishing what runs") + err.count(" again: "))
    expect(1, place.stats("t")["done_total"])


def moments_of_commands(place, count):
    """When the next ones came that clients send, not those of scripts; in
    seconds of the server's clock."""
    redis = place.redis()
    redis.send("MONITOR")
    expect("+OK", redis.line())
    found = []
    while len(found) < count:
        line = redis.line()
        if " lua]" not in line:
            found.append(float(line[1:].split()[0]))
    redis.close()
    return found


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@test
def an_idle_worker_of_ten_topics_is_nearly_silent(place):
    worker = place.work(*(place.echo("t%d" % i) for i in range(10)))
    eventually(lambda: place.server_pid(), "the server runs")
    place.add("t9", "1")
    eventually(lambda: place.lines("out"), "the worker works")
    moments_of_commands(place, 3)  # those of the job may be the first ones
    cpu = cpu_seconds(worker.pid)
    sent = moments_of_commands(place, 30)  # those of two turns at least
    expect_true(sent[-1] - sent[0] > 3, "30 commands in %.2f s"
                % (sent[-1] - sent[0]))
    expect_true(cpu_seconds(worker.pid) - cpu <= 0.3, "hardly any CPU")
    stop_cleanly(worker)


@test
def streams_that_came_closed_do_not_become_connections(place):
    place.add("t", "1")
    process = subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", WEIR, "run", "--handle",
         place.echo("t")], env=place.env)
    place.started.append(process)
    eventually(lambda: place.lines("out"), "the worker works")
    for fd in range(3):
        expect("/dev/null", os.readlink("/proc/%d/fd/%d" % (process.pid, fd)))
    process.terminate()
    expect(0, wait(process))
