/* SPDX-License-Identifier: MIT */

/* Any bytes as a job's record: what is read lies inside of them, written again
 * it is read the same, and where it says that it comes from is a place. */

#include "adapters/msgpack/attempts.h"
#include "adapters/msgpack/headers.h"
#include "adapters/msgpack/origin.h"
#include "adapters/msgpack/record.h"
#include "adapters/msgpack/scan.h"
#include "tests/fuzz/fuzz.h"

static void expect_same(const struct weir__record *one,
                        const struct weir__record *other)
{
    FUZZ_TRUE(one->counters.attempt == other->counters.attempt &&
              one->counters.failures == other->counters.failures &&
              one->counters.timeouts == other->counters.timeouts &&
              one->counters.crashes == other->counters.crashes &&
              one->counters.snoozes == other->counters.snoozes);
    FUZZ_TRUE(weir__slice_equal(one->retry, other->retry) &&
              weir__slice_equal(one->url, other->url) &&
              weir__slice_equal(one->headers, other->headers) &&
              weir__slice_equal(one->reason, other->reason) &&
              weir__slice_equal(one->error, other->error) &&
              weir__slice_equal(one->attempts, other->attempts) &&
              weir__slice_equal(one->body, other->body));
    FUZZ_TRUE(one->ttl_ms == other->ttl_ms && one->spent == other->spent &&
              one->added_ms == other->added_ms);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__record record, again;
    struct weir_header headers[WEIR_MAX_HEADERS];
    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS];
    struct weir_origin origin;
    struct weir__buf buf = {0};

    if (weir__record_read(weir__slice_of(data, size), &record) != WEIR_OK)
        return 0;
    fuzz_inside(record.retry, data, size);
    fuzz_inside(record.url, data, size);
    fuzz_inside(record.headers, data, size);
    fuzz_inside(record.reason, data, size);
    fuzz_inside(record.error, data, size);
    fuzz_inside(record.body, data, size);
    fuzz_inside(record.attempts, data, size);
    if (weir__origin_read(record.headers, &origin)) {
        fuzz_inside(origin.error, data, size);
        FUZZ_TRUE(weir__id_is_sound(origin.id));
        FUZZ_TRUE(weir__topic_check(origin.topic, NULL) == WEIR_OK);
    }
    for (size_t i = weir__headers_read(record.headers, headers); i-- > 0;) {
        fuzz_inside(headers[i].name, data, size);
        fuzz_inside(headers[i].value, data, size);
        FUZZ_TRUE(weir__header_is_sound(&headers[i]));
    }
    for (size_t i = weir__attempts_read(record.attempts, attempts); i-- > 0;) {
        fuzz_inside(attempts[i].error, data, size);
        fuzz_inside(attempts[i].worker, data, size);
        FUZZ_TRUE(attempts[i].ended_ms >= 0 && attempts[i].error.len <= 200);
        (void)weir_attempt_outcome_name(attempts[i].outcome);
    }
    FUZZ_TRUE(record.ttl_ms >= 0 && record.added_ms >= 0);
    FUZZ_TRUE(weir__msgpack_check(record.body) == WEIR_OK);
    weir__record_write(&buf, &record);
    FUZZ_TRUE(!buf.failed);
    FUZZ_TRUE(weir__record_read(weir__buf_slice(&buf), &again) == WEIR_OK);
    expect_same(&record, &again);
    weir__buf_fini(&buf);
    return 0;
}
