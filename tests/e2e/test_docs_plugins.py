# SPDX-License-Identifier: MIT
"""The tutorial docs/plugins.md works as it is written: its commands run, its
sources compile and do what the text says."""

import os
import re

from e2e import (BUILD, PATIENCE, ROOT, WEIR, expect, expect_in, expect_true,
                 run, test)


def page():
    with open(os.path.join(ROOT, "docs", "plugins.md")) as file:
        return file.read()


def blocks(language):
    return re.findall(r"```%s\n(.*?)```" % language, page(), re.S)


def shell(place, script):
    env = {**place.env, "PATH": os.path.dirname(WEIR) + ":" +
           place.env["PATH"]}
    done = run(["sh", "-euc", script], patience=PATIENCE * 3, cwd=place.dir,
               env=env)
    expect(0, done.returncode, script + done.stdout + done.stderr)
    return done.stdout + done.stderr


def compile_plugin(place, source, name):
    place.write(name + ".c", source)
    shell(place, "${CC:-cc} ${CFLAGS-} -std=c11 -Wall -Wextra -Werror -shared "
                 "-fPIC -fvisibility=hidden -I %s/core/include -o %s.so %s.c"
          % (ROOT, name, name))
    return place.path(name + ".so")


@test
def the_tutorial_leads_from_nothing_to_a_job_that_ran(place):
    out = [shell(place, script) for script in blocks("sh")[:5]]
    expect_in("100% tests passed", out[0])
    expect_in("verdict  DONE", out[1])
    expect_in("hello, Ada", out[1])
    expect_in("verdict  RETRY\ndelay    15h", out[2])
    expect_in("good morning, Ada", out[3])
    expect_in("greet  delay", out[3])
    expect_in("greeting (text, default \"hello\")", out[4])
    expect_in("nothing wrong, 1 topic", out[4])


@test
def the_example_of_verdicts_gives_each_of_them(place):
    path = compile_plugin(place, blocks("c")[0], "verdicts")
    for body, code in (('{}', 11), ('{"order":1}', 10),
                       ('{"order":2000}', 12), ('{"order":2}', 0)):
        expect(code, place.weir("plugin", "try", path, "--body", body).code,
               body)


@test
def the_example_of_jobs_that_follow_adds_one(place):
    path = compile_plugin(place, blocks("c")[1], "follows")
    expect_in("adds     order.ship (made id) in 1s: {\"n\":1}",
              place.weir("plugin", "try", path, "--body", '{"n":1}').out)
    place.add("order.close", "1")
    place.drain("order.close=" + path)
    expect(1, place.stats("order.close")["done_total"])
    expect(1, place.stats("order.ship")["added_total"])


@test
def the_example_of_a_test_passes(place):
    place.write("test.c", blocks("c")[2])
    shell(place, "${CC:-cc} ${CFLAGS-} -std=c11 -Wall -Wextra -Werror "
                 "-I %s/core/include -o test test.c "
                 "-L %s/lib -Wl,-rpath,%s/lib -lweir && ./test"
          % (ROOT, os.path.abspath(BUILD), os.path.abspath(BUILD)))


@test
def the_example_of_waiting_is_done_later(place):
    source = blocks("c")[3]
    path = compile_plugin(place, source, "waits")
    result = place.weir("plugin", "try", path, "--json")
    expect((0, "DONE"), (result.code, result.json["verdict"]))
    longer = source.replace("wait->timer, 100)", "wait->timer, 60000)")
    expect_true(longer != source, "its timer is set")
    longer = compile_plugin(place, longer, "waits_longer")
    expect(13, place.weir("plugin", "try", longer, "--timeout", "10ms").code)
    place.add("t", "1")
    place.drain("t=" + path)
    expect(1, place.stats("t")["done_total"])


@test
def the_example_of_blocking_ends_when_it_is_given_up(place):
    path = compile_plugin(place, blocks("c")[4], "blocks")
    hour = ("--body", '{"rows":3600}')
    expect(13, place.weir("plugin", "try", path, "--timeout", "10ms",
                          *hour).code)
    place.add("t", "1", *hour)
    place.add("u", "1", "--body", '{"rows":0}')
    place.write("weir.conf",
                'topic "t" { handler = "%s" timeout = 10ms retry = none }\n'
                'topic "u" { handler = "%s" }\n' % (path, path))
    place.drain(flags=("--config", place.path("weir.conf")))
    expect([1, 1], [place.stats("t")["dead"], place.stats("u")["done_total"]])


@test
def the_example_of_many_jobs_has_them_in_one_call(place):
    path = compile_plugin(place, blocks("c")[5], "totals")
    for cents in (250, 199, 1):
        place.add("sale", str(cents), "--body", '{"cents":%d}' % cents)
    place.add("sale", "none")
    expect_in("4 jobs, 450 cents", place.drain("sale=" + path).err)
    expect([3, 1], [place.stats("sale")[name] for name in ("done_total",
                                                           "dead")])


@test
def the_example_of_an_archive_makes_a_row(place):
    name, text = re.search(r"In\n`(\S+)`:\n\n```conf\n(.*?)```", page(),
                           re.S).groups()
    place.write(name, text)
    out = shell(place, blocks("sh")[9])
    expect_in("order.close|42|failed|flaky: attempt 1 of 1 that fail|1", out)


@test
def nothing_on_the_page_is_left_out(place):
    expect([10, 6, 1, 1],
           [len(blocks(name)) for name in ("sh", "c", "cpp", "conf")])
