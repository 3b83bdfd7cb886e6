/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_DESCRIPTORS_H
#define WEIR_TEST_DESCRIPTORS_H

/* A process without a free descriptor. */

#include <sys/resource.h>
#include <unistd.h>

#include "tests/harness/test.h"

enum { DESCRIPTORS_MOST = 64 };

struct descriptors {
    struct rlimit before;
    int taken[DESCRIPTORS_MOST], count;
};

/* Lower the limit and take all that are left. */
static inline void descriptors_take(struct descriptors *descriptors)
{
    struct rlimit few;
    int fd;

    EXPECT_INT(0, getrlimit(RLIMIT_NOFILE, &descriptors->before));
    few = descriptors->before;
    few.rlim_cur = DESCRIPTORS_MOST;
    EXPECT_INT(0, setrlimit(RLIMIT_NOFILE, &few));
    descriptors->count = 0;
    while ((fd = dup(STDERR_FILENO)) >= 0)
        descriptors->taken[descriptors->count++] = fd;
}

static inline void descriptors_give_back(struct descriptors *descriptors)
{
    while (descriptors->count > 0)
        EXPECT_INT(0, close(descriptors->taken[--descriptors->count]));
    EXPECT_INT(0, setrlimit(RLIMIT_NOFILE, &descriptors->before));
}

#endif
