/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/hold.h"
#include "core/assert.h"
#include "core/mem.h"

/* Leases: prolonging those of which something is out, giving back the rest. */

/* A lease whose last verdicts are on their way ends with them; where the server
 * did not take them it has to last until it does. */
static bool is_kept(const struct weir__lease *base)
{
    const struct weir__delay_lease *lease =
        (const struct weir__delay_lease *)base; /* its first member */

    return !lease->is_done || lease->held > 0;
}

static size_t count_kept(const struct weir__lease *lease)
{
    size_t count = 0;

    for (; lease != NULL && count < WEIR__CALL_SLOTS; lease = lease->next)
        count += is_kept(lease);
    return count;
}

void weir__delay_renew(struct weir__renewals *renewals,
                       const struct weir__store_topic *topic, int64_t lease_ms)
{
    const struct weir__lease *lease = topic->leases;

    for (;;) {
        size_t count = count_kept(lease);

        if (count == 0)
            return;
        weir__renewals_begin(renewals, &weir__script_delay_renew);
        weir__resp_eval(&renewals->bytes, &weir__script_delay_renew, 1,
                        1 + count);
        weir__prefix_key(&renewals->bytes, &topic->prefix, "lease");
        weir__resp_int(&renewals->bytes, lease_ms);
        for (; count > 0; lease = lease->next)
            if (is_kept(lease)) {
                weir__resp_int(&renewals->bytes, (int64_t)lease->token);
                count--;
            }
        weir__renewals_end(renewals);
    }
}

/* --- giving back -------------------------------------------------------- */

struct release_request {
    struct weir__request request;
    struct weir__delay_topic *topic;
    uint64_t token;
    size_t returned;
};

static void send_release(struct release_request *release)
{
    const struct weir__delay_topic *topic = release->topic;
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_delay_release, 5, 2);
    weir__prefix_keys(&bytes, &topic->base.prefix, "wait run lease meta idle");
    weir__resp_int(&bytes, (int64_t)release->token);
    weir__resp_str(&bytes, topic->base.name);
    weir__redis_send(topic->base.store, &bytes, &weir__script_delay_release,
                     WEIR__SEND_AGAIN, &release->request);
}

static void on_released(struct weir__request *request, int code,
                        const struct redisReply *reply)
{
    struct release_request *release =
        (struct release_request *)request; /* first member */
    struct weir__delay_topic *topic = release->topic;
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
        weir__topic_log_aside(&topic->base, reply, 2);
    WEIR_ASSERT(topic->base.unsettled >= returned);
    topic->base.unsettled -= returned;
    if (topic->base.user != NULL)
        topic->base.store->events.settled(topic->base.user, returned, 0);
}

void weir__delay_release(struct weir__delay_topic *topic, uint64_t token,
                         size_t returned)
{
    struct release_request *release = weir__mem_new(sizeof(*release));

    if (release == NULL) { /* the lease runs out */
        topic->base.unsettled -= returned;
        return;
    }
    release->request.done = on_released;
    release->request.store = topic->base.store;
    release->topic = topic;
    release->token = token;
    release->returned = returned;
    send_release(release);
}
