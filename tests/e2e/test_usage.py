# SPDX-License-Identifier: MIT
"""Mistakes on the command line: exit code 2 and one sentence that names the
thing, with no server looked for or started."""

import os

from e2e import TEST_PLUGINS, expect, expect_in, expect_true, test

COMMANDS = ["run", "check", "doctor", "add", "show", "list", "delete",
            "reschedule", "pause", "resume", "purge", "stats", "topic list",
            "topics", "topic show", "topic set", "dead list", "dead requeue",
            "dead purge", "plugin list", "plugin info", "plugin try",
            "plugin new", "server status", "server stop", "topic delete",
            "export", "import", "workers", "web", "help"]


def refused(place, *args, words=(), stdin=None):
    place.weir(*args, stdin=stdin).expect_complaint(2, *words)
    expect_true(not os.path.exists(place.data), "no server was started")


@test
def the_version_is_printed(place):
    for args in (["--version"], ["-v"], ["list", "t", "-v"],
                 ["dead", "list", "-v"]):
        expect("weir 0.1.0\n", place.weir(*args).out, args)


@test
def help_lists_every_command(place):
    result = place.weir("--help")
    expect(0, result.code)
    for command in COMMANDS:
        expect_in("  %s " % command, result.out)


@test
def help_of_every_command_has_options_an_example_and_exit_codes(place):
    for command in COMMANDS:
        result = place.weir(*command.split(), "--help")
        expect(0, result.code, command)
        expect("", result.err)
        expect_in("usage: weir " + command, result.out)
        for part in ("options of every command:", "--log-level", "example:",
                     "exit codes:"):
            expect_in(part, result.out)
        expect_true(max(map(len, result.out.splitlines())) <= 80,
                    "help of %s is at most 80 columns wide" % command)


@test
def help_tells_what_the_option_tells(place):
    for words in ([], ["list"], ["dead"], ["dead", "list"], ["help"]):
        option, verb = place.weir(*words, "--help"), place.weir("help", *words)
        expect([0, option.out, ""], [verb.code, verb.out, verb.err], words)
    refused(place, "help", "lsit", words=['"lsit"', "did you mean list?"])
    refused(place, "help", "dead", "lst", words=["did you mean dead list?"])
    refused(place, "help", "list", "t", words=['"list t"'])


@test
def a_command_is_needed(place):
    refused(place, words=["command", "weir --help"])


@test
def an_unknown_command_suggests_the_nearest(place):
    refused(place, "shwo", "t", "1", words=["shwo", "show"])
    refused(place, "dead", "lst", "t", words=["dead lst", "dead list"])
    refused(place, "xylophone", words=["xylophone", "weir --help"])


@test
def a_group_alone_is_refused(place):
    refused(place, "server", words=["server needs a command"])


@test
def an_option_that_is_given_twice_is_refused(place):
    for args, name in (
            (["list", "t", "--where", ".a", "--where", ".b"], "where"),
            (["delete", "t", "--where", ".a", "--state", "ready", "--where",
              ".b"], "where"),
            (["list", "t", "--state", "ready", "--state=dead"], "state"),
            (["dead", "list", "t", "--reason", "a", "--reason", "b"],
             "reason"),
            (["add", "t", "--body", "1", "--body", "2"], "body"),
            (["add", "t", "--header", "a=b", "--id", "1", "--header", "c=d",
              "--id", "1"], "id"),
            (["run", "--handle", "t=echo", "--handle", "u=echo", "--lease",
              "1s", "--lease", "2s"], "lease"),
            (["plugin", "try", "echo", "--option", "a=b", "--option", "c=d",
              "--timeout", "1s", "--timeout", "2s"], "timeout"),
            (["stats", "--data", "/tmp/a", "--data", "/tmp/b"], "data"),
            (["--log-level", "info", "--log-level", "warn", "stats"],
             "log-level")):
        refused(place, *args,
                words=["option --%s is given twice; give it once" % name])


@test
def a_switch_may_be_given_twice_and_headers_often(place):
    result = place.weir("add", "t", "--json", "--header", "a=b", "--json",
                        "--header", "c=d", "--id", "1")
    expect({"topic": "t", "id": "1"}, result.json)
    expect({"a": "b", "c": "d"}, place.ok("show", "t", "1")["headers"])


@test
def an_unknown_option_suggests_the_nearest(place):
    refused(place, "add", "t", "--dealy", "3s", words=["--dealy", "--delay"])
    refused(place, "add", "t", "--quux", words=["--quux", "weir add --help"])
    refused(place, "--jsno", "stats", words=["--jsno", "--json"])
    refused(place, "stats", "-x", words=["-x"])


@test
def an_option_without_its_value_is_refused(place):
    refused(place, "add", "t", "--id", words=["--id needs a value"])
    refused(place, "stats", "--json=1", words=["--json takes no value"])


@test
def missing_and_surplus_operands_are_refused(place):
    refused(place, "show", "t", words=["TOPIC ID"])
    refused(place, "show", "t", "1", "2", words=["\"2\""])


@test
def a_duration_without_unit_is_refused(place):
    refused(place, "add", "t", "--delay", "15", words=["--delay", "\"15\""])
    refused(place, "add", "t", "--ttl", "15", words=["--ttl", "\"15\""])
    refused(place, "run", "--handle", "t=echo", "--lease", "5",
            words=["--lease", "\"5\""])


@test
def an_id_with_a_blank_is_refused(place):
    refused(place, "add", "t", "--id", "a b", words=["id", "a b"])
    refused(place, "add", "t", "--id", "", words=["id"])
    refused(place, "add", "t", "--id", "@mine", words=["@"])
    refused(place, "add", "t", "--id", "x" * 129, words=["128"])
    refused(place, "show", "t", "a b", words=["id", "a b"])


@test
def a_wrong_topic_is_refused(place):
    refused(place, "add", "two words", words=["topic", "two words"])
    refused(place, "add", "t" * 41, words=["40"])
    refused(place, "stats", "a/b", words=["topic", "a/b"])


@test
def broken_json_is_refused_with_its_position(place):
    refused(place, "add", "t", "--body", '{"a":', words=["--body", "byte"])
    refused(place, "add", "t", "--body", '{"a":1} x',
            words=["--body", "byte 9"])
    refused(place, "add", "t", "--body", "", words=["--body"])
    refused(place, "add", "t", "--body", "[18446744073709551616]",
            words=["--body"])
    refused(place, "add", "t", "--body", "[1e999]", words=["--body"])
    refused(place, "add", "t", "--body-file", "-", stdin="[1,",
            words=["--body-file", "byte"])


@test
def nesting_beyond_32_levels_is_refused(place):
    refused(place, "add", "t", "--body", "[" * 33 + "]" * 33,
            words=["--body", "32"])


@test
def a_body_that_no_topic_takes_is_refused_with_its_size(place):
    place.write("big", '"%s"' % ("x" * 2**24))
    refused(place, "add", "t", "--body-file", place.path("big"),
            words=["16777221 bytes", "max_body can be (16MiB)"])


@test
def a_body_beyond_what_its_topic_takes_is_refused_with_its_size(place):
    place.write("big", '"%s"' % ("x" * 2**20))
    add = ("add", "t", "--body-file", place.path("big"))
    place.weir(*add).expect_complaint(
        2, "1048581 bytes", 'max_body of topic "t" (1MiB)', "weir topic set")
    place.ok("topic", "set", "t", "max_body=1048581")
    place.ok(*add)
    place.ok("topic", "set", "t", "max_body=1048580")
    place.weir(*add).expect_complaint(2, 'max_body of topic "t" (1048580)')


@test
def a_missing_body_file_is_named(place):
    refused(place, "add", "t", "--body-file", "/no/such/file",
            words=["/no/such/file", "No such file"])


@test
def options_that_exclude_each_other_are_refused(place):
    refused(place, "add", "t", "--delay", "1s", "--at", "2026-01-01T00:00:00Z",
            words=["--delay", "--at"])
    refused(place, "add", "t", "--body", "1", "--body-file", "-",
            words=["--body", "--body-file"])


@test
def a_wrong_point_in_time_is_refused(place):
    refused(place, "add", "t", "--at", "2026-02-30T00:00:00Z",
            words=["--at", "2026-02-30"])


@test
def a_wrong_ladder_is_refused_with_its_step(place):
    refused(place, "add", "t", "--retry", "15s 3x", words=["step 2", "3x"])
    refused(place, "run", "--handle", "t=echo", "--retry", "15",
            words=["--retry", "15"])


@test
def numbers_out_of_bounds_are_refused(place):
    for flag, value in (("--concurrency", "0"), ("--concurrency", "100001"),
                        ("--prefetch", "100001"), ("--prefetch", "some"),
                        ("--retry-jitter", "51"), ("--max-dead", "0"),
                        ("--lease", "299ms"), ("--lease", "61m"),
                        ("--concurrency", "99999999999999999999")):
        refused(place, "run", "--handle", "t=echo", flag, value,
                words=[flag, value])


@test
def a_wrong_log_level_is_refused(place):
    refused(place, "stats", "--log-level", "loud", words=["loud", "debug"])


@test
def a_wrong_address_is_refused(place):
    refused(place, "stats", "--redis", "http://here", words=["--redis"])


@test
def the_password_of_an_address_is_never_shown(place):
    result = place.weir("stats", "--redis", "redis://u:s3cret@127.0.0.1:99999")
    expect(2, result.code)
    expect_true("s3cret" not in result.err, "no password in " + result.err)


@test
def a_worker_needs_a_handle(place):
    refused(place, "run", words=["--handle"])
    refused(place, "run", "--handle", "t", words=["\"t\"", "TOPIC=PLUGIN"])


@test
def a_topic_has_one_handler(place):
    refused(place, "run", "--handle", "t=echo", "--handle", "t=flaky",
            words=["\"t\"", "twice"])


@test
def a_missing_plugin_is_named_with_the_places_looked_at(place):
    refused(place, "run", "--handle", "t=nope",
            words=["\"nope\"", TEST_PLUGINS, "WEIR_PLUGIN_PATH"])
    refused(place, "run", "--handle", "t=./nope.so", words=["./nope.so"])
    refused(place, "plugin", "info", "nope.so", words=["nope.so"])


@test
def a_plugin_for_another_abi_is_refused(place):
    wrong = os.path.join(TEST_PLUGINS, "wrong_abi.so")
    refused(place, "run", "--handle", "t=" + wrong, words=[wrong, "ABI"])
    refused(place, "plugin", "info", wrong, words=[wrong, "ABI"])


@test
def a_file_that_is_no_plugin_is_refused(place):
    place.write("text.so", "hello")
    refused(place, "run", "--handle", "t=" + place.path("text.so"),
            words=["text.so"])


@test
def plugin_info_describes_options(place):
    info = place.ok("plugin", "info", "trace")
    expect("trace", info["name"])
    expect(1, info["abi"])
    expect(["file", "fail", "verdict", "ms", "gate"],
           [o["name"] for o in info["options"]])
    expect([True, False, False, False, False],
           [o["required"] for o in info["options"]])
    result = place.weir("plugin", "info", os.path.join(TEST_PLUGINS,
                                                       "trace.so"))
    expect_in("retry|fail|snooze|hold", result.out)
