/* SPDX-License-Identifier: MIT */
#include "bench/body.h"

#include "core/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_DIGITS = 16, NUMBER_AT = 4, TEXT_AT = 10 };

void bench_id_write(char id[BENCH_ID_CAP], int64_t number)
{
    memcpy(id, "job-", 4);
    for (int i = ID_DIGITS - 1; i >= 0; i--) {
        id[4 + i] = (char)('0' + number % 10);
        number /= 10;
    }
    id[4 + ID_DIGITS] = '\0';
}

int64_t bench_group_of(int64_t number, int64_t groups)
{
    uint64_t mixed = (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return (int64_t)((mixed ^ mixed >> 31) % (uint64_t)groups);
}

void bench_group_write(char group[BENCH_GROUP_CAP], int64_t number,
                       int64_t groups)
{
    (void)snprintf(group, BENCH_GROUP_CAP, "game-%lld",
                   (long long)bench_group_of(number, groups));
}

/* The header of a text that ends where the body does, and its length. */
static size_t text_header(uint8_t *at, size_t left)
{
    if (left - 1 <= 31) {
        at[0] = (uint8_t)(0xa0 | (left - 1));
        return 1;
    }
    if (left - 2 <= UINT8_MAX) {
        at[0] = 0xd9;
        at[1] = (uint8_t)(left - 2);
        return 2;
    }
    if (left - 3 <= UINT16_MAX) {
        at[0] = 0xda;
        at[1] = (uint8_t)((left - 3) >> 8);
        at[2] = (uint8_t)(left - 3);
        return 3;
    }
    at[0] = 0xdb;
    for (int i = 0; i < 4; i++)
        at[1 + i] = (uint8_t)((left - 5) >> (24 - 8 * i));
    return 5;
}

bool bench_body_init(struct bench_body *body, int64_t len)
{
    static const uint8_t head[TEXT_AT] = {0x82, 0xa1, 'n', 0xd2, 0,
                                          0,    0,    0,   0xa1, 't'};
    static const char words[] = "an order with a customer and two items; ";
    size_t at = TEXT_AT;

    WEIR_ASSERT(len >= BENCH_BODY_MIN && len <= BENCH_BODY_MAX);
    body->len = (size_t)len;
    body->bytes = malloc(body->len);
    if (body->bytes == NULL)
        return false;
    memcpy(body->bytes, head, TEXT_AT);
    at += text_header(body->bytes + TEXT_AT, body->len - TEXT_AT);
    for (size_t i = 0; at + i < body->len; i++)
        body->bytes[at + i] = (uint8_t)words[i % (sizeof(words) - 1)];
    return true;
}

void bench_body_fini(struct bench_body *body)
{
    free(body->bytes);
    body->bytes = NULL;
}

void bench_body_number(struct bench_body *body, int64_t number)
{
    WEIR_ASSERT(number >= 0 && number <= INT32_MAX);
    for (int i = 0; i < 4; i++)
        body->bytes[NUMBER_AT + i] = (uint8_t)(number >> (24 - 8 * i));
}
