/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Runs that one process takes and another one settles. The token that goes from
 * one to the other names claim and place of the job, and what only the claim
 * told:
 *
 *     TOKEN.PACK.LOHI.SLOT.ENDED.DUE[m]
 *
 * LO and HI are the slots of the claimed node, m says that the pack is mixed.
 * Whoever adopts such a run gets it as the answer to a claim, which takes
 * nothing from the server; from there on it goes like any other. */

/* What a token says. */
struct weir__adopted {
    struct weir__adopted *next;
    char pack[WEIR__SEQ_LEN + 1];
    uint64_t token;
    unsigned lo, hi, slot, ended;
    int64_t due_ms;
    bool is_mixed;
};

/* --- tokens --------------------------------------------------------------- */

static void write_token(const struct weir__adopted *adopted, char *buf,
                        size_t cap)
{
    int len = snprintf(buf, cap, "%" PRIu64 ".%s.%02x%02x.%u.%u.%" PRId64 "%s",
                       adopted->token, adopted->pack, adopted->lo, adopted->hi,
                       adopted->slot, adopted->ended, adopted->due_ms,
                       adopted->is_mixed ? "m" : "");

    WEIR_ASSERT(len > 0 && (size_t)len < cap);
}

void weir__delay_token(const struct weir__run *run,
                       char ret_token[WEIR__TOKEN_CAP])
{
    const struct weir__delay_lease *lease = run->batch;
    const struct weir__claimed_node *node = &lease->nodes[run->node];
    struct weir__adopted adopted = {
        .token = run->token,
        .slot = run->slot,
        .ended = node->ended,
        .due_ms = run->due_ms,
        .is_mixed = node->is_mixed,
    };
    int rc = weir__node_read(weir__slice_of(node->name, WEIR__NODE_LEN),
                             &adopted.lo, &adopted.hi);

    WEIR_ASSERT(rc == WEIR_OK);
    memcpy(adopted.pack, node->name, WEIR__SEQ_LEN);
    write_token(&adopted, ret_token, WEIR__TOKEN_CAP);
}

/* False: nobody was given this one. */
static bool read_token(const char *text, struct weir__adopted *ret_adopted)
{
    struct weir__adopted adopted = {0};
    char mixed[2] = "", again[WEIR__TOKEN_CAP];

    if (sscanf(text,
               "%15" SCNu64 ".%12[-0-9A-Z_a-z].%2x%2x.%3u.%3u.%13" SCNd64
               "%1[m]",
               &adopted.token, adopted.pack, &adopted.lo, &adopted.hi,
               &adopted.slot, &adopted.ended, &adopted.due_ms, mixed) < 7)
        return false;
    adopted.is_mixed = mixed[0] != '\0';
    if (strlen(adopted.pack) != WEIR__SEQ_LEN ||
        !weir__seq_is_sound(adopted.pack) || adopted.lo > adopted.slot ||
        adopted.slot > adopted.hi || adopted.hi >= WEIR__SLOTS_MAX ||
        adopted.ended >= WEIR__NODE_STATES / 2 || adopted.due_ms < 0 ||
        (adopted.ended > 0 && adopted.lo != adopted.hi))
        return false;
    write_token(&adopted, again, sizeof(again));
    *ret_adopted = adopted;
    return strcmp(again, text) == 0;
}

bool weir__token_is_sound(const char *token)
{
    struct weir__adopted adopted;

    return read_token(token, &adopted);
}

int weir__delay_adopt(struct weir__store_topic *base, const char *token)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__adopted adopted, *copy, **end = &topic->adopted;

    if (!read_token(token, &adopted))
        return WEIR_EINVAL;
    copy = weir__mem_new(sizeof(*copy));
    if (copy == NULL)
        return WEIR_ENOMEM;
    *copy = adopted;
    while (*end != NULL)
        end = &(*end)->next;
    *end = copy;
    topic->is_adopting = true;
    return WEIR_OK;
}

void weir__delay_disown(struct weir__delay_topic *topic)
{
    while (topic->adopted != NULL) {
        struct weir__adopted *adopted = topic->adopted;

        topic->adopted = adopted->next;
        weir__mem_free(adopted);
    }
}

/* --- runs ----------------------------------------------------------------- */

static void fill_node(struct weir__claimed_node *node,
                      const struct weir__adopted *adopted)
{
    const unsigned bounds[] = {adopted->lo, adopted->hi};

    memcpy(node->name, adopted->pack, WEIR__SEQ_LEN);
    for (size_t i = 0; i < 2; i++) {
        node->name[WEIR__SEQ_LEN + 2 * i] = (char)('0' + bounds[i] / 16);
        node->name[WEIR__SEQ_LEN + 2 * i + 1] = (char)('0' + bounds[i] % 16);
    }
    node->lo = adopted->lo;
    node->size = adopted->hi - adopted->lo + 1;
    node->alone = adopted->slot + 1;
    node->ended = adopted->ended;
    node->due_ms = adopted->due_ms;
    node->is_mixed = adopted->is_mixed;
}

struct weir__delay_lease *weir__adopted_next(struct weir__delay_topic *topic,
                                             int64_t time_us,
                                             struct weir__claimed *claimed)
{
    struct weir__adopted *adopted = topic->adopted;
    struct weir__delay_lease *lease;

    *claimed = (struct weir__claimed){.code = claimed->code, .next_due_us = -1};
    if (adopted == NULL)
        return NULL;
    lease = weir__delay_lease_new(topic, 1, 0);
    if (lease == NULL)
        return NULL;
    topic->adopted = adopted->next;
    fill_node(&lease->nodes[0], adopted);
    lease->nodes[0].lease = lease;
    lease->jobs = 1;
    lease->is_adopted = true;
    weir__delay_lease_claimed(lease, time_us, adopted->token);
    weir__mem_free(adopted);
    claimed->count = 1;
    claimed->next_due_us = 0;
    return lease;
}

/* --- prolonging ----------------------------------------------------------- */

struct prolong {
    struct weir__request request; /* first */
    weir_count_fn fn;
    void *arg;
};

static void on_prolonged(struct weir__request *request, int code,
                         const struct redisReply *reply)
{
    struct prolong *prolong = (struct prolong *)request; /* its first member */
    uint64_t lost = 0;

    if (code == WEIR_OK && reply->type != REDIS_REPLY_ARRAY)
        code = WEIR_ESERVER;
    if (code == WEIR_OK)
        lost = (uint64_t)reply->elements;
    prolong->fn(code, lost, prolong->arg);
    weir__mem_free(prolong);
}

int weir__delay_prolong(struct weir__store_topic *base,
                        const struct weir__prolong *what, weir_count_fn fn,
                        void *arg)
{
    struct weir__adopted adopted = {0};
    struct weir__buf bytes = {0};
    struct prolong *prolong;

    for (size_t i = 0; i < what->count; i++)
        if (!read_token(what->tokens[i], &adopted))
            return WEIR_EINVAL;
    prolong = weir__mem_new(sizeof(*prolong));
    if (prolong == NULL)
        return WEIR_ENOMEM;
    *prolong =
        (struct prolong){.request.done = on_prolonged, .fn = fn, .arg = arg};
    weir__resp_eval(&bytes, &weir__script_delay_renew, 2, 1 + what->count);
    weir__prefix_keys(&bytes, &base->prefix, "lease held");
    weir__resp_int(&bytes, what->lease_ms);
    for (size_t i = 0; i < what->count; i++) {
        (void)read_token(what->tokens[i], &adopted);
        weir__resp_int(&bytes, (int64_t)adopted.token);
    }
    weir__place_send(base->place, &bytes, &weir__script_delay_renew,
                     WEIR__SEND_AGAIN, &prolong->request);
    return WEIR_OK;
}
