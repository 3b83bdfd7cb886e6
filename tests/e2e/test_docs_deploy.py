#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/examples has for containers does what docs/deploy.md says."""

import os
import re
import subprocess
import sys

from e2e import BUILD, PATIENCE, ROOT, expect, expect_true, test


def page():
    with open(os.path.join(ROOT, "docs", "deploy.md"),
              encoding="utf-8") as file:
        return file.read()


def may_be_isolated():
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    done = subprocess.run(["unshare", *user, "--net", "--mount", "--pid",
                           "--fork", "true"], capture_output=True, text=True)
    if done.returncode != 0:
        print("not checked: this machine gives nobody a network of his own: "
              + done.stderr.strip())
    return done.returncode == 0


def expect_as_printed(part):
    """deploy.py prints what the page shows behind its command."""
    if not may_be_isolated():
        return
    command = "deploy.py %s`" % part
    text = page()
    shown = re.search(r"```\n(.*?)```", text[text.index(command):],
                      re.S).group(1)
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(ROOT, "docs/examples/deploy.py"),
         part], text=True, capture_output=True, timeout=PATIENCE * 5,
        env={**os.environ, "WEIR_BUILD": os.path.abspath(BUILD)})
    expect(shown, done.stdout, done.stderr)
    expect(0, done.returncode, done.stderr)


@test
def a_worker_of_kubernetes_follows_a_name_and_is_seen_alive(_place):
    expect_as_printed("kubernetes")


@test
def its_links_lead_somewhere(_place):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page())
    expect_true(len(links) > 5, "there are links")
    for link in links:
        expect_true(os.path.exists(os.path.join(ROOT, "docs", link)), link)
