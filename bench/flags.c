/* SPDX-License-Identifier: MIT */
#include "bench/flags.h"

#include "bench/options.h"
#include "core/assert.h"

#include <stdio.h>
#include <string.h>

enum { HELP_COLUMN = 26, WIDTH = 79 };

const struct bench_flag_text bench_flags[FLAG_COUNT] = {
    [REDIS] = {"redis", "URL",
               "measure this server (default: $WEIR_REDIS, else\n"
               "a private one for each row)",
               0},
    [DATA] = {"data", "DIR",
              "where the private server's directory is made\n"
              "(default: $TMPDIR, else /tmp)",
              0},
    [JOBS] = {"jobs", "N", "how many jobs", 0},
    [PAYLOAD] = {"payload", "BYTES", "size of a body, 16 to 1048576", 0},
    [BATCH] = {"batch", "K", "jobs that are added at once, 1 to 100,000", 0},
    [IDS] = {"ids", "WHO", "who makes ids: caller or made (by weir)", 0},
    [TRANSPORT] = {"transport", "HOW", "unix, tcp or tls (private server)", 0},
    [PERSISTENCE] = {"persistence", "HOW",
                     "append-only file of the private server: none,\n"
                     "everysec or always",
                     0},
    [CONSUMERS] = {"consumers", "C",
                   "workers, 1 to 60; compare takes up to 8 such\n"
                   "numbers, as in 1,10; some cases say themselves how\n"
                   "many",
                   0},
    [PRODUCERS] = {"producers", "P", "processes that add, 1 to 60",
                   BENCH_FLAG_NODES},
    [NODES] = {"nodes", "N", "primaries of the private cluster, 1 to 64",
               BENCH_FLAG_NODES},
    [REPEAT] = {"repeat", "R", "how often; medians are shown, 1 to 100", 0},
    [KIND] = {"kind", "KIND",
              "kind of topic; compare takes several, as in\n"
              "delay,list",
              BENCH_FLAG_KIND | BENCH_FLAG_LISTS},
    [HANDLER] = {"handler", "HOW",
                 "what the handler is: sync, pending (finished in\n"
                 "the next turn of the loop), random (half of those\n"
                 "that are pending, in any order), blocking (called\n"
                 "by threads) or timer (finished after 1 ms)",
                 BENCH_FLAG_HANDLER},
    [CONCURRENCY] = {"concurrency", "N",
                     "jobs of a worker that may be pending at once,\n"
                     "1 to 100,000",
                     BENCH_FLAG_CONCURRENCY},
    [DELAY] = {"delay", "D", "delay of every job", BENCH_FLAG_DELAY},
    [WINDOW] = {"window", "D", "jobs are due at random within it",
                BENCH_FLAG_WINDOW},
    [BACKLOG] = {"backlog", "N",
                 "jobs that are there besides; the most where a\n"
                 "case has several",
                 BENCH_FLAG_BACKLOG},
    [TOPICS] = {"topics", "N",
                "topics that are served; the most where a case\n"
                "has several",
                BENCH_FLAG_TOPICS},
    [SECONDS] = {"for", "D", "how long to look", BENCH_FLAG_SPAN},
    [REPORT] = {"report", "FILE.html",
                "write tables and charts as a page as well; one\n"
                "that is there is replaced at the end",
                0},
    [ONE_PROCESS] = {"one-process", NULL,
                     "one process adds and handles (default: each its\n"
                     "own)",
                     BENCH_FLAG_ONE_PROCESS},
    [JSON] = {"json", NULL, "print JSON Lines on stdout, nothing else", 0},
    [HELP] = {"help", NULL, "print this help", 0},
    [VERSION] = {"version", NULL, "print the version", 0},
};

static void print_flag(enum bench_flag flag)
{
    const char *line = bench_flags[flag].help;
    const char *value = bench_flags[flag].value;
    int width = printf("  --%s%s%s", bench_flags[flag].name,
                       value != NULL ? " " : "", value != NULL ? value : "");

    while (*line != '\0') {
        size_t len = strcspn(line, "\n");

        (void)printf("%*s%.*s\n", HELP_COLUMN - width, "", (int)len, line);
        line += len;
        line += *line == '\n' ? 1 : 0;
        width = 0;
    }
}

static void print_flags(unsigned of_case)
{
    for (int i = 0; i < FLAG_COUNT; i++)
        if (bench_flags[i].only == 0 || (bench_flags[i].only & of_case) != 0)
            print_flag((enum bench_flag)i);
}

static void print_exits(void)
{
    (void)printf("\nexit codes:\n  0 done, 1 failed, 2 wrong usage, 5 server "
                 "unreachable\n");
}

void bench_help_all(void)
{
    (void)printf("usage: weir-bench CASE [options]\n\n"
                 "Measures weir. Without --redis a private redis-server is "
                 "started and ended.\n\n"
                 "cases (weir-bench CASE --help tells more):\n");
    for (size_t i = 0; i < bench_case_count; i++)
        (void)printf("  %-12s %s\n", bench_cases[i]->name,
                     bench_cases[i]->summary);
    (void)printf("\noptions of every case:\n");
    print_flags(0);
    (void)printf("\nexample:\n  weir-bench throughput --jobs 1000000 "
                 "--batch 256\n");
    print_exits();
}

/* Words, as many on a line as fit. */
static void print_wrapped(const char *text)
{
    int at = 0;

    while (*text != '\0') {
        int len = (int)strcspn(text, " ");

        if (at > 0 && at + 1 + len > WIDTH) {
            (void)printf("\n");
            at = 0;
        }
        at += printf("%s%.*s", at > 0 ? " " : "", len, text);
        text += len;
        text += *text == ' ' ? 1 : 0;
    }
    (void)printf("\n");
}

/* Writes " --flag VALUE"; a case that has no such flag has 0 there. */
static size_t put_default(char *buf, size_t cap, enum bench_flag flag,
                          int64_t value)
{
    bool is_time = flag == DELAY || flag == WINDOW || flag == SECONDS;

    if (value == 0)
        return 0;
    return (size_t)snprintf(buf, cap, " --%s %lld%s", bench_flags[flag].name,
                            (long long)value, is_time ? "ms" : "");
}

/* What a case goes through, where it goes through several. */
static size_t put_lists(char *buf, size_t cap,
                        const struct bench_options *options)
{
    size_t at = 0;

    for (size_t i = 0, shown = 0; i < bench_kind_count && at < cap; i++)
        if ((options->kinds >> i & 1) != 0)
            at += (size_t)snprintf(buf + at, cap - at, "%s%s",
                                   shown++ == 0 ? " --kind " : ",",
                                   bench_kinds[i].name);
    for (size_t i = 0; options->counts[i] != 0 && at < cap; i++)
        at += (size_t)snprintf(buf + at, cap - at, "%s%lld",
                               i == 0 ? " --consumers " : ",",
                               (long long)options->counts[i]);
    return at;
}

void bench_options_text(const struct bench_options *options, char *buf,
                        size_t cap)
{
    const struct {
        enum bench_flag flag;
        int64_t value;
    } all[] = {
        {JOBS, options->jobs},        {PAYLOAD, options->payload_bytes},
        {BATCH, options->batch},      {CONSUMERS, options->consumers},
        {REPEAT, options->repeat},    {DELAY, options->delay_ms},
        {WINDOW, options->window_ms}, {BACKLOG, options->backlog},
        {TOPICS, options->topics},    {CONCURRENCY, options->concurrency},
        {SECONDS, options->span_ms},  {PRODUCERS, options->producers},
        {NODES, options->nodes}};
    const struct bench_server_options *server = &options->server;
    size_t at = (size_t)snprintf(buf, cap, "--ids %s",
                                 options->makes_ids ? "made" : "caller");

    if (server->redis == NULL) /* a private one */
        at += (size_t)snprintf(
            buf + at, cap - at, " --transport %s --persistence %s",
            server->tls   ? "tls"
            : server->tcp ? "tcp"
                          : "unix",
            server->persistence != NULL ? server->persistence : "none");
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        at += put_default(buf + at, cap - at, all[i].flag, all[i].value);
        WEIR_ASSERT(at < cap);
    }
    at += put_lists(buf + at, cap - at, options);
    WEIR_ASSERT(at < cap);
}

static void print_defaults(const struct bench_options *fallback)
{
    static const char lead[] = "defaults: ";
    char text[sizeof(lead) + BENCH_OPTIONS_TEXT_CAP];

    memcpy(text, lead, sizeof(lead));
    bench_options_text(fallback, text + sizeof(lead) - 1,
                       BENCH_OPTIONS_TEXT_CAP);
    (void)printf("\n");
    print_wrapped(text);
}

void bench_help_case(const struct bench_case *which)
{
    (void)printf("usage: weir-bench %s [options]\n\n%s.\n\n", which->name,
                 which->summary);
    print_wrapped(which->details);
    (void)printf("\noptions:\n");
    print_flags(which->flags);
    print_defaults(&which->fallback);
    (void)printf("\nexample:\n  %s\n", which->example);
    print_exits();
}
