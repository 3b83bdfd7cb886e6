/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FAULT_SEARCH_H
#define WEIR_TEST_FAULT_SEARCH_H

/* Does a model find planted faults? Each is run in a child, seed by seed, until
 * a run ends with 1. WEIR_TEST_FAULT chooses the faults whose names have it,
 * WEIR_TEST_PART=1/4 the second quarter of them. */

#include "tests/chaos/model/script_call.h"

struct fault_search {
    const struct redis_proc *proc;
    unsigned seeds; /* not every seed comes by every place */
    /* Ends the process with 1 at the first difference, which it prints. */
    void (*run)(const struct redis_proc *proc, const struct fault *fault,
                uint64_t seed);
};

/* Prints what found each; returns how many were not found. */
size_t faults_missed(const struct fault_search *search,
                     const struct fault *list, size_t count);

/* No seed differs where nothing is planted. */
bool fault_search_is_sound(const struct fault_search *search);

/* What the environment says; else that. */
long number_from(const char *variable, long otherwise);

#endif
