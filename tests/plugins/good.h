/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_GOOD_H
#define WEIR_TEST_GOOD_H

/* What the plugin good.so shows of itself: `self` of an instance points to
 * one. There is one for the whole library, so that it outlives instances. */

#include <stdint.h>

enum { GOOD_OPTIONS = 6, GOOD_LIMIT = 7 };

struct good {
    int opens;
    int closes;
    const void *host;
    char topic[48];
    char texts[GOOD_OPTIONS][32];
    int64_t numbers[GOOD_OPTIONS];
};

#endif
