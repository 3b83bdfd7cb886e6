/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/delay/backlog.h"
#include "adapters/redis/delay/settle_call.h"
#include "core/assert.h"
#include "core/mem.h"

/* A verdict that is larger than the server takes (conn/refusal.c). The job is
 * on the server, but no call can bring what becomes of it. So finish.lua lets
 * it die, which writes its record there. */

enum { HANDLE_MAX = 400 };

static const struct weir__claimed_node *
only_node(const struct weir__settle_call *call)
{
    const struct weir__claimed_node *node = call->first;

    return call->verdicts == 1 && call->nodes == 1 && call->backs == 0 &&
                   node->verdicts == 1
               ? node
               : NULL;
}

static uint32_t slot_of(const struct weir__claimed_node *node)
{
    uint32_t slot = node->lo;

    while ((node->slots[slot >> 6] >> (slot & 63) & 1) == 0)
        slot++;
    return slot;
}

/* As pull.lua tells it. */
static void print_handle(char handle[HANDLE_MAX],
                         const struct weir__claimed_node *node)
{
    const struct weir__batch *batch = node->lease->packs[node->pack].batch;
    uint32_t slot = slot_of(node);
    int64_t due_ms = weir__claimed_due_ms(node, slot);
    struct weir_slice id = {0};

    if (batch != NULL && batch->ids != NULL)
        id = batch->ids[slot];
    (void)snprintf(handle, HANDLE_MAX, "%llu %.*s %u %lld %u %.*s",
                   (unsigned long long)node->lease->base.token,
                   (int)sizeof(node->name), node->name, slot,
                   (long long)(due_ms + (node->is_mixed ? WEIR__MIXED_MS : 0)),
                   node->ended, (int)id.len, (const char *)id.ptr); /* fits */
}

void weir__refused_prepare(struct weir__settle *settle,
                           const struct weir__settle_call *call)
{
    const struct weir__claimed_node *node = only_node(call);

    if (node == NULL || call->bytes <= WEIR__BYTES_PER_CALL)
        return;
    settle->handle = weir__mem_new(HANDLE_MAX); /* NULL: its lease runs out */
    if (settle->handle != NULL)
        print_handle(settle->handle, node);
    settle->bytes = call->bytes;
}

static void write_finish(struct weir__buf *bytes,
                         const struct weir__settle *settle, const char *why)
{
    const struct weir__store_topic *topic = &settle->topic->base;

    weir__resp_eval(bytes, &weir__script_delay_finish, 13, 5);
    weir__prefix_keys(bytes, &topic->prefix,
                      "wait run lease ids meta idle held due dead rec options "
                      "started absent");
    weir__resp_str(bytes, ""); /* no worker is to be woken by it */
    weir__resp_str(bytes, settle->handle);
    weir__resp_str(bytes, "fail");
    weir__resp_str(bytes, ""); /* no delay */
    weir__resp_str(bytes, why);
}

enum { WHY_CAP = 160 };

static void print_why(const struct weir__settle *settle, char why[WHY_CAP])
{
    (void)snprintf(why, WHY_CAP,
                   "its verdict has %zu bytes, the server takes less: raise "
                   "proto-max-bulk-len and client-query-buffer-limit",
                   settle->bytes); /* fits */
}

void weir__refused_log(const struct weir__settle *settle)
{
    const struct weir__store_topic *topic = &settle->topic->base;
    char why[WHY_CAP];

    print_why(settle, why);
    weir__log(topic->store->options.log, WEIR_LEVEL_ERROR,
              "redis: %s: a job is dead: %s", topic->name, why);
}

bool weir__refused_rewrite(struct weir__settle *settle)
{
    char why[WHY_CAP];

    if (settle->handle == NULL)
        return false;
    print_why(settle, why);
    for (size_t i = 0; i <= settle->packs; i++)
        weir__buf_fini(&settle->copies[i]);
    settle->packs = 0;
    settle->script = &weir__script_delay_finish;
    write_finish(&settle->copies[0], settle, why);
    weir__mem_free(settle->handle);
    settle->handle = NULL;
    settle->is_refused = false;
    return !settle->copies[0].failed;
}
