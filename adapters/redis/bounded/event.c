/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/bounded/private.h"
#include "core/assert.h"
#include "core/text.h"

/* An event's bytes:
 *   1   flags: 1 = it has an id of its own
 *  12   name of the call that added it (docs/packs.md, Names): tells the time
 *   1   its place there
 *   1   length of the id, and the id; only with the flag
 *       record */

enum { HAS_ID = 1, SEQ_AT = 1, SLOT_AT = 13, HEAD = 14 };

_Static_assert((int)WEIR__EVENT_ID_AT == (int)HEAD + 1, "behind its length");

void weir__event_write(struct weir__buf *buf, struct weir_slice id,
                       const struct weir__record *record)
{
    uint8_t head[HEAD + 1] = {0};

    WEIR_ASSERT(id.len <= WEIR_MAX_ID);
    head[0] = id.len > 0 ? HAS_ID : 0;
    head[HEAD] = (uint8_t)id.len;
    weir__buf_append(buf, head, HEAD + (id.len > 0));
    weir__buf_append(buf, id.ptr, id.len);
    weir__record_write(buf, record);
}

void weir__event_name(uint8_t *event, const char *seq, unsigned slot)
{
    memcpy(event + SEQ_AT, seq, WEIR__SEQ_LEN);
    event[SLOT_AT] = (uint8_t)slot;
}

void weir__event_group_write(struct weir__buf *buf,
                             const struct weir__bounded_adds *adds,
                             const struct weir__event_group *group)
{
    uint32_t number = group->first;

    weir__resp_bytes(
        buf, weir__slice_of(adds->bytes.ptr + group->name_at, group->name_len));
    weir__resp_int(buf, group->count);
    for (uint32_t i = 0; i < group->count; i++) {
        const struct weir__event *event = &adds->events[number - 1];

        weir__resp_bytes(
            buf, weir__slice_of(adds->bytes.ptr + event->at, event->len));
        number = event->next;
    }
}

/* 0: it is none. */
static size_t head_len(struct weir_slice event)
{
    size_t len = HEAD;

    if (event.len <= HEAD)
        return 0;
    if ((event.ptr[0] & HAS_ID) != 0)
        len += 1 + (size_t)event.ptr[HEAD];
    return len >= event.len ? 0 : len;
}

void weir__event_rewrite(struct weir__buf *buf, struct weir_slice event,
                         const struct weir__record *record)
{
    struct weir__record own = *record;

    own.added_ms = 0; /* the head says it */
    weir__buf_append(buf, event.ptr, head_len(event));
    weir__record_write(buf, &own);
}

int weir__event_read(struct weir_slice event, struct weir__run *run,
                     char ret_id[WEIR__MADE_ID_LEN + 1])
{
    size_t head = head_len(event);
    struct weir_slice id;
    const char *seq;
    int rc;

    run->id = weir__slice_str("unreadable");
    if (head == 0)
        return WEIR_EMALFORMED;
    seq = (const char *)event.ptr + SEQ_AT;
    if (!weir__seq_is_sound(seq))
        return WEIR_EMALFORMED;
    run->due_ms = weir__seq_ms(seq);
    weir__made_id(seq, event.ptr[SLOT_AT], ret_id);
    run->id = weir__slice_of(ret_id, WEIR__MADE_ID_LEN);
    if ((event.ptr[0] & HAS_ID) != 0) {
        id = weir__slice_of(event.ptr + HEAD + 1, event.ptr[HEAD]);
        if (!weir__id_is_sound(id))
            return WEIR_EMALFORMED;
        run->id = id;
    }
    rc = weir__record_read(weir__slice_of(event.ptr + head, event.len - head),
                           &run->record);
    run->record.added_ms = run->due_ms;
    return rc;
}
