/* SPDX-License-Identifier: MIT */
#include "adapters/web/snapshot.h"

#include "core/assert.h"
#include "core/mem.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/worker.h>

enum { SLICE = 50 }; /* topics that are asked for at a time */

static const double SLICE_S = 0.05;
static const double LOOKED_AT_S = 1.0; /* between rounds, at least */
static const double UNSEEN_S = 30.0;   /* at most: a point of the history */
static const double AGAIN_S = 1.0;     /* after a round that failed */

typedef char name_text[WEIR_MAX_TOPIC + 1];

/* A topic and who asks for it: the argument of its questions. */
struct entry {
    struct weir__topic_view view; /* first */
    struct weir__snapshot *snapshot;
    int64_t serving; /* workers of this round that told so up to now */
    bool is_kept;    /* while names are taken: it is among them */
    bool was_missed; /* the last round did not reach it */
};

struct weir__snapshot {
    struct ev_loop *loop;
    struct weir_reactor *reactor;
    struct weir__topic_view **topics; /* owned, each an entry; in byte order */
    size_t count;
    name_text *names; /* owned; of the round's topics, while they come */
    size_t name_count;
    size_t next;    /* the first topic that the round did not ask for */
    size_t waiting; /* questions without an answer */
    struct ev_timer slice, round;
    bool is_in_round; /* names come, and then */
    bool is_asking;   /* for what topics have */
    bool is_wanted;   /* somebody looked since the round began */
    bool has_unnamed; /* a worker serves more topics than it tells */
    bool has_missed;  /* the round did not reach topics that are not away */
    double began_s;
    int code, round_code;
    int64_t taken_ms; /* 0: never */
    uint64_t version, rounds;
    void (*on_round)(void *arg);
    void *on_round_arg;
};

/* --- the end of a round --------------------------------------------------- */

static void end_round(struct weir__snapshot *snapshot)
{
    const double past_s = ev_now(snapshot->loop) - snapshot->began_s;
    const int code = snapshot->round_code;
    double rest_s = code != WEIR_OK       ? AGAIN_S
                    : snapshot->is_wanted ? LOOKED_AT_S
                                          : UNSEEN_S;

    WEIR_ASSERT(snapshot->waiting == 0);
    snapshot->is_in_round = snapshot->is_asking = false;
    ev_timer_stop(snapshot->loop, &snapshot->slice);
    if (code != snapshot->code)
        snapshot->version++;
    snapshot->code = code;
    if (code == WEIR_OK) {
        if (!snapshot->has_missed)
            snapshot->taken_ms = (int64_t)(ev_now(snapshot->loop) * 1000.0);
        snapshot->rounds++;
        rest_s = rest_s > past_s ? rest_s - past_s : 0.0;
    }
    ev_timer_set(&snapshot->round, rest_s, 0.0);
    ev_timer_start(snapshot->loop, &snapshot->round);
    if (snapshot->on_round != NULL)
        snapshot->on_round(snapshot->on_round_arg);
}

/* --- a topic -------------------------------------------------------------- */

/* Answers that say nothing of the topic end the round. One server may be lost
 * in the middle of a round, and then no round follows that reaches its topics.
 * So a known topic is away only when two rounds in turn did not reach it. */
static void take_code(struct entry *entry, int code)
{
    struct weir__snapshot *snapshot = entry->snapshot;
    struct weir__stats_row *row = &entry->view.row;
    const bool was_shown = row->is_shown, was_away = row->is_away;
    const bool is_missed = code != WEIR_OK && code != WEIR_ENOTFOUND;

    row->is_shown = code != WEIR_ENOTFOUND;
    row->is_away = is_missed && (entry->was_missed || row->kind[0] == '\0' ||
                                 entry->view.is_of_new_kind);
    entry->was_missed = is_missed;
    snapshot->has_missed |= is_missed && !row->is_away;
    if (row->is_shown != was_shown || row->is_away != was_away)
        snapshot->version++;
    if (code == WEIR_ENOMEM || code == WEIR_ECANCELED)
        snapshot->round_code = code;
}

static void answered(struct weir__snapshot *snapshot)
{
    WEIR_ASSERT(snapshot->waiting > 0);
    snapshot->waiting--;
    if (snapshot->waiting == 0 &&
        (snapshot->next == snapshot->count || snapshot->round_code != WEIR_OK))
        end_round(snapshot);
}

static void answer(struct entry *entry, int code)
{
    take_code(entry, code);
    if (code != WEIR_ECANCELED) /* else the reactor is being freed */
        answered(entry->snapshot);
}

/* Numbers that follow each other without a gap are compared as bytes. */
static bool is_other(const struct weir_stats *one,
                     const struct weir_stats *other)
{
    const size_t from = offsetof(struct weir_stats, scheduled);

    return one->paused != other->paused ||
           one->ready_is_exact != other->ready_is_exact ||
           memcmp((const char *)one + from, (const char *)other + from,
                  sizeof(*one) - from) != 0;
}

static void take_kind(struct entry *entry, const char *kind)
{
    struct weir__stats_row *row = &entry->view.row;

    if (strcmp(row->kind, kind) == 0)
        return;
    (void)snprintf(row->kind, sizeof(row->kind), "%s", kind); /* cut */
    entry->snapshot->version++;
}

/* A kind comes with its numbers: those of the one before are no longer true. */
static void take_stats(struct entry *entry, const struct weir_stats *stats)
{
    struct weir__topic_view *view = &entry->view;
    struct weir__stats_row *row = &view->row;
    const double now_s = ev_now(entry->snapshot->loop);
    struct weir_stats plain = *stats;
    const double rate =
        weir__growth_take(&view->done, stats->done_total, now_s);

    take_kind(entry, stats->kind);
    plain.topic = plain.kind = plain.unserved_groups = NULL; /* borrowed */
    if (is_other(&plain, &row->stats) || rate > row->rate || rate < row->rate)
        entry->snapshot->version++;
    row->stats = plain;
    row->rate = rate;
    weir__history_take(&view->history, (int64_t)(now_s * 1000.0),
                       plain.done_total, plain.lateness_p99_us);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct entry *entry = arg;

    if (stats != NULL)
        take_stats(entry, stats);
    answer(entry, code);
}

/* A kind that only a newer version knows is shown at least. */
static void on_kind(int code, const char *kind, void *arg)
{
    struct entry *entry = arg;
    struct weir__stats_row *row = &entry->view.row;
    struct weir_reactor *reactor = entry->snapshot->reactor;

    if (code == WEIR_OK && strcmp(row->kind, kind) != 0) {
        code = weir_reactor_declare(reactor, row->topic, kind, NULL);
        entry->view.is_of_new_kind = code == WEIR_EINVAL;
        if (entry->view.is_of_new_kind)
            take_kind(entry, kind);
    } else if (code == WEIR_OK && entry->view.is_of_new_kind) {
        code = WEIR_EKIND;
    }
    if (code == WEIR_OK)
        code = weir_reactor_stats(reactor, row->topic, on_stats, entry);
    if (code != WEIR_OK)
        answer(entry, code);
}

/* Some at a time; each that cannot be asked for now is answered here. */
static void ask_slice(struct weir__snapshot *snapshot)
{
    for (size_t i = 0; i < SLICE && snapshot->next < snapshot->count; i++) {
        struct entry *entry = (struct entry *)snapshot->topics[snapshot->next];
        int code;

        snapshot->next++;
        snapshot->waiting++;
        code = weir_reactor_kind(snapshot->reactor, entry->view.row.topic,
                                 on_kind, entry);
        if (code != WEIR_OK) {
            answer(entry, code);
            return;
        }
    }
}

/* A server that is slow gets no more to do. */
static void on_slice(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct weir__snapshot *snapshot = timer->data;

    (void)loop;
    (void)events;
    if (snapshot->is_asking && snapshot->waiting == 0 &&
        snapshot->round_code == WEIR_OK)
        ask_slice(snapshot);
}

/* --- names ---------------------------------------------------------------- */

static struct entry *make_entry(struct weir__snapshot *snapshot,
                                const char *name)
{
    struct entry *entry = weir__mem_new(sizeof(*entry));

    if (entry == NULL)
        return NULL;
    entry->snapshot = snapshot;
    entry->view.row.rate = -1.0;
    entry->view.row.workers = -1;
    (void)snprintf(entry->view.row.topic, sizeof(entry->view.row.topic), "%s",
                   name); /* fits */
    return entry;
}

static int compare(const void *name, const void *topic)
{
    return strcmp(name, (*(struct weir__topic_view *const *)topic)->row.topic);
}

static struct entry *find(const struct weir__snapshot *snapshot,
                          const char *name)
{
    struct weir__topic_view **found = NULL;

    if (snapshot->count > 0)
        found = bsearch(name, snapshot->topics, snapshot->count,
                        sizeof(struct weir__topic_view *), compare);
    return found == NULL ? NULL : (struct entry *)*found;
}

/* --- workers -------------------------------------------------------------- */

static void count_worker(struct weir__snapshot *snapshot,
                         const struct weir_worker *worker)
{
    if (worker->topics_total > worker->topic_count)
        snapshot->has_unnamed = true;
    for (size_t i = 0; i < worker->topic_count; i++) {
        struct entry *entry = find(snapshot, worker->topics[i].name);

        if (entry != NULL)
            entry->serving++;
    }
}

/* Where workers cannot be asked, or do not name all that they serve, a topic
 * that nobody names may be served. */
static void take_workers(struct weir__snapshot *snapshot, int code)
{
    for (size_t i = 0; i < snapshot->count; i++) {
        struct entry *entry = (struct entry *)snapshot->topics[i];
        const int64_t before = entry->view.row.workers;

        entry->view.row.workers =
            code != WEIR_OK || (entry->serving == 0 && snapshot->has_unnamed)
                ? -1
                : entry->serving;
        entry->serving = 0;
        if (entry->view.row.workers != before)
            snapshot->version++;
    }
    snapshot->has_unnamed = false;
}

/* One that stops claims no more. */
static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    struct weir__snapshot *snapshot = arg;

    if (worker != NULL) {
        if (!worker->is_stopping)
            count_worker(snapshot, worker);
    } else if (code != WEIR_ECANCELED) { /* else the reactor is being freed */
        take_workers(snapshot, code);
        answered(snapshot);
    }
}

/* All workers in one question, then each topic. */
static void begin_asking(struct weir__snapshot *snapshot)
{
    int rc;

    ev_timer_again(snapshot->loop, &snapshot->slice);
    snapshot->waiting++;
    rc = weir_reactor_workers(snapshot->reactor, on_worker, snapshot);
    if (rc != WEIR_OK) {
        snapshot->waiting--;
        take_workers(snapshot, rc);
    }
    ask_slice(snapshot);
}

/* --- names of a round ----------------------------------------------------- */

static void free_topics(struct weir__topic_view **topics, size_t count,
                        bool kept)
{
    for (size_t i = 0; i < count; i++)
        if (topics[i] != NULL && ((struct entry *)topics[i])->is_kept == kept)
            weir__mem_free(topics[i]);
}

/* From now on the topics are those of the names; known ones stay as they are.
 * False: no memory, and nothing changed. */
static bool take_names(struct weir__snapshot *snapshot)
{
    const size_t count = snapshot->name_count;
    struct weir__topic_view **topics =
        weir__mem_new((count + 1) * sizeof(struct weir__topic_view *));
    bool is_good = topics != NULL, is_new = false;

    for (size_t i = 0; i < snapshot->count; i++)
        ((struct entry *)snapshot->topics[i])->is_kept = false;
    for (size_t i = 0; is_good && i < count; i++) {
        struct entry *entry = find(snapshot, snapshot->names[i]);

        is_new |= entry == NULL;
        if (entry != NULL)
            entry->is_kept = true;
        else
            entry = make_entry(snapshot, snapshot->names[i]);
        topics[i] = entry == NULL ? NULL : &entry->view;
        is_good = entry != NULL;
    }
    if (!is_good) {
        if (topics != NULL)
            free_topics(topics, count, false);
        weir__mem_free(topics);
        return false;
    }
    free_topics(snapshot->topics, snapshot->count, false);
    weir__mem_free(snapshot->topics);
    snapshot->version += is_new || count != snapshot->count ? 1 : 0;
    snapshot->topics = topics;
    snapshot->count = count;
    return true;
}

static void on_topic(int code, const char *topic, void *arg)
{
    struct weir__snapshot *snapshot = arg;
    name_text *names = snapshot->names;
    const size_t count = snapshot->name_count;

    WEIR_ASSERT(snapshot->is_in_round && snapshot->waiting == 0);
    if (topic == NULL) {
        if (code == WEIR_ECANCELED)
            return; /* the reactor is being freed */
        if (snapshot->round_code == WEIR_OK)
            snapshot->round_code = code;
        if (snapshot->round_code == WEIR_OK && !take_names(snapshot))
            snapshot->round_code = WEIR_ENOMEM;
        snapshot->next = 0;
        snapshot->is_asking = true;
        if (snapshot->round_code != WEIR_OK || snapshot->count == 0)
            end_round(snapshot);
        else
            begin_asking(snapshot);
        return;
    }
    if ((count & (count - 1)) == 0) { /* full: a power of two */
        names = weir__mem_grow(names, 2 * count + 1, sizeof(*names));
        if (names == NULL) {
            snapshot->round_code = WEIR_ENOMEM;
            return;
        }
        snapshot->names = names;
    }
    if (snapshot->round_code == WEIR_OK)
        (void)snprintf(names[snapshot->name_count++], sizeof(*names), "%s",
                       topic); /* fits */
}

/* --- rounds --------------------------------------------------------------- */

static void on_round(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct weir__snapshot *snapshot = timer->data;

    (void)loop;
    (void)events;
    WEIR_ASSERT(!snapshot->is_in_round && snapshot->waiting == 0);
    snapshot->is_in_round = true;
    snapshot->is_wanted = snapshot->has_missed = false;
    snapshot->began_s = ev_now(snapshot->loop);
    snapshot->name_count = 0;
    snapshot->round_code =
        weir_reactor_topics(snapshot->reactor, on_topic, snapshot);
    if (snapshot->round_code != WEIR_OK)
        end_round(snapshot);
}

void weir__snapshot_look(struct weir__snapshot *snapshot)
{
    const double past_s = ev_now(snapshot->loop) - snapshot->began_s;

    snapshot->is_wanted = true;
    if (snapshot->is_in_round || snapshot->code != WEIR_OK)
        return; /* it comes soon by itself */
    ev_timer_stop(snapshot->loop, &snapshot->round);
    ev_timer_set(&snapshot->round,
                 past_s < LOOKED_AT_S ? LOOKED_AT_S - past_s : 0.0, 0.0);
    ev_timer_start(snapshot->loop, &snapshot->round);
}

int weir__snapshot_open(struct ev_loop *loop, struct weir_reactor *reactor,
                        struct weir__snapshot **ret_snapshot)
{
    struct weir__snapshot *snapshot = weir__mem_new(sizeof(*snapshot));

    WEIR_ASSERT(loop != NULL && reactor != NULL);
    if (snapshot == NULL)
        return WEIR_ENOMEM;
    snapshot->loop = loop;
    snapshot->reactor = reactor;
    ev_timer_init(&snapshot->slice, on_slice, 0.0, SLICE_S);
    snapshot->slice.data = snapshot;
    ev_timer_init(&snapshot->round, on_round, 0.0, 0.0);
    snapshot->round.data = snapshot;
    ev_timer_start(loop, &snapshot->round);
    *ret_snapshot = snapshot;
    return WEIR_OK;
}

void weir__snapshot_close(struct weir__snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    ev_timer_stop(snapshot->loop, &snapshot->slice);
    ev_timer_stop(snapshot->loop, &snapshot->round);
    for (size_t i = 0; i < snapshot->count; i++)
        weir__mem_free(snapshot->topics[i]);
    weir__mem_free(snapshot->topics);
    weir__mem_free(snapshot->names);
    weir__mem_free(snapshot);
}

/* --- what is known -------------------------------------------------------- */

void weir__snapshot_on_round(struct weir__snapshot *snapshot,
                             void (*fn)(void *arg), void *arg)
{
    snapshot->on_round = fn;
    snapshot->on_round_arg = arg;
}

struct weir__topic_view *const *
weir__snapshot_topics(const struct weir__snapshot *snapshot, size_t *ret_count)
{
    *ret_count = snapshot->count;
    return snapshot->topics;
}

const struct weir__topic_view *
weir__snapshot_find(const struct weir__snapshot *snapshot, const char *topic)
{
    const struct entry *entry = find(snapshot, topic);

    return entry == NULL ? NULL : &entry->view;
}

void weir__snapshot_take(struct weir__snapshot *snapshot, const char *topic,
                         const struct weir_stats *stats)
{
    struct entry *entry = find(snapshot, topic);

    if (entry != NULL)
        take_stats(entry, stats);
}

uint64_t weir__snapshot_version(const struct weir__snapshot *snapshot)
{
    return snapshot->version;
}

uint64_t weir__snapshot_rounds(const struct weir__snapshot *snapshot)
{
    return snapshot->rounds;
}

int weir__snapshot_code(const struct weir__snapshot *snapshot)
{
    return snapshot->code;
}

int64_t weir__snapshot_taken_ms(const struct weir__snapshot *snapshot)
{
    return snapshot->taken_ms;
}
