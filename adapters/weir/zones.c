/* SPDX-License-Identifier: MIT */
#include "adapters/weir/zones.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/text.h"

enum { BYTES_MAX = 256 * 1024 }; /* far more than any zone has */

struct weir__known_zone {
    struct weir__known_zone *next;
    struct weir__zone *zone;
    char name[WEIR__ZONE_MAX + 1];
};

static int read_file(const char *path, struct weir__zone **ret_zone,
                     struct weir_error *err)
{
    uint8_t *bytes = weir__mem_new(BYTES_MAX);
    FILE *file = fopen(path, "rbe");
    int rc = WEIR_ENOMEM;

    if (bytes != NULL && file != NULL)
        rc = weir__zone_read(
            weir__slice_of(bytes, fread(bytes, 1, BYTES_MAX, file)), ret_zone,
            err);
    else if (file == NULL)
        rc = weir__error_set(err, WEIR_EINVAL, "there is no such file");
    if (file != NULL)
        (void)fclose(file);
    weir__mem_free(bytes);
    return rc;
}

int weir__zone_load(const char *name, struct weir__zone **ret_zone,
                    struct weir_error *err)
{
    const char *folder = getenv("TZDIR");
    char path[PATH_MAX];
    struct weir_error why = {0};
    int rc = weir__zone_check(weir__slice_str(name), err);

    if (rc < 0)
        return rc;
    if (folder == NULL || folder[0] == '\0')
        folder = "/usr/share/zoneinfo";
    if ((size_t)snprintf(path, sizeof(path), "%s/%s", folder, name) >=
        sizeof(path))
        return weir__error_set(err, WEIR_EINVAL, "TZDIR is too long");
    rc = read_file(path, ret_zone, &why);
    if (rc == WEIR_EINVAL)
        return weir__error_set(err, rc,
                               "time zone %s is not known here: %s: %s "
                               "(package tzdata)",
                               name, path, why.text);
    return rc;
}

static bool find(struct weir__zone_source *port, struct weir_slice name,
                 const struct weir__zone **ret_zone)
{
    struct weir__zones *zones =
        (struct weir__zones *)port; /* its first member */
    struct weir__known_zone *known = zones->first;

    for (; known != NULL; known = known->next)
        if (weir__slice_equal(weir__slice_str(known->name), name))
            break;
    if (known == NULL && name.len < sizeof(known->name)) {
        known = weir__mem_new(sizeof(*known));
        if (known == NULL)
            return false;
        memcpy(known->name, name.ptr, name.len);
        if (weir__zone_load(known->name, &known->zone, NULL) < 0) {
            weir__mem_free(known); /* it may be there the next time */
            return false;
        }
        known->next = zones->first;
        zones->first = known;
    }
    if (known == NULL)
        return false;
    *ret_zone = known->zone;
    return true;
}

void weir__zones_init(struct weir__zones *zones)
{
    zones->port.find = find;
}

void weir__zones_fini(struct weir__zones *zones)
{
    while (zones->first != NULL) {
        struct weir__known_zone *known = zones->first;

        zones->first = known->next;
        weir__zone_free(known->zone);
        weir__mem_free(known);
    }
}
