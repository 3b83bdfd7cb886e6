/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/stat.h>

#include "tests/config/files.h"

static const struct refusal names[] = {
    {"topics x { }", "w.conf:1: no section is called \"topics\": write topic"},
    {"\nserver { }", "w.conf:2: weir knows no \"server\": write one of "
                     "redis, worker, topic, cron"},
    {"redis {\n  uri = x }",
     "w.conf:2: there is no option \"uri\" here: write url"},
    {"worker { loglevel = info }",
     "w.conf:1: there is no option \"loglevel\" here: write log_level"},
    {"topic a { max-dead = 1 }",
     "w.conf:1: there is no option \"max-dead\" here: write max_dead"},
    {"topic a { retries = none }",
     "w.conf:1: there is no option \"retries\" here: write retry"},
    {"topic a { verbose = 1 }",
     "w.conf:1: topic knows no \"verbose\": write one of handler, options, "
     "kind, retry, retry_jitter, concurrency, prefetch, weight, "
     "timeout, lease, max_crashes, ttl, max_dead, on_dead, max_body, "
     "max_pending, rate, parallel, key_rate, key_parallel, ageing, "
     "durability, unique, unique_for, "
     "unique_else, max_wait, "
     "delay, consumers, lock, auto_ack, parking, key, end, body, group, "
     "on_retry, start, after, claim_idle, batch, length, overflow, max_age, "
     "group_ttl, linger, hot, groups"},
    {"worker { port = 1 }",
     "w.conf:1: worker knows no \"port\": write one of plugin_path, name, "
     "workers, log_level, log_format, drain, block_warn, threads, "
     "allow_eviction"},
    {"topic a { log_level = info }", "w.conf:1: log_level is an option of "
                                     "worker: write it in that section"},
    {"url = x",
     "w.conf:1: url is an option of redis: write it in that section"},
    {"redis { worker { } }",
     "w.conf:1: worker is a section and cannot stand here: write worker on "
     "its own, with its options in { and }"},
    {"topic a { Kind = delay }",
     "w.conf:1: there is no option \"Kind\" here: write kind"},
    {"include = \"/etc/passwd\"", "w.conf:1: weir knows no \"include\": "
                                  "write one of redis, worker, topic, cron"},
    {"\"redis|url\" = x", "w.conf:1: \"redis|url\" stands where a name should: "
                          "write a value of several words in quotes"},
    {"topic a { retry = 15s 3m }",
     "w.conf:1: \"3m\" stands where a name should: write a value of "
     "several words in quotes"},
    {"topic a { retry_jitter = 10 % }",
     "w.conf:1: \"%\" stands where a name should: write a value of several "
     "words in quotes"},
    {"topic a { averyveryverylongnamethatnobodyknows_xxxxxxxxxxxxxxxx = 1 "
     "}",
     "w.conf:1: topic knows no \"averyveryverylongnametha...\": write one "
     "of handler, options, kind, retry, retry_jitter, concurrency, "
     "prefetch, weight, timeout, lease, max_crashes, ttl, max_dead, "
     "on_dead, max_body, max_pending, rate, parallel, key_rate, key_parallel, "
     "ageing, "
     "durability, unique, "
     "unique_for, "
     "unique_else, max_wait, delay, consumers, lock, auto_ack, "
     "parking, key, end, body, group, on_retry, start, after, claim_idle, "
     "batch, length, overflow, max_age, group_ttl, linger, "},
};

TEST(an_unknown_name_is_refused_with_the_nearest_known_one)
{
    EXPECT_REFUSED(names);
}

static const struct refusal grammar[] = {
    {"redis { url \"x\" }",
     "w.conf:1: there is no = behind url: write NAME = VALUE"},
    {"redis { url }", "w.conf:1: there is no = behind url: write NAME = VALUE"},
    {"redis { url = }",
     "w.conf:1: } is not expected here: write a value before it"},
    {"redis { url = = x }", "w.conf:1: = is not expected here: write = "
                            "between an option's name and its value"},
    {"redis { url = { x } }",
     "w.conf:1: { is not expected here: write { behind a section's name, "
     "or behind the = of a list"},
    {"redis { , }", "w.conf:1: , is not expected here: write , between the "
                    "texts of a list, within { and }"},
    {"redis = x", "w.conf:1: there is no { behind redis: write { and the "
                  "section's options and }"},
    {"redis", "w.conf:1: the file ends before a section began: write { and "
              "its options and }"},
    {"topic { }", "w.conf:1: there is no name behind topic: write topic "
                  "\"NAME\" { and its options and }"},
    {"topic a", "w.conf:1: the file ends before a section began: write { "
                "and its options and }"},
    {"topic a = b", "w.conf:1: there is no { behind topic: write { and the "
                    "section's options and }"},
    {"topic a b { }", "w.conf:1: there is no { behind topic: write { and "
                      "the section's options and }"},
    {"redis { } }", "w.conf:1: there is no { for this }: remove it"},
    {"{ }", "w.conf:1: { is not expected here: write { behind a section's "
            "name, or behind the = of a list"},
    {"worker { plugin_path = { a b } }",
     "w.conf:1: b is not expected here: write , between the texts of a "
     "list, and } behind them"},
    {"worker { plugin_path = { a = b } }",
     "w.conf:1: = is not expected here: write = between an option's name "
     "and its value"},
    {"worker { plugin_path = { { a } } }",
     "w.conf:1: { is not expected here: write { behind a section's name, "
     "or behind the = of a list"},
    {"worker { plugin_path = { , } }",
     "w.conf:1: , is not expected here: write , between the texts of a "
     "list, within { and }"},
    {"topic a { concurrency = 100,000 }",
     "w.conf:1: , is not expected here: write , between the texts of a "
     "list, within { and }"},
};

TEST(a_broken_grammar_is_refused)
{
    EXPECT_REFUSED(grammar);
}

static const struct refusal silent[] = {
    {"redis {\n url = x\n", "w.conf:1: the { of this line is not closed: "
                            "write } where its section or list ends"},
    {"worker {\n\n plugin_path = {\n a\n",
     "w.conf:3: the { of this line is not closed: write } where its "
     "section or list ends"},
    {"{{{{{", "w.conf:1: { is not expected here: write { behind a section's "
              "name, or behind the = of a list"},
    {"redis { url = \"abc }\n", "w.conf:1: a text is not closed: write \" "
                                "at its end, on the same line"},
    {"redis {\n url = \"abc\\\n }",
     "w.conf:2: a text is not closed: write \" at its end, on the same "
     "line"},
    {"redis { url = \"abc", "w.conf:1: a text is not closed: write \" at "
                            "its end, on the same line"},
    {"redis { url = 'abc }\n", "w.conf:1: a text is not closed: write ' at "
                               "its end, on the same line"},
    {"redis { url = 'abc", "w.conf:1: a text is not closed: write ' at its "
                           "end, on the same line"},
    {"redis { url = \"a\\nb\" }",
     "w.conf:1: after a \\ in double quotes only \\ or \" may stand: write "
     "\\\\ for one \\"},
    {"redis { url = \"a\\x00b\" }",
     "w.conf:1: after a \\ in double quotes only \\ or \" may stand: write "
     "\\\\ for one \\"},
    {"redis { url = \"a\\", "w.conf:1: a text is not closed: write \" at "
                            "its end, on the same line"},
    {"redis { url = \"${HOME}\" }",
     "w.conf:1: \"${\" is not replaced here: write the value itself, or "
     "the text in single quotes"},
    {"redis { url = ${HOME} }",
     "w.conf:1: $ is not understood: write it in quotes"},
    {"redis { } /* never\n\n ends",
     "w.conf:1: a comment is not closed: write */ at its end"},
    {"/*/", "w.conf:1: a comment is not closed: write */ at its end"},
    {"topic a { options += { 'x=1' } }",
     "w.conf:1: + is not understood: write it in quotes"},
    {"include(\"/etc/passwd\")",
     "w.conf:1: include( is not understood: write it in quotes"},
    {"redis { url = a;b }",
     "w.conf:1: a;b is not understood: write it in quotes"},
    {"redis { url = a/*b*/ }",
     "w.conf:1: a/*b*/ is not understood: write it in quotes"},
    {"topic caf\xC3\xA9 { }",
     "w.conf:1: caf\xC3\xA9 is not understood: write it in quotes"},
    {"redis { \x01 = x }",
     "w.conf:1: byte 0x01 has no place in a configuration: remove it"},
    {"redis { # \x1B[1m\n }",
     "w.conf:1: byte 0x1B has no place in a configuration: remove it"},
    {"redis {\r }",
     "w.conf:1: byte 0x0D has no place in a configuration: remove it"},
};

TEST(what_could_be_passed_over_is_refused)
{
    EXPECT_REFUSED(silent);
}

static const struct refusal repeats[] = {
    {"topic a { }\ntopic b { }\ntopic a { }",
     "w.conf:3: topic a began on line 1 already: write all of it there"},
    {"redis { }\nredis { }", "w.conf:2: section redis began on line 1 "
                             "already: write all of it there"},
    {"worker { drain = 1s }\n\nworker { }",
     "w.conf:3: section worker began on line 1 already: write all of it "
     "there"},
    {"topic a {\n weight = 1\n weight = 2\n}",
     "w.conf:3: weight was given on line 2 already: write it once"},
    {"topic a {\n options = { 'a=1', 'b=2' }\n options = { 'c=3' }\n}",
     "w.conf:3: options was given on line 2 already: write it once"},
    {"redis { url = a url = b }",
     "w.conf:1: url was given on line 1 already: write it once"},
    {"topic a { on_dead = none on_dead = b }",
     "w.conf:1: on_dead was given on line 1 already: write it once"},
};

TEST(what_is_given_twice_is_refused_with_the_first_line)
{
    EXPECT_REFUSED(repeats);
}

static const struct refusal texts[] = {
    {"topic \"a b\" { }", "w.conf:1: topic \"a b\" is not allowed at byte "
                          "2: use letters, digits and . _ : -"},
    {"topic \"\" { }", "w.conf:1: a topic has an empty name: write 1 to 40 "
                       "letters, digits and . _ : -"},
    {"topic a23456789012345678901234567890123456789012 { }",
     "w.conf:1: topic \"a23456789012345678901234567890123456789012\" has "
     "42 bytes; at most 40 are allowed"},
    {"topic a { kind = dealy }",
     "w.conf:1: kind: \"dealy\" is not a kind: write delay, "
     "list, sync, concurrent, stream or bounded"},
    {"topic a { kind = Delay }",
     "w.conf:1: kind: \"Delay\" is not a kind: write delay, "
     "list, sync, concurrent, stream or bounded"},
    {"topic a { handler = \"\" }",
     "w.conf:1: handler: \"\" says nothing: write a value, or leave the "
     "option out"},
    {"topic a { options = { \"timeout\" } }",
     "w.conf:1: options: \"timeout\" has no =: write key=value, as in "
     "\"timeout=5s\""},
    {"topic a {\n options = { \"a=1\",\n \"=1\" } }",
     "w.conf:3: options: \"=1\" has no key before the =: write key=value, "
     "as in \"timeout=5s\""},
    {"topic a { options = { \"\" } }",
     "w.conf:1: options: \"\" says nothing: write a value, or leave the "
     "option out"},
    {"topic a { retry = \"15s 3x\" }",
     "w.conf:1: retry ladder, step 2: \"3x\" is not a duration: write "
     "digits and one of ms, s, m, h, d, w, for example 15s or 1h30m"},
    {"topic a { retry = \"15s 366d\" }",
     "w.conf:1: retry ladder, step 2: \"366d\" is not within 1ms and 365d"},
    {"topic a { retry = 15 }",
     "w.conf:1: retry ladder, step 1: \"15\" is not a duration: write "
     "digits and one of ms, s, m, h, d, w, for example 15s or 1h30m"},
    {"topic a { retry = \" \" }",
     "w.conf:1: retry ladder is empty: write \"none\" for no retries, or "
     "steps such as 15s 3m"},
    {"topic a { on_dead = \"a b\" }",
     "w.conf:1: on_dead: topic \"a b\" is not allowed at byte 2: use "
     "letters, digits and . _ : -"},
    {"topic a { on_dead = a }",
     "w.conf:1: on_dead: \"a\" is this topic itself: write another one"},
    {"worker { name = \"a b\" }",
     "w.conf:1: name: \"a b\" does not name a worker: write 1 to 40 "
     "letters, digits and . _ -"},
    {"worker { name = a2345678901234567890123456789012345678901 }",
     "w.conf:1: name: \"a2345678901234567890123456789012345678901\" does "
     "not name a worker: write 1 to 40 letters, digits and . _ -"},
    {"worker { log_level = verbose }",
     "w.conf:1: log_level: \"verbose\" is none of these: write one of "
     "debug|info|warn|error"},
    {"worker { log_level = 1 }",
     "w.conf:1: log_level: \"1\" is none of these: write one of "
     "debug|info|warn|error"},
    {"worker { allow_eviction = true }",
     "w.conf:1: allow_eviction: \"true\" is none of these: write one of "
     "no|yes"},
    {"redis { url = \"\" }", "w.conf:1: url: \"\" says nothing: write a "
                             "value, or leave the option out"},
};

TEST(a_text_that_does_not_fit_its_option_is_refused)
{
    EXPECT_REFUSED(texts);
}

static const struct refusal numbers[] = {
    {"topic a { concurrency = many }",
     "w.conf:1: concurrency: \"many\" is not a number of decimal digits: "
     "write 1 to 100000"},
    {"topic a { concurrency = 0x10 }",
     "w.conf:1: concurrency: \"0x10\" is not a number of decimal digits: "
     "write 1 to 100000"},
    {"topic a { concurrency = 1e3 }",
     "w.conf:1: concurrency: \"1e3\" is not a number of decimal digits: "
     "write 1 to 100000"},
    {"topic a { concurrency = -1 }",
     "w.conf:1: concurrency: \"-1\" is not a number of decimal digits: "
     "write 1 to 100000"},
    {"topic a { concurrency = 1.5 }",
     "w.conf:1: concurrency: \"1.5\" is not a number of decimal digits: "
     "write 1 to 100000"},
    {"topic a { concurrency = \"\" }",
     "w.conf:1: concurrency: \"\" is not a number of decimal digits: write "
     "1 to 100000"},
    {"topic a { concurrency = \" 1\" }",
     "w.conf:1: concurrency: \" 1\" is not a number of decimal digits: "
     "write 1 to 100000"},
    {"topic a { concurrency = none }",
     "w.conf:1: concurrency: \"none\" is not a number of decimal digits: "
     "write 1 to 100000"},
    {"topic a { concurrency = 18446744073709551616 }",
     "w.conf:1: concurrency: \"18446744073709551616\" is out of bounds: "
     "write 1 to 100000"},
    {"topic a { prefetch = none }",
     "w.conf:1: prefetch: \"none\" is not a number of decimal digits: "
     "write 0 to 100000, or auto"},
    {"topic a { retry_jitter = 10%% }",
     "w.conf:1: retry_jitter: \"10%%\" is not a percentage: write 0% to "
     "50%"},
    {"topic a { retry_jitter = % }",
     "w.conf:1: retry_jitter: \"%\" is not a percentage: write 0% to 50%"},
    {"topic a { timeout = 30 }", "w.conf:1: timeout: \"30\" has no unit "
                                 "(ms, s, m, h, d, w): write 10ms to 7d"},
    {"topic a { timeout = 30sec }",
     "w.conf:1: timeout: \"30sec\" is not a duration (digits and ms, s, m, "
     "h, d or w): write 10ms to 7d"},
    {"topic a { timeout = \"30 s\" }",
     "w.conf:1: timeout: \"30 s\" is not a duration (digits and ms, s, m, "
     "h, d or w): write 10ms to 7d"},
    {"topic a { timeout = none }",
     "w.conf:1: timeout: \"none\" is not a duration (digits and ms, s, m, "
     "h, d or w): write 10ms to 7d"},
    {"topic a { ttl = 4000d }", "w.conf:1: ttl: \"4000d\" is out of "
                                "bounds: write 1ms to 3650d, or none"},
    {"topic a { ttl = 10 }", "w.conf:1: ttl: \"10\" has no unit (ms, s, m, "
                             "h, d, w): write 1ms to 3650d, or none"},
    {"topic a { max_body = 1MB }",
     "w.conf:1: max_body: \"1MB\" is not a size: write 1 to 16MiB"},
    {"topic a { max_body = 99999999999999GiB }",
     "w.conf:1: max_body: \"99999999999999GiB\" is out of bounds: write 1 "
     "to 16MiB"},
    {"topic a { lock = 1 }",
     "w.conf:1: lock: \"1\" is none of these: write one of no|yes"},
    {"topic a { parking = two }",
     "w.conf:1: parking: \"two\" is none of these: write one of "
     "atomic|two-step"},
    {"topic a { delay = 3 }", "w.conf:1: delay: \"3\" has no unit (ms, s, m, "
                              "h, d, w): write 0ms to 365d"},
    {"topic a { max_pending = 1KiB }",
     "w.conf:1: max_pending: \"1KiB\" is not a number of decimal digits: "
     "write 1 to 4294967295, or none"},
};

TEST(a_number_that_is_none_is_refused)
{
    EXPECT_REFUSED(numbers);
}

static const struct refusal many[] = {
    {"redis { uri = x }\n"
     "topic a {\n"
     "  weight = 0\n"
     "  hot = { 'x', 'y{', 'z' }\n"
     "  timeout = 3 wieght = 1\n"
     "  retry 1s\n"
     "  on_dead = a\n"
     "  key = \"open\n"
     "  weight = 5\n"
     "}\n"
     "topic 'b c' { kind = heap }\n"
     "server {\n"
     "  weight = 0\n"
     "}\n"
     "worker { plugin_path = { a b }\n"
     "  drain = 1\n"
     "}\n"
     "topic a { }\n",
     "w.conf:1: there is no option \"uri\" here: write url\n"
     "w.conf:3: weight: \"0\" is out of bounds: write 1 to 1000\n"
     "w.conf:4: hot: \"y{\" is no pattern of groups: write a group or its "
     "beginning and *, and maybe :WEIGHT of 1 to 999, as in \"game-1\" or "
     "\"vip-*:4\"\n"
     "w.conf:5: timeout: \"3\" has no unit (ms, s, m, h, d, w): write 10ms to "
     "7d\n"
     "w.conf:5: there is no option \"wieght\" here: write weight\n"
     "w.conf:6: there is no = behind retry: write NAME = VALUE\n"
     "w.conf:7: on_dead: \"a\" is this topic itself: write another one\n"
     "w.conf:8: a text is not closed: write \" at its end, on the same line\n"
     "w.conf:9: weight was given on line 3 already: write it once\n"
     "w.conf:11: topic \"b c\" is not allowed at byte 2: use letters, digits "
     "and . _ : -\n"
     "w.conf:11: kind: \"heap\" is not a kind: write delay, list, sync, "
     "concurrent, stream or bounded\n"
     "w.conf:12: weir knows no \"server\": write one of redis, worker, topic, "
     "cron\n"
     "w.conf:15: b is not expected here: write , between the texts of a list, "
     "and } behind them\n"
     "w.conf:16: drain: \"1\" has no unit (ms, s, m, h, d, w): write 0ms to "
     "7d\n"
     "w.conf:18: topic a began on line 2 already: write all of it there"},
};

TEST(every_mistake_is_told_and_none_twice)
{
    EXPECT_REFUSED(many);
}

static void expect_unreadable(const char *path, int code, const char *sentence)
{
    struct weir__config *config = NULL;

    EXPECT_INT(code, read_config(path, &config));
    EXPECT_STR(sentence, told);
    weir__config_free(config); /* what is right in it */
}

TEST(a_file_that_cannot_be_read_is_refused)
{
    write_bytes("", 0);
    EXPECT_INT(0, mkdir("dir", 0700));
    expect_unreadable("none.conf", WEIR_ESYSTEM,
                      "none.conf: cannot be read (No such file or directory): "
                      "name a readable file");
    expect_unreadable("dir", WEIR_ESYSTEM,
                      "dir: cannot be read (Is a directory): name a readable "
                      "file");
    expect_unreadable("", WEIR_ESYSTEM,
                      ": cannot be read (No such file or directory): name a "
                      "readable file");
}

TEST(a_file_of_more_than_a_mebibyte_is_refused)
{
    static char text[1024 * 1024 + 1];
    struct weir__config *config = NULL;

    memset(text, ' ', sizeof(text));
    write_bytes(text, sizeof(text) - 1);
    EXPECT_INT(WEIR_OK, read_config("w.conf", &config));
    weir__config_free(config);
    write_bytes(text, sizeof(text));
    expect_unreadable("w.conf", WEIR_ETOOBIG,
                      "w.conf: has more than 1 MiB: is it a configuration of "
                      "weir?");
}

TEST(a_nul_byte_is_refused_with_its_line)
{
    static const char text[] = "redis {\n url = \"a\0b\" }";

    write_bytes(text, sizeof(text) - 1);
    expect_unreadable("w.conf", WEIR_EINVAL,
                      "w.conf:2: byte 0x00 has no place in a configuration: "
                      "remove it");
}

TEST(a_long_path_keeps_its_end)
{
    static const char text[] = "topic a {\n weight = 0 }";
    char path[512];
    struct weir__config *config = NULL;

    write_bytes(text, strlen(text));
    memset(path, '/', sizeof(path));
    memcpy(path, "./", 2);
    memcpy(path + sizeof(path) - 7, "w.conf", 7);
    EXPECT_INT(WEIR_EINVAL, read_config(path, &config));
    EXPECT_MEM(".../////", 8, told, 8);
    EXPECT_CONTAINS("//w.conf:2: weight: \"0\" is out of bounds: write 1 to "
                    "1000",
                    told);
    weir__config_free(config);
    EXPECT_INT(WEIR_EINVAL, weir__config_read(path, NULL, NULL, &config));
    weir__config_free(config);
}
