# SPDX-License-Identifier: MIT
"""Times that come next are those of croniter: 10,000 times an expression, one
of 20 zones and a start within ten years, four times behind each.

Where the offset of the zone stays the same croniter is asked as it is. It
loses an hour behind changes of the offset (1.3.5), so there it is asked in
local time without a zone, and what summer time makes of that is done here by
the rule in core/crontab.h, with Python's zoneinfo. Left out is 5L beside days of
the month, of which croniter wants both, or finds none.

Needs the module croniter."""

import datetime
import os
import random
import zoneinfo

from croniter import croniter
from e2e import BUILD, expect, run, test

ZONES = ("Europe/Berlin Europe/London Europe/Dublin America/New_York "
         "America/Los_Angeles America/Sao_Paulo America/St_Johns "
         "America/Havana Asia/Kolkata Asia/Tokyo Asia/Kathmandu Asia/Tehran "
         "Asia/Jerusalem Australia/Lord_Howe Australia/Sydney "
         "Pacific/Auckland Pacific/Chatham Pacific/Apia Africa/Cairo "
         "Africa/Casablanca").split()
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
FIRST = 1577836800  # 2020
YEARS = 10 * 365 * 86400
VECTORS, BEHIND = 10000, 4
UTC = datetime.timezone.utc


def part(rnd, lo, hi, names):
    first = rnd.randint(lo, hi)
    last = rnd.randint(first, hi)
    form = rnd.random()
    if form < 0.5:
        return str(first)
    if form < 0.7:
        return "%d-%d" % (first, last)
    if form < 0.85:
        return "*/%d" % rnd.randint(2, max(2, hi // 2))
    if form < 0.95:
        return "%d-%d/%d" % (first, last, rnd.randint(1, 5))
    return rnd.choice(names) if names else str(first)


def field(rnd, lo, hi, names=()):
    if rnd.random() < 0.35:
        return "*"
    return ",".join(part(rnd, lo, hi, names)
                    for _ in range(rnd.choice((1, 1, 1, 2, 3))))


def expression(rnd):
    """Fields without the second, and the second or an empty text."""
    if rnd.random() < 0.03:
        return rnd.choice(("@daily", "@hourly", "@weekly", "@monthly",
                           "@yearly")), ""
    day = field(rnd, 1, 28) if rnd.random() < 0.9 else "L"
    weekday = field(rnd, 0, 5, DAYS)
    form = rnd.random()
    if form < 0.35:
        day = "*"
    elif form < 0.7:
        weekday = "*"
    elif form < 0.75:
        day, weekday = "*", "L%d" % rnd.randint(0, 6)
    fields = (field(rnd, 0, 59), field(rnd, 0, 23), day,
              field(rnd, 1, 12, MONTHS), weekday)
    return " ".join(fields), field(rnd, 0, 59) if rnd.random() < 0.1 else ""


class Vector:
    def __init__(self, rnd, zone):
        self.text, self.second = expression(rnd)
        self.zone, self.info = zone, zoneinfo.ZoneInfo(zone)
        self.start = FIRST + rnd.randrange(YEARS)

    def line(self):
        text = self.second + " " + self.text if self.second else self.text
        return "%s\t%s\t%d\t%d\n" % (text, path_of(self.zone), self.start,
                                     BEHIND)

    def behind(self, start):
        """croniter's times behind a datetime, or a local time."""
        text = self.text + " " + self.second if self.second else self.text
        times = croniter(text, start)
        while True:
            yield int(times.get_next(float))

    def offset(self, utc):
        there = datetime.datetime.fromtimestamp(utc, self.info)
        return int(there.utcoffset().total_seconds())

    def change(self, lo, hi):
        """The first moment after `lo`, up to `hi`, with another offset."""
        offset = self.offset(lo)
        while lo < hi:  # no two changes are closer than this
            step = min(lo + 7 * 86400, hi)
            if self.offset(step) != offset:
                break
            lo = step
        else:
            return None
        while step - lo > 1:
            middle = (lo + step) // 2
            if self.offset(middle) == offset:
                lo = middle
            else:
                step = middle
        return step

    def moment(self, local):
        """The first one at which the clocks show it, or jump over it."""
        there = datetime.datetime.fromtimestamp(local, UTC)
        utc = int(there.replace(tzinfo=self.info).timestamp())
        if utc + self.offset(utc) == local:
            return utc
        return self.change(utc - 86400, utc + 86400)

    def wanted(self, last):
        if self.change(self.start, last) is None:
            times = self.behind(datetime.datetime.fromtimestamp(self.start,
                                                                self.info))
            return [next(times) for _ in range(BEHIND)]
        if self.text == "@hourly" or self.text[0] != "@" and \
                self.text.split()[1][0] == "*":
            return self.by_hours()
        wanted, utc = [], self.start
        times = self.behind(self.start + self.offset(self.start))
        while len(wanted) < BEHIND:
            moment = self.moment(next(times))
            if moment > utc:
                wanted.append(moment)
                utc = moment
        return wanted

    def by_hours(self):
        wanted, utc = [], self.start
        while len(wanted) < BEHIND:
            offset = self.offset(utc + 1)
            utc_next = next(self.behind(utc + offset)) - offset
            change = self.change(utc + 1, utc_next)
            if change is None:
                wanted.append(utc_next)
            utc = utc_next if change is None else change - 1
        return wanted


def path_of(zone):
    for folder in zoneinfo.TZPATH:
        path = os.path.join(folder, zone)
        if os.path.exists(path):
            return path
    raise AssertionError("no file of " + zone)


@test
def ten_thousand_expressions_come_when_croniter_says(place):
    del place
    rnd = random.Random(20261126)
    vectors = [Vector(rnd, ZONES[i % len(ZONES)]) for i in range(VECTORS)]
    done = run([os.path.join(BUILD, "tests", "cron_next")],
               "".join(one.line() for one in vectors))
    expect((0, ""), (done.returncode, done.stderr))
    lines = done.stdout.splitlines()
    expect(VECTORS, len(lines))
    changed = 0
    for one, line in zip(vectors, lines):
        got = [int(word) for word in line.split()]
        changed += one.change(one.start, got[-1]) is not None
        expect(one.wanted(got[-1]), got, one.line())
    print("%d vectors, %d over a change of the offset" % (VECTORS, changed))
