# SPDX-License-Identifier: MIT
"""weir run --config and weir check --config: what the file says is done, and
flags beat the environment, which beats the file."""

import os
import shutil

from e2e import (BUILD, TEST_PLUGINS, eventually, expect, expect_in,
                 expect_true, stop_cleanly, test)

ECHO = os.path.abspath(os.path.join(BUILD, "plugins", "echo.so"))


def write(place, text, name="weir.conf"):
    return place.write(name, text.replace("DIR", place.dir))


def drain(place, config, *handlers, flags=()):
    return place.drain(*handlers, flags=("--config", config, *flags))


@test
def the_topics_of_a_file_are_served(place):
    config = write(place, """
topic "a" { handler = echo  options = { "file=DIR/out" } }
topic "b" { handler = echo  options = "file=DIR/out"  concurrency = 1 }
""")
    place.add("a", "1")
    place.add("b", "2")
    drain(place, config)
    expect([("a", "1"), ("b", "2")],
           sorted((job["topic"], job["id"]) for job in place.lines("out")))


@test
def a_worker_with_a_file_runs_until_it_is_stopped(place):
    config = write(place, 'worker { name = w1 drain = 5s }\n'
                          'topic "t" { handler = echo '
                          'options = "file=DIR/out" }\n')
    worker = place.work(flags=("--config", config))
    place.add("t", "1")
    eventually(lambda: place.lines("out"), "the job runs")
    stop_cleanly(worker)


@test
def the_ladder_of_the_file_is_used_and_a_flag_beats_it(place):
    config = write(place, 'topic "t" { handler = flaky options = { "fail=9", '
                          '"verdict=retry" } retry = "1ms 1ms" }\n')
    place.add("t", "1")
    drain(place, config)
    expect(3, place.ok("show", "t", "1")["attempt"])
    place.add("t", "2")
    drain(place, config, flags=("--retry", "none"))
    expect(1, place.ok("show", "t", "2")["attempt"])


@test
def what_is_stored_beats_the_file_and_a_flag_beats_both(place):
    config = write(place, 'topic "t" { handler = flaky options = { "fail=9", '
                          '"verdict=retry" } retry = "1ms 1ms 1ms" }\n')
    place.ok("topic", "set", "t", "retry=none")
    for job, attempts, flags in (("1", 1, ()), ("2", 3, ("--retry", "1ms 1ms"))):
        place.add("t", job)
        drain(place, config, flags=flags)
        expect(attempts, place.ok("show", "t", job)["attempt"])


@test
def other_options_of_the_file_reach_the_worker(place):
    config = write(place, 'topic "t" { handler = flaky options = { "fail=9", '
                          '"verdict=fail" } on_dead = dead max_dead = 5 ttl = '
                          '1h timeout = 1s max_crashes = 2 weight = 3 prefetch '
                          '= 7 lease = 1s retry_jitter = 10% }\n')
    place.add("t", "1")
    drain(place, config)
    expect(["ready", "failed"],
           [place.ok("show", "dead", "1")[name]
            for name in ("state", "reason")])


@test
def handle_takes_the_place_of_a_handler_of_the_file(place):
    config = write(place, 'topic "t" { handler = flaky options = "fail=9" '
                          'retry = none }\n')
    place.add("t", "1")
    place.add("u", "2")
    drain(place, config, place.echo(), place.echo("u"))
    expect(["1", "2"], sorted(job["id"] for job in place.lines("out")))


@test
def a_topic_without_handler_may_get_it_by_handle(place):
    config = write(place, 'topic "t" { retry = none }\n')
    place.add("t", "1")
    drain(place, config, "t=flaky?fail=9&verdict=retry")
    expect("exhausted", place.ok("show", "t", "1")["reason"])


@test
def plugins_are_looked_up_in_the_directories_of_the_file(place):
    for name in ("mine", "empty"):
        os.mkdir(place.path(name))
    shutil.copy(ECHO, place.path("mine/loud.so"))
    config = write(place, 'worker { plugin_path = { "DIR/empty", "DIR/mine" }}\n'
                          'topic "t" { handler = loud }\n')
    topics = place.ok("check", "--config", config)["topics"]
    expect([{"topic": "t", "handler": "loud",
             "file": place.path("mine/loud.so")}], topics)


@test
def the_environment_comes_before_the_directories_of_the_file(place):
    os.mkdir(place.path("mine"))
    shutil.copy(ECHO, place.path("mine/good.so"))
    config = write(place, 'worker { plugin_path = "DIR/mine" }\n'
                          'topic "t" { handler = good options = "text=x" }\n')
    topics = place.ok("check", "--config", config)["topics"]
    expect(os.path.join(TEST_PLUGINS, "good.so"), topics[0]["file"])


@test
def flags_beat_the_environment_which_beats_the_url_of_the_file(place):
    config = write(place, 'redis { url = "unix://DIR/file.sock" }\n'
                          'topic "t" { handler = echo }\n')
    run = ("run", "--config", config)
    place.weir(*run, "--log-level", "error").expect_complaint(5, "file.sock")
    env = {"WEIR_REDIS": "unix://" + place.path("env.sock")}
    result = place.weir(*run, "--log-level", "error", env=env)
    result.expect_complaint(5, "env.sock")
    result = place.weir(*run, "--log-level", "error", "--redis",
                        "unix://" + place.path("flag.sock"), env=env)
    result.expect_complaint(5, "flag.sock")


@test
def the_data_directory_of_the_file_is_used(place):
    config = write(place, 'redis { data = "DIR/other" }\n'
                          'topic "t" { handler = echo }\n')
    env = {"WEIR_DATA": ""}
    result = place.weir("run", "--config", config, "--until-empty", env=env)
    expect(0, result.code, result.err)
    expect_true(os.path.exists(place.path("other/redis.sock")), "it is there")
    expect(0, place.weir("server", "stop", "--data",
                         place.path("other")).code)


@test
def the_log_level_of_the_file_is_used_unless_a_flag_is_given(place):
    config = write(place, 'worker { log_level = error }\n'
                          'topic "t" { handler = echo }\n')
    expect("", drain(place, config).err)
    expect_in("info serving t with",
              drain(place, config, flags=("--log-level", "info")).err)


@test
def check_tells_that_nothing_is_wrong_and_starts_nothing(place):
    config = write(place, 'topic "t" { handler = echo }\n')
    result = place.weir("check", "--config", config)
    expect([0, "%s: nothing wrong, 1 topic\n" % config, ""],
           [result.code, result.out, result.err])
    expect_true(not os.path.exists(place.data), "no server was started")


@test
def check_opens_no_instance_of_a_plugin(place):
    config = write(place, 'topic "t" { handler = open_fails '
                          'options = "how=sentence" }\n')
    expect(0, place.weir("check", "--config", config).code)


@test
def check_tells_every_mistake_with_plugins(place):
    config = write(place, 'topic "a" { handler = nope }\n'
                          'topic "b" {\n  handler = echo\n'
                          '  options = "colour=red" }\n')
    result = place.weir("check", "--config", config)
    expect([2, "", 2], [result.code, result.out, len(result.sentences)])
    expect_in("weir: %s:1: handler: there is no plugin" % config,
              result.sentences[0])
    expect_in("weir: %s:4: options: " % config, result.sentences[1])


@test
def mistakes_of_every_sort_are_told_together(place):
    for text, told in (
            ('topic z { }\ntopic a { handlr = echo }\n'
             'topic b { handler = nope }\n',
             ['2: there is no option "handlr"', '1: topic "z" has no handler',
              "3: handler: there is no plugin"]),
            ('topic z { }\ntopic a {\n retry 1s\n\n',
             ["3: there is no = behind retry", "2: the { of this line is not",
              '1: topic "z" has no handler']),
            ('topic z { }\ntopic a {\n handler = echo\n'
             'topic b {\n handler = echo\n lease = 3\n}\n',
             ["2: the { of this line is not closed where topic begins on line "
              "4: write } before it", '6: lease: "3" has no unit',
              '1: topic "z" has no handler']),
            ('worker { plugn_path = DIR }\ntopic z { }\n'
             'topic a { handler = nope }\n',
             ['1: there is no option "plugn_path"',
              '2: topic "z" has no handler']),
            ('colour = red\n', ['1: weir knows no "colour"'])):
        config = write(place, text)
        result = place.weir("check", "--config", config)
        expect([2, ""], [result.code, result.out])
        expect(len(told), len(result.sentences), result.err)
        for words, sentence in zip(told, result.sentences):
            expect_in("weir: %s:%s" % (config, words), sentence)


@test
def options_that_a_worker_does_not_look_at_are_told(place):
    config = write(place, 'topic "t" { handler = echo\nmax_body = 1KiB\n'
                          'max_pending = none }\n')
    result = place.weir("check", "--config", config)
    expect(0, result.code)
    for words in ("2: max_body is not looked at by weir run; store it with "
                  "the topic: weir topic set t max_body=1KiB",
                  "3: max_pending is not looked at by weir run; store it with "
                  "the topic: weir topic set t max_pending=none"):
        expect_in("%s:%s\n" % (config, words), result.err)


@test
def check_tells_of_directories_that_are_not_there(place):
    config = write(place, 'redis { data = "DIR/weir.conf" }\n'
                          'worker {\n'
                          '  plugin_path = { DIR, "DIR/plugins",\n'
                          '    "DIR/weir.conf" }\n'
                          '}\n'
                          'topic t { handler = echo }\n')
    result = place.weir("check", "--config", config)
    expect(2, result.code)
    expect(["weir: %s:3: plugin_path: there is no directory %s/plugins"
            % (config, place.dir),
            "weir: %s:3: plugin_path: there is no directory %s"
            % (config, config),
            "weir: %s:1: data: %s is no directory" % (config, config)],
           result.sentences)


@test
def check_goes_on_behind_what_no_topic_of_its_kind_can_have(place):
    config = write(place, 'topic a { kind = delay\n linger = 1s\n'
                          ' lease = none }\n'
                          'topic b { handler = echo kind = sync\n'
                          ' retry = none }\n')
    result = place.weir("check", "--config", config)
    expect([2, 4], [result.code, len(result.sentences)], result.err)
    for i, words in enumerate(("1: topic \"a\" has no handler",
                               "3: lease: a topic of kind delay needs one",
                               "2: linger: a topic of kind delay has no",
                               "5: retry: a topic of kind sync has no")):
        expect_in("weir: %s:%s" % (config, words), result.sentences[i])


SECRETS = (  # a file, and the line that is told
    ('redis {\n url = "redis://:s3cret@127.0.0.1:1"\n}\n'
     'topic t { handler = echo }\n', 2),
    ('topic t {\n handler = notify\n options = { "timeout=5s",\n'
     ' "secret=s3cret" }\n}\n', 3),
    ('topic t { handler = notify options = "header=Key: s3cret" }\n', 1),
)
NONE = (
    'redis { url = "redis://127.0.0.1:1" }\n'
    'topic t { handler = notify options = { "secret=", "timeout=5s" } }\n',
    'topic t { handler = echo }\n',
)


@test
def secrets_that_everybody_can_read_are_told(place):
    for text, line in SECRETS:
        config = write(place, text)
        os.chmod(config, 0o644)
        result = place.weir("check", "--config", config)
        expect(0, result.code, result.err)
        expect(1, result.err.count("warn"), result.err)
        expect_in("warn %s:%d: a secret that everybody can read: chmod o-r %s"
                  % (config, line, config), result.err)
        expect_true("s3cret" not in result.err, result.err)
        result = place.weir("run", "--config", config, "--handle", "u=echo",
                            "--until-empty")
        expect_in("a secret that everybody can read", result.err)


@test
def a_file_that_everybody_may_write_to_is_refused(place):
    config = write(place, "topic t { handler = echo }\n")
    for mode, code in ((0o602, 2), (0o666, 2), (0o664, 0)):
        os.chmod(config, mode)
        for words in (("check",), ("run", "--until-empty")):
            result = place.weir(*words, "--config", config)
            expect(code, result.code, result.err)
            expect_true(not code or "then chmod o-w it" in result.err,
                        result.err)


@test
def secrets_of_a_file_that_others_cannot_read_are_nobody_s_concern(place):
    for text, mode in ([(text, mode) for text, _ in SECRETS
                        for mode in (0o600, 0o640, 0o400)]
                       + [(text, 0o644) for text in NONE]):
        config = write(place, text, "%o.conf" % mode)
        os.chmod(config, mode)
        result = place.weir("check", "--config", config)
        expect((0, ""), (result.code, result.err))
        os.unlink(config)
