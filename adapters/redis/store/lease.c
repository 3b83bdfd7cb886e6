/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/store/kind.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

void weir__lease_begin(struct weir__lease *lease,
                       struct weir__store_topic *topic, uint64_t token)
{
    WEIR_ASSERT(lease->topic == NULL);
    weir__keeper_shut(topic->store->keeper);
    lease->topic = topic;
    lease->token = token;
    lease->next = topic->leases;
    if (lease->next != NULL)
        lease->next->previous = lease;
    topic->leases = lease;
    weir__keeper_reopen(topic->store->keeper);
}

void weir__lease_end(struct weir__lease *lease)
{
    struct weir__keeper *keeper;

    if (lease->topic == NULL)
        return;
    keeper = lease->topic->store->keeper;
    weir__keeper_shut(keeper);
    if (lease->previous != NULL)
        lease->previous->next = lease->next;
    else {
        WEIR_ASSERT(lease->topic->leases == lease);
        lease->topic->leases = lease->next;
    }
    if (lease->next != NULL)
        lease->next->previous = lease->previous;
    lease->topic = NULL;
    weir__keeper_reopen(keeper);
}

int weir__claim_read(const struct redisReply *reply, size_t room,
                     struct weir__claimed *ret_claimed,
                     struct weir__claim_head *ret_head)
{
    struct weir__claimed claimed = {0};
    int64_t time_us, token, count, state;

    if (!weir__reply_int(reply, 0, &time_us))
        return WEIR_ESERVER;
    if (time_us < 0)
        return WEIR_EKIND;
    if (!weir__reply_time(reply, 0, &time_us) ||
        !weir__reply_int(reply, 1, &token) ||
        !weir__reply_int(reply, 2, &claimed.next_due_us) ||
        !weir__reply_int(reply, 3, &count) ||
        !weir__reply_int(reply, 4, &state) || count < 0 ||
        (count > 0 && token <= 0))
        return WEIR_ESERVER;
    claimed.count = (size_t)count;
    claimed.is_paused = (state & 1) != 0;
    if (weir__claimed_check(&claimed, room) < 0)
        return WEIR_ESERVER;
    *ret_claimed = claimed;
    *ret_head = (struct weir__claim_head){
        .time_us = time_us, .token = (uint64_t)token, .revision = state >> 1};
    return WEIR_OK;
}

/* --- tokens ------------------------------------------------------------- */

/* Scores hold it and the state of a node. */
#define TOKEN_END (UINT64_C(1) << 45)

static void write_server(struct weir__buf *buf,
                         const struct weir__store_topic *topic,
                         const char *identity)
{
    char text[WEIR__IDENTITY_LEN + 32];
    bool is_known = identity[0] != '\0' &&
                    topic->token_of == topic->place->server->connection;

    if (is_known || topic->last_token == 0) { /* the usual case */
        weir__resp_str(buf, identity);
        return;
    }
    (void)snprintf(text, sizeof(text), "%s %" PRIu64, identity,
                   topic->last_token); /* fits */
    weir__resp_str(buf, text);
}

void weir__claim_write_server(struct weir__buf *buf,
                              const struct weir__store_topic *topic)
{
    write_server(buf, topic,
                 weir__conn_identity(topic->place->server->commands));
}

void weir__claim_write_floor(struct weir__buf *buf,
                             const struct weir__store_topic *topic)
{
    write_server(buf, topic, "");
}

void weir__claim_note_token(struct weir__store_topic *topic, uint64_t token)
{
    topic->token_of = topic->place->server->connection;
    if (token > topic->last_token && token < TOKEN_END)
        topic->last_token = token;
}

size_t weir__leases_count(const struct weir__lease *lease, size_t most,
                          bool (*is_kept)(const struct weir__lease *))
{
    size_t count = 0;

    for (; lease != NULL && count < most; lease = lease->next)
        count += is_kept == NULL || is_kept(lease);
    return count;
}

/* --- calls that prolong ------------------------------------------------- */

void weir__renewals_begin(struct weir__renewals *renewals,
                          const struct weir__script *script)
{
    struct weir__renewal call = {.topic = renewals->topic, .script = script};

    renewals->begun = renewals->bytes.len;
    weir__buf_append(&renewals->bytes, &call, sizeof(call));
}

void weir__renewals_end(struct weir__renewals *renewals)
{
    struct weir__buf *bytes = &renewals->bytes;
    struct weir__renewal call;

    if (bytes->failed)
        return;
    memcpy(&call, bytes->ptr + renewals->begun, sizeof(call));
    call.len = bytes->len - renewals->begun - sizeof(call);
    memcpy(bytes->ptr + renewals->begun, &call, sizeof(call));
}

bool weir__renewals_next(const struct weir__renewals *renewals, size_t *at,
                         struct weir__renewal *ret_call)
{
    const struct weir__buf *bytes = &renewals->bytes;

    if (bytes->failed || *at >= bytes->len)
        return false;
    memcpy(ret_call, bytes->ptr + *at, sizeof(*ret_call));
    *at += sizeof(*ret_call);
    ret_call->command = weir__slice_of(bytes->ptr + *at, ret_call->len);
    *at += ret_call->len;
    return true;
}

/* --- prolonging --------------------------------------------------------- */

struct renew_request {
    struct weir__request request;
    struct weir__store_topic *topic;
};

static void on_renewed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__store_topic *topic = ((struct renew_request *)request)->topic;
    struct weir_slice digits;
    size_t count = 0;

    weir__mem_free(request);
    weir__topic_log_error(topic, "renew", code, reply);
    if (code == WEIR_OK && reply->type == REDIS_REPLY_ARRAY)
        count = (size_t)reply->elements;
    if (count > 0)
        weir__log(topic->store->options.log, WEIR_LEVEL_WARN,
                  "redis: %s: %zu leases are gone; their jobs run again unless "
                  "they were deleted",
                  topic->name, count);
    for (size_t i = 0; i < count && topic->user != NULL; i++)
        if (weir__reply_str(reply, i, &digits))
            topic->store->events.lost(topic->user,
                                      (uint64_t)weir__digits_read(digits));
}

static void send_renewal(const struct weir__renewal *call)
{
    struct renew_request *renew = weir__mem_new(sizeof(*renew));
    struct weir__buf bytes = {0};

    if (renew == NULL)
        return; /* the next one comes in time */
    renew->request.done = on_renewed;
    renew->topic = call->topic;
    weir__buf_append(&bytes, call->command.ptr, call->command.len);
    weir__place_send(call->topic->place, &bytes, call->script, WEIR__SEND_AGAIN,
                     &renew->request);
}

bool weir__leases_renew(struct weir__store_topic *topic, int64_t lease_ms)
{
    struct weir__renewals renewals = {.topic = topic};
    struct weir__renewal call;
    size_t at = 0;

    if (topic->store->is_closed || topic->kind->renew == NULL)
        return true;
    topic->kind->renew(&renewals, topic, lease_ms);
    while (weir__renewals_next(&renewals, &at, &call))
        send_renewal(&call);
    weir__buf_fini(&renewals.bytes);
    return weir__place_is_up(topic->place);
}
