/* SPDX-License-Identifier: MIT */

/* A shared object that is no plugin. */

#include <weir/base.h>

WEIR_API int something_else(void);

int something_else(void)
{
    return 1;
}
