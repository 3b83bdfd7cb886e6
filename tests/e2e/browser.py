# SPDX-License-Identifier: MIT
"""Headless Chromium, driven over the WebDriver protocol by its own driver."""

import atexit
import base64
import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request

from e2e import Place, eventually
from patience import WALL
from ports import free_port

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
GUARD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")
KEYS = {"Enter": "\ue007", "Escape": "\ue00c", "Right": "\ue014",
        "Tab": "\ue004"}


class Gone(Exception):
    """What was asked for is not there, or not any more."""


class Browser:
    """A browser of its own profile in the place."""

    def __init__(self, place):
        self.port = free_port()
        self.guard = subprocess.Popen(
            [sys.executable, "-B", GUARD, "chromedriver",
             "--port=%d" % self.port, "--log-path=" + place.path("driver.log")],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        self.session = None
        eventually(self.is_ready, "the driver answers")
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu",
                 "--disable-dev-shm-usage", "--hide-scrollbars",
                 "--force-device-scale-factor=1", "--no-first-run",
                 "--disable-background-networking", "--disable-extensions",
                 "--user-data-dir=" + place.path("profile")]
        answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.session = answer["sessionId"]

    def begin(self, width, height, scheme):
        """Cookies are those of a host, whatever the port."""
        self.cdp("Network.clearBrowserCookies")
        self.cdp("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=False)
        self.prefer(scheme)
        self.complaints()

    def end(self):
        """Leave the page, which would ask on."""
        self.run("localStorage.clear()")
        self.open("about:blank")

    def is_ready(self):
        try:
            return self.ask("GET", "/status")["ready"]
        except OSError:
            return False

    def ask(self, method, path, body=None):
        request = urllib.request.Request(
            "http://127.0.0.1:%d%s" % (self.port, path), method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=WALL) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            if value["error"] in ("no such element", "stale element reference",
                                  "element not interactable",
                                  "element click intercepted"):
                raise Gone(value["message"]) from None
            raise AssertionError("%s: %s" % (value["error"],
                                             value["message"])) from None

    def do(self, method, path, **body):
        return self.ask(method, "/session/%s%s" % (self.session, path),
                        body if method == "POST" else None)

    def cdp(self, command, **params):
        return self.do("POST", "/goog/cdp/execute", cmd=command, params=params)

    def prefer(self, scheme, motion="no-preference"):
        """The colours that the system asks for, and whether they may fade."""
        self.cdp("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": motion}])

    def resize(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width,
                 height=height, deviceScaleFactor=1, mobile=width < 500)

    def open(self, url):
        self.do("POST", "/url", url=url)

    def run(self, script, *args):
        """The value of a script's return."""
        return self.do("POST", "/execute/sync", script=script, args=list(args))

    def find(self, css):
        found = self.do("POST", "/element", using="css selector", value=css)
        return "/element/" + found[ELEMENT]

    def click(self, css):
        """As soon as it is there and can be clicked."""
        def done():
            try:
                self.do("POST", self.find(css) + "/click")
                return True
            except Gone:
                return False
        eventually(done, "a click at " + css)

    def click_text(self, tag, text):
        """The first visible one that has this text."""
        def done():
            return self.run(
                "const n = [...document.querySelectorAll(arguments[0])].find("
                "(n) => n.textContent.trim() === arguments[1] && "
                "n.offsetParent !== null && !n.disabled);"
                "if (n) n.click(); return Boolean(n);", tag, text)
        eventually(done, "%s with %r" % (tag, text))

    def type(self, css, text):
        """Into a field, after what stands there was taken away."""
        def done():
            try:
                self.do("POST", self.find(css) + "/clear")
                self.do("POST", self.find(css) + "/value", text=text)
                return True
            except Gone:
                return False
        eventually(done, "a field " + css)

    def put(self, css, value):
        """Into a field of a form that no key can write portably."""
        self.run("document.querySelector(arguments[0]).value = arguments[1]",
                 css, value)

    def press(self, *keys):
        actions = []
        for key in keys:
            value = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": value},
                        {"type": "keyUp", "value": value}]
        self.do("POST", "/actions", actions=[
            {"type": "key", "id": "keys", "actions": actions}])

    def text(self, css="main"):
        return self.run("const n = document.querySelector(arguments[0]);"
                        "return n ? n.innerText : ''", css)

    def see(self, *words, css="main"):
        """Wait until all of this is to be read."""
        for word in words:
            try:
                eventually(lambda w=word: w in self.text(css), "")
            except AssertionError:
                raise AssertionError("wanted %r on the page, got %r" % (
                    word, self.text(css))) from None

    def lack(self, word, css="main"):
        eventually(lambda: word not in self.text(css), "%r goes" % word)

    def texts(self, css):
        return self.run("return [...document.querySelectorAll(arguments[0])]"
                        ".map((n) => n.innerText)", css)

    def count(self, css):
        return self.run("return document.querySelectorAll(arguments[0]).length",
                        css)

    def focused(self):
        """The text of what has the focus."""
        return self.run("return document.activeElement.innerText")

    def shot(self, path, height=None):
        """A picture of the window, or of the page as far as `height`."""
        time.sleep(0.2)  # transitions of colours
        clip = {}
        if height is not None:
            width = self.run("return innerWidth")
            clip = {"clip": {"x": 0, "y": 0, "width": width, "height": height,
                             "scale": 1}, "captureBeyondViewport": True}
        shot = self.cdp("Page.captureScreenshot", format="png", **clip)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def complaints(self, *expected):
        """What the console has, but lines with a word that is expected."""
        return [entry["message"] for entry in
                self.do("POST", "/se/log", type="browser")
                if entry["level"] == "SEVERE" and
                not any(word in entry["message"] for word in expected)]

    def close(self):
        try:
            if self.session:
                self.ask("DELETE", "/session/" + self.session)
        except (OSError, AssertionError):
            pass
        self.guard.stdin.close()
        self.guard.wait()


shared = []


@contextlib.contextmanager
def browse(width=1280, height=900, scheme="light"):
    """with browse() as browser: the one of the program, as if it was new. A
    test that fails ends it."""
    if not shared:
        home = Place()
        atexit.register(home.close)
        shared.append(Browser(home))
        atexit.register(shared[0].close)
    browser = shared.pop()
    try:
        browser.begin(width, height, scheme)
        yield browser
        browser.end()
    except BaseException:
        browser.close()
        raise
    shared.append(browser)
