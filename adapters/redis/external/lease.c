/* SPDX-License-Identifier: MIT */
#include "adapters/redis/external/private.h"
#include "core/assert.h"
#include "core/mem.h"

/* Prolonging leases, and noting that a suspect is about to run. */

void weir__external_renew(struct weir__renewals *renewals,
                          const struct weir__store_topic *base,
                          int64_t lease_ms)
{
    const struct weir__external_topic *topic =
        (const struct weir__external_topic *)base; /* its first member */
    const struct weir__lease *lease = base->leases;
    struct weir__buf *buf = &renewals->bytes;

    while (lease != NULL) {
        size_t count = weir__leases_count(lease, WEIR__EXTERNAL_CALL, NULL);

        weir__renewals_begin(renewals, &weir__script_external_renew);
        weir__resp_eval(buf, &weir__script_external_renew, 3, 3 + count);
        weir__prefix_keys(buf, &base->prefix, "lease run");
        weir__resp_str(buf, weir__external_key(topic));
        weir__resp_int(buf, lease_ms);
        weir__resp_str(buf, weir__external_group(topic));
        weir__resp_str(buf, topic->consumer);
        for (; count > 0; lease = lease->next, count--)
            weir__resp_int(buf, (int64_t)lease->token);
        weir__renewals_end(renewals);
    }
}

/* --- suspects ----------------------------------------------------------- */

static void on_started(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__external_entry *entry =
        (struct weir__external_entry *)request; /* first */
    struct weir__run *run = entry->starting;
    const struct weir__external_lease *lease = run->batch;
    struct weir__external_topic *topic = lease->topic;
    int64_t is_ours = 0;

    entry->starting = NULL;
    weir__topic_log_error(&topic->base, "start", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &is_ours))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && is_ours != 1)
        code = WEIR_ENOTFOUND;
    if (topic->base.user != NULL)
        topic->base.store->events.started(topic->base.user, run, code);
}

void weir__external_start(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct weir__external_lease *lease = run->batch;
    struct weir__external_entry *entry = &lease->entries[run->node];
    struct weir__buf bytes = {0};

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC && lease->topic == topic);
    WEIR_ASSERT(run->is_suspect && entry->starting == NULL);
    entry->start.done = on_started;
    entry->starting = run;
    weir__resp_eval(&bytes, &weir__script_external_start, 2, 2);
    weir__prefix_keys(&bytes, &topic->base.prefix, "run past");
    weir__resp_int(&bytes, (int64_t)run->token);
    weir__resp_bytes(&bytes, run->id);
    weir__redis_send(topic->base.store, &bytes, &weir__script_external_start,
                     WEIR__SEND_AGAIN, &entry->start);
}
