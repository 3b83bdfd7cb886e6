# SPDX-License-Identifier: MIT
"""Dead jobs end as rows of a database, each exactly once."""

import contextlib
import sqlite3

from e2e import eventually, expect, kill, test

CONFIG = """
topic "order.close" { handler = flaky  options = "verdict=fail"
                      on_dead = order.dead  lease = "1s" }
topic "order.dead" { handler = archive  options = "path=%s"  retry = "1s ..."
                     lease = "1s" }
"""


def rows(place, columns):
    try:
        with contextlib.closing(
                sqlite3.connect(place.path("dead.sqlite"))) as db:
            return db.execute("SELECT %s FROM dead ORDER BY id"
                              % columns).fetchall()
    except sqlite3.OperationalError:
        return []


def configure(place):
    config = place.write("weir.conf", CONFIG % place.path("dead.sqlite"))
    # Nobody reads what the workers in the background log.
    return ("--log-level", "warn", "--config", config)


@test
def a_job_that_fails_for_good_becomes_a_row(place):
    place.add("order.close", "42", "--body", '{"order":42}', "--url", "u")
    place.drain(flags=configure(place))
    (row,) = rows(place, "topic, id, reason, error, attempts, failures, url,"
                         " body, died_ms > 1600000000000")
    expect(("order.close", "42", "failed",
            "flaky: attempt 1 of 1 that fail", 1, 1, "u", '{"order":42}', 1),
           row)
    expect([], place.ok("dead", "list", "order.close"))
    expect([], place.ok("dead", "list", "order.dead"))


@test
def each_death_is_one_row_though_workers_are_killed(place):
    count = 4000
    place.add_lines("order.close", count, '{"id":"%d","body":%d}')
    flags = configure(place)
    for _ in range(3):
        before = len(rows(place, "id"))
        worker = place.work(flags=flags)
        eventually(lambda: len(rows(place, "id")) > before or
                   before == count, "some rows are written")
        kill(worker)
    place.drain(flags=flags)
    expect(sorted(str(i) for i in range(count)),
           [row[0] for row in rows(place, "id")])
    expect(count, place.stats("order.dead")["done_total"])
