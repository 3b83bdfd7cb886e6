# SPDX-License-Identifier: MIT
"""weir run as a service of systemd: it tells when it is ready, that it lives,
and that it stops."""

import os
import socket

from e2e import expect, expect_true, patient, stop_cleanly, test


class Manager:
    """The end of systemd: a datagram socket."""

    def __init__(self, place, address):
        self.socket = patient(
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.socket.bind(address)
        place.env["NOTIFY_SOCKET"] = address.replace("\0", "@")

    def told(self):
        return self.socket.recv(100).decode()

    def told_last(self):
        """What is left when the service is gone."""
        self.socket.setblocking(False)
        texts = []
        try:
            while True:
                texts.append(self.told())
        except BlockingIOError:
            return texts


@test
def a_worker_tells_that_it_is_ready_lives_and_stops(place):
    manager = Manager(place, place.path("notify"))
    place.env["WATCHDOG_USEC"] = "1000000"
    worker = place.work("t=echo")
    expect("READY=1", manager.told())
    for _ in range(3):
        expect("WATCHDOG=1", manager.told())
    stop_cleanly(worker)
    expect_true("STOPPING=1" in manager.told_last(), "it said that it stops")


@test
def an_address_in_the_abstract_space_is_understood(place):
    manager = Manager(place, "\0weir-e2e-%d" % os.getpid())
    worker = place.work("t=echo")
    expect("READY=1", manager.told())
    stop_cleanly(worker)
    expect(["STOPPING=1"], manager.told_last())


@test
def a_watchdog_of_another_process_is_not_fed(place):
    manager = Manager(place, place.path("notify"))
    place.env["WATCHDOG_USEC"] = "1000"
    place.env["WATCHDOG_PID"] = "1"
    worker = place.work("t=echo")
    expect("READY=1", manager.told())
    stop_cleanly(worker)
    expect(["STOPPING=1"], manager.told_last())


@test
def a_worker_whose_loop_hangs_feeds_the_watchdog_no_more(place):
    manager = Manager(place, place.path("notify"))
    place.env["WATCHDOG_USEC"] = "100000"
    worker = place.work("t=hangs")
    expect("READY=1", manager.told())
    place.add("t", "1")
    manager.socket.settimeout(1.0)
    try:
        while True:
            expect("WATCHDOG=1", manager.told())
    except socket.timeout:
        pass
    worker.kill()


@test
def an_unreachable_server_is_never_ready(place):
    manager = Manager(place, place.path("notify"))
    result = place.weir("run", "--handle", "t=echo", "--redis",
                        "unix://" + place.path("nothing.sock"))
    expect(5, result.code)
    expect([], manager.told_last())


@test
def a_manager_that_is_gone_does_no_harm(place):
    place.env["NOTIFY_SOCKET"] = place.path("nobody")
    place.add("t", "1")
    place.drain("t=echo")
