# SPDX-License-Identifier: MIT
"""weir and servers with TLS: who is believed, and what is said when not."""

import json
import os
import subprocess

from e2e import (BUILD, ROOT, await_line, eventually, expect, expect_in,
                 expect_true, set_names, stop_cleanly, test)
from ports import free_port
from redis_server import Server, use_good_plugins


class TlsServer(Server):
    """Has a port with TLS beside the others. Its certificate is one of those
    that tests/harness/certificates.sh makes."""

    def __init__(self, place, certificate="server", clients="no", name="other",
                 host="127.0.0.1", port=0):
        self.dir = place.path(name)
        os.makedirs(self.dir)
        subprocess.run(
            ["bash", os.path.join(ROOT, "tests/harness/certificates.sh"),
             self.dir, certificate, "client", "server"], check=True)
        self.tls_port = port or free_port()
        super().__init__(
            place, "--tls-port", str(self.tls_port), "--tls-cert-file",
            self.file(certificate + ".pem"), "--tls-key-file",
            self.file(certificate + ".key"), "--tls-ca-cert-file",
            self.file("ca.pem"), "--tls-auth-clients", clients,
            "--bind", host, name=name)

    def file(self, name):
        return os.path.join(self.dir, name)

    def tls(self, host="localhost", port=None, **parameters):
        """ca= is there unless it is given."""
        parameters = {"ca": self.file("ca.pem"), **parameters}
        return "rediss://%s:%d?%s" % (
            host, port or self.tls_port,
            "&".join("%s=%s" % item for item in parameters.items() if item[1]))


def refused(place, url, *words):
    """By a command, by doctor and by a worker, in the same words."""
    place.weir("stats", "--redis", url).expect_complaint(5, *words)
    result = place.weir("doctor", "--redis", url)
    expect(5, result.code, result.err)
    for word in words:
        expect_in(word, result.out)
    worker = place.work(place.echo(), flags=["--redis", url])
    expect_in(words[0], await_line(worker, "redis at "))


def accepted(place, url):
    result = place.weir("topic", "list", "--redis", url)
    expect(0, result.code, result.err)


@test
def every_command_works_over_tls(place):
    server = TlsServer(place)
    use_good_plugins(place)
    for host in "localhost", "127.0.0.1":
        place.env["WEIR_REDIS"] = server.tls(host)
        place.add("t", "1", "--body", '{"n":1}')
        place.drain(place.echo())
        expect("1", place.lines("out")[-1]["id"])
        place.add("t", "2", "--delay", "1h")
        place.expect_stats("t", scheduled=1)
        place.ok("reschedule", "t", "2", "--delay", "2h")
        place.ok("delete", "t", "2")
        expect(0, place.weir("doctor").code)
        place.ok("purge", "t", "--yes")
        expect_in("t", place.weir("topic", "list").out)


@test
def large_bodies_go_over_tls(place):
    server = TlsServer(place)
    place.env["WEIR_REDIS"] = server.tls()
    body = "".join(chr(97 + i % 26) for i in range(300000))
    place.add_lines("t", 40, '{"id":"%d","body":"' + body + '"}')
    place.drain(place.echo())
    ran = place.lines("out")
    expect(list(range(40)), sorted(int(line["id"]) for line in ran))
    expect([], [line["id"] for line in ran if line["body"] != body])
    place.expect_stats("t", done_total=40, running=0)


@test
def a_job_that_blocks_its_worker_keeps_its_lease_over_tls(place):
    server = TlsServer(place)
    place.env["WEIR_REDIS"] = server.tls()
    place.ok("topic", "set", "t", "lease=5s")
    place.add("t", "1")
    place.work(place.handler("blocking", **{"for": "12s"}))
    eventually(lambda: place.stats("t")["running"] == 1, "it runs")
    place.drain(place.echo())
    expect([], place.lines("out"))
    place.expect_stats("t", done_total=1, retried_total=0)


@test
def jobs_are_delivered_over_tls(place):
    server = TlsServer(place)
    use_good_plugins(place)
    place.add("t", "1")
    place.drain("t=deliver?list=out&url=" + server.tls())
    expect(":1", server.tell("LLEN out"))


@test
def a_certificate_for_another_name_is_refused(place):
    server = TlsServer(place, "other")
    refused(place, server.tls(), "its certificate is refused",
            "hostname mismatch (server_name= tells another name)")
    refused(place, server.tls("127.0.0.1"), "its certificate is refused",
            "IP address mismatch")
    url = server.tls(server_name="other.example")
    accepted(place, url)
    url = server.tls(server_name="another.example")
    refused(place, url, "its certificate is refused", "hostname mismatch")


@test
def an_expired_certificate_is_refused(place):
    refused(place, TlsServer(place, "expired").tls(),
            "its certificate is refused", "certificate has expired")


@test
def a_certificate_of_a_foreign_authority_is_refused(place):
    refused(place, TlsServer(place, "foreign").tls(),
            "its certificate is refused", "unable to get local issuer",
            "(ca= tells whom to trust)")


@test
def a_self_signed_certificate_is_refused_unless_it_is_what_ca_names(place):
    server = TlsServer(place, "alone")
    refused(place, server.tls(), "its certificate is refused",
            "self-signed certificate (ca= tells whom to trust)")
    url = server.tls(ca=server.file("alone.pem"))
    accepted(place, url)


@test
def the_authorities_of_the_system_are_believed_without_ca(place):
    server = TlsServer(place)
    url = server.tls(ca=None)
    refused(place, url, "its certificate is refused", "self-signed certificate")
    place.env["SSL_CERT_FILE"] = server.file("ca.pem")
    accepted(place, url)


@test
def a_port_without_tls_is_refused_and_never_used_in_plain(place):
    server = TlsServer(place)
    refused(place, server.tls(port=server.port), "no TLS on that port")
    calls = server.told("INFO commandstats")
    for command in "auth", "ping,", "client", "select", "script":
        expect_true("cmdstat_" + command not in calls, calls)


@test
def a_server_that_wants_a_certificate_is_shown_ours(place):
    server = TlsServer(place, clients="yes")
    refused(place, server.tls(), "certificate (cert= and key= give one)")
    url = server.tls(cert=server.file("client.pem"),
                     key=server.file("client.key"))
    accepted(place, url)
    url = server.tls(cert=server.file("server.pem"),
                     key=server.file("server.key"))
    accepted(place, url)


@test
def verify_none_takes_any_certificate_and_warns_at_each_start(place):
    server = TlsServer(place, "foreign")
    url = server.tls(ca=None, verify="none")
    for command in ["add", "t"], ["stats", "t"], ["run", "--until-empty",
                                                  "--handle", place.echo()]:
        result = place.weir(*command, "--redis", url)
        expect(0, result.code, result.err)
        expect(1, result.err.count("verify=none"), result.err)
    result = place.weir("add", "t", "--redis", server.tls(verify="none"))
    expect(0, result.code, result.err)


@test
def a_file_that_cannot_be_used_is_named_before_anything_connects(place):
    server = TlsServer(place)
    subprocess.run(
        ["bash", os.path.join(ROOT, "tests/harness/certificates.sh"),
         server.dir, "locked"], check=True)
    ours = {name: server.file(name) for name in (
        "server.pem", "server.key", "client.pem", "locked.pem", "locked.key")}
    nothing = place.write("nothing.pem", "")
    before = server.told("INFO stats").split("total_connections_received:")[1]
    for words, parameters in (
            ("ca=/no/such/ca.pem: No such file", {"ca": "/no/such/ca.pem"}),
            ("ca=%s cannot be used" % nothing, {"ca": nothing}),
            ("ca=%s cannot be used" % ours["server.key"],
             {"ca": ours["server.key"]}),
            ("key=%s does not fit cert=%s"
             % (ours["server.key"], ours["client.pem"]),
             {"cert": ours["client.pem"], "key": ours["server.key"]}),
            ("cert=%s cannot be used" % nothing,
             {"cert": nothing, "key": ours["server.key"]}),
            ("key=%s cannot be used" % ours["locked.key"],
             {"cert": ours["locked.pem"], "key": ours["locked.key"]}),
            ("key=%s cannot be used" % nothing,
             {"cert": ours["server.pem"], "key": nothing})):
        url = server.tls(**parameters)
        for command in ["stats"], ["add", "t"], ["doctor"], \
                ["run", "--handle", place.echo()]:
            place.weir(*command, "--redis", url).expect_complaint(2, words)
    after = server.told("INFO stats").split("total_connections_received:")[1]
    expect(1, int(after.split()[0]) - int(before.split()[0]))  # the question


@test
def a_name_that_moves_is_followed_to_who_proves_to_be_the_server(place):
    use_good_plugins(place)
    old = TlsServer(place, name="old")
    stranger, new = (TlsServer(place, name=name, host=host, port=old.tls_port)
                     for name, host in (("stranger", "127.0.0.2"),
                                        ("new", "127.0.0.3")))
    both = ""
    for one in (old, new):
        with open(one.file("ca.pem"), encoding="utf-8") as file:
            both += file.read()
    url = old.tls("cache.example", ca=place.write("both.pem", both),
                  server_name="localhost")
    set_names(place, "cache.example 127.0.0.1\n")
    worker = place.work(place.echo(), flags=["--redis", url])
    await_line(worker, "connected to")
    set_names(place, "cache.example 127.0.0.2\n")
    await_line(worker, "its certificate is refused")
    expect(0, stranger.told("INFO commandstats").count("cmdstat_evalsha"))
    set_names(place, "cache.example 127.0.0.3\n")
    place.ok("add", "t", "--redis", url)
    eventually(lambda: place.lines("out"), "the job ran")
    expect_in("cmdstat_evalsha:calls=", new.told("INFO commandstats"))
    stop_cleanly(worker)


@test
def the_benchmark_has_a_row_for_tls(place):
    done = subprocess.run(
        [os.path.join(BUILD, "weir-bench"), "throughput", "--jobs", "1000",
         "--repeat", "1", "--json", "--transport", "tls"],
        env={**place.env, "TMPDIR": place.dir}, capture_output=True, text=True)
    expect(0, done.returncode, done.stderr)
    row = json.loads(done.stdout)
    expect(["tls", 0, 0],
           [row[name] for name in ("transport", "lost", "duplicated")])
    expect_true(row["server_us_per_job"] > 0 and row["floor_ratio"] > 0,
                "costs, also of the floor")


@test
def sentinels_and_the_server_they_name_are_reached_over_tls(place):
    server = TlsServer(place, name="primary")
    port = free_port()
    conf = place.write("sentinel.conf", "\n".join((
        "port 0", "tls-port %d" % port, "tls-replication yes",
        "tls-auth-clients no", "tls-cert-file " + server.file("server.pem"),
        "tls-key-file " + server.file("server.key"),
        "tls-ca-cert-file " + server.file("ca.pem"), "dir " + place.dir,
        "sentinel monitor m 127.0.0.1 %d 1" % server.tls_port, "")))
    place.started.append(subprocess.Popen(
        ["redis-server", conf, "--sentinel"], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, text=True))
    url = "rediss+sentinel://localhost:%d/m?ca=" % port
    place.env["WEIR_REDIS"] = url + server.file("ca.pem")
    eventually(lambda: place.weir("topic", "list").code == 0, "it answers")
    place.add("t", "1")
    place.drain(place.echo())
    expect("1", place.lines("out")[-1]["id"])
    expect_true("failed   connection" not in place.weir("doctor").out, "doctor")
    TlsServer(place, name="stranger")
    place.env["WEIR_REDIS"] = url + place.path("stranger/ca.pem")
    place.weir("stats").expect_complaint(5, "its certificate is refused")
