# SPDX-License-Identifier: MIT
"""Nodes of a cluster, as somebody else would run them, and one that is none."""

import atexit
import binascii
import signal
import subprocess
import time

import fake
from e2e import Place, eventually, expect, expect_true
from redis_server import Server
from resp import Client, ReplyError

SLOTS = 16384
NODE_TIMEOUT_MS = 2000
GIVEN_UP_S = 5  # so long servers try to hand over, and clients wait
ELECTION_S = 4 * NODE_TIMEOUT_MS / 1000  # between two elections of a replica
ELECTIONS = "cluster-replica-no-failover", "no"  # by timeout, as of servers

# Arguments of nodes that are known by a name; Redis 6.2 knows addresses only.
NAMES = ("--cluster-announce-hostname", "localhost",
         "--cluster-preferred-endpoint-type", "hostname")


def know_names():
    """Whether servers know names of nodes."""
    told = subprocess.run(["redis-server", "--version"], text=True,
                          capture_output=True, check=True).stdout
    return int(told.partition("v=")[2].split(".")[0]) > 6


def slot_of(key):
    """What stands in the first braces counts alone."""
    head, brace, rest = key.partition("{")
    tag, end, _ = rest.partition("}")
    counts = tag if brace and end and tag else key
    return binascii.crc_hqx(counts.encode(), 0) % SLOTS


def ask(node, *words, patience=20.0):
    """One command, by the node's socket; an error is raised."""
    client = Client(node.path, patience)
    try:
        return client(*words)
    finally:
        client.close()


def error_of(node, *words):
    """The error that a command ends with; "" where it ends with none."""
    try:
        ask(node, *words)
    except ReplyError as error:
        return str(error)
    return ""


def slots_by(node):
    """What the node says: (first, last, port of the primary) of each range."""
    return sorted((int(one[0]), int(one[1]), int(one[2][1]))
                  for one in ask(node, "CLUSTER", "SLOTS"))


class Node(Server):
    """One that was stopped, or is none of the cluster any more, is not asked."""

    def __init__(self, place, name, *args):
        self.is_paused = self.is_gone = False
        self.may_be_elected = 0  # from then on, by time.time()
        super().__init__(
            place, "--cluster-enabled", "yes", "--cluster-node-timeout",
            str(NODE_TIMEOUT_MS), "--cluster-allow-replica-migration", "no",
            "--cluster-replica-no-failover", "yes",
            "--repl-diskless-sync-delay", "0", *args, name=name)
        self.id = ask(self, "CLUSTER", "MYID").decode()

    def runs(self):
        return not self.is_paused and not self.is_gone and \
            self.process.poll() is None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)
        self.is_paused = True

    def resume(self):
        self.process.send_signal(signal.SIGCONT)
        self.is_paused = False

    def is_ok(self):
        return b"cluster_state:ok" in ask(self, "CLUSTER", "INFO")

    def lines(self):
        """Of CLUSTER NODES, the words of each."""
        return [line.split() for line in
                ask(self, "CLUSTER", "NODES").decode().splitlines()]

    def primary_id(self):
        """Of a replica; None of a primary."""
        own = next(line for line in self.lines() if "myself" in line[2])
        return own[3] if "slave" in own[2] else None

    def epoch_of(self, node):
        """As this node knows it."""
        return next(line[6] for line in self.lines() if line[0] == node.id)

    def is_connected(self):
        """Of a replica: to its primary."""
        return b"master_link_status:up" in ask(self, "INFO", "replication")


class Cluster:
    """nodes[0] to nodes[primaries - 1] are the primaries, with the slots spread
    evenly; behind them the first replica of each, and so on; behind these what
    was added. A replica takes over by command, without ELECTIONS not by
    timeout."""

    def __init__(self, place, primaries=3, replicas=0, args=()):
        self.place, self.args, self.nodes = place, args, []
        for i in range(primaries * (1 + replicas)):
            node = self.start_node()
            ask(node, "CLUSTER", "SET-CONFIG-EPOCH", i + 1)
            if i < primaries:
                node.give_slots(SLOTS * i // primaries,
                                SLOTS * (i + 1) // primaries - 1)
        eventually(self.meet, "the nodes know each other")
        for i in range(primaries, len(self.nodes)):
            ask(self.nodes[i], "CLUSTER", "REPLICATE",
                self.nodes[i % primaries].id)
        self.await_well()
        eventually(lambda: all(
            sum("slave" in line[2] for line in node.lines()) ==
            primaries * replicas for node in self.nodes) and all(
                node.is_connected() for node in self.nodes[primaries:]),
                   "replicas are connected")
        self.use()

    def use(self, place=None):
        """Programs of a place talk to these nodes."""
        (place or self.place).env["WEIR_REDIS"] = self.url()

    def url(self, login=""):
        return "redis://" + login + ",".join(
            "127.0.0.1:%d" % node.port for node in self.running())

    def running(self):
        return [node for node in self.nodes if node.runs()]

    def set(self, name, value):
        """A setting of all that run."""
        for node in self.running():
            ask(node, "CONFIG", "SET", name, value)

    def start_node(self):
        self.nodes.append(Node(self.place, "node%d" % len(self.nodes),
                               *self.args))
        return self.nodes[-1]

    def meet(self):
        """Each node that runs is told of those before it that it does not know;
        returns what agrees() does. A node forgets one that does not answer
        within the node timeout, so call it until it returns something."""
        nodes = self.running()
        for i, node in enumerate(nodes[1:], 1):
            known = {line[0] for line in node.lines()}
            for other in nodes[:i]:
                if other.id not in known:
                    ask(node, "CLUSTER", "MEET", "127.0.0.1", other.port)
        return self.agrees()

    # what nodes say

    def agrees(self):
        """The ranges of slots where all nodes that run say the same; else
        None."""
        ids = {node.id for node in self.nodes if not node.is_gone}
        told = []
        for node in self.running():
            if not ids <= {line[0] for line in node.lines()}:
                return None
            told.append(slots_by(node))
        return told[0] if all(one == told[0] for one in told) else None

    def is_well(self):
        ranges, ports = self.agrees(), {one.port for one in self.running()}
        return ranges and all(port in ports for _, _, port in ranges) and \
            sum(last - first + 1 for first, last, _ in ranges) == SLOTS and \
            all(node.is_ok() for node in self.running())

    def await_well(self):
        """All nodes that run agree on who has which slot, all slots are with
        one of these, and each says that the cluster is ok."""
        eventually(self.is_well, "all nodes agree and are well")

    def owner(self, slot):
        """The node that has it; None where they do not agree."""
        for first, last, port in self.agrees() or ():
            if first <= slot <= last:
                return next(one for one in self.nodes
                            if one.port == port and not one.is_gone)
        return None

    def primaries(self):
        """Those that have slots, by these."""
        ports = [port for _, _, port in eventually(self.agrees, "they agree")]
        return sorted((node for node in self.running() if node.port in ports),
                      key=lambda node: ports.index(node.port))

    def replica_of(self, primary):
        return next(node for node in self.running()
                    if node.primary_id() == primary.id)

    def next_to(self, slot):
        """Another primary than who has it, in turn."""
        nodes = self.primaries()
        return nodes[(nodes.index(self.owner(slot)) + 1) % len(nodes)]

    def topic(self, node, nth=0, name="t"):
        """One whose slot the node has: "t1", "t2", ... of these the nth."""
        ranges = [(first, last) for first, last, port
                  in eventually(self.agrees, "they agree")
                  if port == node.port]
        expect_true(ranges, "the node has slots")
        suffix = 0
        while True:
            suffix += 1
            slot = slot_of("%s%d" % (name, suffix))
            if any(first <= slot <= last for first, last in ranges):
                if nth == 0:
                    return "%s%d" % (name, suffix)
                nth -= 1

    # faults

    def take_over(self, old):
        """By command, from a primary that was killed or stopped. Returns its
        replica, which has read all that a killed one sent."""
        replica = self.replica_of(old)
        if not old.is_paused:
            eventually(lambda: not replica.is_connected(), "it has read all")
        ask(replica, "CLUSTER", "FAILOVER", "TAKEOVER")
        self.await_well()
        return replica

    def await_promoted(self, old, slot):
        """By timeout: returns who has the slot in place of the old one."""
        found = eventually(lambda: self.owner(slot) not in (None, old) and
                           self.owner(slot), "another node has the slot")
        self.await_well()
        return found

    def fail_over(self, replica):
        """By command: the primary lives on. What servers give up is begun
        again; returns when these were, as (begin, end) in ms since 1970. A
        primary pauses its clients from the command on, so none is given before
        the replica may be elected once more ("Failover attempt expired" in its
        log, clusterHandleSlaveFailover)."""
        expect_true(replica.primary_id() is not None, "it is a replica")
        begun = []
        while not (replica.primary_id() is None and self.is_well() and
                   any(port == replica.port
                       for _, _, port in self.agrees() or ())):
            if time.time() >= replica.may_be_elected and \
                    replica.is_connected():
                begun.append(time.time())
                ask(replica, "CLUSTER", "FAILOVER")
                replica.may_be_elected = begun[-1] + ELECTION_S
            time.sleep(0.01)
        return [(int(at * 1000), int((at + GIVEN_UP_S) * 1000))
                for at in begun[:-1]]

    # slots

    def open_slot(self, slot, to):
        """Open until close_slot."""
        source = self.owner(slot)
        expect_true(source not in (None, to), "another node has the slot")
        ask(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source.id)
        ask(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)

    def move_keys(self, slot, to, keys=None):
        """All keys of an open slot, or some."""
        source = self.owner(slot)
        while True:
            some = keys if keys is not None else ask(
                source, "CLUSTER", "GETKEYSINSLOT", slot, 100)
            if some:
                ask(source, "MIGRATE", "127.0.0.1", to.port, "", 0, 5000,
                    "KEYS", *some)
            if not some or keys is not None:
                return

    def close_slot(self, slot, to):
        """Who gets it is told first: in between nobody lacks it. Its claim is to
        be newer than that of who had it: where it has not heard of that one's
        epoch yet it may be told off, and then each says that the other has the
        slot, for ever."""
        source = eventually(lambda: self.owner(slot), "somebody has it")
        eventually(lambda: to.epoch_of(source) == source.epoch_of(source),
                   "the epoch is known")
        for node in to, source:
            ask(node, "CLUSTER", "SETSLOT", slot, "NODE", to.id)
        self.await_well()

    def move_slot(self, slot, to):
        self.open_slot(slot, to)
        self.move_keys(slot, to)
        self.close_slot(slot, to)

    # nodes

    def add(self):
        """One more, without slots."""
        node = self.start_node()
        eventually(self.meet, "the nodes know the new one")
        self.await_well()
        return node

    def forget(self, node):
        """One without slots is none of the cluster any more, and ended."""
        expect([], [one for one in self.agrees() or () if one[2] == node.port])
        node.kill()
        node.is_gone = True
        for other in self.running():
            ask(other, "CLUSTER", "FORGET", node.id)
        self.await_well()


shared = []


def share(place, **args):
    """One for all tests of a program, whose topics have names of their own.
    What a test left broken is not used again."""
    if shared and not shared[0].is_well():
        shared.pop().place.close()
    if not shared:
        home = Place()
        atexit.register(home.close)
        shared.append(Cluster(home, **args))
    shared[0].use(place)
    return shared[0]


class Fake(fake.Fake):
    """A node as no real one is. `slots` are (first, last, host, port), host
    None: nil. Commands that have some text in their words, which are joined by
    blanks, are answered with an error: `errors` are (text, error, how often;
    None: always), the first one that fits."""

    def __init__(self, slots=()):
        self.slots, self.errors, self.is_silent = slots, [], False
        super().__init__()

    def answer(self, words, client):
        if self.is_silent:
            return None
        line = " ".join(words)
        for i, (text, error, times) in enumerate(self.errors):
            if text in line and times != 0:
                if times is not None:
                    self.errors[i] = text, error, times - 1
                return "-" + error
        if line.upper().startswith("CLUSTER SLOTS"):
            return self.told_slots()
        return "+OK"

    def told_slots(self):
        """The id of a node is its port."""
        told = "*%d\r\n" % len(self.slots)
        for first, last, host, port in self.slots:
            told += "*3\r\n:%d\r\n:%d\r\n*3\r\n%s:%d\r\n%s" % (
                first, last, "$-1\r\n" if host is None else bulk(host), port,
                bulk("%06d" % port))
        return told[:-2]


def bulk(word):
    return "$%d\r\n%s\r\n" % (len(word), word)
