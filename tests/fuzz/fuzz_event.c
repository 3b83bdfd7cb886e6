/* SPDX-License-Identifier: MIT */

/* Any bytes as an event of a bounded topic: what is read lies inside of them,
 * what is handed on as its id is one, and with its record written anew it is
 * the same event. Bytes that begin with 0xff say what is in the id of an event
 * that is right besides. */

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "adapters/redis/bounded/private.h"
#include "tests/fuzz/fuzz.h"

struct event {
    struct weir__run run;
    char made_id[WEIR__MADE_ID_LEN + 1];
};

static void expect_same(const struct event *one, const struct event *other)
{
    const struct weir__record *record = &one->run.record;

    FUZZ_TRUE(weir__slice_equal(one->run.id, other->run.id));
    FUZZ_TRUE(one->run.due_ms == other->run.due_ms);
    FUZZ_TRUE(record->counters.attempt == other->run.record.counters.attempt);
    FUZZ_TRUE(record->ttl_ms == other->run.record.ttl_ms);
    FUZZ_TRUE(weir__slice_equal(record->body, other->run.record.body));
}

/* One that its producer named lies in the event, one that was made does not. */
static void check_id(const struct event *event, const uint8_t *data,
                     size_t size)
{
    struct weir_slice id = event->run.id;

    if (id.ptr != (const uint8_t *)event->made_id) {
        FUZZ_TRUE(id.ptr == data + WEIR__EVENT_ID_AT);
        fuzz_inside(id, data, size);
        return;
    }
    FUZZ_TRUE(id.len == WEIR__MADE_ID_LEN && event->made_id[0] == '@');
    FUZZ_TRUE(strlen(event->made_id) <= WEIR__MADE_ID_LEN);
}

static void expect_rewritten(const struct event *event, const uint8_t *data,
                             size_t size)
{
    struct event again = {0};
    struct weir__buf buf = {0};

    weir__event_rewrite(&buf, weir__slice_of(data, size), &event->run.record);
    FUZZ_TRUE(!buf.failed);
    FUZZ_TRUE(weir__event_read(weir__buf_slice(&buf), &again.run,
                               again.made_id) == WEIR_OK);
    expect_same(event, &again);
    weir__buf_fini(&buf);
}

enum { LEN = 1, BYTE, PLACE, NAME_BYTE, NAME_PLACE, SPEC };

static void read_made(const uint8_t spec[SPEC])
{
    static const uint8_t record[] = {0x98, 1, 0, 0, 0, 0, 0, 0xc0, 7};
    uint8_t bytes[WEIR__EVENT_ID_AT + 255 + sizeof(record)];
    struct weir_slice id = {bytes + WEIR__EVENT_ID_AT, spec[LEN]};
    struct event event = {0};
    bool is_one;

    memset(bytes, 'x', sizeof(bytes));
    bytes[0] = 1;
    bytes[1 + spec[NAME_PLACE] % WEIR__SEQ_LEN] = spec[NAME_BYTE];
    bytes[WEIR__EVENT_ID_AT - 1] = spec[LEN];
    if (id.len > 0)
        bytes[WEIR__EVENT_ID_AT + spec[PLACE] % id.len] = spec[BYTE];
    memcpy(bytes + WEIR__EVENT_ID_AT + id.len, record, sizeof(record));
    is_one = weir__id_check_any(id, NULL) == WEIR_OK &&
             weir__seq_is_sound((const char *)bytes + 1);
    FUZZ_TRUE(
        weir__event_read(
            weir__slice_of(bytes, WEIR__EVENT_ID_AT + id.len + sizeof(record)),
            &event.run, event.made_id) == (is_one ? WEIR_OK : WEIR_EMALFORMED));
    FUZZ_TRUE(weir__id_is_sound(event.run.id));
    FUZZ_TRUE(!is_one || weir__slice_equal(event.run.id, id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event event = {0};
    int rc;

    if (size >= SPEC && data[0] == 0xff)
        read_made(data);
    rc =
        weir__event_read(weir__slice_of(data, size), &event.run, event.made_id);
    FUZZ_TRUE(weir__id_is_sound(event.run.id));
    if (rc != WEIR_OK)
        return 0;
    check_id(&event, data, size);
    fuzz_inside(event.run.record.retry, data, size);
    fuzz_inside(event.run.record.url, data, size);
    fuzz_inside(event.run.record.headers, data, size);
    fuzz_inside(event.run.record.body, data, size);
    FUZZ_TRUE(event.run.due_ms > 0 && event.run.record.ttl_ms >= 0);
    FUZZ_TRUE(weir__msgpack_check(event.run.record.body) == WEIR_OK);
    expect_rewritten(&event, data, size);
    return 0;
}
