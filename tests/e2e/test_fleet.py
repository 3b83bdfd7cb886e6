# SPDX-License-Identifier: MIT
"""weir run --workers: a parent, its workers, and what becomes of them."""

import json
import os
import re
import signal

from e2e import (Heard, await_line, end_cleanly, eventually, expect, expect_in,
                 expect_true, is_alive, run_together, signal_again, test, wait)
from ports import free_port
from terminal import Terminal
from test_service import Manager

run_together(3)


class Fleet(Heard):
    """weir run --workers N, and what it says."""

    def __init__(self, place, count, *args):
        self.place, self.count = place, count
        super().__init__(place.start("run", "--workers", str(count), *args))

    def serves(self):
        self.says("all %d workers serve" % self.count)

    def how_often(self, words):
        return len([line for line in self.lines if words in line])

    def workers(self):
        path = "/proc/%d/task/%d/children" % (self.process.pid,
                                              self.process.pid)
        with open(path) as file:
            return [int(pid) for pid in file.read().split()]

    def kill(self, pid, number=signal.SIGKILL):
        """The line with which it is started again."""
        os.kill(pid, number)
        return self.says("(pid %d)" % pid)

    def end(self, code=0):
        expect(code, wait(self.process), "%r" % self.lines)
        self.reader.join()

    def stop(self, code=0):
        self.process.send_signal(signal.SIGTERM)
        self.end(code)


def named(place, text="", name="w"):
    return place.write("weir.conf", 'worker { name = "%s" %s }\n'
                       'topic "t" { handler = echo '
                       'options = "file=%s" }\n'
                       % (name, text, place.path("out")))


def names(place):
    return sorted(worker["name"] for worker in
                  place.ok("workers")["workers"])


@test
def workers_share_the_jobs_and_end_with_their_parent(place):
    fleet = Fleet(place, 3, "--handle", place.echo("u"))
    fleet.serves()
    workers = fleet.workers()
    expect(3, len(workers))
    place.add_lines("u", 100)
    eventually(lambda: place.stats("u")["done_total"] == 100, "all is done")
    fleet.stop()
    expect(3, fleet.how_often("SIGTERM: finishing what runs"))
    expect([False] * 3, [is_alive(pid) for pid in workers])


@test
def one_worker_has_no_parent(place):
    fleet = Fleet(place, 1, "--handle", place.echo())
    fleet.says("serving t with")
    expect([], fleet.workers())
    fleet.stop()


@test
def a_worker_that_is_killed_is_started_again_later_each_time(place):
    fleet = Fleet(place, 2, "--config", named(place))
    fleet.serves()
    for delay in ("100ms", "200ms", "400ms"):
        pid = fleet.workers()[1]  # the younger one
        line = fleet.kill(pid)
        expect_true(re.search(r" warn worker 2 of 2 \(pid %d\) was killed by "
                              "SIGKILL; started again in %s$" % (pid, delay),
                              line), line)
        expect_in("worker w-2: ", fleet.says("serving t with"))
    eventually(lambda: set(names(place)) == {"w-1", "w-2"}, "both are there")
    fleet.stop()


@test
def one_that_is_killed_by_its_own_sigterm_is_started_again(place):
    fleet = Fleet(place, 2, "--handle", place.echo())
    fleet.serves()
    expect_in("ended with exit code 0; started again in 100ms",
              fleet.kill(fleet.workers()[0], signal.SIGTERM))
    fleet.says("serving t with")
    fleet.stop()


@test
def who_waits_to_be_started_again_does_not_keep_the_fleet(place):
    fleet = Fleet(place, 2, "--handle", place.echo())
    fleet.serves()
    os.kill(fleet.workers()[0], signal.SIGSTOP)  # not even this one answers
    for delay in ("100ms", "200ms", "400ms", "800ms"):
        expect_in(delay, fleet.kill(fleet.workers()[1]))
        fleet.says("serving t with")
    expect_in("1.6s", fleet.kill(fleet.workers()[1]))
    os.kill(fleet.workers()[0], signal.SIGCONT)
    fleet.stop()


@test
def a_parent_that_is_killed_takes_its_workers_along(place):
    fleet = Fleet(place, 3, "--handle", place.echo())
    fleet.serves()
    workers = fleet.workers()
    fleet.process.kill()
    for pid in workers:
        eventually(lambda: not is_alive(pid), "%d is gone" % pid)


def complain(place, code, *args):
    return place.weir("run", "--workers", "4", *args).expect_complaint(code)


@test
def what_is_wrong_at_the_start_is_said_once(place):
    handle = ("--handle", place.echo())
    complain(place, 2, "--handle", "t=nowhere")
    complain(place, 2, "--handle", "t=echo?nothing=1")
    complain(place, 2, "--config", place.write("bad", "topic t {"))
    complain(place, 5, *handle, "--redis", "unix://" + place.path("none"))
    long = named(place, name="n" * 39)
    result = complain(place, 2, "--config", long)
    expect_in(":1: name: of 4 workers the last one would be " + "n" * 39 +
              "-4: write 38 characters at most", result.err)
    expect_in("--metrics 127.0.0.1:65533: 4 workers need as many ports",
              complain(place, 2, *handle, "--metrics",
                       "127.0.0.1:65533").err)
    for count in ("0", "257", "many"):
        place.weir("run", "--workers", count, *handle).expect_complaint(
            2, "--workers", "1 to 256")


@test
def one_that_crashes_before_it_was_ready_ends_the_fleet(place):
    result = place.weir("run", "--workers", "3", "--handle",
                        "t=crash_one?where=open")
    expect(1, result.code, result.err)
    expect(1, result.err.count("was killed by SIGABRT"), result.err)


@test
def the_file_says_how_many(place):
    path = named(place, "workers = 2")
    expect(0, place.weir("check", "--config", path).code)
    process = place.start("run", "--config", path)
    await_line(process, "all 2 workers serve")
    process.send_signal(signal.SIGTERM)
    end_cleanly(process)


@test
def all_of_them_end_where_nothing_is_left(place):
    place.add_lines("t", 50)
    result = place.weir("run", "--until-empty", "--workers", "3", "--handle",
                        place.echo())
    expect(0, result.code, result.err)
    expect(3, result.err.count("nothing is left to run"))
    expect(50, place.stats("t")["done_total"])


# --- reload -----------------------------------------------------------------

@test
def a_reload_is_of_all_and_its_mistake_is_said_once(place):
    path = named(place)
    fleet = Fleet(place, 3, "--config", path)
    fleet.serves()
    good = open(path).read()
    place.write("weir.conf", good + 'topic "u" { handler = nowhere }\n')
    fleet.process.send_signal(signal.SIGHUP)
    fleet.says("reload: nothing was changed")
    place.write("weir.conf", good + 'topic "u" { handler = echo }\n')
    fleet.process.send_signal(signal.SIGHUP)
    for _ in range(3):
        fleet.says("reload: added u")
    expect(1, fleet.how_often("nothing was changed"))
    mistake, = (line for line in fleet.lines if "nowhere" in line)
    expect_in(" worker w-1: ", mistake)
    fleet.stop()


@test
def where_the_reader_is_killed_another_one_reads(place):
    path = named(place)
    fleet = Fleet(place, 2, "--config", path)
    fleet.serves()
    first = fleet.workers()[0]
    os.kill(first, signal.SIGSTOP)
    with open(path, "a") as file:
        file.write('topic "u" { handler = echo }\n')
    fleet.process.send_signal(signal.SIGHUP)
    fleet.kill(first)
    expect_in("worker w-2: ", fleet.says("reload: added u"))
    fleet.stop()


@test
def without_a_file_one_of_them_says_that_there_is_none(place):
    fleet = Fleet(place, 3, "--handle", place.echo())
    fleet.serves()
    fleet.process.send_signal(signal.SIGHUP)
    fleet.says("SIGHUP: nothing was changed")
    fleet.stop()
    expect(1, fleet.how_often("SIGHUP"))


# --- signals ----------------------------------------------------------------

@test
def a_third_sigterm_ends_workers_that_hang(place):
    place.add_lines("t", 8)
    fleet = Fleet(place, 2, "--handle", "t=hangs", "--lease", "1h")
    fleet.serves()
    eventually(lambda: place.stats("t")["running"] > 0, "one runs")
    while fleet.process.poll() is None:
        signal_again(fleet.process)  # those that came together are one
    fleet.end(1)
    expect(1, fleet.how_often("SIGTERM for the third time: ending at once"))


@test
def ctrl_c_on_a_terminal_counts_once(place):
    terminal = Terminal(place, "run", "--workers", "2", "--handle",
                        place.echo())
    while b"all 2 workers serve" not in terminal.shown:
        expect_true(terminal.read(), "it goes on")
    os.write(terminal.fd, b"\x03")
    expect(0, terminal.wait())
    expect(2, terminal.shown.count(b"SIGINT: finishing what runs"))
    expect(0, terminal.shown.count(b"again"))


# --- systemd ----------------------------------------------------------------

@test
def systemd_hears_of_the_fleet_from_its_parent(place):
    manager = Manager(place, place.path("notify"))
    fleet = Fleet(place, 3, "--config", named(place))
    expect("READY=1", manager.told())
    fleet.serves()
    fleet.kill(fleet.workers()[2])
    fleet.says("serving t with")
    fleet.process.send_signal(signal.SIGHUP)
    expect_in("RELOADING=1", manager.told())
    expect("READY=1", manager.told())
    fleet.stop()
    expect(["STOPPING=1"], manager.told_last())


@test
def a_worker_that_hangs_is_aborted_and_the_others_go_on(place):
    manager = Manager(place, place.path("notify"))
    place.env["WATCHDOG_USEC"] = "4000000"
    place.add("bad", "1")
    fleet = Fleet(place, 2, "--handle", "bad=hangs", "--handle",
                  place.echo("t"), "--lease", "300ms")
    fleet.says("gave no sign of life for 4s: it is aborted")
    expect_in("bad 1: ", fleet.says("crashed"))
    expect_in("was killed by SIGABRT", fleet.says(" of 2 (pid"))
    place.add("t", "1")
    eventually(lambda: place.stats("t")["done_total"] == 1, "t goes on")
    told = manager.told_last()
    expect({"READY=1", "WATCHDOG=1"}, set(told))
    fleet.process.kill()


# --- what each of them has --------------------------------------------------

@test
def each_worker_answers_for_metrics_at_a_port_of_its_own(place):
    port = free_port(also=1)
    fleet = Fleet(place, 2, "--handle", place.echo(), "--metrics",
                  "127.0.0.1:%d" % port)
    expect_in("worker 1: metrics at http://127.0.0.1:%d/" % port,
              fleet.says("metrics at"))
    expect_in("worker 2: metrics at http://127.0.0.1:%d/" % (port + 1),
              fleet.says("metrics at"))
    fleet.stop()


@test
def lines_in_json_name_their_worker(place):
    fleet = Fleet(place, 2, "--config", named(place), "--json")
    fleet.serves()
    fleet.kill(fleet.workers()[1])
    fleet.says("serving t with")
    fleet.stop()
    said = [json.loads(line) for line in fleet.lines]
    expect({None, "w-1", "w-2"}, {line.get("worker") for line in said})
    ended = [line for line in said if line.get("event") == "worker_ended"]
    expect([[2, "SIGKILL", 100]],
           [[line["number"], line["cause"], line["delay_ms"]]
            for line in ended])
