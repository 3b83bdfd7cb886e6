/* SPDX-License-Identifier: MIT */

/* Two producers gave a pack the same name, though names are unique: a machine
 * was copied, or the server does not say which connections it has. The settle
 * script has found that the staged pack is not ours, and changed nothing. */

#include <stdlib.h>
#include <string.h>

#include "adapters/redis/delay/backlog.h"
#include "core/assert.h"

/* The name at the end of a word of the command, which is a key of a pack. */
static char *name_in(const struct weir__buf *command, size_t word)
{
    char *at = (char *)command->ptr, *end = at + command->len;

    for (;;) {
        size_t len;

        at = memchr(at, '$', (size_t)(end - at));
        WEIR_ASSERT(at != NULL);
        len = strtoul(at + 1, &at, 10);
        at += 2 + len; /* \r\n */
        WEIR_ASSERT(at < end);
        if (word == 0)
            return at - WEIR__SEQ_LEN;
        word--;
    }
}

void weir__settle_rename(struct weir__settle *settle)
{
    const struct weir__store_topic *topic = &settle->topic->base;
    const struct weir__buf *call = &settle->copies[settle->packs];
    size_t first_out = settle->packs - settle->out_count;

    settle->is_taken = false;
    weir__redis_number_by_chance(topic->store);
    for (size_t i = 0; i < settle->packs; i++) {
        char *name = name_in(&settle->copies[i], 1);

        if (weir__seq_is_tick(name))
            weir__seq_next_tick(&topic->store->seqs,
                                weir__topic_server_ms(topic), name);
        else
            weir__topic_next_seq(topic, name);
        memcpy(name_in(call, settle->first_key + i), name, WEIR__SEQ_LEN);
        if (i >= first_out)
            memcpy(settle->outs[i - first_out].seq, name, WEIR__SEQ_LEN);
    }
}
