# SPDX-License-Identifier: MIT
"""The manual pages say what the programs say: every command with every option,
and nothing that is no more."""

import os
import re

from e2e import BUILD, ROOT, WEIR, expect, expect_in, expect_true, run, test

BENCH = os.path.join(os.path.dirname(WEIR), "weir-bench")


def page(name):
    with open(os.path.join(os.path.abspath(BUILD), "man", name),
              encoding="utf-8") as file:
        return file.read()


def help_of(program, *words):
    return run([program, *words, "--help"], check=True).stdout


def flags_of(text):
    return set(re.findall(r"^  --([a-z-]+)", text, re.M))


def commands_of(text):
    """Names in the list of commands, or cases, that --help prints."""
    listed = re.search(r"^(?:commands|cases) .*\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  ([a-z]+(?: [a-z]+)?)  ", listed.group(1), re.M)


def items_of(text):
    """{command: the flags in its item of the page}"""
    items = {}
    for item in re.split(r"^\.(?=It |El|Sh )", text, flags=re.M):
        match = re.match(r"It Cm ([a-z]+(?: [a-z]+)?)(?: Ar| Op|$)", item,
                         re.M)
        if match:
            items[match.group(1)] = set(re.findall(r"Fl Fl ([a-z-]+)", item))
    return items


def common_of(text):
    """Those in the page's list of options."""
    return {flag for line in re.findall(r"^\.It Fl Fl .*", text, re.M)
            for flag in re.findall(r"Fl Fl ([a-z-]+)", line)}


def compare(program, text):
    common = flags_of(help_of(program))
    expect(sorted(common), sorted(common_of(text)))
    commands = commands_of(help_of(program))
    items = items_of(text)
    expect_true(len(commands) > 7, "commands: %r" % commands)
    expect(sorted(commands), sorted(items))
    for command in commands:
        flags = flags_of(help_of(program, *command.split()))
        expect(sorted(flags - common), sorted(items[command]), command)


@test
def weir_has_every_command_and_option_of_its_help(_):
    compare(WEIR, page("weir.1"))


@test
def weir_bench_has_every_case_and_option_of_its_help(_):
    compare(BENCH, page("weir-bench.1"))


@test
def weir_conf_has_every_option_that_no_help_lists(_):
    with open(os.path.join(ROOT, "docs", "configuration.md"),
              encoding="utf-8") as file:
        rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", file.read(), re.M)
    expect_true(len(rows) > 40, "rows: %r" % rows)
    listed = re.search(r"^options of topics.*\n((?:  .*\n)+)",
                       help_of(WEIR, "topic", "set"), re.M).group(1)
    listed = set(re.findall(r"^  (\w+)", listed, re.M))
    text = page("weir.conf.5")
    text = text[text.index(".Ss Sections"):text.index(".El")]
    lists = re.findall(r"^\.Ic (?!weir )([a-z_ ,;]+)$", text, re.M)
    named = {name for line in lists for name in re.findall(r"[a-z_]+", line)}
    expect(sorted({option for _, option in rows} - listed),
           sorted(named - listed))
    for section in {section for section, _ in rows}:
        expect_in(".It Cm " + section, text)
