/* SPDX-License-Identifier: MIT */

/* What an entry of an outbox says (store/outbox.h). */

#include "adapters/redis/store/relay.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/scan.h"
#include "adapters/redis/pack.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#define NUMBER_MAX UINT64_C(999999999999999) /* as the add script has it */

/* Takes one value after the other. */
struct reader {
    struct weir_slice rest;
    bool failed;
};

static struct weir_value read_value(struct reader *reader)
{
    struct weir_value value;
    size_t len = weir__msgpack_head(reader->rest, &value);

    reader->rest.ptr += len;
    reader->rest.len -= len;
    return value;
}

static struct weir_slice read_str(struct reader *reader, size_t most)
{
    struct weir_value value = read_value(reader);

    if (value.type == WEIR_TYPE_STR && value.as.bytes.len <= most)
        return value.as.bytes;
    reader->failed = true;
    return (struct weir_slice){0};
}

static uint64_t read_uint(struct reader *reader, uint64_t most)
{
    struct weir_value value = read_value(reader);

    if (value.type == WEIR_TYPE_INT && value.as.i64 >= 0 &&
        (uint64_t)value.as.i64 <= most)
        return (uint64_t)value.as.i64;
    reader->failed = true;
    return 0;
}

/* In order, and fewer than all. */
static bool is_gone_sound(const struct weir__relay *relay)
{
    for (size_t i = 0; i < relay->gone.len; i++)
        if (relay->gone.ptr[i] >= relay->jobs ||
            (i > 0 && relay->gone.ptr[i] <= relay->gone.ptr[i - 1]))
            return false;
    return relay->gone.len < relay->jobs;
}

static int read_entry(struct weir__relay *relay, size_t len)
{
    struct reader reader = {.rest = {relay->entry, len}};
    struct weir_value head;
    struct weir_slice kind;

    if (weir__msgpack_check(reader.rest) != WEIR_OK)
        return WEIR_EMALFORMED;
    head = read_value(&reader);
    if (head.type != WEIR_TYPE_ARRAY || head.as.count < 10)
        return WEIR_EMALFORMED;
    if (read_uint(&reader, UINT64_MAX) != 1)
        return reader.failed ? WEIR_EMALFORMED : WEIR_ENEWER;
    relay->target = read_str(&reader, WEIR_MAX_TOPIC);
    kind = read_str(&reader, WEIR_MAX_TOPIC);
    relay->call_slot = read_str(&reader, WEIR__RELAY_SLOT_MAX);
    relay->number = read_uint(&reader, NUMBER_MAX);
    relay->jobs = read_uint(&reader, WEIR__SLOTS_MAX);
    relay->header_len = read_uint(&reader, UINT32_MAX);
    relay->when = read_str(&reader, SIZE_MAX);
    relay->gone = read_str(&reader, WEIR__SLOTS_MAX);
    relay->second = read_str(&reader, WEIR__SEQ_LEN);
    if (reader.failed || relay->call_slot.len < 2 ||
        relay->call_slot.ptr[0] != '!' || !is_gone_sound(relay) ||
        weir__topic_check(relay->target, NULL) != WEIR_OK ||
        (relay->second.len > 0 &&
         (relay->second.len != WEIR__SEQ_LEN ||
          !weir__seq_is_sound((const char *)relay->second.ptr))))
        return WEIR_EMALFORMED;
    return weir__slice_equal(kind, weir__slice_str("delay")) ? WEIR_OK
                                                             : WEIR_ENEWER;
}

int weir__relay_new(struct weir__relays *box, const char *seq,
                    struct weir_slice entry, struct weir__relay **ret_relay)
{
    struct weir__relay *relay = weir__mem_new(sizeof(*relay) + entry.len);
    int rc;

    if (relay == NULL)
        return WEIR_ENOMEM;
    relay->request.store = box->topic->store;
    relay->box = box;
    memcpy(relay->seq, seq, WEIR__SEQ_LEN);
    memcpy(relay->entry, entry.ptr, entry.len);
    rc = read_entry(relay, entry.len);
    if (rc == WEIR_OK)
        relay->place = weir__place_of_topic(box->topic->store, relay->target);
    if (rc == WEIR_OK && relay->place == NULL)
        rc = WEIR_ENOMEM;
    if (rc == WEIR_OK)
        *ret_relay = relay;
    else
        weir__relay_free(relay);
    return rc;
}

void weir__relay_free(struct weir__relay *relay)
{
    weir__buf_fini(&relay->pack);
    weir__mem_free(relay);
}

void weir__relays_write(struct weir__buf *list, const struct weir__redis *store,
                        const char *target, uint32_t call_slot,
                        const char *second)
{
    char text[WEIR__RELAY_SLOT_MAX];
    int len = snprintf(text, sizeof(text), "!%s%" PRIu32,
                       store->call_slots.name, call_slot);

    WEIR_ASSERT(len > WEIR__SEQ_LEN && (size_t)len < sizeof(text));
    weir__pack_array(list, 5);
    weir__pack_str(list, target, strlen(target));
    weir__pack_str(list, "delay", strlen("delay"));
    weir__pack_str(list, text, (size_t)len);
    weir__pack_uint(list, store->seqs.last);
    weir__pack_str(list, second, strlen(second));
}
