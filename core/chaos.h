/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CHAOS_H
#define WEIR_CHAOS_H

/* The points at which what a worker did becomes visible to others. In the
 * worker of the test that kills it at each of them they are calls
 * (tests/chaos/steps), anywhere else nothing. */

void weir__chaos_step(const char *name); /* tests/chaos/steps/step.c */

#ifdef WEIR_CHAOS_STEPS
#    define WEIR__STEP(name) weir__chaos_step(name)
#else
#    define WEIR__STEP(name) ((void)0)
#endif

#endif
