/* SPDX-License-Identifier: MIT */
#ifndef WEIR_OOM_H
#define WEIR_OOM_H

/* Makes weir's own memory run out. A program that links weir_oom has its calls
 * of weir__mem_new and weir__mem_grow (core/mem.h) led through here by the
 * linker. What third-party code allocates is not touched.
 *
 *     for (int n = 0; rc == WEIR_ENOMEM; n++) {
 *         oom_after(n);
 *         rc = what_is_tested();
 *         oom_off();
 *     } */

/* Let `count` more allocations succeed, then fail all that follow. */
void oom_after(int count);

/* The same, but only the next one fails. */
void oom_once_after(int count);

/* Let allocations succeed again. */
void oom_off(void);

#endif
