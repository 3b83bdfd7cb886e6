# SPDX-License-Identifier: MIT
"""weir web, and a client for it."""

import http.client
import json
import re
import socket
import subprocess

from e2e import await_line, expect, patient

TOKEN = "0123456789abcdef-token"


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
