/* SPDX-License-Identifier: MIT */
#ifndef WEIR_LADDER_H
#define WEIR_LADDER_H

/* The delays between a job's attempts: "15s 3m 10m", a trailing "..." repeats
 * the last step for ever, "none" has no step. Pure arithmetic, allocates
 * nothing. */

#include <weir/base.h>

enum { WEIR__LADDER_STEPS_MAX = 64 };

struct weir__ladder {
    uint32_t count; /* steps used */
    bool repeats;   /* the last step repeats for ever */
    int64_t step_ms[WEIR__LADDER_STEPS_MAX];
};

/* "15s 3m 10m 30m 30m 1h 2h 6h 15h" */
#define WEIR__LADDER_DEFAULT                                                  \
    {                                                                         \
        .count = 9, .step_ms = {15000,   180000,  600000,   1800000, 1800000, \
                                3600000, 7200000, 21600000, 54000000},        \
    }

/* Parse ladder text: steps between blanks or tabs, each 1 ms to 365 d, at most
 * 64 of them; the "..." may touch the last one. WEIR_EINVAL with a sentence
 * that names the wrong part. `err` may be NULL. */
int weir__ladder_parse(struct weir_slice text, struct weir__ladder *ret_ladder,
                       struct weir_error *err);

/* The delay before retry number `retry` (0 is the first), or -1 when the
 * ladder has no such step. */
int64_t weir__ladder_delay_ms(const struct weir__ladder *ladder,
                              uint32_t retry);

/* `delay_ms` moved at random by up to `percent` (at most 100) either way;
 * `random` is any 64 random bits. Never below 1 unless delay_ms is 0. */
int64_t weir__jitter_ms(int64_t delay_ms, uint32_t percent, uint64_t random);

#endif
