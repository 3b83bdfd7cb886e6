/* SPDX-License-Identifier: MIT */

/* Any bytes as an event of a bounded topic: what is read lies inside of them,
 * and with its record written anew it is the same event. */

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
    FUZZ_TRUE(id.len == WEIR__MADE_ID_LEN && event->made_id[0] == '~');
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct event event = {0};

    if (weir__event_read(weir__slice_of(data, size), &event.run,
                         event.made_id) != WEIR_OK)
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
