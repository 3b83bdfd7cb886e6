# SPDX-License-Identifier: MIT
"""The page of weir web in a real browser: every view and action, on a server
with workers. WEIR_PICTURES=docs/pictures keeps pictures of it, those of
docs/web.md among them. WEIR_PICTURE_POINTS=N waits for N points of the
plots."""

import contextlib
import json
import os
import subprocess
import sys
import time

from browser import browse
from e2e import (eventually, expect, expect_in, expect_true, kill,
                 stop_cleanly, test)
from web import TOKEN, Web
from web_page import die, expect_refusal, go, page

HOSTILE = "<script>document.title='taken'</script>\"'&<b>\u202e"


OPEN = """import sys, time
import browser
class Here:
    def path(self, name):
        return sys.argv[1] + "/" + name
kept = browser.Browser(Here())
print("open", flush=True)
time.sleep(600)
"""


def processes_with(word):
    """Ids of those that have it in their command line."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/cmdline" % pid, "rb") as file:
                if word.encode() in file.read():
                    found.append(int(pid))
    return found


@test
def a_test_that_is_killed_leaves_no_browser(place):
    held = subprocess.Popen([sys.executable, "-B", "-c", OPEN, place.dir],
                            cwd=os.path.dirname(os.path.abspath(__file__)),
                            stdout=subprocess.PIPE)
    try:
        expect(b"open\n", held.stdout.readline())
        expect_true(len(processes_with(place.path("profile"))) > 1,
                    "a browser runs, with helpers of its own")
    finally:
        held.kill()
        held.wait()
        held.stdout.close()
    eventually(lambda: not processes_with(place.dir), "nothing of it is left")


def picture(browser, name, height=None):
    folder = os.environ.get("WEIR_PICTURES")
    if folder:
        browser.shot(os.path.join(folder, name + ".png"), height)


@test
def the_token_is_asked_for_and_a_wrong_one_refused(place):
    place.add("t", "1", "--delay", "1h")
    web = Web(place, token=TOKEN)
    with browse() as browser:
        browser.open("http://127.0.0.1:%d/" % web.port)
        browser.type("input[name=token]", "this-is-not-the-token")
        browser.press("Enter")
        browser.see("This is not the token.")
        browser.type("input[name=token]", TOKEN)
        browser.press("Enter")
        browser.see("1 scheduled")
        browser.click("#logout")
        browser.see("Log in")
        browser.open("http://127.0.0.1:%d/" % web.port)
        browser.see("Log in")
        expect([], browser.complaints("status of 401"))


@test
def topics_are_shown_and_follow_what_happens_without_reloading(place):
    place.add_lines("later", 4, '{"id":"l%d","delay":"1h"}')
    place.add_lines("soon", 3)
    with page(place) as browser:
        browser.see("later", "4 scheduled", "soon", "3 ready")
        browser.run("window.isTheSame = true")
        place.add_lines("soon", 2, '{"id":"more-%d"}')
        browser.see("5 ready")
        place.drain(place.echo("soon"))
        browser.see("0 ready")
        place.add("new.topic", "1")
        browser.see("new.topic")
        expect(True, browser.run("return window.isTheSame"))


@test
def topics_are_searched_and_sorted(place):
    for name, count in (("alpha", 2), ("beta", 5), ("gamma", 1)):
        place.add_lines(name, count)
    with page(place) as browser:
        browser.see("alpha", "beta", "gamma")
        browser.click("button[data-sort=ready]")
        eventually(lambda: [text.split("\n")[0] for text in
                            browser.texts("tbody tr")] ==
                   ["beta", "alpha", "gamma"], "the most ready first")
        browser.click("button[data-sort=ready]")
        eventually(lambda: browser.texts("tbody tr")[0].startswith("gamma"),
                   "the least ready first")
        browser.press("/")
        browser.type("#search", "ET")
        eventually(lambda: browser.count("tbody tr") == 1, "only beta")
        browser.see("beta", "1 to 1 of 1")
        browser.type("#search", "none such")
        browser.see("No topic has this in its name.")


@test
def a_topic_is_paused_and_resumed(place):
    place.add("t", "1")
    with page(place) as browser:
        browser.see("1 ready")
        browser.click_text("button", "Pause")
        browser.see("paused")
        expect(True, place.stats("t")["paused"])
        browser.click("a[href='#/t/t']")
        browser.click_text("button", "Resume")
        browser.see("Pause")
        eventually(lambda: not place.stats("t")["paused"], "it is resumed")


@test
def jobs_are_shown_by_state_in_pages_and_found_by_id(place):
    place.add_lines("t", 130, '{"id":"j%d","delay":"1h","body":{"n":%d}}')
    place.add_lines("t", 2, '{"id":"r%d"}')
    with page(place, path="#/t/t") as browser:
        browser.see("r0", "r1", "Ready", "130")
        browser.click("#tab-scheduled")
        browser.see("j0", "Page 1")
        expect(100, browser.count("tbody tr"))
        browser.press("n")
        browser.see("Page 2", "j129")
        expect(30, browser.count("tbody tr"))
        browser.press("p")
        browser.see("Page 1", "j0")
        browser.press("/")
        browser.type("#search", "j77")
        browser.press("Enter")
        browser.see("The job", '"n": 77', "scheduled")
        browser.press("Escape", "u")
        browser.see("Page 1")
        browser.click("#tab-dead")
        browser.see("No job is dead.")


@test
def jobs_are_filtered(place):
    place.add_lines("t", 30, '{"id":"j%d","delay":"1h","body":{"n":%d}}')
    with page(place, path="#/t/t/scheduled") as browser:
        browser.see("j0", "j29")
        browser.type("#where", ".body.n > 27")
        browser.press("Enter")
        browser.lack("j0")
        browser.see("j28", "j29")
        browser.type("#where", ".body =")
        browser.press("Enter")
        browser.see("where: syntax error")
        browser.type("#where", ".body.n > 100")
        browser.press("Enter")
        browser.see("No job here that is scheduled matches.")
        expect_true("400" in "".join(browser.complaints()), "the refusal")


@test
def a_job_is_rescheduled_and_deleted(place):
    place.add("t", "one", "--delay", "1h", "--body", '{"n":[1,2.5,null]}')
    with page(place, path="#/j/t/one") as browser:
        browser.see("one", "scheduled", "UTC", '"n": [')
        browser.click_text("button", "Reschedule …")
        browser.type("dialog input[name=delay]", "0ms")
        browser.press("Enter")
        browser.see("ready")
        expect("ready", place.ok("show", "t", "one")["state"])
        browser.click_text("button", "Reschedule …")
        browser.put("dialog input[name=at]", "2040-01-31T08:30:00")
        browser.click_text("dialog button", "Reschedule")
        browser.see("2040-01-31")
        expect("scheduled", place.ok("show", "t", "one")["state"])
        browser.click_text("button", "Reschedule …")
        browser.type("dialog input[name=delay]", "soon")
        browser.press("Enter")
        browser.see("soon", css="dialog [role=alert]")
        browser.press("Escape")
        browser.click_text("button", "Delete …")
        browser.see("Delete this job?", css="dialog")
        browser.press("Escape")
        expect("scheduled", place.ok("show", "t", "one")["state"])
        browser.click_text("button", "Delete …")
        browser.click_text("dialog button", "Delete")
        browser.see("one is deleted", css="#said")
        expect(3, place.weir("show", "t", "one").code)
        expect_refusal(browser)


@test
def a_job_shows_its_keys_and_a_topic_that_what_is_ready_waits_for_them(place):
    place.ok("topic", "set", "t", "key_parallel=1")
    place.add("t", "one", "--key", "customer 7", "--priority", "high",
              "--unique", "<b>order")
    place.add("t", "two", "--key", "customer 7")
    expect([0, 3], [place.weir("take", "t", "--lease", "1h").code
                    for _ in range(2)])
    with page(place, path="#/j/t/one") as browser:
        browser.see("Key", "customer 7", "Priority", "high", "Unique key",
                    "<b>order", "running")
        go(browser, "#/j/t/two")
        browser.see("two", "customer 7")
        browser.lack("Priority")
        go(browser, "#/t/t")
        browser.see("keys may not start more")


@test
def a_job_tells_what_did_not_finish_it(place):
    past = {"attempts": [
        {"at": "2030-01-0%dT08:30:00Z" % i, "outcome": outcome,
         "error": "<b>%s</b> \u202e" % outcome, "worker": "worker-%d" % i}
        for i, outcome in enumerate(("retry", "timeout", "fail", "crash"), 1)]}
    place.ok("import", "t", place.write("jobs", json.dumps(
        {"id": "one", "at": "2040-01-01T00:00:00Z", "past": past})))
    place.add("t", "two", "--delay", "1h")
    with page(place, path="#/j/t/one") as browser:
        browser.see("Last attempts", "2030-01-04 08:30:00.000 UTC", "worker-1",
                    "<b>fail</b> \\u202e")
        expect([["◆ crash", "worker-4"], ["✕ fail", "worker-3"],
                ["▲ timeout", "worker-2"], ["↻ retry", "worker-1"]],
               browser.run("return [...document.querySelectorAll("
                           "'main tbody tr')].map((row) => [1, 3].map((i) => "
                           "row.cells[i].textContent))"))
        expect(0, browser.count("main b"))
        picture(browser, "attempts")
        go(browser, "#/j/t/two")
        browser.see("two", "scheduled")
        expect(0, browser.count("main table"))
        expect([], browser.complaints("status of 401"))


@test
def dead_jobs_are_grouped_and_requeued_or_deleted(place):
    die(place, "t", ["printer 7 has no paper", "printer 12 has no paper",
                     "no such tenant", "printer 3 has no paper", "cable",
                     "lamp"])
    with page(place, path="#/t/t/dead") as browser:
        browser.see("Why they died", "printer # has no paper", "x2")
        picture(browser, "dead")
        browser.run("document.querySelector('table[class=cards] tbody tr "
                    "button[data-do=requeueGroup]').click()")
        browser.see("Requeue 3 dead jobs?", css="dialog")
        browser.click_text("dialog button", "Requeue")
        browser.see("3 jobs requeued", css="#said")
        place.expect_stats("t", ready=3, dead=3)
        browser.lack("printer")
        browser.click("input[value=x4]")
        browser.click("input[value=x2]")
        browser.click_text("button", "Delete 2 chosen")
        browser.click_text("dialog button", "Delete")
        browser.see("2 jobs deleted", css="#said")
        place.expect_stats("t", ready=3, dead=1)
        browser.click("a[href='#/j/t/x5']")
        browser.see("lamp", "Reason")
        browser.click_text("button", "Requeue")
        browser.see("ready")
        place.expect_stats("t", ready=4, dead=0)


@test
def a_filter_holds_for_a_group_and_drops_what_was_chosen(place):
    die(place, "t", ["printer 7 has no paper", "printer 12 has no paper",
                     "cable"])
    with page(place, path="#/t/t/dead") as browser:
        browser.click("input[value=x2]")
        browser.see("Delete 1 chosen")
        browser.type("#where", '.id == "x1"')
        browser.press("Enter")
        browser.lack("chosen")
        browser.lack("x0")
        browser.run("document.querySelector('table[class=cards] tbody tr "
                    "button[data-do=requeueGroup]').click()")
        browser.see("Requeue 1 dead job?", '.id == "x1"', css="dialog")
        browser.click_text("dialog button", "Requeue")
        browser.see("1 job requeued", css="#said")
        expect("ready", place.ok("show", "t", "x1")["state"])
        browser.click_text("button", "Requeue …")
        browser.type("dialog input[name=where]", ".body.n > 1")
        browser.press("Enter")
        browser.see("No dead job matches. The filter failed on 2 jobs.",
                    css="dialog [role=alert]")


@test
def what_died_since_a_moment_is_requeued(place):
    die(place, "t", ["old", "old"])
    noon = time.time()
    eventually(lambda: time.time() > noon + 2.5, "later", 10)
    place.add("t", "new", "--body", '"new"')
    place.drain(place.handler("exec", "t", fail_codes=1,
                              command="python3%20" + place.path("die.py")))
    with page(place, path="#/t/t/dead") as browser:
        browser.see("x0", "x1", "new")
        browser.click_text("button", "Requeue …")
        browser.put("dialog input[name=since]",
                    time.strftime("%Y-%m-%dT%H:%M:%S",
                                  time.localtime(noon + 2)))
        browser.click_text("dialog button", "Count them")
        browser.see("Requeue 1 dead job?", css="dialog")
        browser.click_text("dialog button", "Requeue")
        browser.see("1 job requeued", css="#said")
        expect("ready", place.ok("show", "t", "new")["state"])
        browser.click_text("button", "Delete …")
        browser.click_text("dialog button", "Count them")
        browser.see("Delete 2 dead jobs?", css="dialog")
        browser.click_text("dialog button", "Delete")
        browser.see("2 jobs deleted", css="#said")
        browser.see("No job is dead.")


@test
def options_are_shown_set_and_removed(place):
    place.add("t", "1")
    with page(place, path="#/t/t/options") as browser:
        browser.see("Nothing is stored with this topic")
        browser.type("input[name=name]", "concurrency")
        browser.type("input[name=value]", "7")
        browser.press("Enter")
        browser.see("concurrency", "7", "Remove")
        expect({"concurrency": "7"}, place.ok("topic", "show", "t")["options"])
        browser.click_text("button", "Remove")
        browser.see("Nothing is stored with this topic")
        browser.type("input[name=name]", "colour")
        browser.type("input[name=value]", "red")
        browser.press("Enter")
        browser.see("colour", css="#said")
        expect_refusal(browser)


@test
def a_bounded_topic_shows_its_groups_and_drops(place):
    place.ok("topic", "set", "b", "kind=bounded", "length=2")
    for i in range(5):
        place.add("b", "e%d" % i, "--group", "north")
    place.add("b", "f", "--group", "south")
    with page(place, path="#/t/b/groups") as browser:
        browser.see("north", "south", "dropped, full")
        expect(["2", "1"], [text.split("\t")[1].strip() for text in
                            browser.texts("tbody tr")])
        expect_in("3", browser.text(".tiles"))


@test
def what_is_hostile_is_shown_as_text(place):
    body = {"a": HOSTILE, HOSTILE: "\u202egnp", "big": 18446744073709551615,
            "large": "x" * 900000}
    job_id = "<img/src=x>&\"';--"
    place.ok("add", "t", "--jsonl", "-",
             stdin=json.dumps({"id": job_id, "delay": "1h", "body": body}))
    die(place, "u", ["<script>alert(1)</script> \u202e \"'"])
    with page(place, path="#/t/t/scheduled") as browser:
        browser.see(job_id)
        browser.run("document.querySelector('tbody a').click()")
        browser.see("<script>document.title='taken'</script>", "\\u202egnp",
                    "18446744073709551615", job_id)
        expect(0, browser.count("main script, main img, main b:not(.x)"))
        go(browser, "#/t/u/dead")
        browser.see("<script>alert(#)</script>", "<script>alert(1)</script>")
        expect(0, browser.count("main script"))
        go(browser, "#/t/%3Cscript%3E")
        browser.see("there is no topic \"<script>\"")
        expect_true(browser.run("return document.title") != "taken", "the title")
        expect([], [line for line in browser.complaints()
                    if "status of 40" not in line])


@test
def everything_is_reached_by_keys(place):
    for name in ("a.one", "b.two", "c.three"):
        place.add(name, "1")
    with page(place) as browser:
        browser.see("c.three")
        browser.press("j")
        expect("a.one", browser.focused())
        browser.press("j")
        expect("b.two", browser.focused())
        browser.press("j", "k", "Enter")
        browser.see("b.two", "Lateness p99", "Options")
        browser.run("document.querySelector('#tab-ready').focus()")
        browser.press("Right")
        browser.see("No job is running.")
        browser.press("u")
        browser.see("a.one")
        browser.press("?")
        browser.see("next, previous row", css="dialog")
        browser.press("Escape")
        browser.press("g", "n")
        browser.see("Nodes", "primary")
        browser.press("g", "t")
        browser.see("a.one")
        browser.complaints()


@test
def colours_follow_the_system_or_the_switch(place):
    place.add("t", "1")

    def paper():
        return browser.run("return getComputedStyle(document.body)"
                           ".backgroundColor")
    with page(place, scheme="light") as browser:
        browser.see("1 ready")
        light = paper()
        browser.prefer("dark")
        eventually(lambda: paper() != light, "dark by the system")
        dark = paper()
        browser.click("#scheme")
        eventually(lambda: paper() == light, "light by the switch")
        browser.click("#scheme")
        eventually(lambda: paper() == dark, "dark by the switch")
        browser.prefer("light")
        browser.run("location.reload()")
        browser.see("1 ready")
        eventually(lambda: paper() == dark, "the switch is remembered")


@test
def a_narrow_screen_has_cards_and_nothing_beside_it(place):
    die(place, "order.close", ["a reason that is quite long, " * 5])
    with page(place, path="#/", width=390, height=844) as browser:
        for path, word in (("#/", "order.close"),
                           ("#/t/order.close/dead", "Why they died"),
                           ("#/j/order.close/x0", "The job")):
            go(browser, path)
            browser.see(word)
            expect(True, browser.run("return document.documentElement"
                                     ".scrollWidth <= innerWidth"), path)
        go(browser, "#/")
        browser.see("Oldest ready")
        expect("block", browser.run("return getComputedStyle(document"
                                    ".querySelector('tbody tr')).display"))


@test
def a_server_that_goes_away_is_told_and_found_again(place):
    place.add("t", "1")
    with page(place) as browser:
        browser.see("1 ready")
        place.ok("server", "stop")
        browser.see("▲", "as of", css="#state")
        browser.see("1 ready")
        place.ok("stats")  # starts it again
        browser.see("live", css="#state")


@test
def workers_are_shown_with_what_they_serve(place):
    place.add("t", "1", "--delay", "1h")
    with page(place, path="#/workers") as browser:
        browser.see("No worker runs.")
        worker = place.work(place.echo("t"))
        browser.see("pid %d" % worker.pid, "unix")
        browser.click("a[href='#/t/t']")
        browser.see("Scheduled")
        browser.press("g", "w")
        browser.see("pid %d" % worker.pid)
        stop_cleanly(worker)
        browser.see("No worker runs.")


@test
def who_serves_a_topic_is_found_from_its_page(place):
    place.add_lines("t", 2)
    place.write("conf", 'worker { name = "vm-1" }\ntopic "t" { handler = later '
                'concurrency = 1 lease = 1s options = { "file=%s", '
                '"after=0ms" } }\n' % place.path("out"))
    with page(place) as browser:
        browser.see("▲ nobody serves it")
        worker = place.work(flags=("--config", place.path("conf")))
        browser.see("served by 1 worker")
        browser.click("a[href='#/t/t/workers']")
        browser.see("vm-1", "▲ 1 of 1: no room")
        browser.click("a[href='#/workers/vm-1']")
        browser.see("Topics of vm-1", "▲ 1 of 1: no room")
        go(browser, "#/t/t/running")
        browser.click("td a[href='#/workers/vm-1']")
        browser.see("Topics of vm-1")
        job = [job["id"] for job in place.ok("list", "t", "--state", "running")]
        go(browser, "#/j/t/" + job[0])
        browser.click("a[href='#/workers/vm-1']")
        browser.see("Topics of vm-1")
        kill(worker)
        browser.see("It is not there.")
        go(browser, "#/t/t")
        browser.see("▲ nobody serves it", "▲ lease ended")
        browser.press("g", "t")
        browser.see("▲ nobody serves it", "▲ lease ended")


@test
def nodes_are_shown(place):
    place.add("t", "1")
    with page(place, path="#/nodes") as browser:
        browser.see("● up", "primary", "redis.sock", "MiB")


@test
def read_only_says_so_and_has_no_buttons(place):
    place.add("t", "1")
    with page(place, "--read-only") as browser:
        browser.see("Read only", "1 ready")
        expect(0, browser.count("[data-do=pause]"))
        go(browser, "#/j/t/1")
        browser.see("The job")
        expect(0, browser.count(".actions button"))


def known_points(web, topic):
    """How many points of the last hour are known."""
    answer = web.get("/api/history?topics=" + topic,
                     Authorization="Bearer " + TOKEN).json
    return sum(value is not None for value in
               answer["topics"].get(topic, {}).get("rate", []))


def fill(place):
    """A shop: what it sells is closed after two hours, or at once."""
    place.add_lines("order.close", 2400, '{"id":"order-%d","delay":"2h",'
                    '"body":{"order":%d,"tenant":"north"}}')
    place.ok("topic", "set", "sensor.events", "kind=bounded", "length=50")
    for group in ("north", "south", "east"):
        place.add_lines("sensor.events", 60, '{"id":"' + group +
                        '-%d","group":"' + group + '","body":%d}')
    place.ok("pause", "sensor.events")
    place.add_lines("report.daily", 40, '{"id":"report-%d"}')
    place.add_lines("search.index", 9000, '{"id":"page-%d","delay":"20m"}')
    die(place, "invoice.print", ["printer %d is out of paper" % (i % 4)
                                 if i % 3 else "no such tenant"
                                 for i in range(14)])


@test
def plots_show_the_last_hour(place):
    wanted = int(os.environ.get("WEIR_PICTURE_POINTS", "1"))
    fill(place)
    worker = place.work(place.echo("order.close"), place.echo("mail.send"),
                        place.echo("search.index"))
    with page(place, height=760) as browser:
        browser.see("order.close", "40 ready")

        def add_more(turn=[0]):
            turn[0] += 1
            place.add_lines("mail.send", 60 + 45 * (turn[0] // 9 % 4),
                            '{"id":"m%d-' + str(turn[0]) + '"}')
            place.add_lines("order.close", 20 + 9 * (turn[0] // 14 % 5),
                            '{"id":"o%d-' + str(turn[0]) + '"}')
            return known_points(browser.web, "mail.send") >= wanted
        eventually(add_more, "points of history", 60 + 30 * wanted)
        eventually(lambda: browser.count(".spark:not(.none) path") >= 2,
                   "plots in the table")
        picture(browser, "web-topics")
        go(browser, "#/t/invoice.print/dead")
        browser.see("Why they died", "printer # is out of paper")
        browser.prefer("dark")
        picture(browser, "web-dead")
        go(browser, "#/t/mail.send")
        eventually(lambda: browser.count(".plot path.line") >= 1, "a plot")
        expect_in("Done, last hour: ", browser.run(
            "return document.querySelector('.plot svg')"
            ".getAttribute('aria-label')"))
        picture(browser, "topic")
        stop_cleanly(worker)
