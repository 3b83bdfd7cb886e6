# SPDX-License-Identifier: MIT
"""The page of weir web in a browser, and what tests of it begin with."""

import contextlib
import json

from browser import browse
from e2e import expect, expect_in
from web import TOKEN, Web

# A command that fails with what the job's body says.
DIE = """import json, sys
sys.exit(json.load(sys.stdin)["body"])
"""


@contextlib.contextmanager
def page(place, *flags, path="", **options):
    """A browser that is logged in and looks at `path`; in the end the console
    has no error that the test did not take from it."""
    web = Web(place, *flags, token=TOKEN)
    with browse(**options) as browser:
        browser.open("http://127.0.0.1:%d/%s" % (web.port, path))
        browser.see("Log in")
        browser.type("input[name=token]", TOKEN)
        browser.press("Enter")
        browser.see("live", css="#state")
        browser.web = web
        yield browser
        expect([], browser.complaints())


def go(browser, path):
    browser.run("location.hash = arguments[0]", path)


def die(place, topic, texts):
    place.add(topic, "x0", "--body", json.dumps(texts[0]))
    for i, text in enumerate(texts[1:], 1):
        place.add(topic, "x%d" % i, "--body", json.dumps(text))
    place.drain(place.handler("exec", topic, fail_codes=1, command="python3%20" +
                              place.write("die.py", DIE)))


def expect_refusal(browser):
    """The console has one line for what was refused, and nothing else."""
    lines = browser.complaints()
    expect(1, len(lines))
    expect_in("status of 400", lines[0])
