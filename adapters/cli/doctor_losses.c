/* SPDX-License-Identifier: MIT */

/* A server may lose one key and keep others (docs/packs.md). Most losses heal
 * with the next stats, claim or add. weir doctor finds the rest here, in steps
 * of about 1 ms. */

#include "adapters/cli/doctor.h"

#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/script.h"
#include "core/mem.h"
#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_CAP = WEIR__REDIS_PREFIX_CAP + WEIR_MAX_TOPIC + WEIR_MAX_ID + 8,
    WORDS_MAX = 64, /* in one command */
    PACKS = 16,     /* in one step: each is looked for in up to 1,022 places */
    GROUPS = 24,    /* likewise */
    NAMED_MAX = 20
};

struct search {
    struct weir__doctor *doctor;
    const struct weir__members *members;
    struct weir__probe *probe; /* of the topic */
    const char *prefix;
    const char *topic;
    bool mends;
    uint64_t lost;   /* in this topic */
    size_t topics;   /* searched */
    size_t affected; /* of these */
    char why[256];   /* "": each question had its answer */
};

/* A command that is being written. */
struct words {
    const struct weir__script *script; /* that it runs */
    const char *list[WORDS_MAX];
    size_t count;
    char keys[16 + GROUPS][KEY_CAP];
    size_t key_count;
};

static void put(struct words *words, const char *word)
{
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

static void put_key(const struct search *search, struct words *words,
                    const char *part, const char *group)
{
    char *key = words->keys[words->key_count++];

    (void)snprintf(key, KEY_CAP, "%s:{%s}:%s%s", search->prefix, search->topic,
                   part, group); /* fits */
    put(words, key);
}

/* --- asking --------------------------------------------------------------- */

/* False: `why` is noted. */
static bool ask(struct search *search, const struct words *words,
                const char **ret_text)
{
    int rc = weir__probe_ask(search->probe, words->list, ret_text);

    if (rc != WEIR_OK && strncmp(*ret_text, "NOSCRIPT", 8) == 0) {
        weir__probe_put_load(search->probe, words->script);
        rc = weir__probe_take(search->probe, ret_text);
        if (rc == WEIR_OK)
            rc = weir__probe_ask(search->probe, words->list, ret_text);
    }
    if (rc != WEIR_OK)
        (void)snprintf(search->why, sizeof(search->why), "%s",
                       *ret_text); /* cut */
    return rc == WEIR_OK;
}

/* Its reply begins with a cursor, which is copied, and how many were lost. */
static bool run_step(struct search *search, const struct words *words,
                     char ret_cursor[24])
{
    const char *text;

    if (!ask(search, words, &text))
        return false;
    (void)snprintf(ret_cursor, 24, "%.*s", (int)strcspn(text, "\n"), text);
    text += strcspn(text, "\n");
    search->lost += strtoull(text, NULL, 10);
    return true;
}

static void begin_script(struct words *words, const struct weir__script *script,
                         const char *key_count)
{
    words->count = words->key_count = 0;
    words->script = script;
    put(words, "EVALSHA");
    put(words, script->sha1);
    put(words, key_count);
}

static void begin_mend(const struct search *search, struct words *words,
                       const char *what)
{
    static const char *const keys[] = {"wait", "run", "ids", "meta",  "dead",
                                       "rec",  "due", "of",  "absent"};

    begin_script(words, &weir__script_delay_mend, "9");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        put_key(search, words, keys[i], "");
    put(words, search->mends ? "1" : "0");
    put(words, what);
}

/* --- keys that hold members ----------------------------------------------- */

/* False: an answer is missing. */
static bool look_through(struct search *search, struct words *words,
                         const char *what)
{
    char cursor[24] = "0";

    do {
        begin_mend(search, words, what);
        put(words, cursor);
        if (!run_step(search, words, cursor))
            return false;
    } while (strcmp(cursor, "0") != 0);
    return true;
}

/* --- keys that nothing names ---------------------------------------------- */

static bool check_packs(struct search *search, struct words *words,
                        char **names, size_t count)
{
    char cursor[24];

    begin_mend(search, words, "packs");
    for (size_t i = 0; i < count; i++)
        put(words, names[i]);
    return run_step(search, words, cursor);
}

static bool check_groups(struct search *search, struct words *words,
                         char **names, size_t count)
{
    static const char *const keys[] = {"meta", "rot",  "hot",
                                       "out",  "idle", "options"};
    char key_count[8], cursor[24];

    (void)snprintf(key_count, sizeof(key_count), "%zu", 6 + count); /* fits */
    begin_script(words, &weir__script_bounded_mend, key_count);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        put_key(search, words, keys[i], "");
    for (size_t i = 0; i < count; i++)
        put_key(search, words, "g:", names[i]);
    put(words, search->topic);
    put(words, search->mends ? "1" : "0");
    for (size_t i = 0; i < count; i++)
        put(words, names[i]);
    return run_step(search, words, cursor);
}

typedef bool check_fn(struct search *search, struct words *words, char **names,
                      size_t count);

/* Keys are lines of `text`, which is changed. */
static bool check_page(struct search *search, struct words *words, char *text,
                       size_t skip, size_t most, check_fn *check)
{
    char *names[GROUPS], *rest = NULL;
    size_t count = 0;
    bool is_good = true;

    for (char *key = strtok_r(text, "\n", &rest); is_good && key != NULL;
         key = strtok_r(NULL, "\n", &rest)) {
        if (strlen(key) <= skip || strlen(key) >= KEY_CAP)
            continue;
        names[count++] = key + skip;
        if (count < most)
            continue;
        is_good = check(search, words, names, count);
        count = 0;
    }
    return is_good && (count == 0 || check(search, words, names, count));
}

/* `part` is what such keys have behind the topic. */
static bool look_at_keys(struct search *search, struct words *words,
                         const char *part, size_t most, check_fn *check)
{
    char pattern[KEY_CAP], cursor[24] = "0", *keys;
    const char *scan[] = {"SCAN",  cursor, "MATCH", pattern,
                          "COUNT", "1000", NULL};
    const char *why;
    bool is_good = true;
    size_t skip;

    (void)snprintf(pattern, sizeof(pattern), "%s:{%s}:%s*", search->prefix,
                   search->topic, part); /* fits */
    skip = strlen(pattern) - 1;
    do {
        keys = weir__probe_page(search->probe, scan, cursor, &why);
        if (keys == NULL)
            (void)snprintf(search->why, sizeof(search->why), "%s", why);
        is_good =
            keys != NULL && check_page(search, words, keys, skip, most, check);
        weir__mem_free(keys);
    } while (is_good && strcmp(cursor, "0") != 0);
    return is_good;
}

/* --- a topic -------------------------------------------------------------- */

static void note_found(struct search *search, const char *what,
                       const char *done)
{
    char advice[64 + WEIR_MAX_TOPIC];

    if (search->lost == 0)
        return;
    if (++search->affected > NAMED_MAX && !search->mends)
        return;
    (void)snprintf(advice, sizeof(advice), "weir doctor --mend %s",
                   search->topic); /* fits */
    weir__doctor_note(search->doctor, "losses",
                      search->mends ? WEIR__HEALTH_OK : WEIR__HEALTH_WARNING,
                      advice, "topic %s: %" PRIu64 " %s%s%s", search->topic,
                      search->lost, what, search->mends ? ": " : "",
                      search->mends ? done : "");
}

/* Claims leave entries of the last two keys for others to remove, so these are
 * no sign of a loss. Where nothing was counted as lost nothing lacks a name. */
static void look_at_delay(struct search *search, struct words *words,
                          bool has_losses)
{
    static const char *const keys[] = {"wait", "ids", "of", "due"};
    size_t count = search->mends ? 4 : 2;
    bool is_good = true;

    for (size_t i = 0; is_good && i < count; i++)
        is_good = look_through(search, words, keys[i]);
    if (is_good && (has_losses || search->mends))
        (void)look_at_keys(search, words, "p:", PACKS, check_packs);
    note_found(search, "entries and packs of jobs that are lost",
               "they are removed");
}

static void look_at_bounded(struct search *search, struct words *words,
                            bool has_losses)
{
    if (has_losses || search->mends)
        (void)look_at_keys(search, words, "g:", GROUPS, check_groups);
    note_found(search, "groups with events have no turn", "they have one now");
}

/* What doctor reads of `meta`. */
struct known {
    bool has_losses;
    bool was_restored; /* from other keys (lib/restore.lua) */
    char kind[16];     /* "": `meta` does not say */
};

static bool read_meta(struct search *search, struct words *words,
                      struct known *ret_known)
{
    const char *text, *kind, *restored;

    words->count = words->key_count = 0;
    put(words, "HMGET");
    put_key(search, words, "meta", "");
    put(words, "lost");
    put(words, "kind");
    put(words, "restored");
    if (!ask(search, words, &text))
        return false;
    ret_known->has_losses = text[0] != '\n';
    kind = text + strcspn(text, "\n") + 1;
    (void)snprintf(ret_known->kind, sizeof(ret_known->kind), "%.*s",
                   (int)strcspn(kind, "\n"), kind); /* cut */
    restored = kind + strcspn(kind, "\n") + 1;
    ret_known->was_restored = restored[0] != '\0' && restored[0] != '\n';
    return true;
}

/* Is a key there that a topic without `meta` cannot have? */
static bool has_other_keys(struct search *search, struct words *words)
{
    static const char *const keys[] = {"wait", "run",  "ids",    "options",
                                       "rot",  "hot",  "out",    "fifo",
                                       "held", "past", "parked", "dead"};
    const char *text;

    words->count = words->key_count = 0;
    put(words, "EXISTS");
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        put_key(search, words, keys[i], "");
    return ask(search, words, &text) && text[0] != '0';
}

static bool run_find(struct search *search, struct words *words)
{
    const char *text;

    begin_script(words, &weir__script_external_find, "2");
    put_key(search, words, "meta", "");
    put_key(search, words, "options", "");
    return ask(search, words, &text);
}

/* With --mend other keys tell what `meta` had, as far as they can. */
static void look_at_meta(struct search *search, struct words *words,
                         struct known *known)
{
    char advice[64 + WEIR_MAX_TOPIC];
    const char *text;
    bool is_unknown = known->kind[0] == '\0';

    if (is_unknown ? !has_other_keys(search, words) : !known->was_restored)
        return;
    if (search->mends &&
        (!run_find(search, words) || !read_meta(search, words, known)))
        return;
    is_unknown = known->kind[0] == '\0';
    if (search->mends && !is_unknown) {
        words->count = words->key_count = 0;
        put(words, "HDEL");
        put_key(search, words, "meta", "");
        put(words, "restored");
        (void)ask(search, words, &text);
    }
    search->affected++;
    (void)snprintf(advice, sizeof(advice),
                   search->mends ? "weir topic set %s kind=KIND"
                                 : "pause it again if it was paused, then "
                                   "weir doctor --mend %s",
                   search->topic); /* fits */
    weir__doctor_note(search->doctor, "losses",
                      search->mends && !is_unknown ? WEIR__HEALTH_OK
                                                   : WEIR__HEALTH_WARNING,
                      advice, "topic %s: its key meta %s", search->topic,
                      is_unknown ? "is lost"
                                 : "was lost: totals began again, and a pause "
                                   "ended");
}

static void look_at_topic(struct search *search, struct words *words,
                          const char *topic)
{
    struct known known = {0};

    search->topic = topic;
    search->lost = 0;
    search->probe = weir__members_probe(
        search->members, weir__cluster_slot_of_topic(weir__slice_str(topic)));
    if (search->probe == NULL)
        return; /* that its node is away was said already */
    if (!read_meta(search, words, &known))
        return;
    search->topics++;
    look_at_meta(search, words, &known);
    if (strcmp(known.kind, "delay") == 0)
        look_at_delay(search, words, known.has_losses);
    else if (strcmp(known.kind, "bounded") == 0)
        look_at_bounded(search, words, known.has_losses);
}

/* --- all topics ----------------------------------------------------------- */

static void on_topic(const char *topic, void *arg)
{
    struct search *search = ((void **)arg)[0];

    if (search->why[0] == '\0')
        look_at_topic(search, ((void **)arg)[1], topic);
}

static void note_rest(struct search *search)
{
    if (search->why[0] != '\0')
        weir__doctor_note(search->doctor, "losses", WEIR__HEALTH_WARNING,
                          "allow it, or ask as a user who may",
                          "what was lost is not all known: %s", search->why);
    else if (search->affected > NAMED_MAX && !search->mends)
        weir__doctor_note(search->doctor, "losses", WEIR__HEALTH_WARNING,
                          "weir doctor --mend TOPIC, for each",
                          "%zu topics in all", search->affected);
    else if (search->affected == 0)
        weir__doctor_note(search->doctor, "losses", WEIR__HEALTH_OK, NULL,
                          "none found in %zu topic%s", search->topics,
                          search->topics == 1 ? "" : "s");
}

void weir__doctor_losses(struct weir__doctor *doctor,
                         const struct weir__members *members,
                         const char *prefix, const char *topic)
{
    struct search search = {.doctor = doctor,
                            .members = members,
                            .prefix = prefix,
                            .mends = topic != NULL};
    struct words *words = weir__mem_new(sizeof(*words));
    void *arg[] = {&search, words};
    size_t count;
    bool is_all;

    if (words == NULL) {
        doctor->is_out_of_memory = true;
        return;
    }
    if (topic != NULL)
        look_at_topic(&search, words, topic);
    else
        (void)weir__members_topics(members, prefix, on_topic, arg, &count,
                                   &is_all); /* the cluster's check says so */
    note_rest(&search);
    weir__mem_free(words);
}
