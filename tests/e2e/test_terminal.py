# SPDX-License-Identifier: MIT
"""What lies on the server, in a plugin or in a file's name may be anything:
nothing of it tells a terminal what to do or begins a line of its own, and JSON
keeps it all."""

import json
import os
import shutil

from e2e import BUILD, WEIR, expect, expect_in, expect_true, run, test

# ESC, C1 as a character and as a byte, DEL, bidirectional, ends of lines.
CHARACTERS = "a\x1b[31m\x7f\u009b31m\u202eb\u2066\u200f\u061c\u2028c\nweir: d"
SHOWN = (r"a\x1b[31m\x7f\u009b31m\u202eb\u2066\u200f\u061c\u2028c\nweir: d")
HOSTILE = CHARACTERS.encode() + b"\x9b31m\xff"
HIDDEN = ([chr(n) for n in range(0x20) if n != 0x0a] + ["\x7f"]
          + [chr(n) for n in range(0x80, 0xa0)]
          + list("\u061c\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e"
                 "\u2066\u2067\u2068\u2069"))


def send(place, *words):
    redis = place.redis()
    redis.socket.sendall(
        b"*%d\r\n" % len(words) + b"".join(
            b"$%d\r\n%s\r\n" % (len(word), word)
            for word in (w if isinstance(w, bytes) else w.encode()
                         for w in words)))
    answer = redis.line()
    redis.close()
    expect_true(answer[:1] != "-", answer)


def weir(place, *args):
    """What a terminal gets, which must be text without anything hidden."""
    done = run([WEIR, *args], env=place.env, text=False)
    for stream in (done.stdout, done.stderr):
        text = stream.decode()  # raises where it is no UTF-8
        for character in HIDDEN:
            expect_true(character not in text,
                        "%r shows %r: %r" % (args, character, text))
        expect_true("\nweir: d" not in text, "a forged line: %r" % text)
    return done.stdout.decode(), done.stderr.decode()


@test
def what_a_topic_stores_is_shown_as_escapes(place):
    place.add("t", "1")
    send(place, "HSET", "weir:{t}:options", "retry", HOSTILE, HOSTILE, "1")
    out, _ = weir(place, "topic", "show", "t")
    expect_in(SHOWN, out)
    for kind in ("\x1b[31m", "\u009b31m", HOSTILE):
        send(place, "HSET", "weir:{t}:meta", "kind", kind)
        for args in (("stats",), ("stats", "t"), ("topic", "show", "t"),
                     ("list", "t"), ("add", "t"),
                     ("run", "--handle", "t=echo", "--until-empty")):
            for flags in ((), ("--json",)):
                weir(place, *args, *flags)


@test
def names_of_topics_are_shown_as_escapes(place):
    place.add("t", "1")
    send(place, "SADD", "weir:topics", HOSTILE)
    for args in (("topic", "list"), ("topic", "list", "--json"), ("stats",),
                 ("stats", "--json")):
        weir(place, *args)


@test
def what_a_job_brings_is_shown_as_escapes_and_json_keeps_it(place):
    body = {CHARACTERS: CHARACTERS}
    place.ok("add", "t", "--id", "1", "--body-file", "-",
             stdin=json.dumps(body))
    for args in (("show", "t", "1"), ("show", "t", "1", "--json"),
                 ("list", "t"), ("list", "t", "--json")):
        out, _ = weir(place, *args)
        if args[0] == "show":
            expect_in(r"\u009b31m\u202eb", out)
    expect(body, place.ok("show", "t", "1")["body"])
    out, _ = weir(place, "run", "--handle", "t=echo", "--until-empty")
    expect_in(r"\u009b31m\u202eb", out)


@test
def what_a_handler_says_is_shown_as_escapes(place):
    place.add("t", "1", "--retry", "none")
    place.env["SAYS"] = CHARACTERS
    _, err = weir(place, "run", "--handle", "t=exec?command=/bin/sh%20-c%20"
                  "'printf%20%25s%20\"%24SAYS\"%20>%262;%20exit%201'"
                  "&env=SAYS", "--until-empty")
    expect_in("??31m", err)  # exec's own, a mark for each byte
    for args in (("dead", "list", "t"), ("dead", "list", "t", "--json"),
                 ("show", "t", "1")):
        weir(place, *args)


@test
def the_name_of_a_file_is_shown_as_escapes(place):
    folder = place.path("f\x1b[31m\u009b31m\u202e")
    os.mkdir(folder)
    shutil.copy(os.path.join(BUILD, "plugins", "echo.so"), folder + "/echo.so")
    config = folder + "/weir.conf"
    place.env["WEIR_PLUGIN_PATH"] = folder
    for args in (("plugin", "info", "echo"), ("doctor",),
                 ("plugin", "info", "echo", "--json"),
                 ("check", "--config", config),
                 ("plugin", "info", folder + "/none.so")):
        out, err = weir(place, *args)
        expect_in("u009b31m", out + err)
    with open(config, "w") as file:
        file.write("topic t { handler = echo }\n")
    out, _ = weir(place, "check", "--config", config)
    expect_in(r"f\x1b[31m\u009b31m\u202e/weir.conf: nothing wrong", out)


@test
def a_bad_line_of_jobs_is_told_as_escapes(place):
    lines = place.path("lines")
    with open(lines, "wb") as file:
        file.write(b'{"id":"' + HOSTILE + b'"}\n{"' + HOSTILE + b'":1}\n')
    weir(place, "add", "t", "--jsonl", lines)
