/* SPDX-License-Identifier: MIT */

/* SHA-1 (FIPS 180-4), by which scripts are called. */

#include <stdio.h>
#include <string.h>

#include "tests/sim/server/private.h"

static uint32_t rotate(uint32_t word, unsigned by)
{
    return word << by | word >> (32 - by);
}

static uint32_t mix(unsigned round, const uint32_t h[5], uint32_t *ret_constant)
{
    uint32_t b = h[1], c = h[2], d = h[3];

    if (round < 20) {
        *ret_constant = 0x5a827999;
        return (b & c) | (~b & d);
    }
    if (round < 40) {
        *ret_constant = 0x6ed9eba1;
        return b ^ c ^ d;
    }
    if (round < 60) {
        *ret_constant = 0x8f1bbcdc;
        return (b & c) | (b & d) | (c & d);
    }
    *ret_constant = 0xca62c1d6;
    return b ^ c ^ d;
}

static void add_block(uint32_t sum[5], const unsigned char block[64])
{
    uint32_t words[80], h[5];

    for (unsigned i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 |
                   (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (unsigned i = 16; i < 80; i++)
        words[i] = rotate(
            words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    memcpy(h, sum, sizeof(h));
    for (unsigned i = 0; i < 80; i++) {
        uint32_t constant, mixed = mix(i, h, &constant);
        uint32_t next = rotate(h[0], 5) + mixed + h[4] + constant + words[i];

        h[4] = h[3];
        h[3] = h[2];
        h[2] = rotate(h[1], 30);
        h[1] = h[0];
        h[0] = next;
    }
    for (unsigned i = 0; i < 5; i++)
        sum[i] += h[i];
}

void sha1_hex(struct slice text, char hex[41])
{
    uint32_t sum[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                       0xc3d2e1f0};
    unsigned char last[128] = {0};
    size_t whole = text.len / 64 * 64, rest = text.len - whole;
    size_t padded = rest < 56 ? 64 : 128;

    for (size_t i = 0; i < whole; i += 64)
        add_block(sum, (const unsigned char *)text.ptr + i);
    memcpy(last, text.ptr + whole, rest);
    last[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++)
        last[padded - 1 - i] =
            (unsigned char)((uint64_t)text.len * 8 >> (8 * i));
    for (size_t i = 0; i < padded; i += 64)
        add_block(sum, last + i);
    for (unsigned i = 0; i < 5; i++)
        (void)snprintf(hex + 8 * i, 9, "%08x", sum[i]); /* fits */
}
