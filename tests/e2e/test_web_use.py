# SPDX-License-Identifier: MIT
"""The page of weir web as one uses it: what its address keeps, what dialogs
say, keys and focus, what is read aloud, contrast, windows of several widths.
So are reports of weir-bench."""

import os
import subprocess

from browser import browse
from e2e import BUILD, eventually, expect, expect_in, expect_true, test
from web import crowd
from web_page import die, go, page


def reload(browser):
    browser.run("window.isOld = true; location.reload()")
    eventually(lambda: browser.run("return !window.isOld"), "it is loaded anew")


def value(browser, css):
    return browser.run("return document.querySelector(arguments[0]).value", css)


def rows(browser):
    return [text.split("\n")[0].split("\t")[0]
            for text in browser.texts("table.cards tbody tr")]


@test
def the_address_keeps_state_filter_and_page(place):
    place.add_lines("t", 250, '{"id":"j%d","delay":"1h","body":{"n":%d}}')
    with page(place, path="#/t/t") as browser:
        browser.click("#tab-scheduled")
        browser.see("Page 1")
        browser.type("#where", ".body.n >= 50")
        browser.press("Enter")
        browser.see("Only where .body.n >= 50", "j50")
        browser.lack("j49\n")
        browser.press("Tab")  # out of the field
        browser.click_text("button", "Next ›")
        browser.see("Page 2", "j150")
        reload(browser)
        browser.see("Page 2", "j150", "Only where .body.n >= 50")
        expect(".body.n >= 50", value(browser, "#where"))
        browser.click_text("button", "‹ Previous")  # which is not known now
        browser.see("Page 1", "j50")
        browser.run("history.back()")
        browser.see("Page 2")
        browser.run("history.go(-2)")
        browser.see("Page 1", "j0")
        expect("", value(browser, "#where"))
        browser.lack("Only where")
        browser.run("history.forward()")
        browser.see("Only where .body.n >= 50")
        browser.click("a[href='#/j/t/j50']")
        browser.see("The job")
        browser.press("u")
        browser.see("Only where .body.n >= 50", "Page 1")
        browser.click_text("button", "Show all")
        browser.see("j0")


@test
def workers_have_pages(place):
    place.add("t", "1", "--delay", "1h")
    for path in ("#/workers", "#/t/t/workers"):
        with crowd(place, ["w%03d" % i for i in range(150)]), \
             page(place, path=path) as browser:
            browser.see("1 to 100 of 150")
            browser.click("[data-do=next]")
            browser.see("101 to 150 of 150")
            expect_in("w149", browser.text("tbody"))
            reload(browser)
            browser.see("101 to 150 of 150")
            browser.click("[data-do=previous]")
            browser.see("1 to 100 of 150")


@test
def the_address_keeps_search_and_order_of_topics(place):
    for name, count in (("alpha", 2), ("beta", 5), ("gamma", 1)):
        place.add_lines(name, count)
    with page(place, path="#/?q=A&sort=ready") as browser:
        browser.see("1 to 3 of 3")
        eventually(lambda: rows(browser) == ["beta", "alpha", "gamma"],
                   "the most ready first")
        expect("A", value(browser, "#search"))
        browser.type("#search", "am")
        eventually(lambda: rows(browser) == ["gamma"], "one is found")
        browser.click("a[href='#/t/gamma']")
        browser.see("Since it exists")
        browser.press("u")
        eventually(lambda: rows(browser) == ["gamma"], "as it was left")
        reload(browser)
        eventually(lambda: rows(browser) == ["gamma"], "as it was")
        expect(["am", "ready"], [value(browser, "#search"),
                                 value(browser, ".bar select")])


@test
def the_sorted_column_is_told(place):
    for name, count in (("alpha", 2), ("beta", 5)):
        place.add_lines(name, count)

    def sorted_by():
        return browser.run(
            "return [...document.querySelectorAll('th[aria-sort]')].map((n) =>"
            " n.innerText + ' ' + n.getAttribute('aria-sort'))")
    with page(place) as browser:
        browser.see("alpha")
        expect(["Topic ▴ ascending"], sorted_by())
        browser.click("button[data-sort=topic]")
        eventually(lambda: rows(browser) == ["beta", "alpha"], "from Z")
        expect(["Topic ▾ descending"], sorted_by())
        browser.click("button[data-sort=ready]")
        eventually(lambda: sorted_by() == ["Jobs, by ready ▾ descending"],
                   "the largest first")
        browser.run("const n = document.querySelector('select');"
                    "n.value = 'dead';"
                    "n.dispatchEvent(new Event('change', {bubbles: true}))")
        eventually(lambda: sorted_by() == ["Jobs, by dead ▾ descending"],
                   "what it is sorted by")


@test
def a_filter_that_is_only_typed_is_not_in_force_and_says_so(place):
    place.add_lines("t", 30, '{"id":"j%d","delay":"1h","body":{"n":%d}}')
    with page(place, path="#/t/t/scheduled") as browser:
        browser.see("j0", "j29")
        browser.type("#where", ".body.n > 27")
        browser.see("All are shown. ▲ What you typed is not in force", "j0")
        browser.press("Enter")
        browser.see("Only where .body.n > 27")
        browser.lack("not in force")
        browser.type("#where", ".body.n > 28")
        browser.see("Only where .body.n > 27", "not in force", "j28")


@test
def a_dialog_with_a_mistake_stays_and_says_what_it_is(place):
    die(place, "t", ["no paper", "no paper", "cable"])
    with page(place, path="#/t/t/dead") as browser:
        browser.see("x0", "Why they died")
        browser.click_text("button", "Requeue …")
        browser.put("dialog input[name=since]", "2020-01-31T08:30:07")
        browser.type("dialog input[name=where]", '.id == "x1')
        browser.press("Enter")
        browser.see("where: syntax error", css="dialog [role=alert]")
        expect(['.id == "x1', "2020-01-31T08:30:07"],
               [value(browser, "dialog input[name=%s]" % name)
                for name in ("where", "since")])
        browser.type("dialog input[name=where]", '.id == "nobody"')
        browser.press("Enter")
        browser.see("No dead job matches.", css="dialog [role=alert]")
        browser.type("dialog input[name=where]", '.id == "x1"')
        browser.press("Enter")
        browser.see("Requeue 1 dead job?", "Topic\nt", "any reason",
                    "Died since\n2020-01-31 08:30:07",
                    'Only where\n.id == "x1"', "become ready now", css="dialog")
        browser.press("Escape")
        place.expect_stats("t", dead=3, ready=0)
        expect(1, len([line for line in browser.complaints()
                       if "status of 400" in line]))


@test
def groups_are_those_of_the_filter(place):
    die(place, "t", ["printer 7 has no paper", "printer 12 has no paper",
                     "cable"])
    with page(place, path="#/t/t/dead?where=.id!%3D%22x0%22") as browser:
        browser.see("Why they died that the filter takes")

        def groups():
            return sorted(text.split("\t")[1].strip() for text in
                          browser.texts("table tbody tr:has([data-do="
                                        "requeueGroup])"))
        expect(["1", "1"], groups())
        browser.click_text("button", "Show all")
        eventually(lambda: groups() == ["1", "2"], "all are counted")
        browser.lack("that the filter takes")
        browser.click("button[data-do=deleteGroup]")
        browser.see("Delete 2 dead jobs?", "printer # has no paper", "gone",
                    css="dialog")


@test
def the_focus_stays_while_rows_are_drawn_anew_and_move(place):
    place.add_lines("a", 3)
    place.add_lines("b", 1)
    with page(place, path="#/?sort=ready") as browser:
        eventually(lambda: rows(browser) == ["a", "b"], "the order")
        browser.run("document.querySelector(\"a[href='#/t/b']\").focus()")
        place.add_lines("b", 5, '{"id":"more%d"}')
        eventually(lambda: rows(browser) == ["b", "a"], "it moved")
        expect("b", browser.focused())
        browser.press("Enter")
        browser.see("Since it exists")
        expect("main", browser.run("return document.activeElement.id"))
        browser.press("u")
        eventually(lambda: rows(browser) == ["b", "a"], "the list")
        browser.press("j", "k", "Enter")
        browser.see("Since it exists")


@test
def what_did_not_change_is_not_read_aloud_again(place):
    place.add("t", "1")
    with page(place) as browser:
        browser.see("1 ready")
        browser.run(
            "window.changes = 0; window.asked = 0; for (const n of "
            "document.querySelectorAll('[role=status], [aria-live]'))"
            "new MutationObserver(() => changes++).observe(n, {subtree: true,"
            "childList: true, characterData: true});"
            "const old = window.fetch; window.fetch = (...a) => {"
            "asked++; return old(...a); }")
        eventually(lambda: browser.run("return asked") >= 4, "it was redrawn")
        expect(0, browser.run("return changes"))
        place.ok("server", "stop")
        browser.see("as of", css="#state")
        expect_true(browser.run("return changes") > 0, "it is told")


@test
def everything_that_can_be_used_has_a_name(place):
    die(place, "t", ["no paper", "cable"])
    place.work(place.echo("u"))
    with page(place) as browser:
        for path, word in PLACES:
            go(browser, path)
            browser.see(word)
            expect([], browser.run(
                "return [...document.querySelectorAll('a, button, input, "
                "select, th')].filter((n) => !(n.getAttribute('aria-label') ||"
                "n.textContent.trim() || (n.labels && n.labels.length)))"
                ".map((n) => n.outerHTML)"), path)


PLACES = [("#/", "Oldest ready"), ("#/t/t/dead", "Why they died"),
          ("#/t/t/options", "Nothing is stored"), ("#/j/t/x0", "The job"),
          ("#/workers", "pid"), ("#/nodes", "primary")]

# Texts whose contrast with what is behind them is below 4.5, with the ratio.
PALE = """
const pen = document.createElement('canvas').getContext('2d',
  {willReadFrequently: true});
const over = (below, colour, opacity) => {
  pen.clearRect(0, 0, 1, 1);
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
  const part = a / 255 * opacity;
  return [r, g, b].map((c, i) => c * part + below[i] * (1 - part));
};
const light = (colour) => colour.map((c) => c / 255)
  .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const found = new Set();
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const node = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || !node.checkVisibility() ||
      node.closest('noscript, dialog:not([open]), :disabled, .hidden-text'))
    continue;
  const line = [];
  for (let n = node; n; n = n.parentElement) line.unshift(n);
  let behind = [255, 255, 255], opacity = 1;
  for (const n of line) {
    const style = getComputedStyle(n);
    opacity *= Number(style.opacity);
    behind = over(behind, style.backgroundColor, opacity);
  }
  const text = over(behind, getComputedStyle(node).color, opacity);
  const [low, high] = [light(behind), light(text)].sort((a, b) => a - b);
  const ratio = (high + 0.05) / (low + 0.05);
  if (ratio < 4.5)
    found.add(`${ratio.toFixed(2)} ${walk.currentNode.data.trim()}`);
}
return [...found];
"""


@test
def texts_stand_out_in_both_schemes(place):
    die(place, "t", ["no paper", "cable"])
    place.ok("pause", "t")
    place.work(place.echo("u"))
    with page(place) as browser:
        for scheme in ("light", "dark"):
            browser.prefer(scheme, motion="reduce")
            for path, word in PLACES:
                go(browser, path)
                browser.see(word)
                expect([], browser.run(PALE), "%s %s" % (scheme, path))
            go(browser, "#/t/t/dead")
            browser.click_text("button", "Delete …")
            browser.see("Why they died", css="dialog")
            expect([], browser.run(PALE), scheme + " dialog")
            browser.press("Escape")


@test
def nothing_stands_beside_a_window_and_nothing_jumps(place):
    die(place, "order.close", ["a reason that is quite long, " * 5, "cable"])
    with page(place, path="#/t/order.close/dead") as browser:
        browser.see("Why they died", "x1")

        def top():
            return browser.run("return document.querySelector('table.cards')"
                               ".getBoundingClientRect().top + scrollY")
        for width in (1280, 1024):
            browser.resize(width, 900)
            before = top()
            browser.click("input[value=x1]")
            browser.see("Delete 1 chosen")
            expect(before, top(), "at %d px" % width)
            browser.click("input[value=x1]")
            browser.lack("chosen")
        for width in (1280, 640, 390, 320):  # 640: half of it, at 200 %
            browser.resize(width, 900)
            for path, word in PLACES:
                go(browser, path.replace("/t/t", "/t/order.close")
                   .replace("/j/t", "/j/order.close"))
                browser.see("No worker" if "workers" in path else word)
                expect(True, browser.run(
                    "return document.documentElement.scrollWidth <= innerWidth"
                ), "%s at %d px" % (path, width))


@test
def a_report_of_weir_bench_is_read_in_narrow_windows_and_on_paper(place):
    report = place.path("report.html")
    subprocess.run([os.path.join(BUILD, "weir-bench"), "floor", "--jobs", "200",
                    "--report", report], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, env={
                       **{name: value for name, value in place.env.items()
                          if not name.startswith("WEIR_")},
                       "TMPDIR": place.dir})
    with browse(width=390) as browser:
        browser.open("file://" + report)
        browser.see("weir-bench floor", css="body")
        for width, media in ((390, "screen"), (1280, "screen"),
                             (1280, "print")):
            browser.resize(width, 900)
            for scheme in ("light", "dark"):
                browser.cdp("Emulation.setEmulatedMedia", media=media,
                            features=[{"name": "prefers-color-scheme",
                                       "value": scheme}])
                expect(True, browser.run("return document.documentElement"
                                         ".scrollWidth <= innerWidth"))
                expect([], browser.run(PALE), "%s %s" % (media, scheme))
        expect([], browser.complaints())


# Controls that lie outside of what cuts them off, where nothing scrolls there.
CUT = """
const cut = (n) => {
  const at = n.getBoundingClientRect();
  for (let p = n.parentElement; p; p = p.parentElement) {
    const style = getComputedStyle(p), box = p.getBoundingClientRect();
    if (style.clipPath !== 'none') return false;
    if (p.tagName !== 'DIALOG' && /auto|scroll/.test(style.overflowX))
      return false;
    if ((p.tagName === 'DIALOG' || style.overflowX !== 'visible') &&
        (at.right > box.right + 1 || at.left < box.left - 1)) return true;
  }
  return at.right > innerWidth + 1;
};
return [...document.querySelectorAll('a, button, input, select, textarea')]
  .filter((n) => n.offsetParent && cut(n))
  .map((n) => n.textContent.trim() || n.outerHTML);
"""


@test
def every_control_can_be_reached_at_every_width(place):
    die(place, "order.close", ["a reason of ordinary length %d that says what "
                               "went wrong and where it did" % i
                               for i in range(3)])
    place.add("order.close", "1")
    place.add_lines("a.topic.whose.name.is.as.long.as.others", 2000)
    with page(place, path="#/") as browser:
        for width in (1280, 1100, 900, 640, 390):
            browser.resize(width, 900)
            for path, word in PLACES:
                go(browser, path.replace("/t/t", "/t/order.close")
                   .replace("/j/t", "/j/order.close"))
                browser.see("No worker" if "workers" in path else word)
                expect([], browser.run(CUT), "%s at %d px" % (path, width))
            go(browser, "#/t/order.close/dead")
            for name in ("Requeue …", "Delete …"):
                browser.click_text("button", name)
                browser.see("Cancel", css="dialog")
                expect([], browser.run(CUT), "%s at %d px" % (name, width))
                browser.press("Escape")
                browser.lack("Cancel")
