#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""python3 deploy.py compose | tls | cluster | kubernetes [--command]

Runs what compose.yaml (tls: with tls.conf), cluster.yaml or kubernetes.yaml
says, as processes of this machine with a network of their own, in which each
service has its name and address, and does to it what docs/deploy.md tells. What
is the same each time goes to stdout, times go to stderr. Wants Linux, unshare, redis-server,
redis-cli, openssl, python3-yaml and weir: that in WEIR_BUILD, else in
../../build, else in PATH. Nothing is left behind: files are in a /run of its
own. With --command replicas take over by command, before servers notice that a
primary is gone. Exit code 3: this weir has no TLS."""

import binascii
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 300.0  # seconds, for all that ends by itself on a busy machine
INSIDE = "WEIR_EXAMPLE_INSIDE"
is_commanded = sys.argv[2:] == ["--command"]


# --- a machine of its own ------------------------------------------------------

def enter():
    """Begin anew with network, mounts and processes that end with this one."""
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = "1"
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    os.execvp("unshare", ["unshare", *user, "--net", "--pid", "--mount-proc",
                          "--fork", "--kill-child", sys.executable, "-B",
                          *sys.argv])


def furnish():
    """The loopback device, an empty /run, and no names."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, 0x8914,  # SIOCSIFFLAGS: up and running
                    struct.pack("16sH14x", b"lo", 0x41))
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    names.write()
    subprocess.run(["mount", "--bind", Names.FILE, "/etc/hosts"], check=True)
    build = os.path.abspath(os.environ.get(
        "WEIR_BUILD", os.path.join(HERE, "..", "..", "build")))
    os.environ["PATH"] = build + ":" + os.environ["PATH"]
    for name in [name for name in os.environ if name.startswith("WEIR_")]:
        del os.environ[name]


class Names:
    """What the resolver knows."""
    FILE = "/run/hosts"

    def __init__(self):
        self.addresses = {}

    def write(self):
        with open(self.FILE, "w", encoding="utf-8") as file:
            for name, address in self.addresses.items():
                file.write("%s %s\n" % (address, name))

    def set(self, name, number):
        """The name has the address of this number; None: it is gone."""
        self.addresses.pop(name, None)
        if number is not None:
            self.addresses[name] = "127.0.1.%d" % number
        self.write()


names = Names()
cli_tls = []  # what redis-cli is told where servers have TLS


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Service:
    """A process with a folder and a log of its own."""

    def __init__(self, name, command, env=None):
        self.name, self.command = name, command
        self.env = {**os.environ, **(env or {})}
        self.folder = "/run/data/" + name
        os.makedirs(self.folder, exist_ok=True)
        self.start()

    def start(self):
        with open(self.folder + ".log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                self.command, cwd=self.folder, env=self.env, stdout=log,
                stderr=log, start_new_session=True)

    def said(self):
        with open(self.folder + ".log", encoding="utf-8") as log:
            return log.read()

    def lines(self):
        """What the handler `echo` printed of each job."""
        return [json.loads(line) for line in self.said().splitlines(True)
                if line.startswith("{") and line.endswith("\n")]

    def ran(self):
        return {line["id"] for line in self.lines()}

    def kill(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(PATIENCE)


def eventually(condition, what):
    """Wait until condition() is true; returns the seconds that it took."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() > begin + PATIENCE:
            raise SystemExit("it did not come true: " + what)
        time.sleep(0.02)
    return time.monotonic() - begin


def ask(host, port, *words):
    """What a server answers; "" where there is none. Only those of port 6379
    have a password: redis-cli 6.2 gives up where there is none."""
    env = {name: value for name, value in os.environ.items()
           if name != "REDISCLI_AUTH" or port == 6379}
    return subprocess.run(["redis-cli", "-h", host, "-p", str(port), *cli_tls,
                           *words], text=True, capture_output=True,
                          env=env).stdout


def is_replica(host, port=6379):
    info = ask(host, port, "INFO", "replication")
    return "role:slave" in info and "master_link_status:up" in info


# --- compose.yaml ----------------------------------------------------------------

def read(name):
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        return file.read()


def make_certificate(services):
    """One that names every service, and is its own authority."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-subj", "/CN=weir", "-addext", "subjectAltName=" + ",".join(
             "DNS:" + name for name in services),
         "-keyout", "/run/secrets/key", "-out", "/run/secrets/cert"],
        check=True, capture_output=True)
    shutil.copy("/run/secrets/cert", "/run/secrets/ca")


def with_tls(text):
    """compose.yaml with tls.conf in the files and TLS in the addresses."""
    done = subprocess.run(["weir", "stats", "--redis", "rediss://127.0.0.1:1"],
                          text=True, capture_output=True)
    if done.returncode == 2:
        print(done.stderr.strip(), file=sys.stderr)
        sys.exit(3)
    spec = yaml.safe_load(text.replace("redis+sentinel:", "rediss+sentinel:")
                          .replace("/weir?", "/weir?ca=/run/secrets/ca&"))
    for name, port in (("redis", "6379"), ("sentinel", "26379")):
        config = spec["configs"][name]
        config["content"] = config["content"].replace(
            "END\nexec", read("tls.conf").replace("6379", port) + "END\nexec")
    os.makedirs("/run/secrets")
    make_certificate(spec["services"])
    cli_tls.extend(["--tls", "--cacert", "/run/secrets/ca"])
    return spec


def load_compose(name, is_tls=False):
    text = read(name).replace("$$", "$")
    spec = with_tls(text) if is_tls else yaml.safe_load(text)
    for service in spec["services"].values():
        for use in service.get("configs", ()):
            write(use["target"], spec["configs"][use["source"]]["content"])
    write("/run/secrets/password", "secret\n")
    os.environ["REDISCLI_AUTH"] = "secret"
    for number, name in enumerate(spec["services"], 1):
        names.set(name, number)
    return spec["services"]


def start(services, *wanted):
    return [Service(name, services[name]["command"],
                    services[name].get("environment")) for name in wanted]


def named_by(sentinel):
    answer = ask(sentinel, 26379, "SENTINEL", "get-master-addr-by-name", "weir")
    return (answer.split() or [""])[0]


def are_ready(sentinels):
    """They know each other and the replica."""
    return is_replica("redis-2") and all(
        ask(one.name, 26379, "SENTINEL", "CKQUORUM", "weir").startswith("OK 3")
        and "redis-2" in ask(one.name, 26379, "SENTINEL", "REPLICAS", "weir")
        for one in sentinels)


def lose_primary(primary, sentinels, worker):
    """As a container that dies: its name is gone, too."""
    eventually(lambda: len(worker.ran()) >= 200, "200 jobs ran")
    names.set(primary.name, None)
    primary.kill()
    print("200 jobs ran; redis-1 is killed, and its name is gone")
    if is_commanded:
        eventually(lambda: not is_replica("redis-2"), "it has read all")
        command_failover("redis-2")
    known = len(worker.ran())
    seconds = eventually(lambda: all(named_by(one.name) == "redis-2"
                                     for one in sentinels), "redis-2 is named")
    print("sentinels name redis-2", flush=True)
    seconds += eventually(lambda: len(worker.ran()) > known, "jobs run again")
    print("jobs ran again %.1f s after the kill" % seconds, file=sys.stderr)


def tell_losses(worker, wanted):
    eventually(lambda: wanted <= worker.ran(), "all jobs ran")
    print("worker: %d jobs ran, 0 lost" % len(worker.ran()))
    print("%d runs were repeats" % (len(worker.lines()) - len(worker.ran())),
          file=sys.stderr)


def run_one(worker, services, topic, job):
    """One more, added as the producer adds."""
    subprocess.run(["weir", "add", topic, "--id", job], check=True,
                   stdout=subprocess.DEVNULL,
                   env={**os.environ, **services["producer"]["environment"]})
    eventually(lambda: job in worker.ran(), "job %s ran" % job)


def command_failover(to):
    """Sentinels refuse until sentinel-1 has seen the replica."""
    eventually(lambda: named_by("sentinel-1") == to or
               ask("sentinel-1", 26379, "SENTINEL", "FAILOVER",
                   "weir").startswith(("OK", "INPROG")), "a failover begins")


def switch_by_hand(sentinels, worker, services):
    command_failover("redis-1")
    eventually(lambda: all(named_by(one.name) == "redis-1"
                           for one in sentinels), "redis-1 is named")
    print("SENTINEL FAILOVER: sentinels name redis-1", flush=True)
    run_one(worker, services, "order.close", "last")
    print("worker: job last ran")


def compose(is_tls=False):
    services = load_compose("compose.yaml", is_tls)
    redis = start(services, "redis-1", "redis-2")
    sentinels = start(services, "sentinel-1", "sentinel-2", "sentinel-3")
    eventually(lambda: are_ready(sentinels), "the servers know each other")
    worker, producer = start(services, "worker", "producer")
    print("started " + " ".join(services), flush=True)
    lose_primary(redis[0], sentinels, worker)
    producer.process.wait(PATIENCE)
    print("producer: " + producer.said().splitlines()[-1])
    tell_losses(worker, {str(number) for number in range(1, 1001)})
    names.set("redis-1", 1)
    redis[0].start()
    eventually(lambda: is_replica("redis-1"), "redis-1 is a replica")
    print("redis-1 is back, as a replica", flush=True)
    switch_by_hand(sentinels, worker, services)
    print("worker: stopped, exit code %d" % worker.stop())


# --- cluster.yaml ----------------------------------------------------------------

NODES = ["redis-%d" % number for number in range(1, 7)]
TOPICS = ["order.close", "order.pay", "stock.check"]


def slots_told(name):
    """As this node says: (first, last, address of the primary) of each range."""
    lines = [line.split() for line in
             ask(name, 6379, "CLUSTER", "NODES").splitlines()]
    return sorted((int(first), int(last or first), line[1].split(":")[0])
                  for line in lines if "master" in line[2]
                  for first, _, last in (slots.partition("-")
                                         for slots in line[8:])
                  if first.isdigit())


def slot_of(topic):
    return binascii.crc_hqx(topic.encode(), 0) % 16384


def primary_of(topic):
    """Its name, where all nodes that run say the same; else None."""
    told = [slots_told(name) for name in NODES if ask(name, 6379, "PING")]
    if any(ranges != told[0] for ranges in told):
        return None
    return next((name for first, last, address in told[0]
                 for name in NODES if address == names.addresses[name] and
                 first <= slot_of(topic) <= last), None)


def id_of(name):
    return ask(name, 6379, "CLUSTER", "MYID").strip()


def replica_of(name):
    """A connected one; else None."""
    own = [line.split() for line in
           ask(name, 6379, "CLUSTER", "NODES").splitlines()]
    mine = {line[1].split(":")[0] for line in own if line[3] == id_of(name)}
    return next((other for other in NODES if names.addresses[other] in mine
                 and is_replica(other)), None)


def is_well():
    return all("cluster_state:ok" in ask(name, 6379, "CLUSTER", "INFO")
               for name in NODES) and \
        sum(is_replica(name) for name in NODES) == 3 and \
        all(primary_of(topic) for topic in TOPICS)


def runs_again(worker, topic):
    """Wait until more of its jobs ran."""
    def count():
        return sum(one.startswith(topic) for one in worker.ran())
    known = count()
    return eventually(lambda: count() > known, "jobs of %s run" % topic)


def lose_node(nodes, worker):
    eventually(lambda: len(worker.ran()) >= 100, "100 jobs ran")
    lost = next(one for one in nodes if one.name == primary_of("order.close"))
    replica = replica_of(lost.name)
    lost.kill()
    print("100 jobs ran; the node of order.close is killed", flush=True)
    if is_commanded:
        eventually(lambda: not is_replica(replica), "it has read all")
        ask(replica, 6379, "CLUSTER", "FAILOVER", "TAKEOVER")
    seconds = runs_again(worker, "order.pay")
    print("others ran %.1f s after the kill" % seconds, file=sys.stderr)
    seconds += eventually(lambda: primary_of("order.close") not in
                          (None, lost.name), "a replica takes over")
    seconds += runs_again(worker, "order.close")
    print("its replica has order.close, whose jobs run again", flush=True)
    print("that was %.1f s after the kill" % seconds, file=sys.stderr)
    lost.start()
    eventually(is_well, "the killed one is a replica")
    print("the killed one is back, as a replica", flush=True)


def move_slots(worker, services):
    source, target = primary_of("stock.check"), primary_of("order.pay")
    done = subprocess.run(
        ["redis-cli", "--cluster", "reshard", names.addresses[source] + ":6379",
         "--cluster-from", id_of(source), "--cluster-to", id_of(target),
         "--cluster-slots", str(slot_of("stock.check") + 1), "--cluster-yes"],
        text=True, capture_output=True)
    if done.returncode != 0:
        raise SystemExit("reshard: " + done.stdout + done.stderr)
    eventually(lambda: primary_of("stock.check") == target, "they are there")
    run_one(worker, services, "stock.check", "moved")
    print("stock.check was moved to the node of order.pay", flush=True)


def hand_over(worker, services):
    old = primary_of("order.pay")
    new = replica_of(old)
    ask(new, 6379, "CLUSTER", "FAILOVER")
    eventually(lambda: primary_of("order.pay") == new, "it is the primary")
    run_one(worker, services, "order.pay", "last")
    print("CLUSTER FAILOVER: order.pay has another node", flush=True)


def cluster():
    services = load_compose("cluster.yaml")
    nodes = start(services, *NODES)
    setup, = start(services, "setup")
    if setup.process.wait(PATIENCE) != 0:
        raise SystemExit("setup: " + setup.said())
    eventually(is_well, "it is a cluster")
    worker, producer = start(services, "worker", "producer")
    print("started " + " ".join(services), flush=True)
    lose_node(nodes, worker)
    move_slots(worker, services)
    hand_over(worker, services)
    producer.process.wait(PATIENCE)
    for line in producer.said().splitlines():
        print("producer: " + line)
    tell_losses(worker, {"%s-%d" % (topic, number) for topic in TOPICS
                         for number in range(1, 501)} |
                {"moved", "last"})
    print("worker: stopped, exit code %d" % worker.stop())


# --- kubernetes.yaml ----------------------------------------------------------------

def load_kubernetes():
    """Its containers by name; what volumes hold is where they are mounted."""
    kinds = {part["kind"]: part
             for part in yaml.safe_load_all(read("kubernetes.yaml"))}
    pod = kinds["Deployment"]["spec"]["template"]["spec"]
    files = {"configMap": kinds["ConfigMap"]["data"],
             "secret": kinds["Secret"]["stringData"], "emptyDir": {}}
    volumes = {volume["name"]: files[kind] for volume in pod["volumes"]
               for kind in files if kind in volume}
    for container in pod["containers"]:
        for mount in container["volumeMounts"]:
            os.makedirs(mount["mountPath"], exist_ok=True)
            for name, text in volumes[mount["name"]].items():
                write(os.path.join(mount["mountPath"], name), text)
    os.environ["REDISCLI_AUTH"] = kinds["Secret"]["stringData"]["password"]
    return {container["name"]: container for container in pod["containers"]}


def start_redis(number, *args):
    password = os.environ["REDISCLI_AUTH"]
    return Service("redis-%d" % number,
                   ["redis-server", "--bind", "127.0.1.%d" % number,
                    "--requirepass", password, "--masterauth", password,
                    "--appendonly", "yes", *args])


def start_container(container):
    return Service(container["name"], container["command"], {
        entry["name"]: entry["value"] for entry in container.get("env", ())})


def look_alive(worker, probe):
    """The probe sees a loop that turns, and one that does not."""
    def is_alive():
        return subprocess.run(probe["exec"]["command"],
                              capture_output=True).returncode == 0
    eventually(is_alive, "the worker is heard")
    print("livenessProbe: passes", flush=True)
    worker.process.send_signal(signal.SIGSTOP)

    def is_dead():
        os.utime("/run/alive/heard", (0, 0))  # long ago
        return not is_alive()
    eventually(is_dead, "the worker is not heard")
    print("worker stands still; livenessProbe: fails", flush=True)
    worker.process.send_signal(signal.SIGCONT)
    eventually(is_alive, "the worker is heard again")


def add(first, last, delay):
    """Jobs of these numbers, as the worker's address tells; a replica has them
    then."""
    lines = "".join(
        '{"id":"%d","delay":"%s","durability":"replica"}\n' % (number, delay)
        for number in range(first, last + 1))
    subprocess.run(
        ["weir", "add", "order.close", "--jsonl", "-"], input=lines, text=True,
        check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "WEIR_REDIS": "redis://redis.example?password_file="
                                         "/run/secret/password"})


def move_name(first, worker):
    """As a managed service does at a failover."""
    second = start_redis(2, "--replicaof", "127.0.1.1", "6379")
    eventually(lambda: is_replica("127.0.1.2"), "redis-2 is a replica")
    add(1, 500, "0s")
    add(501, 1000, "5s")
    first.kill()
    ask("127.0.1.2", 6379, "REPLICAOF", "NO", "ONE")
    names.set("redis.example", 2)
    print("redis.example has another address: 1000 jobs were added before")
    tell_losses(worker, {str(number) for number in range(1, 1001)})
    return second


def kubernetes():
    containers = load_kubernetes()
    names.set("redis.example", 1)
    first = start_redis(1)
    eventually(lambda: "PONG" in ask("127.0.1.1", 6379, "PING"), "it answers")
    start_container(containers["alive"])
    eventually(lambda: os.path.exists("/run/alive/socket"), "alive listens")
    worker = start_container(containers["worker"])
    print("started worker alive", flush=True)
    look_alive(worker, containers["worker"]["livenessProbe"])
    move_name(first, worker)
    print("worker: stopped, exit code %d" % worker.stop())


if __name__ == "__main__":
    parts = {"compose": compose, "tls": lambda: compose(is_tls=True),
             "cluster": cluster, "kubernetes": kubernetes}
    if len(sys.argv) - is_commanded != 2 or sys.argv[1] not in parts:
        raise SystemExit(__doc__)
    enter()
    furnish()
    parts[sys.argv[1]]()
