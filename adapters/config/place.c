/* SPDX-License-Identifier: MIT */
#include "adapters/config/place.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/assert.h"
#include "core/error.h"

/* Of a longer path its end is shown: an error has room for the longest
 * sentence beside it. */
enum { PATH_MAX_SHOWN = 64 };

int weir__config_fail(const struct weir__config_place *place, int code,
                      const char *format, ...)
{
    char sentence[sizeof(place->err->text)];
    size_t len = strlen(place->path);
    size_t skipped = len > PATH_MAX_SHOWN ? len - PATH_MAX_SHOWN : 0;
    const char *dots = skipped > 0 ? "..." : "";
    va_list args;

    WEIR_ASSERT(code < 0 && place->line >= 0);
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args); /* cut */
    va_end(args);
    if (place->line == 0)
        return weir__error_set(place->err, code, "%s%s: %s", dots,
                               place->path + skipped, sentence);
    return weir__error_set(place->err, code, "%s%s:%d: %s", dots,
                           place->path + skipped, place->line, sentence);
}
