# SPDX-License-Identifier: MIT
"""Every mistake that people make at the command line or in a configuration
file: what was written, the one sentence on stderr, the exit code.

{names in braces} are filled in; sentences stand here without "weir: "."""

import os
import re
import shlex

from e2e import BUILD, TEST_PLUGINS, expect, expect_true, test

# Wrong usage, exit code 2: found before any server is looked for.
USAGE = [
    ("",
     "a command is missing; see weir --help"),
    ("xylophone",
     'unknown command "xylophone"; see weir --help'),
    ("shwo t 1",
     'unknown command "shwo"; did you mean show?'),
    ("dead",
     "dead needs a command; see weir dead --help"),
    ("dead lst t",
     'unknown command "dead lst"; did you mean dead list?'),
    ("topic --json",
     "topic needs a command; see weir topic --help"),
    ("--jsno stats",
     "unknown option --jsno; did you mean --json?"),
    ("--log-level",
     "option --log-level needs a value"),
    ("--log-level loud stats",
     '--log-level: "loud" is none of debug, info, warn, error'),
    ("stats -x",
     "unknown option -x; see weir stats --help"),
    ("stats --json=1",
     "option --json takes no value"),
    ("stats --data ''",
     "--data: a directory cannot have an empty name"),
    ("stats --redis here",
     "--redis: must begin with redis:// or unix://, or with rediss://, "
     "redis+sentinel:// or rediss+sentinel://"),
    ("stats --redis redis://127.0.0.1:99999",
     "--redis: the port must be a number up to 65535"),
    ("stats --redis ''",
     "--redis: must begin with redis:// or unix://, or with rediss://, "
     "redis+sentinel:// or rediss+sentinel://"),
    ("stats a/b",
     'topic "a/b" is not allowed at byte 2: use letters, digits and . _ : '
     "-"),
    ("stats t u/v",
     'topic "u/v" is not allowed at byte 2: use letters, digits and . _ : '
     "-"),
    ("stats --watsh",
     "unknown option --watsh; did you mean --watch?"),
    ("add",
     "add needs TOPIC; see weir add --help"),
    ("add t u",
     'add does not know what to do with "u"; see weir add --help'),
    ("add ''",
     "topic is empty"),
    ("add 'two words'",
     'topic "two words" is not allowed at byte 4: use letters, digits and '
     ". _ : -"),
    ("add {topic41}",
     'topic "{topic41}" has 41 bytes; at most 40 are allowed'),
    ("add t --dealy 3s",
     "unknown option --dealy; did you mean --delay?"),
    ("add t --id",
     "option --id needs a value"),
    ("add t --id ''",
     "id is empty"),
    ("add t --id 'a b'",
     'id "a b" is not allowed at byte 2: use printable ASCII without '
     "blanks and braces"),
    ("add t --id '@mine'",
     "an id does not begin with @: weir's own ids do"),
    ("add t --id '{{a}}'",
     'id "{{a}}" is not allowed at byte 1: use printable ASCII without '
     "blanks and braces"),
    ("add t --id {id129}",
     'id "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..." has 129 '
     "bytes; at most 128 are allowed"),
    ("add t --delay 15",
     '--delay: "15" is not a duration: write digits and one of ms, s, m, '
     "h, d, w, for example 15s or 1h30m"),
    ("add t --delay -1s",
     '--delay: "-1s" is not a duration: write digits and one of ms, s, m, '
     "h, d, w, for example 15s or 1h30m"),
    ("add t --delay 3651d",
     '--delay: duration "3651d" is longer than 3650d'),
    ("add t --delay 1.5s",
     '--delay: "1.5s" is not a duration: write digits and one of ms, s, m, '
     "h, d, w, for example 15s or 1h30m"),
    ("add t --delay ''",
     '--delay: "" is not a duration: write digits and one of ms, s, m, h, '
     "d, w, for example 15s or 1h30m"),
    ("add t --at tomorrow",
     '--at: "tomorrow" is not a time; write it like 2026-01-31T08:30:00Z '
     "or 2026-01-31T08:30:00.250+01:00"),
    ("add t --at 2026-02-30T00:00:00Z",
     '--at: "2026-02-30T00:00:00Z" is not a time; write it like '
     "2026-01-31T08:30:00Z or 2026-01-31T08:30:00.250+01:00"),
    ("add t --delay 1s --at 2026-01-01T00:00:00Z",
     "--delay and --at exclude each other; give one"),
    ("add t --at 2999-01-01T00:00:00Z",
     "--at: 2999-01-01T00:00:00Z is too late; at most 2286-11-20T17:46:39Z "
     "is kept"),
    ("add t --body '{{'",
     "--body: unexpected end of data at byte 2"),
    ("add t --body ''",
     "--body: empty text"),
    ("add t --body '{{\"a\":1}} x'",
     "--body: unexpected character at byte 9"),
    ("add t --body '[18446744073709551616]'",
     "--body: integer beyond 64 bits at byte 2"),
    ("add t --body 1e999",
     "--body: 1e999 is not finite"),
    ("add t --body ''\"'\"'a'\"'\"''",
     "--body: unexpected character at byte 1"),
    ("add t --body 1 --body-file -",
     "--body and --body-file exclude each other; give one"),
    ("add t --body-file /no/such/file",
     "--body-file: cannot open /no/such/file: No such file or directory"),
    ("add t --body-file /",
     "--body-file: cannot read /: Is a directory"),
    ("add t --retry 15",
     '--retry: step 1: "15" is not a duration: write digits and one of ms, '
     "s, m, h, d, w, for example 15s or 1h30m"),
    ("add t --retry '15s 3x'",
     '--retry: step 2: "3x" is not a duration: write digits and one of ms, '
     "s, m, h, d, w, for example 15s or 1h30m"),
    ("add t --retry ...",
     '--retry: "..." has no step to repeat'),
    ("add t --retry ''",
     '--retry: retry ladder is empty: write "none" for no retries, or '
     "steps such as 15s 3m"),
    ("add t --ttl 0ms",
     "--ttl: 0ms is out of bounds; it takes 1ms to 3650d"),
    ("add t --ttl 15",
     '--ttl: "15" is not a duration: write digits and one of ms, s, m, h, '
     "d, w, for example 15s or 1h30m"),
    ("add t --url {url2049}",
     "--url: 2049 bytes are more than 2048"),
    ("add t --jsonl /no/such/file",
     "--jsonl: cannot open /no/such/file: No such file or directory"),
    ("add t --jsonl /",
     "--jsonl: / is a directory"),
    ("add t --jsonl - --id 1",
     '--jsonl and --id exclude each other; write "id" into each line'),
    ("add t --jsonl - --body-file F",
     '--jsonl and --body-file exclude each other; write "body" into each '
     "line"),
    ("add t --jsonl",
     "option --jsonl needs a value"),
    ("show t",
     "show needs TOPIC ID; see weir show --help"),
    ("show t 1 2",
     'show does not know what to do with "2"; see weir show --help'),
    ("show t 'a b'",
     'id "a b" is not allowed at byte 2: use printable ASCII without '
     "blanks and braces"),
    ("list",
     "list needs TOPIC; see weir list --help"),
    ("list t --state done",
     '--state: "done" is none of scheduled, ready, running, dead'),
    ("list t --limit 0",
     "--limit: 0 is out of bounds; it takes 1 to 1000000000"),
    ("list t --limit many",
     '--limit: "many" is not a whole number; it takes 1 to 1000000000'),
    ("list t --limit 99999999999999999999",
     "--limit: 99999999999999999999 is out of bounds; it takes 1 to "
     "1000000000"),
    ("delete",
     "delete needs TOPIC; see weir delete --help"),
    ("delete t",
     "delete needs ids, or a condition such as --where; see weir delete "
     "--help"),
    ("reschedule t 1",
     "reschedule needs --delay D or --at RFC3339; see weir reschedule "
     "--help"),
    ("reschedule t 1 --delay 1",
     '--delay: "1" is not a duration: write digits and one of ms, s, m, h, '
     "d, w, for example 15s or 1h30m"),
    ("reschedule t 1 --delay 1s --at 2033-05-18T03:33:20Z",
     "--delay and --at exclude each other; give one"),
    ("reschedule t --delay 1s",
     "reschedule needs ids, or a condition such as --where; see weir "
     "reschedule --help"),
    ("pause",
     "pause needs TOPIC; see weir pause --help"),
    ("resume 'a b'",
     'topic "a b" is not allowed at byte 2: use letters, digits and . _ : '
     "-"),
    ("purge",
     "purge needs TOPIC; see weir purge --help"),
    ("purge t --yse",
     "unknown option --yse; did you mean --yes?"),
    ("topic set t",
     "topic set needs TOPIC OPTION=VALUE...; see weir topic set --help"),
    ("topic set t retry",
     'topic set: "retry" has no =: write option=value'),
    ("topic set t rety=1s",
     'topic set: a topic has no option "rety": write retry'),
    ("topic set t handler=echo",
     'topic set: a topic has no option "handler": docs/configuration.md has '
     "all of them"),
    ("topic set t retry=1",
     'topic set: retry ladder, step 1: "1" is not a duration: write digits '
     "and one of ms, s, m, h, d, w, for example 15s or 1h30m"),
    ("topic set t concurrency=0",
     'topic set: concurrency: "0" is out of bounds: write 1 to 100000'),
    ("topic set t timeout=30",
     'topic set: timeout: "30" has no unit (ms, s, m, h, d, w): write 10ms to '
     "7d"),
    ("topic set t kind=heap",
     'topic set: kind: "heap" is not a kind: write delay, list, '
     "sync, concurrent, stream or bounded"),
    ("topic set t on_dead=a/b",
     'topic set: on_dead: topic "a/b" is not allowed at byte 2: use '
     "letters, digits and . _ : -"),
    ("topic set t on_dead=t",
     'topic set: on_dead: "t" is this topic itself: write another one'),
    ("topic set t colour=red",
     'topic set: a topic has no option "colour": docs/configuration.md has '
     "all of them"),
    ("topic set t =red",
     'topic set: a topic has no option "": docs/configuration.md has all of '
     "them"),
    ("dead requeue t",
     "dead requeue needs the id of a dead job, a condition such as --where, "
     "or --all"),
    ("dead purge t",
     "dead purge needs the id of a dead job, a condition such as --where, or "
     "--all"),
    ("dead requeue t 1 --all",
     "dead requeue: an id and --all exclude each other; give one"),
    ("dead purge t 'a b'",
     'id "a b" is not allowed at byte 2: use printable ASCII without '
     "blanks and braces"),
    ("run",
     "run needs --handle TOPIC=PLUGIN or --config F; see weir run --help"),
    ("run t=echo",
     'run does not know what to do with "t=echo"; see weir run --help'),
    ("run --handle t",
     '--handle: "t" has no =; write TOPIC=PLUGIN'),
    ("run --handle t=",
     '--handle: "t=" names no plugin; write TOPIC=PLUGIN'),
    ("run --handle 'a b=echo'",
     'topic "a b" is not allowed at byte 2: use letters, digits and . _ : '
     "-"),
    ("run --handle t=echo --handle t=flaky",
     '--handle: topic "t" is given twice; a topic has one handler'),
    ("run --handle t=nope",
     'there is no plugin "nope": no nope.so in {tests}, {build}, '
     "{installed}; set WEIR_PLUGIN_PATH, or give a path with a slash"),
    ("run --handle t=./nope.so",
     "plugin cannot be loaded: ./nope.so: cannot open shared object file: "
     "No such file or directory"),
    ("run --handle 't=echo?file'",
     '--handle: "file" is not an option; write '
     "TOPIC=PLUGIN?key=value&key=value"),
    ("run --handle 't=echo?file=%zz'",
     '--handle: "file=%zz" has a % that is not followed by two hexadecimal '
     "digits from 01 to ff; write %25 for a %"),
    ("run --handle 't=echo?file=a%00b'",
     '--handle: "file=a%00b" has a % that is not followed by two hexadecimal '
     "digits from 01 to ff; write %25 for a %"),
    ("run --handle 't=echo?colour=red'",
     't: plugin echo: unknown option "colour"; it knows: file'),
    ("run --handle 't=flaky?fail=x'",
     't: plugin flaky: option "fail" wants a whole number from 0 to '
     '1000000, got "x"'),
    ("run --handle 't=flaky?fail=-1'",
     't: plugin flaky: option "fail" wants a whole number from 0 to '
     '1000000, got "-1"'),
    ("run --handle 't=flaky?verdict=maybe'",
     't: plugin flaky: option "verdict" wants one of retry|fail|snooze, '
     'got "maybe"'),
    ("run --handle t=wrong_abi",
     "plugin {tests}/wrong_abi.so: built for plugin ABI 7, this weir has 1"),
    ("run --handle t=no_symbol",
     "plugin {tests}/no_symbol.so: not a weir plugin of ABI 1: it exports "
     "no weir_plugin_1"),
    ("run --handle t=echo --lease 5",
     '--lease: "5" has no unit (ms, s, m, h, d, w): write 300ms to 1h, or none'),
    ("run --handle t=echo --lease 299ms",
     '--lease: "299ms" is out of bounds: write 300ms to 1h, or none'),
    ("run --handle t=echo --concurrency 0",
     '--concurrency: "0" is out of bounds: write 1 to 100000'),
    ("run --handle t=echo --prefetch some",
     '--prefetch: "some" is not a number of decimal digits: write 0 to '
     "100000, or auto"),
    ("run --handle t=echo --retry-jitter 51",
     '--retry-jitter: "51" is out of bounds: write 0% to 50%'),
    ("run --handle t=echo --max-dead 0",
     '--max-dead: "0" is out of bounds: write 1 to 4294967295'),
    ("run --handle t=echo --retry 15",
     '--retry ladder, step 1: "15" is not a duration: write digits and one of ms, '
     "s, m, h, d, w, for example 15s or 1h30m"),
    ("run --config /no/such/file",
     "/no/such/file: cannot be read (No such file or directory): name a "
     "readable file"),
    ("check",
     "check needs --config F; see weir check --help"),
    ("check --config /no/such/file",
     "/no/such/file: cannot be read (No such file or directory): name a "
     "readable file"),
    ("check --config /",
     "/: cannot be read (Is a directory): name a readable file"),
    ("check F",
     'check does not know what to do with "F"; see weir check --help'),
    ("plugin info",
     "plugin info needs F.so; see weir plugin info --help"),
    ("plugin info nope.so",
     "plugin cannot be loaded: ./nope.so: cannot open shared object file: "
     "No such file or directory"),
    ("plugin info nope",
     'there is no plugin "nope": no nope.so in {tests}, {build}, '
     "{installed}; set WEIR_PLUGIN_PATH, or give a path with a slash"),
    ("server",
     "server needs a command; see weir server --help"),
    ("server status --redis redis://127.0.0.1",
     "weir server is about the private server, which --redis does not use; "
     "give --data DIR"),
    ("server stop now",
     'server stop does not know what to do with "now"; see weir server '
     "stop --help"),
]

# Mistakes in a file, exit code 2 of weir check and weir run: the file, and what
# is said behind its name.
FILES = [
    ('topic "t" { handler = echo',
     "1: the {{ of this line is not closed: write }} where its section or "
     "list ends"),
    ('topic "t" { handler = echo }\n}',
     "2: there is no {{ for this }}: remove it"),
    ('topics "t" { handler = echo }',
     '1: no section is called "topics": write topic'),
    ("topic { handler = echo }",
     '1: there is no name behind topic: write topic "NAME" {{ and its '
     "options and }}"),
    ('topic "a b" { handler = echo }',
     '1: topic "a b" is not allowed at byte 2: use letters, digits and . _ '
     ": -"),
    ('topic "t" {\n  handlr = echo\n}',
     '2: there is no option "handlr" here: write handler'),
    ('topic "t" {\n  handler echo\n}',
     "2: there is no = behind handler: write NAME = VALUE"),
    ('topic "t" {\n  handler = echo\n  handler = flaky\n}',
     "3: handler was given on line 2 already: write it once"),
    ('topic "t" { handler = echo }\n\ntopic "t" { handler = flaky }',
     "3: topic t began on line 1 already: write all of it there"),
    ('topic "t" {\n  retry = none\n}',
     '1: topic "t" has no handler: write handler = PLUGIN, or give '
     "--handle t=PLUGIN"),
    ('topic "t" {\n  handler = nope\n}',
     '2: handler: there is no plugin "nope": no nope.so in {tests}, '
     "{build}, {installed}; set WEIR_PLUGIN_PATH, or give a path with a "
     "slash"),
    ('topic "t" {\n  handler = ./nope.so\n}',
     "2: handler: plugin cannot be loaded: ./nope.so: cannot open shared "
     "object file: No such file or directory"),
    ('topic "t" {\n  handler = echo\n  options = "file"\n}',
     '3: options: "file" has no =: write key=value, as in "timeout=5s"'),
    ('topic "t" {\n  handler = echo\n  options = "colour=red"\n}',
     '3: options: plugin echo: unknown option "colour"; it knows: file'),
    ('topic "t" {\n  handler = flaky\n  options = { "fail=x" }\n}',
     '3: options: plugin flaky: option "fail" wants a whole number from 0 '
     'to 1000000, got "x"'),
    ('topic "t" {\n  handler = echo\n  timeout = 30\n}',
     '3: timeout: "30" has no unit (ms, s, m, h, d, w): write 10ms to 7d'),
    ('topic "t" {\n  handler = echo\n  lease = 1ms\n}',
     '3: lease: "1ms" is out of bounds: write 300ms to 1h, or none'),
    ('topic "t" {\n  handler = echo\n  concurrency = 0\n}',
     '3: concurrency: "0" is out of bounds: write 1 to 100000'),
    ('topic "t" {\n  handler = echo\n  concurrency = many\n}',
     '3: concurrency: "many" is not a number of decimal digits: write 1 to '
     "100000"),
    ('topic "t" {\n  handler = echo\n  retry = "15s 3x"\n}',
     '3: retry ladder, step 2: "3x" is not a duration: write digits and '
     "one of ms, s, m, h, d, w, for example 15s or 1h30m"),
    ('topic "t" {\n  handler = echo\n  retry_jitter = 51%\n}',
     '3: retry_jitter: "51%" is out of bounds: write 0% to 50%'),
    ('topic "t" {\n  handler = echo\n  kind = lisp\n}',
     '3: kind: "lisp" is not a kind: write delay, list, '
     "sync, concurrent, stream or bounded"),
    ('topic "t" {\n  handler = echo\n  kind = heap\n}',
     '3: kind: "heap" is not a kind: write delay, list, '
     "sync, concurrent, stream or bounded"),
    ('topic "t" {\n  handler = echo\n  on_dead = t\n}',
     '3: on_dead: "t" is this topic itself: write another one'),
    ('topic "t" {\n  handler = echo\n  max_body = 17MiB\n}',
     '3: max_body: "17MiB" is out of bounds: write 1 to 16MiB'),
    ('topic "t" { handler = "echo }\n',
     '1: a text is not closed: write " at its end, on the same line'),
    ('worker { log_level = loud }\ntopic "t" { handler = echo }',
     '1: log_level: "loud" is none of these: write one of '
     "debug|info|warn|error"),
    ('worker { name = "a b" }\ntopic "t" { handler = echo }',
     '1: name: "a b" does not name a worker: write 1 to 40 letters, digits '
     "and . _ -"),
    ('topic "da" { handler = echo  on_dead = db }\n'
     'topic "db" {\n  handler = echo\n  on_dead = da }',
     "1: on_dead: dead jobs would go round for ever, da -> db -> da: write "
     "none in one of these topics"),
    ('topic "l" { handler = echo  kind = list\n  on_retry = s }\n'
     'topic "s" { handler = echo  kind = sync }',
     '2: on_retry: topic "s" is of kind sync: name one of kind delay'),
    ('topic "d" { handler = echo  on_dead = b }\n'
     'topic "b" { handler = echo  kind = bounded }',
     '1: on_dead: topic "b" is of kind bounded: name one of kind delay'),
    ('topic "d" { handler = echo  kind = delay\n  lease = none }',
     "2: lease: a topic of kind delay needs one: only one of kind bounded may "
     "have none"),
    ('redis { url = "here" }\ntopic "t" { handler = echo }',
     "1: url: must begin with redis:// or unix://, or with rediss://, "
     "redis+sentinel:// or rediss+sentinel://"),
    ('redis { url = "${REDIS}" }\ntopic "t" { handler = echo }',
     '1: "${{" is not replaced here: write the value itself, or the text '
     "in single quotes"),
    ('redis { url = "redis://127.0.0.1" }\nredis { data = "/x" }\n'
     'topic "t" { handler = echo }',
     "2: section redis began on line 1 already: write all of it there"),
    ("",
     ' no topic: write topic "NAME" {{ handler = PLUGIN }}'),
    ("# nothing\n",
     ' no topic: write topic "NAME" {{ handler = PLUGIN }}'),
]

# What only the server can tell: line, exit code, sentence. In topic t job 1 is
# scheduled and job 2 dead.
ASKED = [
    ("show nope 1", 3, 'there is no topic "nope"'),
    ("show t 9", 3, 'there is no job "9" in topic "t"'),
    ("list nope", 3, 'there is no topic "nope"'),
    ("delete t 9", 3, 'there is no job "9" in topic "t"'),
    ("stats nope", 3, 'there is no topic "nope"'),
    ("reschedule t 9 --delay 1s", 3, 'there is no job "9" in topic "t"'),
    ("reschedule t 2 --delay 1s", 1,
     'job "2" in topic "t" is dead; only what is scheduled or ready can be '
     "given another time"),
    ("resume nope", 3, 'there is no topic "nope"'),
    ("purge t", 2,
     'purge would delete 2 jobs of topic "t"; give --yes to do so'),
    ("topic show nope", 3, 'there is no topic "nope"'),
    ("dead list nope", 3, 'there is no topic "nope"'),
    ("dead requeue t 1", 3, 'there is no dead job "1" in topic "t"'),
    ("dead purge t 9", 3, 'there is no dead job "9" in topic "t"'),
    ("dead purge nope --all", 3, 'there is no topic "nope"'),
    ("add t --id 1", 4,
     'a job "1" exists already in topic "t"; nothing was changed'),
    ("add t --id 2", 4,
     'a job "2" exists already in topic "t"; nothing was changed'),
    ("stats --redis unix://{dir}/no.sock", 5,
     "cannot reach redis at unix://{dir}/no.sock: No such file or directory; "
     "start it, or give --redis URL"),
    ("stats --redis redis://:%s@localhost:1/12" % (240 * "%41"), 5,
     "cannot reach redis at redis://localhost:1/12: 127.0.0.1: Connection "
     "refused; ::1: Connection refused; start it, or give --redis URL"),
    ("server stop --data {dir}/other", 3,
     "no private redis-server runs in {dir}/other"),
]


def installed():
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as file:
        return re.search(r"^WEIR_PLUGIN_DIR:\w+=(.*)$", file.read(),
                         re.M).group(1)


def names(place):
    return {"tests": TEST_PLUGINS, "dir": place.dir, "installed": installed(),
            "build": os.path.abspath(os.path.join(BUILD, "plugins")),
            "id129": "x" * 129, "url2049": "x" * 2049, "topic41": "t" * 41}


def check(place, line, code, sentence):
    result = place.weir(*shlex.split(line.format(**names(place))))
    expect([code, "", ["weir: " + sentence.format(**names(place))]],
           [result.code, result.out, result.sentences], line)


@test
def every_wrong_usage_is_one_sentence_and_exit_2(place):
    for line, sentence in USAGE:
        check(place, line, 2, sentence)
    expect_true(not os.path.exists(place.data), "no server was started")


@test
def every_mistake_in_a_file_is_one_sentence_with_its_line(place):
    path = place.path("weir.conf")
    for text, sentence in FILES:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        for command in ("check", "run"):
            result = place.weir(command, "--config", path)
            wanted = "weir: %s:%s" % (path, sentence.format(**names(place)))
            expect([2, "", [wanted]],
                   [result.code, result.out, result.sentences], text)
    expect_true(not os.path.exists(place.data), "no server was started")


@test
def every_refusal_of_the_server_is_one_sentence_and_its_exit_code(place):
    place.add("t", "2")
    place.weir("run", "--until-empty", "--handle",
               "t=flaky?fail=9&verdict=fail")
    place.add("t", "1", "--delay", "1h")
    for line, code, sentence in ASKED:
        check(place, line, code, sentence)
