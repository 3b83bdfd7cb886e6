# SPDX-License-Identifier: MIT
"""Schedules by the weir command, and their jobs."""

import datetime


def cron(place, verb, *args, topic="t"):
    return place.ok("cron", verb, *args, "--topic", topic)


def add(place, name="s", *args, topic="t"):
    return cron(place, "add", name, *args, topic=topic)


def ticks(place, topic="t"):
    return sorted(job["id"] for job in place.ok("list", topic)
                  if job["id"].endswith("@next"))


def moment_of(job_id):
    """ms since 1970 of an id NAME@TIME."""
    text = job_id.split("@")[1].replace("Z", "+00:00")
    return round(datetime.datetime.fromisoformat(text).timestamp() * 1000)
