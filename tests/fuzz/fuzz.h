/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FUZZ_H
#define WEIR_TEST_FUZZ_H

/* A fuzz target: libFuzzer calls LLVMFuzzerTestOneInput with bytes of its own
 * making, in memory of just their size, and stops where the process crashes, a
 * sanitizer complains or FUZZ_TRUE does not hold. */

#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"

#define FUZZ_TRUE(condition)                                              \
    do {                                                                  \
        if (!(condition)) {                                               \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, \
                          __LINE__, #condition);                          \
            abort();                                                      \
        }                                                                 \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* That a slice which was read from the input lies inside of it. */
static inline void fuzz_inside(struct weir_slice part, const uint8_t *data,
                               size_t size)
{
    FUZZ_TRUE(part.len == 0 || (part.ptr >= data && part.ptr <= data + size &&
                                part.len <= (size_t)(data + size - part.ptr)));
}

/* The input as a C string; released with free. A NUL in it ends it early. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    FUZZ_TRUE(text != NULL);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)data[i];
    text[size] = '\0';
    return text;
}

#endif
