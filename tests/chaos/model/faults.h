/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FAULTS_H
#define WEIR_TEST_FAULTS_H

/* Faults to plant into the scripts. */

#include "tests/chaos/model/script_call.h"

extern const struct fault faults[];
extern const size_t fault_count;
extern const struct fault mixed_faults[];
extern const size_t mixed_fault_count;
extern const struct fault limit_faults[];
extern const size_t limit_fault_count;

#endif
