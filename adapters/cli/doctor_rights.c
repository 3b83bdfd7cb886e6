/* SPDX-License-Identifier: MIT */

/* What weir doctor finds a server to let us do: clock, scripts, commands. */

#include "adapters/cli/doctor.h"

#include "adapters/cli/rights.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/script.h"
#include "core/assert.h"

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

const char *weir__clock_read(struct weir__probe *probe,
                             struct weir__clock *ret_clock)
{
    static const char *const words[] = {"TIME", NULL};
    int64_t before_ms = wall_ms(), after_ms, server_ms;
    const char *text;

    if (weir__probe_ask(probe, words, &text) != WEIR_OK)
        return text;
    after_ms = wall_ms();
    if (!read_time(text, &server_ms))
        return "its answer cannot be one";
    ret_clock->ahead_ms = server_ms - (before_ms + after_ms) / 2;
    ret_clock->unsure_ms = (after_ms - before_ms + 1) / 2;
    return NULL;
}

void weir__doctor_clock(struct weir__doctor *doctor, struct weir__probe *probe)
{
    struct weir__clock clock;
    const char *why = weir__clock_read(probe, &clock);

    if (why != NULL) {
        weir__doctor_note(doctor, "clock", WEIR__HEALTH_WARNING, NULL,
                          "the server does not tell its time: %s", why);
        return;
    }
    if (llabs(clock.ahead_ms) < CLOCK_OFF_MS) {
        weir__doctor_note(doctor, "clock", WEIR__HEALTH_OK, NULL,
                          "the same as here to the second");
        return;
    }
    weir__doctor_note(doctor, "clock", WEIR__HEALTH_WARNING,
                      "due times are the server's: set both by NTP",
                      "the server's clock is %" PRId64 ".%03" PRId64
                      " s %s this machine's",
                      (int64_t)llabs(clock.ahead_ms) / 1000,
                      (int64_t)llabs(clock.ahead_ms) % 1000,
                      clock.ahead_ms > 0 ? "ahead of" : "behind");
}

/* --- scripts ------------------------------------------------------------- */

enum { WHY_CAP = 480, AHEAD = 8 };

static size_t count_scripts(void)
{
    size_t count = 0;

    while (weir__scripts[count] != NULL)
        count++;
    return count;
}

/* Load those that the server has not, some ahead of their answers. False with
 * its sentence. */
static bool load_scripts(struct weir__probe *probe, size_t *ret_loaded,
                         char ret_why[WHY_CAP])
{
    const char *words[WEIR__SCRIPTS_MAX + 3] = {"SCRIPT", "EXISTS"};
    bool is_there[WEIR__SCRIPTS_MAX] = {false};
    size_t count = count_scripts();
    const char *text;

    WEIR_ASSERT(count <= WEIR__SCRIPTS_MAX);
    for (size_t i = 0; i < count; i++)
        words[i + 2] = weir__scripts[i]->sha1;
    *ret_loaded = 0;
    ret_why[0] = '\0';
    if (weir__probe_ask(probe, words, &text) == WEIR_OK &&
        strlen(text) == 2 * count - 1) /* a line with 1 or 0 for each */
        for (size_t i = 0; i < count; i++)
            *ret_loaded += is_there[i] = text[2 * i] == '1';
    for (size_t i = 0; i < count + AHEAD; i++) {
        if (i < count && !is_there[i])
            weir__probe_put_load(probe, weir__scripts[i]);
        if (i >= AHEAD && !is_there[i - AHEAD] &&
            weir__probe_take(probe, &text) != WEIR_OK && ret_why[0] == '\0')
            (void)snprintf(ret_why, WHY_CAP, "%s", text); /* cut */
    }
    return ret_why[0] == '\0';
}

/* A script that needs what ours need of the server's Lua. */
static bool run_script(struct weir__probe *probe, char ret_why[WHY_CAP])
{
    static const char *const load[] = {
        "SCRIPT", "LOAD", "return cmsgpack.unpack(cmsgpack.pack(1))", NULL};
    char sha1[48];
    const char *run[] = {"EVALSHA", sha1, "0", NULL};
    const char *text;
    int rc = weir__probe_ask(probe, load, &text);

    if (rc == WEIR_OK) {
        (void)snprintf(sha1, sizeof(sha1), "%s", text); /* fits */
        rc = weir__probe_ask(probe, run, &text);
    }
    if (rc != WEIR_OK)
        (void)snprintf(ret_why, WHY_CAP, "%s", text); /* cut */
    return rc == WEIR_OK;
}

bool weir__doctor_scripts(struct weir__doctor *doctor,
                          struct weir__probe *probe)
{
    size_t loaded;
    char why[WHY_CAP];

    if (load_scripts(probe, &loaded, why) && run_script(probe, why)) {
        weir__doctor_note(doctor, "scripts", WEIR__HEALTH_OK, NULL,
                          "%zu can be loaded and run, %zu were loaded",
                          count_scripts(), loaded);
        return true;
    }
    weir__doctor_note(
        doctor, "scripts", WEIR__HEALTH_FAILED,
        "weir works with SCRIPT LOAD and EVALSHA: allow them on the server",
        "scripts cannot be loaded and run: %s", why);
    return weir__error_classify(why) != WEIR__ERROR_DENIED;
}

/* --- rights -------------------------------------------------------------- */

enum { RIGHTS_MAX = 128 };

/* What was found, in the order of weir__rights. */
struct denied {
    const char *prefix;
    bool is_denied[RIGHTS_MAX];
    bool has_place; /* a key or a channel */
};

static void ask_right(const struct denied *denied, size_t index,
                      struct weir__probe *probe)
{
    const char *words[8] = {NULL};
    char line[96], key[64], channel[64];
    char *rest = NULL;
    size_t count = 0;

    WEIR_ASSERT(index < RIGHTS_MAX);
    (void)snprintf(line, sizeof(line), "%s",
                   weir__rights[index].command); /* fits */
    (void)snprintf(key, sizeof(key), "%s:{weir.doctor}:wait",
                   denied->prefix); /* fits */
    (void)snprintf(channel, sizeof(channel), "%s:wake:x",
                   denied->prefix); /* fits */
    for (char *word = strtok_r(line, "| ", &rest); word != NULL && count < 7;
         word = strtok_r(NULL, "| ", &rest))
        words[count++] = strcmp(word, "KEY") == 0       ? key
                         : strcmp(word, "CHANNEL") == 0 ? channel
                                                        : word;
    weir__probe_put(probe, words);
}

static void hear_right(struct denied *denied, size_t index,
                       struct weir__probe *probe)
{
    const char *text;

    if (weir__probe_take(probe, &text) != WEIR_ESERVER)
        return;
    if (strncmp(text, "NOPERM", 6) != 0)
        denied->is_denied[index] =
            strncmp(text, "ERR unknown command", 19) == 0;
    else if (strstr(text, "to access") != NULL)
        denied->has_place = true;
    else
        denied->is_denied[index] = true;
}

/* A server looks at rights when it takes a command into a transaction; the
 * transaction is discarded. */
static void ask_rights(struct denied *denied, struct weir__probe *probe)
{
    static const char *const end[] = {"DISCARD", NULL};
    const struct weir__right *right = weir__rights;
    const char *text;

    for (size_t i = 0; right[i].command != NULL; i++)
        if (strcmp(right[i].command, end[0]) != 0)
            ask_right(denied, i, probe);
    for (size_t i = 0; right[i].command != NULL; i++)
        if (strcmp(right[i].command, end[0]) != 0)
            hear_right(denied, i, probe);
    (void)weir__probe_ask(probe, end, &text); /* or it ends with us */
}

/* --- what it means -------------------------------------------------------- */

/* Whoever has nothing of what a kind needs beyond the others is not meant to
 * serve it. */
static bool is_out(const struct denied *denied, enum weir__right_of kind)
{
    for (size_t i = 0; weir__rights[i].command != NULL; i++)
        if (weir__rights[i].of == kind && !denied->is_denied[i])
            return false;
    return true;
}

struct names {
    char texts[24 * NAMED_MAX]; /* "HSET, ZADD" */
    char rules[24 * NAMED_MAX]; /* "+hset +zadd" */
    size_t count;
};

static void note_denied(struct names *names, const struct weir__right *right)
{
    size_t text_len = strlen(names->texts), rule_len = strlen(names->rules);
    char name[WEIR__RIGHT_NAME_CAP];

    names->count++;
    if (names->count > NAMED_MAX)
        return;
    weir__right_name(right, name);
    (void)snprintf(names->texts + text_len, sizeof(names->texts) - text_len,
                   "%s%.*s", text_len > 0 ? ", " : "", (int)strlen(name),
                   right->command); /* cut */
    (void)snprintf(names->rules + rule_len, sizeof(names->rules) - rule_len,
                   "%s+%s", rule_len > 0 ? " " : "", name); /* cut */
}

static void report_denied(struct weir__doctor *doctor,
                          const struct names *names)
{
    const char *more = names->count > NAMED_MAX ? " and others" : "";
    char advice[sizeof(names->rules) + 32];

    (void)snprintf(advice, sizeof(advice), "ACL SETUSER with %s%s",
                   names->rules, more); /* fits */
    weir__doctor_note(doctor, "rights", WEIR__HEALTH_FAILED, advice,
                      "the user may not run %s%s", names->texts, more);
}

/* Behind "every command that weir needs is allowed". */
static const char *exception_of(const struct denied *denied)
{
    bool is_for_streams = !is_out(denied, WEIR__RIGHT_STREAM);

    if (!is_out(denied, WEIR__RIGHT_LIST))
        return is_for_streams ? "" : ", but for kind stream";
    return is_for_streams ? ", but for kind list"
                          : ", but for kinds list and stream";
}

static void report_place(struct weir__doctor *doctor, const char *prefix)
{
    char advice[128];

    (void)snprintf(advice, sizeof(advice), "ACL SETUSER with ~%s:* &%s:wake:*",
                   prefix, prefix); /* fits */
    weir__doctor_note(doctor, "rights", WEIR__HEALTH_FAILED, advice,
                      "the user may not use keys or channels %s:*", prefix);
}

static void report(struct weir__doctor *doctor, const struct denied *denied)
{
    struct names names = {0};

    for (size_t i = 0; weir__rights[i].command != NULL; i++) {
        enum weir__right_of of = weir__rights[i].of;

        if (denied->is_denied[i] && of != WEIR__RIGHT_BEYOND &&
            of != WEIR__RIGHT_SENTINEL &&
            (of == WEIR__RIGHT_ALWAYS || of == WEIR__RIGHT_BOTH ||
             !is_out(denied, of)))
            note_denied(&names, &weir__rights[i]);
    }
    if (names.count > 0)
        report_denied(doctor, &names);
    if (denied->has_place)
        report_place(doctor, denied->prefix);
    if (names.count == 0 && !denied->has_place)
        weir__doctor_note(doctor, "rights", WEIR__HEALTH_OK, NULL,
                          "every command that weir needs is allowed%s",
                          exception_of(denied));
}

void weir__doctor_rights(struct weir__doctor *doctor, struct weir__probe *probe,
                         const char *prefix)
{
    static const char *const begin[] = {"MULTI", NULL};
    struct denied denied = {.prefix = prefix};
    const char *text;

    if (weir__probe_ask(probe, begin, &text) == WEIR_OK)
        ask_rights(&denied, probe);
    else if (weir__probe_lost(probe) == NULL) {
        weir__doctor_note(doctor, "rights", WEIR__HEALTH_WARNING,
                          "ACL SETUSER with +multi +discard",
                          "cannot be looked at without MULTI: %s", text);
        return;
    }
    if (weir__probe_lost(probe) != NULL) {
        weir__doctor_note(doctor, "rights", WEIR__HEALTH_WARNING,
                          "look at the server and the way to it",
                          "cannot be looked at: %s", weir__probe_lost(probe));
        return;
    }
    report(doctor, &denied);
}
