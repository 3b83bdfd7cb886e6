/* SPDX-License-Identifier: MIT */
#include "adapters/server/info.h"

#include <stdlib.h>
#include <string.h>

#include "core/text.h"

struct weir_slice weir__info_field(const char *info, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = info; line != NULL;) {
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            return weir__slice_of(line + len + 1,
                                  strcspn(line + len + 1, "\r\n"));
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return weir__slice_of(NULL, 0);
}

uint64_t weir__info_number(const char *info, const char *name)
{
    struct weir_slice value = weir__info_field(info, name);

    return value.len > 0 ? (uint64_t)strtoull((const char *)value.ptr, NULL, 10)
                         : 0;
}

bool weir__info_is(const char *info, const char *name, const char *value)
{
    return weir__slice_equal(weir__info_field(info, name),
                             weir__slice_str(value));
}
