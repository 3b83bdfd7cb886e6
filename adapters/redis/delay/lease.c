/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/hold.h"
#include "core/assert.h"
#include "core/mem.h"

/* Leases: prolonging those of which something is out, giving back the rest. */

struct renew_ask {
    struct weir__ask ask;
    struct weir__store_topic *topic;
};

struct release_ask {
    struct weir__ask ask;
    struct weir__store_topic *topic;
    uint64_t token;
    size_t returned;
};

static void on_renewed(struct weir__ask *ask, int code,
                       const struct redisReply *reply)
{
    struct renew_ask *renew = (struct renew_ask *)ask; /* its first member */
    struct weir__store_topic *topic = renew->topic;
    struct weir_slice digits;

    weir__mem_free(renew);
    weir__hold_note_error(topic, "renew", code, reply);
    if (code == WEIR_OK && reply->type == REDIS_REPLY_ARRAY &&
        reply->elements > 0)
        weir__log(topic->store->base.options.log, WEIR_LEVEL_WARN,
                  "redis: %s: %zu leases are gone; their jobs run again unless "
                  "they were deleted",
                  topic->base.name, (size_t)reply->elements);
    else
        return;
    for (size_t i = 0; i < (size_t)reply->elements && topic->base.user != NULL;
         i++)
        if (weir__reply_str(reply, i, &digits))
            topic->store->base.events.lost(topic->base.user,
                                           (uint64_t)weir__digits_read(digits));
}

/* Renew up to 1,024 leases from `lease` on; returns the rest. */
static const struct weir__lease *renew_some(struct weir__store_topic *topic,
                                            const struct weir__lease *lease,
                                            int64_t lease_ms)
{
    const struct weir__lease *end = lease;
    struct renew_ask *renew = weir__mem_new(sizeof(*renew));
    struct weir__buf bytes = {0};
    size_t count = 0;

    for (; end != NULL && count < WEIR__CALL_SLOTS; end = end->next)
        count++;
    if (renew == NULL)
        return end;
    renew->ask.done = on_renewed;
    renew->topic = topic;
    weir__resp_eval(&bytes, &weir__script_delay_renew, 1, 1 + count);
    weir__prefix_key(&bytes, &topic->base.prefix, "lease");
    weir__resp_int(&bytes, lease_ms);
    for (; lease != end; lease = lease->next)
        weir__resp_int(&bytes, (int64_t)lease->token);
    weir__base_send(&topic->store->base, &bytes, &weir__script_delay_renew,
                    WEIR__SEND_AGAIN, &renew->ask);
    return end;
}

/* What a held call names: at most as many nodes as one takes. */
static void renew_held(struct weir__store_topic *topic,
                       const struct weir__settle *settle, int64_t lease_ms)
{
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_delay_renew, 1,
                    1 + settle->token_count);
    weir__prefix_key(&bytes, &topic->base.prefix, "lease");
    weir__resp_int(&bytes, lease_ms);
    for (size_t i = 0; i < settle->token_count; i++)
        weir__resp_int(&bytes, (int64_t)settle->tokens[i]);
    weir__base_send(&topic->store->base, &bytes, &weir__script_delay_renew,
                    WEIR__SEND_AGAIN, NULL);
}

static void renew_list(struct weir__store_topic *topic,
                       const struct weir__lease *lease, int64_t lease_ms)
{
    while (lease != NULL)
        lease = renew_some(topic, lease, lease_ms);
}

/* What is being fetched or has runs out, what gathers for the next settle, and
 * what is held. Of held calls the answer does not matter: a lease that is gone
 * shows when they are repeated. */
void weir__topic_renew(struct weir__store_topic *topic, int64_t lease_ms)
{
    if (topic->store->base.is_closed)
        return;
    renew_list(topic, topic->leases, lease_ms);
    renew_list(topic, topic->spent_leases, lease_ms);
    for (const struct weir__settle *settle = topic->held; settle != NULL;
         settle = settle->next)
        renew_held(topic, settle, lease_ms);
}

static size_t write_tokens(struct weir__buf *buf,
                           const struct weir__lease *lease, size_t left)
{
    for (; lease != NULL && left > 0; lease = lease->next, left--)
        weir__resp_int(buf, (int64_t)lease->token);
    return left;
}

static size_t count_of(const struct weir__lease *lease)
{
    size_t count = 0;

    for (; lease != NULL; lease = lease->next)
        count++;
    return count;
}

/* One call for all leases of a topic; further than 1,024 they are not kept. */
void weir__topic_write_renewals(struct weir__buf *buf,
                                const struct weir__base_topic *base)
{
    const struct weir__store_topic *topic =
        (const struct weir__store_topic *)base; /* its first member */
    size_t left = count_of(topic->leases) + count_of(topic->spent_leases);

    if (left == 0)
        return;
    if (left > WEIR__CALL_SLOTS)
        left = WEIR__CALL_SLOTS;
    weir__resp_eval(buf, &weir__script_delay_renew, 1, 1 + left);
    weir__prefix_key(buf, &base->prefix, "lease");
    weir__resp_int(buf, base->claim.lease_ms);
    left = write_tokens(buf, topic->leases, left);
    (void)write_tokens(buf, topic->spent_leases, left);
    weir__buf_append(buf, "", 1); /* ends the call */
}

/* --- giving back -------------------------------------------------------- */

static void send_release(struct release_ask *release)
{
    const struct weir__store_topic *topic = release->topic;
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_delay_release, 5, 2);
    weir__prefix_keys(&bytes, &topic->base.prefix, "wait run lease meta idle");
    weir__resp_int(&bytes, (int64_t)release->token);
    weir__resp_str(&bytes, topic->base.name);
    weir__base_send(&topic->store->base, &bytes, &weir__script_delay_release,
                    WEIR__SEND_AGAIN, &release->ask);
}

static void on_released(struct weir__ask *ask, int code,
                        const struct redisReply *reply)
{
    struct release_ask *release = (struct release_ask *)ask; /* first member */
    struct weir__store_topic *topic = release->topic;
    size_t returned = release->returned;
    int64_t has_more = 0;

    if (code == WEIR_OK && weir__reply_int(reply, 1, &has_more) &&
        has_more != 0) {
        send_release(release);
        return;
    }
    weir__mem_free(release);
    weir__hold_note_error(topic, "release", code, reply);
    if (code == WEIR_OK)
        weir__base_log_aside(&topic->base, reply, 2);
    WEIR_ASSERT(topic->base.unsettled >= returned);
    topic->base.unsettled -= returned;
    if (topic->base.user != NULL)
        topic->store->base.events.settled(topic->base.user, returned, 0);
}

void weir__topic_release(struct weir__store_topic *topic, uint64_t token,
                         size_t returned)
{
    struct release_ask *release = weir__mem_new(sizeof(*release));

    if (release == NULL) { /* the lease runs out */
        topic->base.unsettled -= returned;
        return;
    }
    release->ask.done = on_released;
    release->ask.base = topic->base.base;
    release->topic = topic;
    release->token = token;
    release->returned = returned;
    send_release(release);
}
