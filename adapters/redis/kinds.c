/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/store/kind.h"

/* All kinds of topics. */

const struct weir__kind *const weir__kinds[WEIR__KINDS] = {
    &weir__delay_kind, &weir__list_kind,       &weir__stream_kind,
    &weir__sync_kind,  &weir__concurrent_kind, &weir__bounded_kind,
};

const struct weir__kind *weir__kind_find(const char *name)
{
    for (size_t i = 0; i < WEIR__KINDS; i++)
        if (strcmp(weir__kinds[i]->name, name) == 0)
            return weir__kinds[i];
    return NULL;
}
