# SPDX-License-Identifier: MIT
"""SIGHUP: weir run reads its file again, and topics come, go and change while
jobs run; a mistake changes nothing."""

import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from e2e import (BUILD, WEIR, Heard, await_line, end_cleanly, eventually,
                 expect, expect_in, expect_true, patient, stop_cleanly,
                 terminate, test, wait)
from terminal import Terminal


def write(place, text):
    """The file, in place of the one before."""
    made = place.write("weir.conf.new", text.replace("DIR", place.dir))
    os.rename(made, place.path("weir.conf"))
    return place.path("weir.conf")


def echo(topic, name="out", more=""):
    return ('topic "%s" { handler = echo options = "file=DIR/%s" %s }\n'
            % (topic, name, more))


class Worker(Heard):
    """weir run with a file, and what it says."""

    def __init__(self, place, text, *flags):
        self.place = place
        config = write(place, text)
        super().__init__(place.start("run", "--config", config, *flags))

    def serves(self, topic):
        self.says("serving %s with" % topic)

    def hang_up(self, text=None):
        if text is not None:
            write(self.place, text)
        self.process.send_signal(signal.SIGHUP)

    def refuses(self, text):
        self.hang_up(text)
        self.says("reload: nothing was changed")

    def said(self):
        return "".join(self.lines)

    def stop(self):
        terminate(self.process)
        self.end()

    def end(self):
        wait(self.process)
        self.reader.join()
        expect(0, self.process.returncode, self.said())


def ids(place, name="out"):
    return [job["id"] for job in place.lines(name)]


def await_job(place, topic, job, name="out"):
    place.add(topic, job)
    eventually(lambda: job in ids(place, name), "%s %s ran" % (topic, job))


# --- what changes ----------------------------------------------------------


@test
def a_topic_is_added_and_one_is_removed(place):
    worker = Worker(place, echo("a"))
    worker.serves("a")
    await_job(place, "a", "1")
    worker.hang_up(echo("b"))
    worker.says("SIGHUP: reading")
    worker.says("reload: removed a")
    worker.says("reload: added b with")
    worker.says("a is served no longer, its last job has ended")
    await_job(place, "b", "2")
    place.add("a", "3")
    await_job(place, "b", "4")
    worker.stop()
    expect(["1", "2", "4"], ids(place))
    expect("ready", place.ok("show", "a", "3")["state"])


@test
def an_option_changes_and_the_plugin_stays(place):
    worker = Worker(place, echo("t", more="concurrency = 4"))
    worker.serves("t")
    worker.hang_up(echo("t", more="concurrency = 8 weight = 2"))
    worker.says("reload: changed t (concurrency 4 to 8, weight default to 2)")
    await_job(place, "t", "1")
    worker.stop()
    expect_true("served no longer" not in worker.said(), worker.said())


@test
def another_handler_has_the_jobs_that_come(place):
    worker = Worker(place, echo("t", "one"))
    worker.serves("t")
    await_job(place, "t", "1", "one")
    worker.hang_up(echo("t", "two"))
    worker.says("reload: changed t (the handler's options)")
    await_job(place, "t", "2", "two")
    worker.hang_up('topic "t" { handler = flaky options = "fail=0" }')
    line = worker.says("reload: changed t (handler ")
    expect(1, len(re.findall(r"handler /\S*/echo\.so to /\S*/flaky\.so\)",
                             line)), line)
    eventually(lambda: place.add("t", "3") is not None and
               place.stats("t")["done_total"] >= 3, "the third ran")
    worker.stop()
    expect([["1"], ["2"]], [ids(place, "one"), ids(place, "two")])


@test
def nothing_is_different_and_it_says_so(place):
    worker = Worker(place, echo("t"))
    worker.serves("t")
    worker.hang_up()
    worker.says("has the same topics, served alike")
    await_job(place, "t", "1")
    worker.stop()


@test
def the_log_level_changes(place):
    worker = Worker(place, echo("t"))
    worker.serves("t")
    worker.hang_up("worker { log_level = error }\n" + echo("u"))
    worker.says("reload: added u")
    worker.hang_up("worker { log_level = debug }\n" + echo("t"))
    await_job(place, "t", "1")
    expect_true("added t" not in worker.said(), "of error it says less")
    worker.hang_up(echo("v"))
    worker.says("reload: added v")
    worker.stop()


@test
def what_is_stored_beats_what_the_file_comes_to_say(place):
    place.ok("topic", "set", "t", "retry=none")
    flaky = ('topic "t" { handler = flaky options = { "fail=9", '
             '"verdict=retry" } retry = "%s" }\n')
    worker = Worker(place, flaky % "1ms")
    worker.serves("t")
    worker.hang_up(flaky % "1ms 1ms 1ms")
    worker.says("reload: changed t (retry 1ms to 1ms 1ms 1ms)")
    place.add("t", "1")
    eventually(lambda: place.ok("show", "t", "1")["state"] == "dead",
               "it is dead")
    expect(1, place.ok("show", "t", "1")["attempt"])
    worker.stop()


@test
def what_is_stored_and_beats_the_file_is_told_once(place):
    place.ok("topic", "set", "t", "concurrency=4", "lease=60s", "max_dead=5")
    more = "concurrency = 8 lease = 1m\nmax_dead = 7 weight = %d"
    worker = Worker(place, echo("t", more=more % 1), "--max-dead", "9")
    told = "t: concurrency is 4 by what is stored, not 8 as in "
    worker.says(told + place.path("weir.conf") + ":1")
    worker.hang_up()
    worker.says("has the same topics")
    worker.hang_up("\n" + echo("t", more=more % 2) +
                   echo("u", more="concurrency = 3"))
    worker.says(told + place.path("weir.conf") + ":2")
    worker.stop()
    expect(2, worker.said().count("by what is stored"), worker.said())


@test
def a_drain_that_changes_is_told(place):
    worker = Worker(place, "worker { drain = 300ms }\n" + echo("t"))
    worker.serves("t")
    worker.hang_up(echo("t"))
    worker.says("reload: changed worker (drain 300ms to 30s)")
    worker.hang_up()
    worker.says("has the same topics")
    worker.stop()
    expect(1, worker.said().count("drain 300ms"), worker.said())


@test
def flags_beat_the_file_each_time(place):
    worker = Worker(place, echo("t", "one"), "--handle",
                    "t=echo?file=" + place.path("flag"))
    worker.serves("t")
    worker.hang_up(echo("t", "two"))
    worker.says("has the same topics, served alike")
    await_job(place, "t", "1", "flag")
    worker.stop()


# --- what runs meanwhile ---------------------------------------------------


def later(topic, name, until=""):
    """Runs end when a file is there, or never."""
    options = '"file=DIR/%s"' % name
    if until:
        options += ', "until=DIR/%s"' % until
    return 'topic "%s" { handler = later options = { %s } }\n' % (topic,
                                                                  options)


def started(place, name):
    try:
        with open(place.path(name)) as file:
            return file.read().count("start")
    except FileNotFoundError:
        return 0


@test
def jobs_end_under_the_handler_they_began_with(place):
    worker = Worker(place, later("t", "old", "go"))
    worker.serves("t")
    place.add("t", "1")
    eventually(lambda: started(place, "old") == 1, "it runs")
    worker.hang_up(echo("t"))
    worker.says("reload: changed t (handler ")
    await_job(place, "t", "2")
    expect("running", place.ok("show", "t", "1")["state"])
    place.write("go", "")
    eventually(lambda: place.stats("t")["done_total"] == 2, "both are done")
    worker.stop()


@test
def a_topic_that_is_removed_is_drained(place):
    worker = Worker(place, later("t", "old", "go") + echo("other"))
    worker.serves("other")
    place.add("t", "1")
    eventually(lambda: started(place, "old") == 1, "it runs")
    worker.hang_up(echo("other"))
    worker.says("reload: removed t")
    place.add("t", "2")
    await_job(place, "other", "3")
    expect_true("served no longer" not in worker.said(), "it still runs")
    place.write("go", "")
    worker.says("t is served no longer")
    expect(1, place.stats("t")["done_total"])
    expect("ready", place.ok("show", "t", "2")["state"])
    worker.stop()


@test
def a_removed_topic_comes_back_while_it_drains(place):
    worker = Worker(place, later("t", "old", "go") + echo("other"))
    worker.serves("other")
    place.add("t", "1")
    eventually(lambda: started(place, "old") == 1, "it runs")
    worker.hang_up(echo("other"))
    worker.says("reload: removed t")
    worker.hang_up(echo("other") + echo("t"))
    worker.says("reload: added t")
    await_job(place, "t", "2")
    place.write("go", "")
    eventually(lambda: place.stats("t")["done_total"] == 2, "both are done")
    worker.stop()


@test
def sigterm_ends_a_worker_while_a_topic_drains(place):
    worker = Worker(place, "worker { drain = 300ms }\n" +
                    later("t", "old") + echo("other"))
    worker.serves("other")
    place.add("t", "1")
    eventually(lambda: started(place, "old") == 1, "it runs")
    worker.hang_up("worker { drain = 200ms }\n" + echo("other"))
    worker.says("reload: removed t")
    worker.stop()
    expect_in("not finished after 0.2 s; what is left is given back",
              worker.said())
    expect("ready", place.ok("show", "t", "1")["state"])


@test
def a_stuck_handler_does_not_hold_up_the_other_topics(place):
    """Beyond drain, too: that is for the end."""
    worker = Worker(place, "worker { drain = 50ms }\n" +
                    later("t", "old") + echo("a"))
    worker.serves("a")
    place.add("t", "1")
    eventually(lambda: started(place, "old") == 1, "it runs")
    worker.hang_up("worker { drain = 50ms }\n" + echo("b"))
    worker.says("reload: added b")
    for i in range(5):
        await_job(place, "b", "b%d" % i)
    expect("running", place.ok("show", "t", "1")["state"])
    worker.stop()
    expect("ready", place.ok("show", "t", "1")["state"])


@test
def handlers_on_threads_and_programs_end_what_they_run(place):
    script = place.write("run.sh", "#!/bin/sh\nwhile ! [ -e %s ]; do sleep "
                         "0.05; done\n" % place.path("go"))
    os.chmod(script, 0o755)
    worker = Worker(place, 'topic "x" { handler = exec options = '
                    '"command=%s" }\n' % script +
                    'topic "b" { handler = blocking options = '
                    '"for=400ms" }\n' + echo("t"))
    worker.serves("t")
    place.add("x", "1")
    place.add("b", "1")
    eventually(lambda: [place.stats(topic)["running"] for topic in "xb"] !=
               [0, 0], "they run")
    eventually(lambda: place.stats("x")["running"] == 1, "the program runs")
    worker.hang_up(echo("t"))
    worker.says("reload: removed x")
    place.write("go", "")
    worker.says("x is served no longer")
    expect(1, place.stats("x")["done_total"])
    eventually(lambda: place.stats("b")["done_total"] +
               place.stats("b")["ready"] == 1, "it ended, or went back")
    worker.stop()


@test
def a_hundred_reloads_under_load_lose_no_job(place):
    count = 4000
    worker = Worker(place, echo("a") + echo("b"))
    worker.serves("b")
    adding = [threading.Thread(target=place.add_lines, args=(topic, count))
              for topic in "ab"]
    for thread in adding:
        thread.start()
    for i in range(100):
        if i % 4 == 0:
            text = echo("a")
        elif i % 4 == 1:
            text = echo("a", more="concurrency = %d" % (i + 1)) + echo("b")
        elif i % 4 == 2:
            text = echo("b") + echo("a", "other%d" % i)
        else:
            text = echo("a") + echo("b")
        worker.hang_up(text)
        worker.says("SIGHUP: ")
    for thread in adding:
        thread.join()
    eventually(lambda: [place.stats(topic)["done_total"] for topic in "ab"] ==
               [count, count], "all are done")
    for topic in "ab":
        place.expect_stats(topic, running=0, ready=0, dead=0, crashed_total=0)
    worker.stop()
    names = ["out"] + [name for name in os.listdir(place.dir)
                       if name.startswith("other")]
    ran = [(job["topic"], job["id"]) for name in names
           for job in place.lines(name)]
    expect(2 * count, len(ran))
    expect(2 * count, len(set(ran)))


def resident_kb(pid):
    with open("/proc/%d/status" % pid) as file:
        status = dict(line.split(":", 1) for line in file)
    return int(status["VmRSS"].split()[0])


@test
def a_thousand_reloads_take_no_memory_and_no_descriptor(place):
    # An address sanitizer, where there is one, keeps what is freed for long.
    place.env["ASAN_OPTIONS"] = ("quarantine_size_mb=1:thread_local_quarantine"
                                 "_size_kb=64:" +
                                 os.environ.get("ASAN_OPTIONS", ""))
    texts = [echo("a") + echo("b", more="weight = 2"),
             echo("b", "two") + echo("c")]
    worker = Worker(place, texts[0])
    worker.serves("b")
    pid, before = worker.process.pid, None
    for i in range(1000):
        worker.hang_up(texts[(i + 1) % 2])
        worker.says("reload: changed")
        if i == 199:
            before = (resident_kb(pid), len(os.listdir("/proc/%d/fd" % pid)))
    after = (resident_kb(pid), len(os.listdir("/proc/%d/fd" % pid)))
    await_job(place, "b", "last", "out")
    worker.stop()
    expect_true(after[0] - before[0] < 1024, "%r kB, then %r" % (before, after))
    expect_true(after[1] <= before[1] + 4, "%r, then %r" % (before, after))


# --- mistakes ----------------------------------------------------------------


@test
def a_mistake_changes_nothing(place):
    worker = Worker(place, echo("t"))
    worker.serves("t")
    for text, words in (
            (echo("u") + 'topic "v" { handler = echo concurency = 1 }\n',
             ':2: there is no option "concurency" here'),
            (echo("t", more="weight = 0"), ":1: "),
            ('topic "t" { handler = nowhere }\n', ":1: "),
            ('topic "t" { handler = echo options = "nothing=1" }\n', ":1: "),
            ('topic "t" { handler = echo\n', ":1: "),
            ("", "no topic")):
        worker.refuses(text)
        expect_in(words, worker.said())
    os.unlink(place.path("weir.conf"))
    worker.hang_up()
    worker.says("reload: nothing was changed")
    await_job(place, "t", "1")
    expect_true("reload: added" not in worker.said(), worker.said())
    worker.hang_up(echo("u"))
    worker.says("reload: added u")
    worker.stop()


@test
def a_mistake_is_a_line_as_others_are(place):
    worker = Worker(place, echo("t"))
    worker.serves("t")
    time_and_level = re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z error ")
    for text, words in (("nonsense", "weir.conf:1: "),
                        (echo("t", more="kind = bounded"), "t: kind: ")):
        write(place, text)
        worker.hang_up()
        line = worker.says(words)
        expect_true(time_and_level.match(line), line)
        worker.says("reload: nothing was changed")
    worker.stop()


@test
def a_plugin_that_does_not_open_changes_nothing(place):
    """Which is seen when another topic's is open already."""
    worker = Worker(place, echo("t"))
    worker.serves("t")
    worker.refuses(echo("t", "new") + echo("u") +
                   '\ntopic "v" { handler = echo options = '
                   '"file=DIR/none/out" }\n')
    expect_in("weir.conf:4: v: ", worker.said())
    await_job(place, "t", "1")
    expect(["1"], ids(place))
    worker.stop()


@test
def what_cannot_change_is_named(place):
    text = "redis { data = DIR/data }\nworker { name = w1 threads = 3 }\n"
    worker = Worker(place, text + echo("t"))
    worker.serves("t")
    worker.refuses("redis { data = DIR/data }\n\nworker { name = w2\n "
                   "block_warn = 1s }\n" + echo("u"))
    for words in ("weir.conf:3: name cannot change while weir runs: restart it",
                  "weir.conf: threads cannot be left out while weir runs",
                  "weir.conf:4: block_warn cannot change"):
        expect_in(words, worker.said())
    worker.refuses("redis { url = \"redis://nowhere\" }\n" + text + echo("t"))
    expect_in("weir.conf:1: url cannot change", worker.said())
    await_job(place, "t", "1")
    worker.stop()


@test
def the_kind_of_a_topic_that_is_served_stays(place):
    worker = Worker(place, echo("t"))
    worker.serves("t")
    worker.refuses("\n" + echo("t", more="kind = bounded"))
    expect_in("weir.conf:2: t: kind: topic t is served as one of kind delay",
              worker.said())
    place.ok("topic", "set", "s", "kind=bounded")
    worker.refuses(echo("t") + echo("s", more="kind = delay"))
    expect_in('weir.conf:2: kind: topic "s" is stored as one of kind bounded',
              worker.said())
    worker.hang_up(echo("t") + echo("s"))
    worker.says("reload: added s")
    place.ok("add", "s", "--group", "g")
    eventually(lambda: place.lines("out"), "the event ran")
    worker.stop()


@test
def a_plugin_file_that_was_replaced_is_told(place):
    plugin = place.path("mine.so")
    shutil.copy(os.path.join(BUILD, "plugins", "echo.so"), plugin)
    text = 'topic "t" { handler = DIR/mine.so options = "file=DIR/out" %s }\n'
    worker = Worker(place, text % "")
    worker.serves("t")
    await_job(place, "t", "0")  # it has looked at the file by then
    shutil.copy(plugin, plugin + ".new")
    os.rename(plugin + ".new", plugin)
    worker.hang_up(text % "weight = 2")
    worker.says("mine.so was replaced; the code that was loaded before runs "
                "on: restart weir, or give the new file another name")
    worker.says("reload: changed t")
    await_job(place, "t", "1")
    worker.stop()


# --- the server, the manager, the terminal -----------------------------------


@test
def a_reload_waits_for_a_server_that_is_away(place):
    worker = Worker(place, echo("t"))
    worker.serves("t")
    os.kill(place.server_pid(), signal.SIGSTOP)
    worker.hang_up(echo("u"))
    worker.says("SIGHUP: reading")
    worker.says("nothing is changed until it does")
    worker.hang_up(echo("v"))
    worker.says("is read again when the server has answered")
    os.kill(place.server_pid(), signal.SIGCONT)
    worker.says("reload: removed t")
    worker.says("reload: added v")
    await_job(place, "v", "1")
    worker.stop()
    expect_true("reload: added u" not in worker.said(), worker.said())


@test
def sigterm_ends_a_reload_that_waits(place):
    worker = Worker(place, "worker { drain = 100ms }\n" + echo("t"))
    worker.serves("t")
    os.kill(place.server_pid(), signal.SIGSTOP)
    worker.hang_up("worker { drain = 100ms }\n" + echo("u"))
    worker.says("SIGHUP: reading")
    worker.process.send_signal(signal.SIGTERM)
    worker.says("SIGTERM: finishing what runs")
    os.kill(place.server_pid(), signal.SIGCONT)
    worker.end()
    expect_true("reload: added" not in worker.said(), worker.said())


@test
def systemd_hears_of_a_reload(place):
    manager = patient(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    manager.bind(place.path("notify"))
    place.env["NOTIFY_SOCKET"] = place.path("notify")
    worker = Worker(place, echo("t"))
    worker.serves("t")
    expect(b"READY=1", manager.recv(100))
    for text in (echo("u"), "nonsense"):
        worker.hang_up(text)
        told = manager.recv(100).decode().split("\n")
        expect("RELOADING=1", told[0])
        expect_true(told[1].startswith("MONOTONIC_USEC=") and
                    int(told[1].split("=")[1]) > 0, told)
        expect(b"READY=1", manager.recv(100))
    worker.stop()
    manager.close()


@test
def without_a_file_there_is_nothing_to_read(place):
    worker = place.work(place.echo())
    await_line(worker, "serving t with")
    worker.send_signal(signal.SIGHUP)
    expect_in("SIGHUP: nothing was changed: weir run was started without "
              "--config", await_line(worker, "SIGHUP"))
    place.add("t", "1")
    eventually(lambda: place.lines("out"), "the job ran")
    stop_cleanly(worker)


@test
def until_empty_keeps_its_topics(place):
    place.add("t", "1")
    worker = Worker(place, later("t", "old", "go"), "--until-empty")
    eventually(lambda: started(place, "old") == 1, "it runs")
    worker.hang_up(echo("u"))
    worker.says("SIGHUP: nothing was changed: with --until-empty the topics "
                "stay as they are")
    place.write("go", "")
    worker.end()


@test
def a_signal_before_it_serves_is_not_lost(place):
    place.ok("topics")
    os.kill(place.server_pid(), signal.SIGSTOP)
    worker = Worker(place, echo("t"), "--redis",
                    "unix://" + os.path.join(place.data, "redis.sock"))
    eventually(lambda: hears_sighup(worker.process), "it has its handlers")
    worker.hang_up(echo("u"))
    worker.says("is read again when the server has answered")
    os.kill(place.server_pid(), signal.SIGCONT)
    worker.says("reload: added u")
    worker.stop()


def hears_sighup(process):
    with open("/proc/%d/status" % process.pid) as file:
        status = dict(line.split(":", 1) for line in file)
    return int(status["SigCgt"], 16) >> (signal.SIGHUP - 1) & 1


@test
def a_terminal_that_goes_away_ends_a_worker(place):
    config = write(place, echo("t"))
    terminal = Terminal(place, "run", "--config", config)
    while b"serving t with" not in terminal.shown:
        expect_true(terminal.read(), "it goes on")
    os.kill(terminal.pid, signal.SIGHUP)
    while b"served alike" not in terminal.shown:
        expect_true(terminal.read(), "a signal of somebody else is a reload")
    os.close(terminal.fd)
    ended = []

    def has_ended():
        ended[:] = os.waitpid(terminal.pid, os.WNOHANG)
        return ended[0] != 0
    eventually(has_ended, "it ended with its terminal")
    expect(0, os.waitstatus_to_exitcode(ended[1]))


@test
def a_terminal_that_goes_away_lets_jobs_finish(place):
    config = write(place, later("t", "old", "go"))
    place.add("t", "1")
    terminal = Terminal(place, "run", "--config", config)
    while b"serving t with" not in terminal.shown:
        expect_true(terminal.read(), "it goes on")
    eventually(lambda: started(place, "old") == 1, "it runs")
    os.close(terminal.fd)
    for _ in range(5):  # the shell and the kernel tell of it
        expect((0, 0), os.waitpid(terminal.pid, os.WNOHANG))
        time.sleep(0.15)  # beyond what counts as one signal
        os.kill(terminal.pid, signal.SIGHUP)
    place.write("go", "")
    _, status = os.waitpid(terminal.pid, 0)
    expect(0, os.waitstatus_to_exitcode(status))
    expect(1, place.stats("t")["done_total"])


@test
def nohup_keeps_a_worker_from_reading_again(place):
    config = write(place, echo("t"))
    worker = subprocess.Popen(["nohup", WEIR, "run", "--config", config],
                              env=place.env, text=True,
                              stdout=subprocess.DEVNULL,
                              stdin=subprocess.DEVNULL,
                              stderr=subprocess.PIPE)
    place.started.append(worker)
    await_line(worker, "serving t with")
    worker.send_signal(signal.SIGHUP)
    place.add("t", "1")
    eventually(lambda: place.lines("out"), "the job ran")
    terminate(worker)
    expect_true("SIGHUP" not in end_cleanly(worker), "it is ignored")
