/* SPDX-License-Identifier: MIT */
#include "core/assert.h"

#include <stdio.h>
#include <stdlib.h>

_Noreturn void weir__assert_failed(const char *file, int line, const char *fn,
                                   const char *expression)
{
    (void)fprintf(stderr, "weir: %s:%d: %s: assertion failed: %s\n", file, line,
                  fn, expression); /* nothing left to do if it fails */
    abort();
}
