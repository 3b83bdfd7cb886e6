# SPDX-License-Identifier: MIT
"""Alert rules and the dashboard name metrics that weir has, and the page says
what the rules say."""

import glob
import json
import os
import re
import subprocess

import yaml

from e2e import ROOT, WEIR, expect, expect_in, expect_true, test

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
