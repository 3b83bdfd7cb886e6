/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_BODY_H
#define WEIR_BENCH_BODY_H

/* Ids and bodies of the jobs that are added: {"n": NUMBER, "t": TEXT} in
 * exactly so many bytes of msgpack, the text as long as it takes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_ID_CAP = 24, BENCH_BODY_MIN = 16, BENCH_BODY_MAX = 1024 * 1024 };

/* "job-" and 16 digits. */
void bench_id_write(char id[BENCH_ID_CAP], int64_t number);

/* "game-" and the group of job `number`, as if at random, one of `groups`. */
enum { BENCH_GROUP_CAP = 28 };
int64_t bench_group_of(int64_t number, int64_t groups);
void bench_group_write(char group[BENCH_GROUP_CAP], int64_t number,
                       int64_t groups);

struct bench_body {
    uint8_t *bytes; /* owned */
    size_t len;
};

/* `len` is within BENCH_BODY_MIN and BENCH_BODY_MAX; false: out of memory. */
bool bench_body_init(struct bench_body *body, int64_t len);
void bench_body_fini(struct bench_body *body);

/* Write the number into it, 0 to INT32_MAX. */
void bench_body_number(struct bench_body *body, int64_t number);

#endif
