# SPDX-License-Identifier: MIT
"""weir web, and a client for it."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import threading
import time

import resp
from e2e import await_line, expect, patient

TOKEN = "0123456789abcdef-token"
BEAT_S = 2  # a pace, not a limit


class Answer:
    def __init__(self, response):
        self.code = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


def samples(text):
    """{'name{labels}': value} of an answer, which promtool must accept."""
    checked = subprocess.run(["promtool", "check", "metrics"], input=text,
                             text=True, capture_output=True)
    expect([0, ""], [checked.returncode, checked.stderr])
    return {name: float(value) for name, value in
            re.findall(r"^([^#\s]\S*) (\S+)$", text, re.M)}


def calls_of(server):
    """How often a server (place.redis()) was asked what."""
    server.send("INFO commandstats")
    calls = {}
    while True:
        line = server.line()
        match = re.match(r"cmdstat_(\w+):calls=(\d+)", line)
        if match:
            calls[match.group(1)] = int(match.group(2))
        if line == "":
            return calls


def sent_by(server):
    """How many bytes a server (place.redis()) has sent."""
    server.send("INFO stats")
    sent = None
    while True:
        line = server.line()
        if line.startswith("total_net_output_bytes:"):
            sent = int(line.split(":")[1])
        if line == "":
            return sent


class Client:
    """What asks at a port of this machine."""

    def __init__(self, port):
        self.port = port
        self.headers = {}

    def ask(self, method, path, body=None, **headers):
        """One request on a connection of its own. Of header names _ is -."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.connect()
        patient(connection.sock)
        try:
            named = {name.replace("_", "-"): value
                     for name, value in {**self.headers, **headers}.items()}
            connection.request(method, path, body, named)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.ask("GET", path, **headers)

    def post(self, path, body=b"", **headers):
        return self.ask("POST", path, body, **headers)

    def connect(self):
        """A bare connection."""
        return patient(socket.create_connection(("127.0.0.1", self.port)))


class Web(Client):
    """weir web at a free port; with `token` it wants one."""

    def __init__(self, place, *args, token=None, listen="127.0.0.1:0"):
        flags = list(args)
        if token is not None:
            flags += ["--token-file", place.write("token", token + "\n")]
        self.process = place.start("web", "--listen", listen, *flags)
        line = await_line(self.process, "listening at http://")
        super().__init__(int(re.search(r"listening at http://\S*:(\d+)/",
                                       line).group(1)))


@contextlib.contextmanager
def crowd(place, names, topics=("t",)):
    """Workers of these names, who tell that they are there and serve one of
    these topics in turn, until the end."""
    client = resp.Client(os.path.join(place.data, "redis.sock"))
    ended = threading.Event()

    def beat():
        now = b"%013d " % (time.time() * 1000)
        client("HSET", "weir:{weir:topics}:workers", *sum([
            [name + " 1", now + b"\x82\xa4name\xa4%s\xa6topics\x91\xa1%s" % (
                name.encode(), topics[i % len(topics)].encode())]
            for i, name in enumerate(names)], []))

    def go_on():
        while not ended.wait(BEAT_S):
            beat()

    beat()
    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        client.close()
