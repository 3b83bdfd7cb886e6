/* SPDX-License-Identifier: MIT */
#include "adapters/http/target.h"

#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <string.h>

/* Decode `text` up to `end` in place and end it with a NUL. Escapes only
 * shorten. */
static bool decode(char *text, const char *end, bool is_field)
{
    char *to = text;

    for (const char *from = text; from < end; from++) {
        char c = *from;

        if (c == '%') {
            bool is_whole = end - from >= 3;
            int high = is_whole ? weir__hex_digit(from[1]) : -1;
            int low = high >= 0 ? weir__hex_digit(from[2]) : -1;

            if (low < 0 || (high == 0 && low == 0))
                return false;
            c = (char)(high * 16 + low);
            from += 2;
        } else if (c == '+' && is_field) {
            c = ' ';
        }
        *to++ = c;
    }
    *to = '\0';
    return true;
}

/* What stands between `path` and `end`, which may be written to. */
static bool take_parts(struct weir__target *target, char *path, char *end)
{
    while (path < end) {
        char *next = memchr(path, '/', (size_t)(end - path));

        next = next == NULL ? end : next;
        if (target->part_count == WEIR__TARGET_PARTS ||
            !decode(path, next, false))
            return false;
        target->part[target->part_count++] = path;
        path = next + 1;
    }
    return true;
}

static bool take_field(struct weir__target *target, char *text, char *end)
{
    char *equals = memchr(text, '=', (size_t)(end - text));
    char *name_end = equals == NULL ? end : equals;
    size_t i = target->field_count;

    if (text == end)
        return true;
    if (i == WEIR__TARGET_FIELDS)
        return false;
    target->field[i].name = text;
    target->field[i].value = "";
    if (equals != NULL) {
        if (!decode(equals + 1, end, true))
            return false;
        target->field[i].value = equals + 1;
    }
    target->field_count++;
    return decode(text, name_end, true);
}

static bool take_fields(struct weir__target *target, char *query, char *end)
{
    while (query < end) {
        char *next = memchr(query, '&', (size_t)(end - query));

        next = next == NULL ? end : next;
        if (!take_field(target, query, next))
            return false;
        query = next + 1;
    }
    return true;
}

int weir__target_parse(const char *text, struct weir__target *ret_target)
{
    struct weir__target target = {0};
    size_t len = strlen(text);
    char *query;
    bool is_good;

    if (text[0] != '/')
        return WEIR_EINVAL;
    target.bytes = weir__mem_new(len + 1);
    if (target.bytes == NULL)
        return WEIR_ENOMEM;
    memcpy(target.bytes, text, len);
    query = memchr(target.bytes, '?', len);
    if (query == NULL)
        query = target.bytes + len;
    /* the bytes behind each part are written to: the query comes first */
    is_good = take_fields(&target, query + 1, target.bytes + len) &&
              take_parts(&target, target.bytes + 1, query);
    if (!is_good) {
        weir__target_fini(&target);
        return WEIR_EINVAL;
    }
    *ret_target = target;
    return WEIR_OK;
}

void weir__target_fini(struct weir__target *target)
{
    weir__mem_free(target->bytes);
    memset(target, 0, sizeof(*target));
}

int weir__target_fits(const struct weir__target *target, const char *path)
{
    int parts = 0;

    WEIR_ASSERT(path[0] == '/');
    for (path++; *path != '\0'; parts++) {
        size_t len = strcspn(path, "/");
        const char *part;

        if ((size_t)parts == target->part_count)
            return -1;
        part = target->part[parts];
        if (strncmp(part, path, len) != 0 || part[len] != '\0')
            return -1;
        path += len;
        if (path[0] == '/' && path[1] == '\0')
            return parts + 1; /* and all below */
        path += path[0] == '/' ? 1 : 0;
    }
    return parts == 0 || (size_t)parts == target->part_count ? parts : -1;
}

const char *weir__target_field(const struct weir__target *target,
                               const char *name)
{
    for (size_t i = 0; i < target->field_count; i++) {
        if (strcmp(target->field[i].name, name) == 0)
            return target->field[i].value;
    }
    return NULL;
}
