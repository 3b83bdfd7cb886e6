/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CHAOS_H
#define WEIR_CHAOS_H

/* The points at which what a worker did becomes visible to others. Built for
 * the tests that kill it at each of them (tests/chaos/steps), they are calls;
 * otherwise nothing. */

void weir__chaos_step(const char *name); /* the tests' */

#ifdef WEIR_CHAOS_STEPS
#    define WEIR__STEP(name) weir__chaos_step(name)
#else
#    define WEIR__STEP(name) ((void)0)
#endif

#endif
