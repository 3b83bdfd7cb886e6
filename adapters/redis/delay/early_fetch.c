/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/mem.h"

/* A worker that is woken for one new pack asks for it together with its claim,
 * not afterwards: one round trip less from the add to the handler. Whether the
 * pack is its own the answer to the claim says, which comes first. */

struct weir__early_fetch {
    struct weir__request request;
    struct weir__delay_topic *topic;
    struct weir__delay_lease
        *lease; /* whose pack this is; NULL: nobody's, so far */
    char seq[WEIR__SEQ_LEN];
};

static void on_fetched(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__early_fetch *hint =
        (struct weir__early_fetch *)request; /* its first member */
    struct weir__delay_lease *lease = hint->lease;

    if (hint->topic->hint == hint) /* the claim is sent once more */
        hint->topic->hint = NULL;
    weir__mem_free(hint);
    if (lease == NULL)
        return;
    if (code == WEIR_OK || code == WEIR_ESERVER || code == WEIR_ETOOBIG ||
        code == WEIR_ECANCELED)
        weir__lease_fetched(&lease->request, code, reply);
    else
        weir__lease_fetch(lease); /* this one did not get there */
}

void weir__early_fetch_note(struct weir__delay_topic *topic, const char *seq)
{
    memcpy(topic->hint_seq, seq, sizeof(topic->hint_seq));
    topic->has_hint = true;
}

void weir__early_fetch_send(struct weir__delay_topic *topic)
{
    struct weir__early_fetch *hint;
    struct weir__buf bytes = {0};

    if (!topic->has_hint)
        return;
    topic->has_hint = false;
    hint = weir__mem_new(sizeof(*hint));
    if (hint == NULL)
        return; /* it is fetched afterwards */
    hint->request.done = on_fetched;
    hint->topic = topic;
    memcpy(hint->seq, topic->hint_seq, sizeof(hint->seq));
    topic->hint = hint;
    weir__resp_command(&bytes, 2);
    weir__resp_str(&bytes, "MGET");
    weir__prefix_pack(&bytes, &topic->base.prefix, hint->seq);
    weir__redis_send(topic->base.store, &bytes, NULL,
                     WEIR__SEND_ONCE | weir__send_bodies(1), &hint->request);
}

/* Options that changed are read before jobs arrive: then it is fetched again,
 * behind them. */
bool weir__early_fetch_takes(struct weir__delay_topic *topic,
                             struct weir__delay_lease *lease)
{
    struct weir__early_fetch *hint = topic->hint;

    topic->hint = NULL;
    if (hint == NULL || lease == NULL || lease->pack_count != 1 ||
        memcmp(lease->packs[0].first->name, hint->seq, WEIR__SEQ_LEN) != 0 ||
        topic->base.is_following)
        return false;
    hint->lease = lease;
    lease->is_fetching = true;
    lease->request.done = weir__lease_fetched;
    return true;
}
