/* SPDX-License-Identifier: MIT */
#include "core/nearest.h"

#include <string.h>

enum { NAME_MAX_LEN = 40, FAR = 1000 };

static size_t least(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* The number of letters to insert, drop, change or swap. */
static size_t distance(const char *one, const char *other)
{
    size_t rows[NAME_MAX_LEN + 1][NAME_MAX_LEN + 1];
    size_t n = strlen(one), m = strlen(other);

    if (n > NAME_MAX_LEN || m > NAME_MAX_LEN)
        return FAR;
    if (strstr(one, "done") != NULL && strstr(other, "dead") != NULL)
        return FAR; /* the opposite, and no slip */
    for (size_t i = 0; i <= n; i++)
        rows[i][0] = i;
    for (size_t j = 0; j <= m; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        for (size_t j = 1; j <= m; j++) {
            size_t change = one[i - 1] == other[j - 1] ? 0 : 1;

            rows[i][j] = least(least(rows[i - 1][j], rows[i][j - 1]) + 1,
                               rows[i - 1][j - 1] + change);
            if (i > 1 && j > 1 && one[i - 1] == other[j - 2] &&
                one[i - 2] == other[j - 1])
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[n][m];
}

const char *weir__nearest(const char *text, const void *names, size_t count,
                          weir__name_fn get)
{
    size_t limit = (strlen(text) + 2) / 3;
    const char *best = NULL;

    for (size_t i = 0; i < count; i++) {
        size_t d = distance(text, get(names, i));

        if (best == NULL ? d <= limit : d < limit) {
            best = get(names, i);
            limit = d;
        }
    }
    return best;
}
