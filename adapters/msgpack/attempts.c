/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/attempts.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/utf8.h"

enum {
    FIXARRAY = 0x90,
    UINT64 = 0xcf,
    STR8 = 0xd9,
    FIELDS = 4,
    ERROR_MAX = 200,
    WORKER_MAX = WEIR_MAX_TOPIC
};

#define ENDED_MAX_MS INT64_C(9999999999999) /* in the year 2286 */

_Static_assert(1 + WEIR_MAX_ATTEMPTS * (1 + 9 + 1 + 2 + (int)ERROR_MAX + 2 +
                                        (int)WORKER_MAX) <=
                   2048,
               "what a job's attempts take");

/* At most `max` bytes of it. */
static struct weir_slice cut(struct weir_slice text, size_t max)
{
    size_t len;

    if (text.len <= max)
        return text;
    text.len = max;
    len = weir__utf8_valid(text);
    if (max - len < 4) /* the rest is what was cut of a character */
        text.len = len;
    return text;
}

/* --- writing -------------------------------------------------------------- */

static void put_time(struct weir__buf *buf, uint64_t ms)
{
    uint8_t bytes[9] = {UINT64};

    for (size_t i = sizeof(bytes) - 1; i > 0; i--, ms >>= 8)
        bytes[i] = (uint8_t)(ms & 0xff);
    weir__buf_append(buf, bytes, sizeof(bytes));
}

static void put_text(struct weir__buf *buf, struct weir_slice text)
{
    const uint8_t head[] = {STR8, (uint8_t)text.len};

    weir__buf_append(buf, head, sizeof(head));
    weir__buf_append(buf, text.ptr, text.len);
}

void weir__attempts_write(struct weir__buf *buf,
                          const struct weir_attempt *attempts, size_t count)
{
    size_t first = count > WEIR_MAX_ATTEMPTS ? count - WEIR_MAX_ATTEMPTS : 0;
    const uint8_t head = (uint8_t)(FIXARRAY | (count - first));

    weir__buf_append(buf, &head, 1);
    for (size_t i = first; i < count; i++) {
        const uint8_t fields = FIXARRAY | FIELDS;
        const uint8_t outcome = (uint8_t)attempts[i].outcome;

        weir__buf_append(buf, &fields, 1);
        put_time(buf, (uint64_t)attempts[i].ended_ms);
        weir__buf_append(buf, &outcome, 1);
        put_text(buf, cut(attempts[i].error, ERROR_MAX));
        put_text(buf, cut(attempts[i].worker, WORKER_MAX));
    }
}

/* --- reading -------------------------------------------------------------- */

/* Take the head of a value off. */
static struct weir_value take(struct weir_slice *bytes)
{
    struct weir_value value;
    size_t len = weir__msgpack_head(*bytes, &value);

    bytes->ptr += len;
    bytes->len -= len;
    return value;
}

static bool read_one(struct weir_slice bytes, struct weir_attempt *ret_attempt)
{
    struct weir_value array = take(&bytes), time, outcome, error, worker;

    if (array.type != WEIR_TYPE_ARRAY || array.as.count != FIELDS)
        return false;
    time = take(&bytes);
    outcome = take(&bytes);
    error = take(&bytes);
    worker = take(&bytes);
    if (time.type != WEIR_TYPE_INT || time.as.i64 < 0 ||
        time.as.i64 > ENDED_MAX_MS || outcome.type != WEIR_TYPE_INT ||
        outcome.as.i64 < 0 || outcome.as.i64 > WEIR_ATTEMPT_CRASH ||
        error.type != WEIR_TYPE_STR || worker.type != WEIR_TYPE_STR)
        return false;
    *ret_attempt = (struct weir_attempt){
        .outcome = (enum weir_attempt_outcome)outcome.as.i64,
        .ended_ms = time.as.i64,
        .error = cut(error.as.bytes, ERROR_MAX),
        .worker = cut(worker.as.bytes, WORKER_MAX),
    };
    return true;
}

size_t weir__attempts_read(struct weir_slice array,
                           struct weir_attempt ret_attempts[WEIR_MAX_ATTEMPTS])
{
    struct weir_value head;
    size_t left, count = 0;

    if (array.len == 0) /* may have no ptr */
        return 0;
    head = take(&array);
    left = head.type == WEIR_TYPE_ARRAY ? head.as.count : 0;
    for (; left > 0; left--) {
        size_t len = weir__msgpack_length(array);
        struct weir_slice one = {array.ptr, len};
        struct weir_attempt attempt;

        if (len == 0)
            break;
        array.ptr += len;
        array.len -= len;
        if (!read_one(one, &attempt))
            continue;
        if (count == WEIR_MAX_ATTEMPTS)
            memmove(ret_attempts, ret_attempts + 1,
                    --count * sizeof(*ret_attempts));
        ret_attempts[count++] = attempt;
    }
    return count;
}
