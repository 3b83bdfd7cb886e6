#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/examples has for containers does what docs/deploy.md says."""

import os
import re
import subprocess
import sys

from e2e import BUILD, PATIENCE, ROOT, expect, expect_in, expect_true, test


def page():
    with open(os.path.join(ROOT, "docs", "deploy.md"),
              encoding="utf-8") as file:
        return file.read()


def may_be_isolated():
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    done = subprocess.run(["unshare", *user, "--net", "--pid", "--mount-proc",
                           "--fork", "true"], capture_output=True, text=True)
    if done.returncode != 0:
        print("not checked: this machine gives nobody a network of his own: "
              + done.stderr.strip())
    return done.returncode == 0


def shown_for(part):
    """What the page shows behind this command."""
    text = page()
    at = text.index("deploy.py %s`" % part)
    return re.search(r"```\n(.*?)```", text[at:], re.S).group(1)


def expect_as_printed(part, shown):
    """deploy.py PART prints this, or says that this weir has no TLS."""
    if not may_be_isolated():
        return
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(ROOT, "docs/examples/deploy.py"),
         part], text=True, capture_output=True, timeout=PATIENCE * 5,
        env={**os.environ, "WEIR_BUILD": os.path.abspath(BUILD)})
    if part == "tls" and done.returncode == 3:
        expect_in("TLS", done.stderr)
        return
    expect(shown, done.stdout, done.stderr)
    expect(0, done.returncode, done.stderr)


@test
def a_worker_of_kubernetes_follows_a_name_and_is_seen_alive(_place):
    expect_as_printed("kubernetes", shown_for("kubernetes"))


@test
def the_set_of_compose_survives_its_primary(_place):
    expect_as_printed("compose", shown_for("compose"))


@test
def the_set_of_compose_survives_its_primary_over_tls(_place):
    expect_as_printed("tls", shown_for("compose"))


@test
def its_links_lead_somewhere(_place):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page())
    expect_true(len(links) > 5, "there are links")
    for link in links:
        expect_true(os.path.exists(os.path.join(ROOT, "docs", link)), link)
