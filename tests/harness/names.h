/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_NAMES_H
#define WEIR_TEST_NAMES_H

/* What names resolve to, in a test's hands: this getaddrinfo stands in front of
 * the system's in programs that are linked with it, or started with the module
 * test_names in LD_PRELOAD. It reads the file in WEIR_TEST_NAMES at each call:
 *
 *   NAME ADDRESS...   these
 *   NAME              there is no such name
 *   NAME <FILE        those in the file: of a FIFO, once somebody writes them
 *
 * Other names, and numeric addresses, are for the system. */

#include <stddef.h>

/* Write that file, in a directory that goes with the test; `lines` end in '\n'.
 * Those who read it see the old or the new one. */
void names_set(const char *lines);

/* The directory. */
const char *names_dir(void);

/* How many names were looked up in the file. */
size_t names_asked(void);

#endif
