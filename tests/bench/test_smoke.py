# SPDX-License-Identifier: MIT
"""Every case of weir-bench with few jobs: it ends, prints the fields that
scripts rely on, counts every job, and leaves nothing behind."""

import glob
import html.parser
import json
import os
import signal
import subprocess
import time

from cluster import Cluster, ask
from e2e import (BUILD, PATIENCE, Redis, eventually, expect, expect_in,
                 expect_true, run, test)
from redis_server import Server
from sentinel import Fake, Trio

BENCH = os.path.abspath(os.path.join(BUILD, "weir-bench"))
FIELDS = """
    case kind consumers lock parking auto_ack ids transport persistence batch
    jobs payload_bytes enqueue_per_s drain_per_s end_to_end_per_s elapsed_ms
    server_us_per_job client_us_per_job lost duplicated p50_ms p90_ms p99_ms
    max_ms early server host build""".split()
CASES = ["compare", "throughput", "floor", "lateness", "wake", "idle",
         "scattered", "scale", "crash", "groups", "handlers", "follow",
         "limits", "cluster"]
HANDLERS = ["sync", "pending", "random", "blocking", "timer"]


def environment(place):
    env = {key: value for key, value in place.env.items()
           if not key.startswith("WEIR_")}
    return {**env, "TMPDIR": place.dir}


def bench(place, *args):
    done = run([BENCH, *args], patience=4 * PATIENCE, env=environment(place))
    expect([], glob.glob(place.path("weir-bench-*")), "what is left behind")
    return done


class Page(html.parser.HTMLParser):
    """A report: its texts, and that each tag is closed where it has to be."""

    VOID = ("meta",)

    def __init__(self, path):
        super().__init__()
        self.open, self.texts, self.tags = [], [], []
        with open(path, encoding="utf-8") as file:
            self.source = file.read()
        self.feed(self.source)
        self.close()
        expect([], self.open, "tags that are not closed")
        for part in ("<script", "<link", "<img", "http:", "https:", "url(",
                     "@import", "src=", "href="):
            expect_true(part not in self.source, "the page has no " + part)
        for part in ("<!DOCTYPE html>", "viewport", "@media print",
                     "prefers-color-scheme"):
            expect_true(part in self.source, "the page has " + part)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != self.open[-1]:
            raise AssertionError("%s ends within %s" % (tag, self.open))
        self.open.pop()

    def handle_data(self, data):
        self.texts.append(data)

    def has(self, text):
        expect_true(text in "".join(self.texts), "%r on the page" % text)


def rows(place, *args):
    path = place.path("page.html")
    args += () if "--repeat" in args else ("--repeat", "1")
    done = bench(place, *args, "--json", "--report", path)
    expect(0, done.returncode, done.stderr)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    page = Page(path)
    expect([], glob.glob(path + "?*"), "the page is complete")
    for text in ("weir-bench " + args[0], found[0]["server"]["version"],
                 found[0]["host"]["kernel"], *(row["label"] for row in found)):
        page.has(text)
    for row in found:
        expect(args[0], row["case"])
        expect([], [name for name in FIELDS if name not in row], "missing")
        expect_true(row["server"]["version"][0].isdigit(), "a version")
        expect_true(row["host"]["cores"] >= 1, "cores")
        expect_true(len(row["build"]["compiler"]) > 3, "a compiler")
    return found


def refused(place, *args, words=()):
    done = bench(place, *args)
    expect(2, done.returncode, repr(args))
    expect("", done.stdout)
    expect(1, len(done.stderr.splitlines()), done.stderr)
    expect_in("weir-bench: ", done.stderr)
    for word in words:
        expect_in(word, done.stderr)


def nothing_lost(row):
    expect(0, row["lost"], "lost in %s" % row["label"])
    expect(0, row["duplicated"], "duplicated in %s" % row["label"])


def no_drops(row):
    expect([0, 0, 0], [row["dropped_" + why]
                       for why in ("overflow", "age", "ttl")], row["label"])


@test
def throughput_gives_rates_costs_and_a_share_of_the_floor(place):
    row, = rows(place, "throughput", "--jobs", "2000", "--batch", "64",
                "--consumers", "2", "--payload", "33")
    nothing_lost(row)
    for name in ("enqueue_per_s", "drain_per_s", "end_to_end_per_s",
                 "elapsed_ms", "server_us_per_job", "client_us_per_job",
                 "floor_share", "floor_ratio", "worker_rss_mb",
                 "producer_rss_mb", "turn_ms"):
        expect_true(row[name] > 0, name)
    expect(("delay", 2, 2000, 64, 33, "caller", "unix", "none"),
           tuple(row[name] for name in (
               "kind", "consumers", "jobs", "batch", "payload_bytes", "ids",
               "transport", "persistence")))
    expect(None, row["p50_ms"])


@test
def throughput_knows_tcp_made_ids_append_only_files_and_one_process(place):
    row, = rows(place, "throughput", "--jobs", "1000", "--transport", "tcp",
                "--ids", "made", "--persistence", "everysec", "--one-process",
                "--delay", "50ms")
    nothing_lost(row)
    expect(("tcp", "made", "everysec"),
           (row["transport"], row["ids"], row["persistence"]))
    expect_true(row["elapsed_ms"] >= 50, "the delay has passed")


@test
def throughput_measures_kinds_without_delays(place):
    for kind in ("list", "stream", "bounded"):
        row, = rows(place, "throughput", "--jobs", "1000", "--kind", kind)
        nothing_lost(row)
        expect((kind, None), (row["kind"], row["ids"]))


@test
def throughput_knows_handlers_that_finish_later(place):
    for how in HANDLERS:
        row, = rows(place, "throughput", "--jobs", "1000", "--handler", how)
        nothing_lost(row)
        expect(how, row["handler"])
        expect(how != "sync", row["label"].endswith(how), row["label"])


@test
def handlers_compares_each_with_the_one_that_returns(place):
    for kind in ("delay", "list", "stream", "bounded", "concurrent"):
        found = rows(place, "handlers", "--jobs", "1000", "--kind", kind,
                     "--concurrency", "100")
        expect([(kind, how) for how in HANDLERS],
               [(row["kind"], row["handler"]) for row in found])
        limit = found[-1]["drain_per_s"] / 100000
        expect_true(abs(found[-1]["drain_of_limit"] - limit) < 0.01, "a share")
        for row in found:
            nothing_lost(row)
            expect(100, row["concurrency"])
            expect_true(row["server_us_per_job"] > 0, row["label"])
            for name in ("drain", "end_to_end"):
                ratio = row[name + "_per_s"] / found[0][name + "_per_s"]
                expect_true(abs(row[name + "_of_sync"] - ratio)
                            < 0.01 * max(ratio, 1),
                            "%s of %s" % (name, row["label"]))


@test
def floor_has_a_row_for_each_command(place):
    found = rows(place, "floor", "--jobs", "2000")
    expect(["ping", "lpush", "lpop", "rpush-many", "lpop-many", "xadd",
            "evalsha"], [row["label"] for row in found])
    for row in found:
        expect_true(row["ops_per_s"] > 0 and row["server_us_per_job"] >= 0,
                    row["label"])


@test
def a_report_has_each_repeat_and_what_lies_between_them(place):
    rows(place, "floor", "--jobs", "2000", "--repeat", "3")
    page = Page(place.path("page.html"))
    expect(2, page.texts.count("Each repeat"), "of two figures")
    expect(2 * 7 * 3, page.tags.count("circle"), "a dot for each")
    for text in ("median", "least", "most", "spread", "ops/s", "Load before",
                 "CPU governor", "--payload 100",
                 "weir-bench floor --jobs 2000 --repeat 3 --json --report"):
        page.has(text)


@test
def a_report_replaces_the_last_one_once_it_is_complete(place):
    path = place.path("page.html")
    with open(path, "w", encoding="utf-8") as file:
        file.write("the last one")
    done = bench(place, "wake", "--report", path, "--redis",
                 "unix:///nowhere/redis.sock")
    expect(5, done.returncode)
    with open(path, encoding="utf-8") as file:
        expect("the last one", file.read())
    rows(place, "idle", "--topics", "1", "--for", "10ms")
    expect([path], glob.glob(path + "*"))
    os.unlink(path)
    done = bench(place, "wake", "--report", path, "--redis",
                 "unix:///nowhere/redis.sock")
    expect(5, done.returncode)
    expect([], glob.glob(path + "*"), "no page of a run that failed")


@test
def a_report_that_cannot_be_written_is_refused_before_the_run(place):
    nobody = ("--redis", "unix:///nowhere/redis.sock")
    for path, why in ((place.path("none/x"), "No such file"),
                      (place.dir, "not a file"), ("/dev/null", "not a file"),
                      (place.path("x" * 253), "too long"),
                      ("", "No such file")):
        refused(place, "wake", *nobody, "--report", path,
                words=["--report: cannot write " + (path or '""'), why])


@test
def a_report_tells_no_password(place):
    server = Server(place, "--requirepass", "secret", waits_for="-NOAUTH")
    rows(place, "floor", "--jobs", "100", "--redis", server.url_of(":secret"))
    page = Page(place.path("page.html"))
    page.has("@127.0.0.1:%d' --repeat" % server.port)
    expect_true("secret" not in page.source, "the password")


@test
def a_server_that_does_not_tell_its_settings_is_measured(place):
    server = Server(place)
    rows(place, "floor", "--jobs", "100", "--redis", server.url)
    Page(place.path("page.html")).has("maxmemory-policy noeviction")
    server.tell("ACL SETUSER w on >pw ~* &* +@all -config")
    row, *_ = rows(place, "floor", "--jobs", "100", "--redis",
                   server.url_of("w:pw"))
    expect({}, row["server"]["settings"])
    expect_true("Its settings" not in Page(place.path("page.html")).source,
                "no settings")


@test
def compare_has_one_and_ten_consumers_and_a_ratio(place):
    found = rows(place, "compare", "--jobs", "1000", "--delay", "100ms")
    for kind, count in (("concurrent", 3), ("sync", 2), ("list", 2),
                        ("stream", 1), ("bounded", 1), ("delay", 1)):
        expect([1, 10] * count, [row["consumers"] for row in found
                                 if row["kind"] == kind])
    for row in found:
        if row["kind"] != "sync" or row["lock"] or row["consumers"] == 1:
            nothing_lost(row)
        if row["kind"] == "bounded":
            no_drops(row)
        expect_true(row["elapsed_ms"] >= 100 or
                    row["kind"] in ("list", "stream", "bounded"),
                    "elapsed has the delay in it")
    unlocked = [row for row in found
                if row["lock"] is False and row["consumers"] == 10]
    expect(1, len(unlocked))
    expect_true(unlocked[0]["lost"] > 0, "without a lock messages are lost")
    expect(1, min(row["ratio"] for row in found if row not in unlocked),
           "of those that lose nothing the slowest")
    page = Page(place.path("page.html"))
    for text in ("github.com/Cuner/delay-queue", "53,936", "61,532"):
        page.has(text)


@test
def compare_goes_through_the_kinds_and_consumers_it_is_told(place):
    found = rows(place, "compare", "--jobs", "500", "--delay", "10ms",
                 "--kind", "list,delay", "--consumers", "3,1,2")
    expect([("list", "no", 3), ("list", "no", 1), ("list", "no", 2),
            ("list", "yes", 3), ("list", "yes", 1), ("list", "yes", 2),
            ("delay", None, 3), ("delay", None, 1), ("delay", None, 2)],
           [(row["kind"],
             None if row["auto_ack"] is None else
             "yes" if row["auto_ack"] else "no",
             row["consumers"]) for row in found])
    expect(1, min(row["ratio"] for row in found))
    Page(place.path("page.html")).has("--kind delay,list --consumers 3,1,2")
    found = rows(place, "compare", "--jobs", "500", "--delay", "10ms",
                 "--kind", "stream")
    expect([("stream", 1), ("stream", 10)],
           [(row["kind"], row["consumers"]) for row in found])


@test
def lateness_is_unloaded_first_and_never_early(place):
    found = rows(place, "lateness", "--jobs", "300", "--window", "200ms",
                 "--backlog", "20000")
    expect([0, 20000], [row["backlog"] for row in found])
    expect(300, found[0]["measured"])
    for row in found:
        nothing_lost(row)
        expect(0, row["early"])
    expect_true(0 <= found[0]["p50_ms"] <= found[0]["p90_ms"]
                <= found[0]["p99_ms"] <= found[0]["max_ms"], "they rise")
    many = rows(place, "lateness", "--jobs", "300", "--window", "200ms",
                "--backlog", "20000", "--consumers", "3")
    expect([3, 3], [row["consumers"] for row in many])
    for row in many:
        nothing_lost(row)
        expect_true(row["server_us_per_job"] > 0, "the server did something")


@test
def wake_times_every_job(place):
    found = rows(place, "wake", "--jobs", "50")
    expect([("delay, unix, each 4 ms", 50), ("delay, unix, each 50 ms", 5),
            ("delay, tcp, each 4 ms", 50)],
           [(row["label"], row["jobs"]) for row in found])
    Page(place.path("page.html")).has("--transport unix")
    found += rows(place, "wake", "--jobs", "1", "--transport", "tcp")
    expect(["delay, tcp, each 4 ms", "delay, tcp, each 50 ms"],
           [row["label"] for row in found[3:]])
    for row in found:
        nothing_lost(row)
        expect(row["jobs"], row["measured"])
        expect(0, row["early"])
        expect_true(row["p50_ms"] > 0, "it takes some time")


@test
def follow_times_every_job_from_the_verdict_that_added_it(place):
    for ids in ("caller", "made"):
        found = rows(place, "follow", "--jobs", "1000", "--ids", ids)
        expect(["delay, 50000/s", "delay, as many as go"],
               [row["label"] for row in found])
        for row in found:
            nothing_lost(row)
            expect(1000, row["measured"])
            expect(0, row["early"])
            expect_true(row["end_to_end_per_s"] > 0, row["label"])
            expect_true(0 < row["p50_ms"] <= row["max_ms"], row["label"])


@test
def cluster_compares_its_nodes_with_one_server(place):
    found = rows(place, "cluster", "--nodes", "2", "--topics", "5", "--jobs",
                 "3000", "--batch", "64", "--producers", "2", "--consumers", "2")
    expect(["one server, 5 topics", "a node's load, 3 topics",
            "cluster of 2 nodes, 5 topics",
            "  node 1, 3 topics", "  node 2, 2 topics"],
           [row["label"] for row in found])
    one, part, both, *nodes = found
    expect((64 * 28, 0, 0),
           (part["jobs"], part["lost"], part["duplicated"]))
    for row in one, both:
        nothing_lost(row)
        expect((3000, "tcp"), (row["jobs"], row["transport"]))
        expect_true(row["end_to_end_per_s"] > 0, row["label"])
    expect(3000, sum(row["jobs"] for row in nodes))
    expect(64 * 28, nodes[0]["jobs"], "batches of its topics")
    expect_true(abs(sum(row["cpu_share"] for row in nodes) - 1) <= 0.011,
                "shares of the whole")
    expect(both["cpu_share"], max(row["cpu_share"] for row in nodes))
    for name, row in ("cost_ratio", one), ("load_ratio", part):
        cost = both["server_us_per_job"] / row["server_us_per_job"]
        expect_true(abs(both[name] - cost) < 0.01 + cost / 100, name)
    cost = sum(row["server_us_per_job"] * row["jobs"] for row in nodes) / 3000
    expect_true(abs(both["server_us_per_job"] - cost) < 0.01, "a sum")


@test
def primaries_of_somebody_else_are_summed_and_left_as_they_were(place):
    cluster = Cluster(place)
    url = cluster.url()
    place.ok("add", "mine", "--id", "1", "--delay", "1h")
    found = rows(place, "cluster", "--jobs", "2000", "--topics", "3", "--batch",
                 "10", "--redis", url)
    expect(["cluster of 3 nodes, 3 topics"] +
           ["  node %d, 1 topics" % i for i in (1, 2, 3)],
           [row["label"] for row in found])
    nothing_lost(found[0])
    expect(None, found[0].get("cost_ratio"))
    for case in ("follow", "handlers"):
        for row in rows(place, case, "--jobs", "500", "--redis", url):
            nothing_lost(row)
    refused(place, "throughput", "--redis", url,
            words=["a cluster of 3 primaries", "weir-bench cluster"])
    expect([[], [], []],
           [ask(node, "KEYS", "*bench*") for node in cluster.nodes])
    expect("scheduled", place.ok("show", "mine", "1")["state"])
    expect(["mine"], place.ok("topic", "list")["topics"])


@test
def idle_counts_commands_and_time(place):
    found = rows(place, "idle", "--topics", "100", "--for", "200ms")
    expect([1, 100], [row["topics"] for row in found])
    for row in found:
        for name in ("commands_per_s", "server_cpu_percent",
                     "worker_cpu_percent"):
            expect_true(row[name] >= 0, name)


@test
def scattered_jobs_are_added_become_due_and_are_overdue(place):
    found = rows(place, "scattered", "--jobs", "500", "--backlog", "1000",
                 "--window", "100ms")
    expect([("add, 1000 pending", 500), ("due, 100000/s for 100 ms", 10000),
            ("due, 20000/s for 100 ms", 2000), ("due, 2000/s for 100 ms", 200),
            ("overdue, 1000 within 100 ms", 1000)],
           [(row["label"], row["jobs"]) for row in found])
    adds, *due, overdue = found
    expect(1000, adds["backlog"])
    expect_true(adds["enqueue_per_s"] > 0, "a rate")
    expect_true(adds["server_bytes_per_job"] > 100, "what is pending has bytes")
    for row in *due, overdue:
        nothing_lost(row)
        expect_true(row["drain_server_us"] > 0, row["label"])
        expect_true(row["drain_per_s"] > 0, row["label"])
    for row in due:
        expect((row["jobs"], 0), (row["measured"], row["early"]))
        expect_true(0 <= row["p50_ms"] <= row["p99_ms"] <= row["max_ms"],
                    "they rise")
        expect_true(row["drain_per_s"] < row["jobs"] * 10 * 1.1,
                    "the last one is due at the end of the window")


@test
def scale_grows_one_thing_at_a_time(place):
    found = rows(place, "scale", "--jobs", "500", "--backlog", "1000",
                 "--topics", "100")
    expect(["backlog 1000", "tables grown, backlog 1000", "topics 1",
            "topics 100", "busy topics 1", "busy topics 4", "busy topics 16",
            "busy topics 64",
            "workers 1", "workers 2", "workers 4", "workers 8",
            "body bytes 16", "body bytes 100", "body bytes 1024",
            "body bytes 8192", "body bytes 65536"],
           [row["label"] for row in found])
    for row in found[:2]:
        expect_true(row["server_bytes_per_job"] > 0, "a backlog takes memory")
    for row in found:
        nothing_lost(row)
        for name in "worker_rss_mb", "producer_rss_mb", "turn_ms":
            expect_true(row[name] > 0, "%s of %s" % (name, row["label"]))


@test
def crash_loses_or_repeats_what_the_kind_says(place):
    found = rows(place, "crash", "--jobs", "5000")
    expect(["concurrent"] * 3 + ["sync"] * 2 + ["list"] * 2 +
           ["stream", "bounded", "delay"], [row["kind"] for row in found])
    for row in found:
        if row["kind"] in ("list", "stream", "bounded", "delay") and \
                not row["auto_ack"] or row["parking"] == "atomic":
            expect(0, row["lost"])
        if row["auto_ack"]:
            expect(0, row["duplicated"])
        if row["kind"] == "bounded":
            no_drops(row)
        expect_true(row["killed_at"] > 0, "the worker had begun")
        expect_true(row["recovered_ms"] >= 0, "another one went on")


@test
def groups_accounts_for_every_event_and_keeps_their_order(place):
    found = rows(place, "groups", "--jobs", "8000", "--for", "300ms")
    expect(["bounded"] * 4 + ["source"], [row["kind"] for row in found])
    expect([8000, 8000, 1500, 3000, 3000], [row["jobs"] for row in found])
    fast, killed, hot, paced, source = found
    expect(0, killed["lost"])
    for row in (fast, hot, paced, source):
        nothing_lost(row)
    for row in (fast, paced):
        expect(row["jobs"], row["added"])
        expect(row["added"], row["handled"] + sum(
            row["dropped_" + why] for why in ("overflow", "age", "ttl")))
        expect(0, row["misordered"])
        expect_true(row["server_us_per_job"] > 0, row["label"])
    expect_true(killed["killed"] > 0, "workers were killed")
    expect(8000, killed["handled"] - killed["ran_dropped"] +
           killed["dropped_overflow"])
    expect(0, killed["misordered"])
    expect(1500, hot["measured"])
    expect_true(hot["added"] > 1500, "hot events beside the cold ones")
    expect_true(hot["p50_ms"] <= hot["p99_ms"] <= hot["max_ms"], "they rise")
    expect(3000, source["handled"] + source["dropped_overflow"])
    expect_true(source["server_us_per_job"] > 0, "the source's cost")


@test
def workers_killed_after_everything_ran_have_lost_nothing(place):
    killed = rows(place, "groups", "--jobs", "1000", "--for", "100ms",
                  "--repeat", "4")[1]
    expect(0, killed["lost"])
    expect(0, killed["ran_dropped"])


@test
def limits_are_looked_at_and_kept(place):
    found = rows(place, "limits", "--jobs", "300")
    expect(10, len(found))
    for row in found:
        expect((0, 0), (row["lost"], row["duplicated"]))


@test
def tables_have_a_heading_and_lines(place):
    done = bench(place, "floor", "--jobs", "100", "--repeat", "2")
    lines = done.stdout.splitlines()
    expect(8, len(lines))
    expect_in("ops/s", lines[0])


@test
def a_set_too_small_to_mean_anything_warns(place):
    path = place.path("page.html")
    done = bench(place, "wake", "--jobs", "40", "--repeat", "2", "--report",
                 path)
    words = "--repeat 2 (3 at least), p99 of 4 jobs (100 at least)"
    expect((0, "weir-bench: wake: too small to mean much: %s\n" % words),
           (done.returncode, done.stderr))
    Page(path).has("Too small to mean much: %s." % words)
    done = bench(place, "idle", "--topics", "1", "--for", "900ms", "--repeat",
                 "3")
    expect("weir-bench: idle: too small to mean much: --for 900ms (1000 at "
           "least)\n", done.stderr)
    done = bench(place, "idle", "--topics", "1", "--for", "1s", "--repeat",
                 "3", "--report", path)
    expect("", done.stderr)
    expect_true("Too small" not in Page(path).source, "no warning")
    done = bench(place, "idle", "--redis", "unix:///nowhere/redis.sock")
    expect(1, len(done.stderr.splitlines()), "of what went wrong only")


@test
def somebody_elses_server_is_left_as_it_was(place):
    place.ok("add", "mine", "--id", "1", "--delay", "1h")
    path = os.path.join(place.data, "redis.sock")
    for case in ("floor", "throughput", "crash"):
        done = bench(place, case, "--jobs", "500", "--repeat", "1",
                     "--redis", "unix://" + path)
        expect(0, done.returncode, done.stderr)
    for row in rows(place, "scattered", "--jobs", "100", "--backlog", "100",
                    "--window", "20ms", "--redis", "unix://" + path):
        expect(None, row.get("slow_commands"))
    redis = Redis(path)
    redis.send("KEYS *bench*")
    expect("*0", redis.line())
    redis.send("CONFIG GET slowlog-log-slower-than")
    expect(["*2", "10000"], [redis.line() for _ in range(5)][::4])
    redis.close()
    expect("scheduled", place.ok("show", "mine", "1")["state"])
    expect(["mine"], place.ok("topic", "list")["topics"])


@test
def what_another_project_measures_is_left_as_it_is(place):
    place.ok("add", "weir-bench.1.1", "--id", "1", "--delay", "1h")
    path = os.path.join(place.data, "redis.sock")
    redis = Redis(path)
    redis.send("RPUSH weir-bench.1.2 entry")
    expect(":1", redis.line())
    done = bench(place, "throughput", "--kind", "list", "--jobs", "500",
                 "--repeat", "1", "--redis", "unix://%s?prefix=shop" % path)
    expect(0, done.returncode, done.stderr)
    expect("scheduled", place.ok("show", "weir-bench.1.1", "1")["state"])
    for question, answer in (("LLEN weir-bench.1.2", ":1"),
                             ("KEYS shop:*", "*0")):
        redis.send(question)
        expect(answer, redis.line(), question)
    redis.close()


@test
def the_primary_that_sentinels_name_is_measured(place):
    trio = Trio(place)
    for case in ("floor", "throughput", "idle", "crash"):
        few = ("--jobs", "500") if case != "idle" else ("--topics", "2")
        for row in rows(place, case, *few, "--redis", trio.url):
            expect("tcp", row["transport"])
    for server in trio.servers:
        redis = Redis(server.path)
        redis.send("KEYS *bench*")
        expect("*0", redis.line())
        redis.close()
    trio.fail_over()
    rows(place, "throughput", "--jobs", "500", "--redis", trio.url)


@test
def sentinels_that_name_nobody_are_a_sentence(place):
    fake = Fake()
    url = "redis+sentinel://127.0.0.1:%d/orders" % fake.port
    done = bench(place, "wake", "--redis", url)
    expect((2, "weir-bench: wake: no sentinel knows a primary named orders\n"),
           (done.returncode, done.stderr))
    done = bench(place, "wake", "--redis", url.replace(str(fake.port), "1"))
    expect(5, done.returncode)
    expect_in("no sentinel answers (Connection refused)", done.stderr)


def connect(pattern):
    """To the server of the first socket there is; None: none listens yet."""
    try:
        return Redis(glob.glob(pattern)[0])
    except (ConnectionRefusedError, IndexError):
        return None


@test
def nothing_is_left_when_it_is_killed(place):
    for case, sockets in (("wake", "redis.sock"), ("cluster", "*/redis.sock")):
        process = subprocess.Popen([BENCH, case, "--jobs", "100000"],
                                   env=environment(place),
                                   stdout=subprocess.DEVNULL)
        place.started.append(process)
        server = eventually(
            lambda: connect(place.path("weir-bench-*/" + sockets)),
            "a server is there")
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        expect("", server.line(), "the server is gone")
        eventually(lambda: not glob.glob(place.path("weir-bench-*")),
                   "its directory is gone")


@test
def help_of_every_case_has_an_example_and_exit_codes(place):
    done = bench(place, "--help")
    for case in CASES:
        expect_in("  %s " % case, done.stdout)
        text = bench(place, case, "--help").stdout
        for part in ("usage: weir-bench " + case, "example:", "exit codes:",
                     "--json"):
            expect_in(part, text)
        expect_true(max(map(len, text.splitlines())) <= 80,
                    "help of %s is at most 80 columns wide" % case)
    expect("weir-bench 0.1.0\n", bench(place, "--version").stdout)


@test
def mistakes_are_one_sentence(place):
    refused(place, words=["case is missing"])
    refused(place, "latenes", words=["did you mean lateness?"])
    refused(place, "wake", "--jobbs", "1", words=["did you mean --jobs?"])
    refused(place, "wake", "--jobs", words=["--jobs needs a value"])
    refused(place, "wake", "--jobs", "many", words=["--jobs", "many"])
    refused(place, "wake", "--payload", "15", words=["--payload", "16"])
    refused(place, "compare", "--delay", "5", words=["--delay", "5"])
    refused(place, "wake", "--ids", "mine", words=["caller or made"])
    refused(place, "wake", "--persistence", "often", words=["everysec"])
    refused(place, "wake", "--redis", "nowhere", words=["--redis"])
    refused(place, "wake", "me", words=["me"])
    refused(place, "throughput", "--kind", "heap", words=["--kind", "heap"])
    refused(place, "throughput", "--kind", "delays",
            words=["did you mean delay?"])
    refused(place, "throughput", "--kind", "delay,list", words=["delay,list"])
    refused(place, "throughput", "--consumers", "1,2", words=["1,2"])
    refused(place, "compare", "--kind", "delay,lst",
            words=["\"lst\"", "did you mean list?"])
    refused(place, "compare", "--kind", "delay,", words=["--kind: \"\""])
    refused(place, "compare", "--kind", "list,list", words=["twice"])
    refused(place, "compare", "--consumers", "1,x", words=["\"x\""])
    refused(place, "compare", "--consumers", "1,61", words=["1 to 60"])
    refused(place, "compare", "--consumers", "1,01", words=["--consumers"])
    refused(place, "compare", "--consumers", "1,2,3,4,5,6,7,8,9",
            words=["8 numbers"])
    refused(place, "throughput", "--handler", "slow",
            words=["--handler", "random, blocking or timer"])
    refused(place, "handlers", "--handler", "sync",
            words=["takes no --handler"])
    refused(place, "throughput", "--one-process", "--consumers", "2",
            words=["--one-process"])
    refused(place, "throughput", "--kind", "list", "--delay", "1s",
            words=["--delay", "list"])
    refused(place, "lateness", "--kind", "stream", words=["stream"])
    refused(place, "wake", "--consumers", "2", words=["--consumers"])
    refused(place, "wake", "--nodes", "2", words=["takes no --nodes"])
    refused(place, "cluster", "--nodes", "0", words=["--nodes", "1 to 64"])
    refused(place, "cluster", "--transport", "unix", words=["--transport"])
    refused(place, "cluster", "--topics", "1025", words=["--topics", "1024"])
    refused(place, "cluster", "--consumers", "40", "--producers", "40",
            words=["--producers", "64"])
    refused(place, "cluster", "--nodes", "2", "--topics", "1", "--jobs", "1",
            words=["--topics", "2 nodes"])
    place.ok("add", "mine", "--id", "1", "--delay", "1h")
    refused(place, "cluster", "--redis", "unix://" + os.path.join(
        place.data, "redis.sock"), words=["one server", "throughput"])


@test
def a_server_that_is_not_there_is_exit_code_5(place):
    done = bench(place, "wake", "--redis", "unix:///nowhere/redis.sock")
    expect(5, done.returncode)
    expect_in("/nowhere/redis.sock", done.stderr)
