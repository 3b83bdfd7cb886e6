# SPDX-License-Identifier: MIT
"""Alert rules and the dashboard name metrics that weir has, and the page says
what the rules say."""

import contextlib
import glob
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request

import yaml

from browser import GUARD
from e2e import (ROOT, WEIR, await_line, eventually, expect, expect_in,
                 expect_true, test)
from ports import free_port
from web import Web

OBSERVE = os.path.join(ROOT, "docs", "observe")
METRIC = r"\bweir_[a-z_]+"


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def metrics():
    """What the sources tell: histograms have samples of other names."""
    names = set()
    for path in glob.glob(os.path.join(ROOT, "adapters", "web", "*.c")):
        names |= set(re.findall('"(weir_[a-z_]+)"', text_of(path)))
    return names | {name + "_bucket" for name in names
                    if name.endswith("_seconds")}


def rules():
    groups = yaml.safe_load(text_of("docs/observe/weir.rules.yml"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


@test
def promtool_takes_the_rules_and_each_does_what_it_says(place):
    for command in ["check", "test"]:
        file = {"check": "weir.rules.yml", "test": "weir.test.yml"}[command]
        done = subprocess.run(["promtool", command, "rules", file],
                              cwd=OBSERVE, text=True, capture_output=True)
        expect(0, done.returncode, done.stdout + done.stderr)


@test
def every_metric_that_is_asked_for_is_told(place):
    known = metrics()
    dashboard = json.loads(text_of("docs/observe/dashboard.json"))
    asked = [target["expr"] for panel in dashboard["panels"]
             for target in panel["targets"]]
    expect_true(len(asked) > 15, "there are panels")
    asked += [rule["expr"] for rule in rules()]
    asked += [text_of("docs/web.md")]
    for text in asked:
        for name in re.findall(METRIC, text):
            if name not in ("weir_job_count",):
                expect_true(name in known, "%s is a metric" % name)


@contextlib.contextmanager
def prometheus(place, *ports):
    """One that scrapes these each second; what answers its queries."""
    targets = ["127.0.0.1:%d" % port for port in ports]
    config = place.write("prometheus.json", json.dumps({
        "global": {"scrape_interval": "1s"}, "scrape_configs": [
            {"job_name": "weir", "static_configs": [{"targets": targets}]}]}))
    port = free_port()
    guard = subprocess.Popen(
        [sys.executable, "-B", GUARD, "prometheus", "--config.file=" + config,
         "--storage.tsdb.path=" + place.path("tsdb"),
         "--web.listen-address=127.0.0.1:%d" % port],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, start_new_session=True)

    def ask(expr):
        """The series of an answer; None while nothing answers."""
        url = "http://127.0.0.1:%d/api/v1/query?query=%s" % (
            port, urllib.parse.quote(expr))
        try:
            with urllib.request.urlopen(url) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None  # it begins
            raise AssertionError("%s: %s" % (expr, error.read())) from None
        except OSError:
            return None
    try:
        eventually(lambda: ask("1") is not None, "prometheus answers")
        yield ask
    finally:
        guard.stdin.close()
        guard.wait()


# What a server in good order has no series of.
QUIET = ['weir_topic_relaying{topic=~".*"} > 0',
         'topk(10, weir_topic_lease_ended_seconds{topic=~".*"})']


@test
def each_panel_shows_something_of_a_live_server(place):
    place.ok("topic", "set", "events", "kind=bounded", "length=2")
    place.add_lines("events", 9, '{"id":"e%d","group":"g"}')
    for topic in ("alone", "good", "bad"):
        place.add(topic, "1")
    server = place.redis()
    server.send("CONFIG SET maxmemory 1gb")
    server.line()
    worker = place.work(place.echo("good"),
                        place.handler("flaky", "bad", fail="9", verdict="fail"),
                        flags=["--metrics", "127.0.0.1:0"])
    port = int(re.search(r":(\d+)/metrics", await_line(
        worker, "metrics at http://")).group(1))
    dashboard = json.loads(text_of("docs/observe/dashboard.json"))
    asked = {target["expr"].replace("$topic", ".*")
             for panel in dashboard["panels"] for target in panel["targets"]}
    expect_true(set(QUIET) < asked, "they are asked for")
    with prometheus(place, Web(place).port, port) as ask:
        def empty():
            return sorted(expr for expr in asked if not ask(expr))
        with contextlib.suppress(AssertionError):
            eventually(lambda: empty() == sorted(QUIET), "all have series")
        expect(sorted(QUIET), empty())


@test
def the_page_has_each_alert_with_its_expression(place):
    page = text_of("docs/observe/README.md")
    for rule in rules():
        expr = rule["expr"].strip().replace("|", "\\|")
        limit = " for %s" % rule["for"] if "for" in rule else ""
        expect_in("| `%s` | %s | `%s`%s | %s |" % (
            rule["alert"], rule["labels"]["severity"], expr, limit,
            rule["annotations"]["description"].strip()), page)


@test
def every_metric_has_a_line_in_the_docs(place):
    page = text_of("docs/web.md")
    for name in metrics() - {"weir_build_info"}:
        if not name.endswith("_bucket"):
            expect_in("`%s`" % name, page)


PROBE = r"usdt:[^:]*/weir:weir:([a-z_]+)"


@test
def every_probe_is_in_the_program_and_has_a_line(place):
    shown = set(re.findall(PROBE, text_of("docs/observe/README.md")))
    expect(8, len(shown))
    notes = subprocess.run(["readelf", "-n", "--wide", WEIR], text=True,
                           capture_output=True, check=True).stdout
    built = set(re.findall(r"Provider: weir\s+Name: ([a-z_]+)", notes))
    expect(shown if os.environ.get("WEIR_HAS_PROBES") else set(), built)
