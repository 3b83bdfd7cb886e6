# SPDX-License-Identifier: MIT
"""Scripts that may empty a key and need it once more are given a key that
nobody writes: with it none begins while its slot moves."""

import glob
import hashlib
import os
import re

from e2e import BUILD, ROOT, eventually, expect, expect_true, test
from monitor import Monitor
from redis_server import Server, use_good_plugins

SCRIPTS = os.path.join(ROOT, "adapters", "redis", "scripts")
KINDS = ("delay", "bounded", "sync", "concurrent", "list", "stream")
BURYING = ("delay", "list", "stream")
OF_LANES = {"delay/add.lua"}  # where packs are of lanes


def keys_of(path):
    """What the script says of its keys."""
    with open(path, encoding="utf-8") as file:
        return re.search(r"-- KEYS (.*?)\n-- (?:ARGV|Reply)", file.read(),
                         re.S).group(1)


def careful_scripts():
    """Names of the scripts that have the key, by what the server calls them."""
    found = {}
    for path in glob.glob(os.path.join(SCRIPTS, "*", "*.lua")):
        name = os.path.relpath(path, SCRIPTS)
        if os.path.dirname(name) != "lib" and "absent" in keys_of(path):
            with open(os.path.join(BUILD, "scripts", name), "rb") as file:
                found[hashlib.sha1(file.read()).hexdigest()] = name
    return found


def calls(monitor):
    """(script, keys) of each."""
    for _, line in monitor.commands:
        words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
        if words[0] == "EVALSHA":
            yield words[1], words[3:3 + int(words[2])]


def conf_of(place, name, handler, kinds, more=""):
    return place.write(name, "".join(
        "topic %s { kind = %s  handler = %s  %s }\n"
        % (kind, kind, handler, more) for kind in kinds))


def work_off(place, conf):
    result = place.weir("run", "--until-empty", "--config", conf)
    expect(0, result.code, result.err)


def add(place, kind, *args):
    group = ("--group", "g") if kind == "bounded" else ()
    place.ok("add", kind, "--body", "1", *group, *args)


@test
def every_script_that_needs_it_is_given_the_key_that_nobody_writes(place):
    scripts = careful_scripts()
    use_good_plugins(place)
    server = Server(place)
    place.env["WEIR_REDIS"] = "redis://127.0.0.1:%d" % server.port
    monitor = Monitor(server)
    for kind in KINDS:
        place.ok("topic", "set", kind, "kind=" + kind)
        for _ in range(3):
            add(place, kind)
    work_off(place, conf_of(place, "good", "echo", KINDS))
    flaky = 'flaky  options = "fail=1000"  retry = 1ms'
    for more in ("", "on_dead = gone"):
        for kind in BURYING:
            add(place, kind)
            add(place, kind)
        work_off(place, conf_of(place, "bad", flaky, BURYING, more))
    for kind in BURYING:
        dead = place.ok("dead", "list", kind)
        place.ok("dead", "requeue", kind, dead[0]["id"])
    for kind in KINDS:
        add(place, kind)
        place.ok("purge", kind, "--yes")
    place.ok("cron", "add", "c", "--topic", "delay", "--every", "1h")
    place.ok("cron", "delete", "c", "--topic", "delay")
    place.add("delay", "a", "--delay", "1h", "--unique", "k")
    place.ok("delete", "delay", "a")
    lines = place.write("keyed", '{"key":"k"}\n' * 3 + '{"key":"j"}\n' * 3)
    place.ok("add", "delay", "--jsonl", lines)
    place.weir("doctor", "--mend", "delay")
    place.weir("show", "delay", "the-last-one")
    eventually(lambda: any("the-last-one" in words
                           for _, words in monitor.commands[-20:]),
               "all is told")
    monitor.close()
    seen, given = set(), set()
    for script, keys in calls(monitor):
        if script in scripts:
            seen.add(script)
            if any(key.endswith(":absent") for key in keys):
                given.add(scripts[script])
            else:
                expect_true(scripts[script] in OF_LANES,
                            "%s: %r" % (scripts[script], keys))
    expect(OF_LANES, OF_LANES & given)
    expect(["delay/finish.lua", "delay/pull.lua", "delay/push.lua"],
           sorted(scripts[script] for script in set(scripts) - seen),
           "scripts that were not called: those for others alone")
