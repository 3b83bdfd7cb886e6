/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/backlog.h"
#include "core/assert.h"
#include "core/mem.h"

/* The rules of delay topics as a table, and the life of one. */

enum { MOST_NODES = 2000 }; /* that one stats call looks at */

struct weir__delay_topic *weir__delay_topic_of(struct weir__store_topic *topic)
{
    WEIR_ASSERT(topic->kind == &weir__delay_kind);
    return (struct weir__delay_topic *)topic; /* its first member */
}

static struct weir__delay *delay_of(struct weir__shared *shared)
{
    return (struct weir__delay *)shared; /* its first member */
}

/* --- life --------------------------------------------------------------- */

static void shared_init(struct weir__shared *shared)
{
    delay_of(shared)->random = shared->store->options.seed;
}

static void shared_fini(struct weir__shared *base)
{
    struct weir__delay *shared = delay_of(base);

    for (size_t i = 0; i < WEIR__SETTLE_LISTS; i++)
        weir__buf_fini(&shared->scratch[i]);
    weir__mem_free(shared->planned_packs.list);
    weir__block_cache_fini(&shared->batches);
    weir__adds_fini(shared);
}

static void topic_init(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    topic->shared =
        delay_of(weir__redis_shared(base->store, &weir__delay_kind));
    topic->touched_end = &topic->touched;
    topic->number = ++topic->shared->topics_made;
    weir__backlog_init(topic);
    weir__relays_init(&topic->outbox, base);
}

static void topic_fini(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    weir__delay_clear_verdicts(topic);
    weir__delay_disown(topic);
    weir__backlog_fini(topic); /* its calls name leases */
    weir__relays_fini(&topic->outbox);
    while (base->leases != NULL)
        weir__delay_lease_free((struct weir__delay_lease *)base->leases);
    weir__items_fini(&topic->endings);
    WEIR_ASSERT(topic->adds == NULL && topic->sending == NULL);
}

static void write_limit(char text[24], int64_t limit)
{
    text[0] = '\0';
    if (limit != WEIR__OPTION_NONE)
        (void)snprintf(text, 24, "%lld", (long long)limit); /* fits */
}

/* As scripts/lib/limits.lua reads them. */
static void note_limits(struct weir__delay_topic *topic,
                        const struct weir__options *options)
{
    bool has_keys = weir__options_has(options, WEIR__TOPIC_key_rate) ||
                    weir__options_has(options, WEIR__TOPIC_key_parallel) ||
                    weir__options_has(options, WEIR__TOPIC_ageing);
    char parallel[24], key_parallel[24], *limits = topic->limits;
    int len = 0;

    topic->has_rate = options->rate[0] != '\0' || options->key_rate[0] != '\0';
    topic->is_parallel = options->parallel != WEIR__OPTION_NONE;
    write_limit(parallel, options->parallel);
    write_limit(key_parallel, options->key_parallel);
    limits[0] = '\0';
    if (has_keys || topic->is_parallel || options->rate[0] != '\0')
        len = snprintf(limits, sizeof(topic->limits), "%s|%s", options->rate,
                       parallel); /* fits, as below */
    if (has_keys)
        (void)snprintf(limits + len, sizeof(topic->limits) - (size_t)len,
                       "|%s|%s|%lld", options->key_rate, key_parallel,
                       (long long)options->ageing);
    topic->tells_limits = true;
}

static void serve(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    topic->max_dead = base->options->max_dead;
    memcpy(topic->on_dead, base->options->on_dead, sizeof(topic->on_dead));
    topic->on_dead_topic = NULL;
    note_limits(topic, base->options);
}

/* As it is where it cannot be read. */
static void write_undeliverable(const struct weir__store_topic *topic,
                                struct weir__buf *buf,
                                const struct weir__undeliverable *job)
{
    struct weir__buf record = {0};

    (void)topic;
    weir__resp_bytes(buf, job->id);
    weir__resp_str(buf, job->made_id);
    if (job->record == NULL) {
        weir__resp_bytes(buf, job->stored);
        return;
    }
    weir__record_write(&record, job->record);
    weir__resp_bytes(buf, weir__buf_slice(&record));
    buf->failed = buf->failed || record.failed;
    weir__buf_fini(&record);
}

/* --- flush -------------------------------------------------------------- */

/* Settle before claim: what was settled makes room on the server first. */
static void flush(struct weir__store_topic *base)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);

    if ((topic->adds != NULL || topic->sending != NULL || base->wants_claim) &&
        !weir__topic_register(base))
        return;
    weir__delay_flush_adds(topic);
    weir__delay_flush_settles(topic);
    weir__delay_flush_claim(topic);
}

/* --- leases and counts ---------------------------------------------------- */

/* A lease whose last verdicts are on their way ends with them; where the server
 * did not take them it has to last until it does. */
static bool is_kept(const struct weir__lease *base)
{
    const struct weir__delay_lease *lease =
        (const struct weir__delay_lease *)base; /* its first member */

    return !lease->is_adopted && (!lease->is_done || lease->in_backlog > 0);
}

static void write_crash(struct weir__buf *buf, const char *crash)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "!%s", crash); /* cut */
    weir__resp_str(buf, text);
}

static void renew(struct weir__renewals *renewals,
                  const struct weir__store_topic *topic, int64_t lease_ms)
{
    const struct weir__lease *lease = topic->leases;

    for (;;) {
        size_t count = weir__leases_count(lease, WEIR__SLOTS_PER_CALL, is_kept);

        if (count == 0)
            return;
        weir__renewals_begin(renewals, &weir__script_delay_renew);
        weir__resp_eval(&renewals->bytes, &weir__script_delay_renew, 2,
                        (renewals->crash == NULL ? 1U : 2U) + count);
        weir__prefix_keys(&renewals->bytes, &topic->prefix, "lease held");
        weir__resp_int(&renewals->bytes, lease_ms);
        if (renewals->crash != NULL)
            write_crash(&renewals->bytes, renewals->crash);
        for (; count > 0; lease = lease->next)
            if (is_kept(lease)) {
                weir__resp_int(&renewals->bytes, (int64_t)lease->token);
                count--;
            }
        weir__renewals_end(renewals);
    }
}

void weir__delay_counted(struct weir__stats_request *request)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)request->topic; /* its first member */
    struct weir_stats *stats = &request->stats;

    if (topic->warned_newer && topic->base.leases == NULL &&
        topic->base.unsettled == 0 && stats->scheduled + stats->ready == 0)
        stats->newer = stats->running; /* until their lease runs out */
}

static int delay_stats(struct weir__store_topic *base, weir_stats_fn fn,
                       void *arg)
{
    struct weir__stats_request *stats = weir__stats_new(base, fn, arg);
    struct weir__buf bytes = {0};

    if (stats == NULL)
        return WEIR_ENOMEM;
    weir__resp_eval(&bytes, &weir__script_delay_stats, 6, 1);
    weir__prefix_keys(&bytes, &base->prefix, "wait meta dead relay due lease");
    weir__resp_int(&bytes, MOST_NODES);
    weir__place_send(base->place, &bytes, &weir__script_delay_stats,
                     WEIR__SEND_AGAIN, &stats->request);
    return WEIR_OK;
}

static bool holds_back(const struct weir__store_topic *base)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)base; /* its first member */

    return topic->backlog_cost > 0;
}

static size_t collected(const struct weir__store_topic *base)
{
    const struct weir__delay_topic *topic =
        (const struct weir__delay_topic *)base; /* its first member */

    return topic->shared->collected;
}

const struct weir__kind weir__delay_kind = {
    .name = "delay",
    .topic_size = sizeof(struct weir__delay_topic),
    .shared_size = sizeof(struct weir__delay),
    .takes_follows = true,
    .shared_init = shared_init,
    .shared_fini = shared_fini,
    .topic_init = topic_init,
    .topic_fini = topic_fini,
    .serve = serve,
    .listen = weir__delay_listen,
    .hinted = weir__early_fetch_note,
    .told = weir__delay_told,
    .flush = flush,
    .fail_adds = weir__delay_fail_adds,
    .leaving = weir__delay_send_settles,
    .settle = weir__delay_settle,
    .start = weir__delay_start,
    .token = weir__delay_token,
    .adopt = weir__delay_adopt,
    .prolong = weir__delay_prolong,
    .stop = weir__delay_stop,
    .unsettled = weir__delay_unsettled,
    .holds_back = holds_back,
    .collected = collected,
    .undeliverable = &weir__script_delay_undeliverable,
    .undeliverable_keys = "ids meta dead rec relay",
    .write_undeliverable = write_undeliverable,
    .renew = renew,
    .overdue_new = weir__overdue_new,
    .add = weir__delay_add,
    .show = weir__delay_show,
    .remove = weir__delay_remove,
    .reschedule = weir__delay_reschedule,
    .requeue = weir__delay_requeue,
    .purge = weir__delay_purge,
    .forget = weir__delay_forget,
    .list = weir__delay_list,
    .cron = weir__delay_cron,
    .crons = weir__delay_crons,
    .stats = delay_stats,
    .counted = weir__delay_counted,
};
