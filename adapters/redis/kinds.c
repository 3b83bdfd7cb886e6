/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/store/kind.h"

/* All kinds of topics. */

#define KIND(set, name) &weir__##name##_kind,
const struct weir__kind *const weir__kinds[] = {WEIR__KIND_MAP(KIND)};
#undef KIND

const struct weir__kind *weir__kind_find(const char *name)
{
    for (size_t i = 0; i < WEIR__KINDS; i++)
        if (strcmp(weir__kinds[i]->name, name) == 0)
            return weir__kinds[i];
    return NULL;
}
