/* SPDX-License-Identifier: MIT */

/* What weir doctor finds a server to let us do: clock, scripts, commands. */

#include "adapters/cli/doctor.h"

#include "adapters/redis/conn/error.h"
#include "adapters/redis/script.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CLOCK_OFF_MS = 1000, NAMED_MAX = 10 };

#define LAST_SECOND INT64_C(253402300799) /* of the year 9999 */

/* --- clock --------------------------------------------------------------- */

static int64_t wall_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now); /* always there */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* An answer is seconds, a line feed, microseconds. False where no clock shows
 * that. */
static bool read_time(const char *text, int64_t *ret_ms)
{
    char *end;
    long long seconds = strtoll(text, &end, 10), us = 0;

    if (*end == '\n')
        us = strtoll(end + 1, NULL, 10);
    if (isdigit((unsigned char)*text) == 0 || seconds > LAST_SECOND || us < 0 ||
        us > 999999)
        return false;
    *ret_ms = seconds * 1000 + us / 1000;
    return true;
}

void weir__doctor_clock(struct weir__doctor *doctor, struct weir__probe *probe)
{
    static const char *const words[] = {"TIME", NULL};
    int64_t before_ms = wall_ms(), server_ms, ahead_ms;
    const char *text;

    if (weir__probe_ask(probe, words, &text) != WEIR_OK) {
        weir__doctor_note(doctor, "clock", WEIR__HEALTH_WARNING, NULL,
                          "the server does not tell its time: %s", text);
        return;
    }
    if (!read_time(text, &server_ms)) {
        weir__doctor_note(doctor, "clock", WEIR__HEALTH_WARNING, NULL,
                          "the server tells a time that cannot be: %s", text);
        return;
    }
    ahead_ms = server_ms - (before_ms + wall_ms()) / 2;
    if (llabs(ahead_ms) < CLOCK_OFF_MS) {
        weir__doctor_note(doctor, "clock", WEIR__HEALTH_OK, NULL,
                          "the same as here to the second");
        return;
    }
    weir__doctor_note(
        doctor, "clock", WEIR__HEALTH_WARNING,
        "due times are the server's: set both by NTP",
        "the server's clock is %" PRId64 ".%03" PRId64 " s %s this machine's",
        (int64_t)llabs(ahead_ms) / 1000, (int64_t)llabs(ahead_ms) % 1000,
        ahead_ms > 0 ? "ahead of" : "behind");
}

/* --- scripts ------------------------------------------------------------- */

static size_t count_loaded(struct weir__probe *probe)
{
    size_t loaded = 0;

    for (size_t i = 0; weir__scripts[i] != NULL; i++) {
        const char *words[] = {"SCRIPT", "EXISTS", weir__scripts[i]->sha1,
                               NULL};
        const char *text;

        loaded += weir__probe_ask(probe, words, &text) == WEIR_OK &&
                  strcmp(text, "1") == 0;
    }
    return loaded;
}

/* False with the server's sentence. */
static bool load_scripts(struct weir__probe *probe, const char **ret_text)
{
    for (size_t i = 0; weir__scripts[i] != NULL; i++) {
        const char *words[] = {"SCRIPT", "LOAD", weir__scripts[i]->text, NULL};

        if (weir__probe_ask(probe, words, ret_text) != WEIR_OK)
            return false;
    }
    return true;
}

/* A script that needs what ours need of the server's Lua. */
static bool run_script(struct weir__probe *probe, const char **ret_text)
{
    static const char *const load[] = {
        "SCRIPT", "LOAD", "return cmsgpack.unpack(cmsgpack.pack(1))", NULL};
    char sha1[48];
    const char *run[] = {"EVALSHA", sha1, "0", NULL};

    if (weir__probe_ask(probe, load, ret_text) != WEIR_OK)
        return false;
    (void)snprintf(sha1, sizeof(sha1), "%s", *ret_text); /* fits */
    return weir__probe_ask(probe, run, ret_text) == WEIR_OK;
}

bool weir__doctor_scripts(struct weir__doctor *doctor,
                          struct weir__probe *probe)
{
    size_t count = 0, loaded = count_loaded(probe);
    const char *text;

    while (weir__scripts[count] != NULL)
        count++;
    if (load_scripts(probe, &text) && run_script(probe, &text)) {
        weir__doctor_note(doctor, "scripts", WEIR__HEALTH_OK, NULL,
                          "%zu can be loaded and run, %zu were loaded", count,
                          loaded);
        return true;
    }
    weir__doctor_note(
        doctor, "scripts", WEIR__HEALTH_FAILED,
        "weir works with SCRIPT LOAD and EVALSHA: allow them on the server",
        "scripts cannot be loaded and run: %s", text);
    return weir__error_classify(text) != WEIR__ERROR_DENIED;
}

/* --- rights -------------------------------------------------------------- */

/* What weir and its scripts run, in a form that a server takes into a
 * transaction, which is then discarded: it looks at rights when a command is
 * queued. Each is a command and its arguments; KEY stands for one of ours. */
static const char *const commands[] = {
    "PING",
    "TIME",
    "EVALSHA 0 0",
    "SCRIPT EXISTS 0",
    "PUBLISH weir:wake:x x",
    "SET KEY x NX PX 1",
    "GET KEY",
    "MGET KEY",
    "DEL KEY",
    "EXISTS KEY",
    "PERSIST KEY",
    "PTTL KEY",
    "GETRANGE KEY 0 1",
    "SETRANGE KEY 0 x",
    "SADD weir:topics x",
    "SMEMBERS weir:topics",
    "HGET KEY x",
    "HMGET KEY x",
    "HGETALL KEY",
    "HKEYS KEY",
    "HLEN KEY",
    "HRANDFIELD KEY",
    "HSET KEY x x",
    "HSETNX KEY x x",
    "HEXISTS KEY x",
    "HVALS KEY",
    "LLEN KEY",
    "LINDEX KEY 0",
    "LPOP KEY",
    "LPUSH KEY x",
    "LRANGE KEY 0 0",
    "LTRIM KEY 0 0",
    "RENAME KEY KEY",
    "UNLINK KEY",
    "XACK KEY x 0-1",
    "XAUTOCLAIM KEY x x 1 0",
    "XCLAIM KEY x x 1 0-1",
    "XDEL KEY 0-1",
    "XGROUP CREATE KEY x 0",
    "XINFO STREAM KEY",
    "XLEN KEY",
    "XPENDING KEY x",
    "XRANGE KEY - +",
    "XREAD STREAMS KEY 0-0",
    "XREADGROUP GROUP x x STREAMS KEY >",
    "XADD KEY * x x",
    "RPUSH KEY x",
    "BLMOVE KEY KEY LEFT LEFT 1",
    "HDEL KEY x",
    "HINCRBY KEY x 1",
    "ZADD KEY 0 x",
    "ZREM KEY x",
    "ZCARD KEY",
    "ZCOUNT KEY 0 1",
    "ZSCORE KEY x",
    "ZMSCORE KEY x",
    "ZRANDMEMBER KEY",
    "ZRANGE KEY 0 1",
    "ZRANGEBYSCORE KEY 0 1",
    "ZREVRANGEBYSCORE KEY 1 0",
    "ZPOPMIN KEY",
    "ZREMRANGEBYRANK KEY 0 0",
    "ZREMRANGEBYSCORE KEY 0 0",
    NULL,
};

static const char key[] = "weir:{weir.doctor}:wait";

const char *const *weir__doctor_commands(void)
{
    return commands;
}

struct denied {
    char names[16 * NAMED_MAX]; /* "HSET, ZADD" */
    char rules[16 * NAMED_MAX]; /* "+hset +zadd" */
    size_t count;
    bool has_place; /* a key or a channel */
};

static void append_rule(char *rules, size_t cap, const char *name)
{
    size_t len = strlen(rules);

    (void)snprintf(rules + len, cap - len, "%s+%s", len > 0 ? " " : "",
                   name); /* cut */
    for (; rules[len] != '\0'; len++)
        rules[len] = (char)tolower((unsigned char)rules[len]);
}

static void note_denied(struct denied *denied, const char *name)
{
    size_t len = strlen(denied->names);

    denied->count++;
    if (denied->count > NAMED_MAX)
        return;
    (void)snprintf(denied->names + len, sizeof(denied->names) - len, "%s%s",
                   len > 0 ? ", " : "", name); /* cut */
    append_rule(denied->rules, sizeof(denied->rules), name);
}

static void look_at_answer(struct denied *denied, const char *name,
                           const char *text)
{
    bool is_denied = strncmp(text, "NOPERM", 6) == 0;

    if (is_denied && strstr(text, "to access") != NULL)
        denied->has_place = true;
    else if (is_denied || strncmp(text, "ERR unknown command", 19) == 0)
        note_denied(denied, name);
}

static void try_command(struct denied *denied, struct weir__probe *probe,
                        const char *command)
{
    const char *words[8] = {NULL};
    char line[96];
    const char *text;
    char *rest = NULL;
    size_t count = 0;

    (void)snprintf(line, sizeof(line), "%s", command); /* fits */
    for (char *word = strtok_r(line, " ", &rest); word != NULL && count < 7;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = strcmp(word, "KEY") == 0 ? key : word;
    if (weir__probe_ask(probe, words, &text) == WEIR_ESERVER)
        look_at_answer(denied, words[0], text);
}

static void report(struct weir__doctor *doctor, const struct denied *denied)
{
    if (denied->count == 0 && !denied->has_place) {
        weir__doctor_note(doctor, "rights", WEIR__HEALTH_OK, NULL,
                          "every command that weir needs is allowed");
        return;
    }
    if (denied->count > 0) {
        const char *more = denied->count > NAMED_MAX ? " and others" : "";
        char advice[sizeof(denied->rules) + 32];

        (void)snprintf(advice, sizeof(advice), "ACL SETUSER with %s%s",
                       denied->rules, more); /* fits */
        weir__doctor_note(doctor, "rights", WEIR__HEALTH_FAILED, advice,
                          "the user may not run %s%s", denied->names, more);
    }
    if (denied->has_place) {
        weir__doctor_note(doctor, "rights", WEIR__HEALTH_FAILED,
                          "ACL SETUSER with ~weir:* &weir:*",
                          "the user may not use keys or channels weir:*");
    }
}

/* The last question: a connection that listens answers no other. */
static void try_listening(struct denied *denied, struct weir__probe *probe)
{
    static const char *const words[] = {"SUBSCRIBE", "weir:wake:x", NULL};
    const char *text;

    if (weir__probe_ask(probe, words, &text) == WEIR_ESERVER)
        look_at_answer(denied, words[0], text);
}

void weir__doctor_rights(struct weir__doctor *doctor, struct weir__probe *probe)
{
    static const char *const begin[] = {"MULTI", NULL};
    static const char *const end[] = {"DISCARD", NULL};
    struct denied denied = {0};
    const char *text;

    if (weir__probe_ask(probe, begin, &text) != WEIR_OK) {
        weir__doctor_note(doctor, "rights", WEIR__HEALTH_WARNING,
                          "ACL SETUSER with +multi +discard",
                          "cannot be looked at without MULTI: %s", text);
        return;
    }
    for (size_t i = 0; commands[i] != NULL; i++)
        try_command(&denied, probe, commands[i]);
    (void)weir__probe_ask(probe, end, &text); /* or it ends with us */
    try_listening(&denied, probe);
    report(doctor, &denied);
}
