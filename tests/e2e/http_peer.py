# SPDX-License-Identifier: MIT
"""A web server for tests, on a free port of 127.0.0.1 or of
all addresses, in a thread.

The path says how it answers:

    /200 /404 ...     with this status; ?after=N adds Retry-After: N, or
                      where N is @M the HTTP date in M seconds; ?say=N makes
                      the body N letters
    /slow, /brief     200 after 200 ms, 20 ms
    /hang, /trickle   never, or without an end, a byte at a time
    /gate             200 when open_gate() was called
    /close            by closing the connection
    /half             with a part of an answer, then it closes
    /to/PATH          with a redirect to /PATH, /late/PATH after 200 ms
    /away/URL         with a redirect to URL, which is quoted; /302/URL with
                      this status, and so on
    /garbage          with what is not HTTP
    /head, /hints     200 and more headers, or more answers 103 before it,
                      than anybody wants
    /long             200 and more bytes than anybody wants
"""

import asyncio
import collections
import email.utils
import ssl
import threading
import time
from urllib.parse import unquote

from ports import free_port

Request = collections.namedtuple("Request", "path headers body method")


class HttpPeer:
    def __init__(self, certificate=None, address="127.0.0.1"):
        self.address = address
        self.requests = []
        self.connections = self.at_once = self.most_at_once = 0
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate)
        self.port = free_port()
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        self.thread = threading.Thread(target=self.serve, args=(started,),
                                       daemon=True)
        self.thread.start()
        started.wait()

    def serve(self, started):
        asyncio.set_event_loop(self.loop)
        self.gate = asyncio.Event()
        self.loop.run_until_complete(asyncio.start_server(
            self.talk, self.address, self.port, ssl=self.context,
            backlog=1024))
        started.set()
        self.loop.run_forever()

    def open_gate(self):
        self.loop.call_soon_threadsafe(self.gate.set)

    def url(self, path, host="127.0.0.1"):
        return "%s://%s:%d%s" % ("https" if self.context else "http", host,
                                 self.port, path)

    async def talk(self, reader, writer):
        self.connections += 1
        try:
            while await self.answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    async def answer(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers.get("Content-Length", 0)))
        path = head[0].split(" ")[1]
        self.requests.append(Request(path, headers, body,
                                     head[0].split(" ")[0]))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self.act(path, writer)
        finally:
            self.at_once -= 1

    async def act(self, path, writer):
        what, _, after = path[1:].partition("?after=")
        headers, body = "", b"said so\n"
        if what == "hang":
            await asyncio.sleep(3600)
        if what == "trickle":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            while not writer.is_closing():
                writer.write(b"A")
                await writer.drain()
                await asyncio.sleep(0.05)
        if what == "gate":
            await self.gate.wait()
        if what == "close":
            return False
        if what == "half":
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
            return False
        if what == "garbage":
            writer.write(b"+PONG\r\n" * 3)
            return False
        if what in ("head", "hints"):
            return await self.flood(what, writer)
        if what == "slow" or what.startswith("late/"):
            await asyncio.sleep(0.2)
        if what == "brief":
            await asyncio.sleep(0.02)
        if what == "long":
            body = b"x" * (4 << 20)
        if "?say=" in what:
            what, _, count = what.partition("?say=")
            body = b"x" * int(count)
        if after.startswith("@"):
            after = email.utils.formatdate(time.time() + int(after[1:]),
                                           usegmt=True)
        if after:
            headers += "Retry-After: %s\r\n" % after
        first, _, rest = what.partition("/")
        if rest:
            headers += "Location: %s\r\n" % (
                "/" + rest if first in ("to", "late") else unquote(rest))
            what = first if first.isdigit() else "307"
        status = what if what.isdigit() else "200"
        writer.write(("HTTP/1.1 %s X\r\nContent-Length: %d\r\n%s\r\n"
                      % (status, len(body), headers)).encode() + body)
        await writer.drain()
        return True

    @staticmethod
    async def flood(what, writer):
        part = b"HTTP/1.1 103 X\r\nA: b\r\n\r\n"
        if what == "head":
            writer.write(b"HTTP/1.1 200 OK\r\n")
            part = b"A: " + b"b" * 1000 + b"\r\n"
        for _ in range(10000):
            writer.write(part * 10)
            await writer.drain()
        return False
