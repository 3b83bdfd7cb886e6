# SPDX-License-Identifier: MIT
"""A primary, replicas and three sentinels, as somebody else would run them."""

import os
import signal
import subprocess

import fake
from e2e import eventually
from fake import bulks
from ports import free_port
from redis_server import Server
from resp import Client, ReplyError

NAME = "orders"

CONFIG = """\
port {port}
bind 127.0.0.1
unixsocket {socket}
dir {directory}
sentinel monitor {name} 127.0.0.1 {primary} 2
sentinel down-after-milliseconds {name} {down}
sentinel failover-timeout {name} 2000
"""


# How sentinels pace themselves, where they can be told (from 7.0 on): they find
# each other soon, an old primary is made a replica soon, and a busy machine
# does not let them rest for 30 s.
PACE = ("publish-period", "300", "info-period", "1000",
        "tilt-trigger", "3600000")


def ask(path, *words):
    """One command; None where nobody answers, or with an error."""
    try:
        client = Client(path, patience=1.0)
    except OSError:
        return None
    try:
        return client(*words)
    except (OSError, ReplyError):
        return None
    finally:
        client.close()


def table(flat):
    """An answer of names and values."""
    return {name.decode(): value.decode()
            for name, value in zip(flat[::2], flat[1::2])}


def pause(process):
    process.send_signal(signal.SIGSTOP)


def resume(process):
    process.send_signal(signal.SIGCONT)


class Sentinel:
    """Each has a directory of its own: it writes its configuration anew."""

    def __init__(self, place, name, primary, down_ms):
        directory = place.path(name)
        os.makedirs(directory)
        self.place, self.port = place, free_port()
        self.path = os.path.join(directory, "sentinel.sock")
        self.file = os.path.join(directory, "sentinel.conf")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(
                port=self.port, socket=self.path, directory=directory,
                name=NAME, primary=primary.port, down=down_ms))
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", self.file, "--sentinel"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.place.started.append(self.process)
        eventually(lambda: ask(self.path, "PING") == "PONG", "it answers")
        self.pace(*PACE)

    def pace(self, *settings):
        ask(self.path, "SENTINEL", "DEBUG", *settings)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def primary(self):
        """The port that it tells."""
        answer = ask(self.path, "SENTINEL", "get-master-addr-by-name", NAME)
        return int(answer[1]) if answer else 0

    def is_settled(self, replicas, others):
        answer = ask(self.path, "SENTINEL", "MASTER", NAME)
        if not answer:
            return False
        told = table(answer)
        return (told["flags"] == "master" and
                int(told["num-slaves"]) >= replicas and
                int(told["num-other-sentinels"]) >= others)


def calls(server, command="evalsha"):
    """How often a server ran it. Replicas run what scripts did, not scripts."""
    for line in ask(server.path, "INFO", "commandstats").decode().split():
        if line.startswith("cmdstat_%s:" % command):
            return int(line.partition("calls=")[2].split(",")[0])
    return 0


def clients(server):
    """Names of the connections of weir."""
    return [word for word in server.told("CLIENT LIST").split()
            if word.startswith("name=") and word != "name=" and
            not word.startswith("name=sentinel-")]


def ids(place, name="out"):
    return [line["id"] for line in place.lines(name)]


def ran(place, job_id, name="out"):
    eventually(lambda: job_id in ids(place, name), "%s runs" % job_id)


def role(server):
    answer = ask(server.path, "ROLE")
    return answer[0].decode() if answer else ""


def offset(server):
    """None where it does not answer: who becomes a replica lets go of all."""
    told = (ask(server.path, "INFO", "replication") or b"").decode()
    return told.partition("master_repl_offset:")[2].split()[0] if told else None


class Trio:
    """servers[0] is the first primary. Without `down_ms` a failover begins by
    command only, however busy the machine."""

    def __init__(self, place, replicas=1, down_ms=30000):
        args = ("--repl-diskless-sync-delay", "0",
                "--repl-ping-replica-period", "1")
        self.servers = [Server(place, *args, name="s0")]
        for i in range(replicas):
            self.servers.append(Server(
                place, "--replicaof", "127.0.0.1", str(self.servers[0].port),
                *args, name="s%d" % (i + 1)))
        eventually(lambda: all("link_status:up" in one.told("INFO replication")
                               for one in self.servers[1:]),
                   "replicas are connected")
        self.sentinels = [Sentinel(place, "sentinel%d" % i, self.servers[0],
                                   down_ms) for i in range(3)]
        eventually(lambda: all(one.is_settled(replicas, 2)
                               for one in self.sentinels),
                   "sentinels know each other")
        self.url = self.url_of(self.sentinels)
        place.env["WEIR_REDIS"] = self.url

    def url_of(self, sentinels, login="", name=NAME):
        return "redis+sentinel://%s%s/%s" % (
            login, ",".join("127.0.0.1:%d" % one.port for one in sentinels),
            name)

    def server(self, port):
        return next(one for one in self.servers if one.port == port)

    def primary(self):
        """The server that the sentinels name, where they agree."""
        ports = {one.primary() for one in self.sentinels
                 if one.process.poll() is None}
        return self.server(ports.pop()) if len(ports) == 1 else None

    def await_replicas(self):
        """All that was written is there."""
        def are_equal():
            offsets = {offset(one) for one in self.servers}
            return len(offsets) == 1 and None not in offsets

        eventually(are_equal, "replicas have everything")

    def await_switch(self, old):
        """Returns the new primary once every sentinel names it."""
        return eventually(
            lambda: self.primary() not in (None, old) and self.primary(),
            "the sentinels name another primary")

    def leave_old_primaries(self):
        """One that is back remains a primary for minutes."""
        for one in self.sentinels:
            one.pace("publish-period", "60000")

    def take_old_primaries(self):
        """One that is back becomes a replica soon."""
        for one in self.sentinels:
            one.pace(*PACE)

    def fail_over(self):
        """By command, though the old primary may live on. Returns the new one,
        which has read all that a killed one sent. A sentinel gives up what
        takes 2 s, and begins again at the next command."""
        old = eventually(self.primary, "the sentinels agree")
        if old.process.poll() is not None:
            eventually(lambda: all("link_status:down" in
                                   one.told("INFO replication")
                                   for one in self.servers if one is not old),
                       "its replicas have read all")

        def has_switched():
            told = table(ask(self.sentinels[0].path, "SENTINEL", "MASTER",
                             NAME) or ())
            if told.get("port") == str(old.port) and \
                    "failover_in_progress" not in told["flags"]:
                ask(self.sentinels[0].path, "SENTINEL", "FAILOVER", NAME)
            return self.primary() not in (None, old) and self.primary()

        new = eventually(has_switched, "the sentinels name another primary")

        def is_primary():
            """A sentinel that did not know yet may have demoted it."""
            if role(new) != "master":
                new.tell("REPLICAOF NO ONE")
            return role(new) == "master"

        eventually(is_primary, "the new primary is one")
        return new


class Fake(fake.Fake):
    """A sentinel as no real one is: it tells what it is told to tell."""

    def __init__(self, primary=None, password=None):
        self.primary, self.password = primary, password  # a port; None: nil
        self.host = "127.0.0.1"  # of the primary
        self.others = []  # ports of other sentinels
        self.is_silent = False  # when it is asked for something
        self.ears = []  # those who subscribed
        self.let_in = set()
        super().__init__(free_port())

    def answer(self, words, client):
        if words[0] == "AUTH":
            if words[1:] != self.password:
                return "-WRONGPASS no"
            self.let_in.add(client)
            return "+OK"
        if self.password is not None and client not in self.let_in:
            return "-NOAUTH Authentication required."
        if self.is_silent and words[0] == "SENTINEL":
            return None
        return self.told(words, client)

    def told(self, words, client):
        if words[0] == "SUBSCRIBE":
            self.ears.append(client)
            return bulks("subscribe", words[1])[:-2].replace(
                "*2", "*3") + "\r\n:1"
        if words[:2] == ["SENTINEL", "sentinels"]:
            return "*%d\r\n" % len(self.others) + "".join(
                bulks("name", "x", "ip", "127.0.0.1", "port", str(port))
                for port in self.others)[:-2] if self.others else "*0"
        if words[:2] == ["SENTINEL", "get-master-addr-by-name"]:
            return bulks(self.host, str(self.primary))[:-2] \
                if self.primary and words[2] == NAME else "*-1"
        return "+OK"

    def say_switch(self, old, new):
        self.primary = new
        text = "%s 127.0.0.1 %d 127.0.0.1 %d" % (NAME, old, new)
        for ear in self.ears:
            try:
                ear.sendall(bulks("message", "+switch-master", text).encode())
            except OSError:
                pass  # one of a program that is over

    def questions(self):
        return [words for words in list(self.heard)
                if "get-master-addr-by-name" in words]

    def close(self):
        super().close()
        for ear in self.ears:
            ear.close()
