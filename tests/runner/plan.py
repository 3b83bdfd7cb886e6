# SPDX-License-Identifier: MIT
"""What runs where. A test runs once, in the build where it can find most; a
second build must ask a second question.

CTest's labels say of what kind a program is (unit, adapter, plugin, redis,
scripts, driven, fuzz, lint), and when it runs: `all` for those that `./run
test` leaves out, `chaos` for those that only `./run chaos` has."""

import json
import os
import re
import subprocess
from dataclasses import replace

from pool import Task
import table

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

FOLDERS = {"release": "build", "clang": "build-clang",
           "gcc-sanitize": "build-gcc-san",
           "clang-sanitize": "build-clang-san",
           "thread-sanitize": "build-tsan"}

HEAVY_CPU_S = 8.0
C_LEVEL = {"unit", "adapter", "plugin", "redis"}
# The scripts are the same bytes in each build.
SAME_EVERYWHERE = re.compile(r"redis_scripts_|lint_|install_")
# These drive programs of others, or measure.
OF_OTHERS = re.compile(r"bench_smoke|e2e_(web_page|web_use|docs_deploy|perl)$|"
                       r"(python|node)_")
THREADED = re.compile(r"(blocking|embed|embed_table|embed_thread|follow|"
                      r"follow_away|e2e_async|held_calls|"
                      r"redis_keeper_cluster)$")
COMPAT = r"^(redis_conn_tls|e2e_tls|e2e_sentinel|e2e_doctor_sentinel|" \
    r"(redis_delay|redis_keeper|redis_list|embed)_tls)$"


def every_day(task):
    return not task.labels & {"all", "chaos"}


def c_level(task):
    return every_day(task) and bool(task.labels & C_LEVEL) and \
        not SAME_EVERYWHERE.match(task.name)


def light_c_level(task):
    """Few programs take a third of the CPU time: those are left to `all`."""
    return c_level(task) and task.cpu_s <= HEAVY_CPU_S


def sanitized(task):
    return not task.labels & {"scripts", "chaos"} and \
        not SAME_EVERYWHERE.match(task.name) and \
        not OF_OTHERS.match(task.name)


def _with(labels):
    return lambda task: bool(task.labels & labels)


PLAN = {
    "test": {"release": every_day, "clang-sanitize": light_c_level},
    "all": {"release": lambda task: "chaos" not in task.labels,
            "clang-sanitize": sanitized,
            "clang": lambda task: every_day(task) and "unit" in task.labels,
            "thread-sanitize": lambda task: bool(THREADED.match(task.name))},
    # Besides, the tests whose subject is time: see time_tasks.
    "chaos": {"release": _with({"chaos"}), "gcc-sanitize": c_level},
}


def build_task(build, log, targets=()):
    """Configures and builds at a low priority, beside tests of another."""
    command = "cmake --preset %s -DWEIR_TESTS=ON >/dev/null && " \
        "cmake --build --preset %s" % (build, build)
    return Task(build, "build", ["bash", "-c", command], ROOT, log,
                lock="build", limit_s=3600, nice=10, cpu_s=90, wall_s=3600)


def _property(test, name, otherwise):
    for one in test.get("properties", ()):
        if one["name"] == name:
            return one["value"]
    return otherwise


def tasks_of(build, rows, logs):
    """All test programs of a build, as CTest lists them."""
    text = subprocess.run(
        ["ctest", "--test-dir", os.path.join(ROOT, FOLDERS[build]),
         "--show-only=json-v1"], check=True, capture_output=True,
        text=True).stdout
    is_sanitized = "sanitize" in build
    tasks = []
    for test in json.loads(text)["tests"]:
        name, labels = test["name"], frozenset(_property(test, "LABELS", ()))
        cpu, wall = table.cost_of(rows, name, labels, is_sanitized)
        env = dict(one.split("=", 1)
                   for one in _property(test, "ENVIRONMENT", ()))
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
        tasks.append(Task(
            build, name, test.get("command", [name + " was not built"]),
            _property(test, "WORKING_DIRECTORY", ROOT),
            os.path.join(logs, "%s-%s.log" % (build, name)), env, labels,
            lock=",".join(_property(test, "RESOURCE_LOCK", ())),
            limit_s=_property(test, "TIMEOUT", 300.0),
            cpu_s=cpu, wall_s=wall,
            wanted_text="|".join(_property(test, "PASS_REGULAR_EXPRESSION",
                                           ()))))
    return tasks


def time_tasks(rows, logs):
    """The programs again, for their tests whose subject is time."""
    return [replace(task, name=task.name + "_time",
                    log=task.log.replace(".log", "_time.log"),
                    env={**task.env, "WEIR_TEST_TIME": "only"})
            for task in tasks_of("release", rows, logs)
            if "chaos" not in task.labels and takes_names(task)]


def takes_names(task):
    """Whether tests can be named behind its command."""
    return "tests/e2e/run.py" in " ".join(task.command) or \
        os.path.basename(task.command[0]).startswith("test_")
