/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_MEMORY_H
#define WEIR_TEST_MEMORY_H

/* This process had fewer MiB of memory at all times. Nothing is judged under
 * sanitizers, which have their own. */
void expect_memory_below(long mib);

#endif
