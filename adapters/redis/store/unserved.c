/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Groups of a bounded topic that no worker serves. Where workers have `groups`
 * stats.lua tells how many groups wait in each part (lib/parts.lua), and the
 * workers say by which patterns they serve the topic. */

/* A pattern matches all groups of a part, or none. */
struct part {
    struct weir_slice pattern, names; /* names: of its first groups */
    uint64_t groups;
    bool is_served;
};

struct weir__waiting_parts {
    size_t count;
    bool has_unnamed; /* a worker serves more topics than it tells */
    struct part list[];
};

enum { TOLD = 3 }; /* elements of a part in the reply */

/* --- what waits ----------------------------------------------------------- */

static struct weir_slice keep(uint8_t **to, struct weir_slice text)
{
    struct weir_slice kept = weir__slice_of(*to, text.len);

    if (text.len > 0)
        memcpy(*to, text.ptr, text.len);
    *to += text.len;
    return kept;
}

static struct weir_slice text_at(const struct redisReply *reply, size_t i)
{
    struct weir_slice text = {0};

    (void)weir__reply_str(reply, i, &text);
    return text;
}

int weir__unserved_read(struct weir__stats_request *stats,
                        const struct redisReply *reply)
{
    const size_t count = (size_t)reply->elements / TOLD;
    struct weir__waiting_parts *parts;
    size_t room = 0;
    uint8_t *to;

    if (stats->parts != NULL || reply->type != REDIS_REPLY_ARRAY || count == 0)
        return WEIR_OK;
    for (size_t i = 0; i < TOLD * count; i++)
        room += text_at(reply, i).len;
    parts =
        weir__mem_new(sizeof(*parts) + count * sizeof(parts->list[0]) + room);
    if (parts == NULL)
        return WEIR_ENOMEM;
    to = (uint8_t *)&parts->list[count];
    for (size_t i = 0; i < count; i++) {
        struct part *part = &parts->list[i];
        int64_t groups = 0;

        (void)weir__reply_int(reply, TOLD * i + 1, &groups);
        part->groups = groups < 0 ? 0 : (uint64_t)groups;
        part->pattern = keep(&to, text_at(reply, TOLD * i));
        part->names = keep(&to, text_at(reply, TOLD * i + 2));
    }
    WEIR_ASSERT(to == (uint8_t *)&parts->list[count] + room);
    parts->count = count;
    stats->parts = parts;
    return WEIR_OK;
}

/* --- by whom it is served ------------------------------------------------- */

/* Does a pattern of a worker match the groups of a part? */
static bool covers(struct weir_slice word, struct weir_slice pattern)
{
    bool is_start = word.len > 0 && word.ptr[word.len - 1] == '*';
    size_t len = word.len - is_start;

    if (pattern.len > 0 && pattern.ptr[pattern.len - 1] == '*' && is_start)
        pattern.len--;
    return pattern.len >= len && (is_start || pattern.len == len) &&
           (len == 0 || memcmp(word.ptr, pattern.ptr, len) == 0);
}

/* `groups` are patterns with blanks between, as of the option. */
static bool serves(const char *groups, struct weir_slice pattern)
{
    bool has_some = false, is_some = false;

    for (groups += strspn(groups, " "); *groups != '\0';
         groups += strspn(groups, " ")) {
        size_t len = strcspn(groups, " ");
        bool is_out = *groups == '!';
        struct weir_slice word = weir__slice_of(groups + is_out, len - is_out);

        if (is_out && covers(word, pattern))
            return false;
        has_some = has_some || !is_out;
        is_some = is_some || (!is_out && covers(word, pattern));
        groups += len;
    }
    return is_some || !has_some;
}

static void note_worker(const struct weir__stats_request *stats,
                        const struct weir_worker *worker)
{
    struct weir__waiting_parts *parts = stats->parts;

    WEIR_ASSERT(parts != NULL);
    if (worker->topics_total > worker->topic_count)
        parts->has_unnamed = true;
    for (size_t i = 0; i < worker->topic_count; i++) {
        const struct weir_worker_topic *topic = &worker->topics[i];

        if (strcmp(topic->name, stats->topic->name) != 0)
            continue;
        for (size_t k = 0; k < parts->count; k++)
            if (serves(topic->groups, parts->list[k].pattern))
                parts->list[k].is_served = true;
    }
}

static void sum_up(struct weir__stats_request *stats, int code)
{
    struct weir__waiting_parts *parts = stats->parts;
    uint64_t sum = 0;

    WEIR_ASSERT(parts != NULL);
    for (size_t i = 0; i < parts->count; i++) {
        const struct part *part = &parts->list[i];

        if (part->is_served)
            continue;
        if (sum == 0)
            (void)snprintf(stats->unserved, sizeof(stats->unserved), "%.*s",
                           (int)part->names.len,
                           (const char *)part->names.ptr); /* fits */
        sum += part->groups;
    }
    stats->stats.unserved = (int64_t)sum;
    if (code != WEIR_OK || (sum > 0 && parts->has_unnamed))
        stats->stats.unserved = -1;
    weir__mem_free(parts);
    stats->parts = NULL;
}

/* --- asking --------------------------------------------------------------- */

/* One answer is for all requests that wait for it. */
static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    struct weir__redis *store = arg;
    struct weir__stats_request *stats = store->counting, *next;

    WEIR_ASSERT(stats != NULL);
    if (worker != NULL) {
        for (; stats != NULL && !worker->is_stopping; stats = stats->next)
            note_worker(stats, worker);
        return;
    }
    store->counting = NULL;
    for (; stats != NULL; stats = next) {
        next = stats->next;
        sum_up(stats, code);
        if (code == WEIR_ECANCELED)
            weir__stats_finish(stats, code);
        else
            weir__stats_ask_lateness(stats);
    }
}

void weir__unserved_ask(struct weir__stats_request *stats)
{
    struct weir__redis *store = stats->topic->store;
    bool is_asked = store->counting != NULL;
    int rc;

    WEIR_ASSERT(stats->parts != NULL);
    stats->next = store->counting;
    store->counting = stats;
    if (is_asked)
        return;
    rc = weir__redis_workers(&store->port, on_worker, store);
    if (rc < 0)
        on_worker(rc, NULL, store);
}
