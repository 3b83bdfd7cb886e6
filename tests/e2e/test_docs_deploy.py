#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/examples has for containers does what docs/deploy.md says."""

import os
import re
import subprocess
import sys

from e2e import (BUILD, PATIENCE, ROOT, expect, expect_in, expect_true, run,
                 run_together, test, time_test)

run_together(3)


def page(name="deploy.md"):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
        return file.read()


def expect_isolation():
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    done = subprocess.run(["unshare", *user, "--net", "--pid", "--mount-proc",
                           "--fork", "true"], capture_output=True, text=True)
    expect_true(done.returncode == 0, "this machine gives a process a network "
                "of its own, which this test needs: " + done.stderr.strip())


def shown_for(part):
    """What the page shows behind this command."""
    text = page()
    at = text.index("deploy.py %s`" % part)
    return re.search(r"```\n(.*?)```", text[at:], re.S).group(1)


def deploy(*args):
    expect_isolation()
    return run(
        [sys.executable, "-B", os.path.join(ROOT, "docs/examples/deploy.py"),
         *args], patience=PATIENCE * 5, env={**os.environ, "WEIR_BUILD": BUILD})


def expect_as_printed(shown, *args):
    done = deploy(*args)
    expect(shown, done.stdout, done.stderr)
    expect(0, done.returncode, done.stderr)


@test
def a_worker_of_kubernetes_follows_a_name_and_is_seen_alive(_place):
    expect_as_printed(shown_for("kubernetes"), "kubernetes")


@test
def the_set_of_compose_survives_its_primary(_place):
    expect_as_printed(shown_for("compose"), "compose", "--command")


@test
def a_cluster_goes_on_without_a_node_and_while_slots_move(_place):
    expect_as_printed(shown_for("cluster"), "cluster", "--command")


@time_test
def both_do_so_when_servers_notice_the_loss_themselves(_place):
    for part in ("compose", "cluster"):
        expect_as_printed(shown_for(part), part)


@test
def over_tls_it_does_the_same_or_says_that_this_weir_has_none(_place):
    if os.environ["WEIR_HAS_TLS"] == "1":
        expect_as_printed(shown_for("compose"), "tls", "--command")
    else:
        done = deploy("tls")
        expect((3, ""), (done.returncode, done.stdout), done.stderr)
        expect_in("rediss:// needs TLS", done.stderr)


def computed(*args):
    return subprocess.run(
        ["awk", *args, "-f", os.path.join(ROOT, "docs/examples/nodes.awk")],
        text=True, capture_output=True).stdout.splitlines(True)


@test
def nodes_for_a_load_are_computed_as_scale_says(_place):
    blocks = re.findall(r"```\n(.*?)```", page("scale.md"), re.S)
    expect([computed(), computed("-v", "wake=5")[:5]],
           [block.splitlines(True) for block in blocks])
    busy = computed("-v", "us=1.9", "-v", "busy=1", "-v", "wake=1e9")
    expect(["1000000", "2", "95", "0", "0.0", "2"], busy[3].split(),
           "1.9 s of work a second")
    expect_in("10 million jobs a second are %s nodes" %
              computed("-v", "us=0.4")[-1].split()[1], page("scale.md"))


@test
def its_links_lead_somewhere(_place):
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page() + page("scale.md"))
    expect_true(len(links) > 5, "there are links")
    for link in links:
        expect_true(os.path.exists(os.path.join(ROOT, "docs", link)), link)
