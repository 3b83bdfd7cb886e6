/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/attempts.h"

#include "adapters/redis/store/store.h"
#include "core/lane.h"
#include "core/text.h"
#include "core/verdict.h"

/* The history of a job's attempts: what its record has of it, and what is new
 * when it is written anew. */

static int64_t server_ms(const struct weir__run *run, int64_t now_ns)
{
    return run->due_ms + weir__run_late_us(run, now_ns) / 1000;
}

void weir__attempts_note(const struct weir__redis *store,
                         const struct weir__run *run, uint32_t crashes,
                         struct weir__record *record, struct weir__buf *buf)
{
    struct weir_attempt attempts[2 * WEIR_MAX_ATTEMPTS + 1], own;
    bool has_own = weir__run_attempt(run, &own);
    size_t count;

    if (!has_own && crashes == 0)
        return;
    if (crashes > WEIR_MAX_ATTEMPTS)
        crashes = WEIR_MAX_ATTEMPTS;
    count = weir__attempts_read(record->attempts, attempts);
    for (; crashes > 0; crashes--)
        attempts[count++] = (struct weir_attempt){
            .outcome = WEIR_ATTEMPT_CRASH,
            .ended_ms = server_ms(run, run->claimed_ns),
        };
    if (has_own) {
        own.ended_ms = server_ms(run, weir__redis_now_ns(store));
        own.worker = weir__slice_str(store->options.worker);
        attempts[count++] = own;
    }
    weir__buf_reset(buf);
    weir__attempts_write(buf, attempts, count);
    if (!buf->failed)
        record->attempts = weir__buf_slice(buf);
}
