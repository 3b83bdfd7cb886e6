/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FAULT_SEARCH_H
#define WEIR_TEST_FAULT_SEARCH_H

/* Does a model find each fault that is planted into a script?
 *
 * tests/faults.tsv has a row for each fault: the model, a seed that shows the
 * fault, the fault's name. A test plants the fault and runs this seed first,
 * then the seeds from 1 on. A fault without a row fails the test, which prints
 * the row. With WEIR_TEST_FAULT_SEARCH the table is not used. WEIR_TEST_FAULT
 * chooses faults by a part of the name.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault_search {
    const char *model; /* as the table calls it */
    size_t count;      /* of faults */
    const char *(*name)(size_t index);
    unsigned seeds; /* most to try */
    /* Runs in a child: exits with 1 at the first difference, prints it. */
    void (*run)(size_t index, uint64_t seed);
};

#define NO_FAULT SIZE_MAX /* an index for `run`: nothing is planted */

/* Prints what showed each fault; returns how many are missed or not in the
 * table, and how many rows of the table have no fault. */
size_t faults_missed(const struct fault_search *search);

/* True if without a fault each seed from 1 to the last comes to its end, and
 * shows no difference. */
bool fault_search_is_sound(const struct fault_search *search);

/* A number from the environment, or `otherwise`. */
long number_from(const char *variable, long otherwise);

#endif
