/* SPDX-License-Identifier: MIT */
#include "core/tally.h"

#include <string.h>

static bool is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return len > 0 && len <= WEIR__TALLY_NAME && name[len] == '\0';
}

/* Only the first one is told. */
static void refuse(struct weir__tally *tally, int code, const char *name)
{
    size_t len = strlen(name);

    if (tally->refused != 0)
        return;
    if (len > WEIR__TALLY_NAME)
        len = WEIR__TALLY_NAME;
    tally->refused = code;
    memcpy(tally->refused_name, name, len);
}

/* Where the name is, or belongs. */
static size_t place_of(const struct weir__tally *tally, const char *name,
                       bool *ret_is_there)
{
    size_t low = 0, high = tally->count;

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(tally->entries[mid].name, name);

        if (order == 0) {
            *ret_is_there = true;
            return mid;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *ret_is_there = false;
    return low;
}

void weir__tally_add(struct weir__tally *tally, const char *name, uint64_t by)
{
    struct weir__tally_entry *entry;
    bool is_there;
    size_t at = place_of(tally, name, &is_there);

    entry = tally->entries + at;
    if (is_there) {
        entry->value += by;
        return;
    }
    if (!is_name(name)) {
        refuse(tally, WEIR_EINVAL, name);
        return;
    }
    if (tally->count == WEIR__TALLY_MAX) {
        refuse(tally, WEIR_EFULL, name);
        return;
    }
    memmove(entry + 1, entry, (tally->count - at) * sizeof(*entry));
    memcpy(entry->name, name, strlen(name) + 1);
    entry->value = by;
    tally->count++;
}

void weir__tally_merge(struct weir__tally *tally,
                       const struct weir__tally *from)
{
    for (size_t i = 0; i < from->count; i++)
        weir__tally_add(tally, from->entries[i].name, from->entries[i].value);
    if (from->refused != 0)
        refuse(tally, from->refused, from->refused_name);
}
