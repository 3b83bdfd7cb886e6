/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/crontab.h"
#include "core/text.h"
#include "core/zone.h"

/* What comes next, for test_cron_vectors.py: reads lines of an expression, the
 * file of a time zone, a time and a count, between tabs, and prints so many
 * times behind that one. */

static struct weir__zone *zone_of(const char *path)
{
    static uint8_t bytes[1 << 20];
    struct weir__zone *zone = NULL;
    struct weir_error err = {0};
    FILE *file = fopen(path, "rb");
    size_t len;

    if (file == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    len = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    if (weir__zone_read(weir__slice_of(bytes, len), &zone, &err) < 0) {
        (void)fprintf(stderr, "%s: %s\n", path, err.text);
        exit(1);
    }
    return zone;
}

/* The next part of the line; NULL: there is none. */
static char *take_part(char **line)
{
    char *part = *line, *tab = part == NULL ? NULL : strchr(part, '\t');

    *line = tab == NULL ? NULL : tab + 1;
    if (tab != NULL)
        *tab = '\0';
    return part;
}

static void print_times(char *line)
{
    const char *text = take_part(&line), *path = take_part(&line);
    const char *start = take_part(&line), *many = take_part(&line);
    struct weir__zone *zone;
    struct weir__cron cron;
    struct weir_error err = {0};
    int64_t at;

    if (many == NULL ||
        weir__cron_parse(weir__slice_str(text), &cron, &err) < 0) {
        (void)fprintf(stderr, "%s\n", many == NULL ? "four parts" : err.text);
        exit(1);
    }
    zone = zone_of(path);
    at = strtoll(start, NULL, 10);
    for (long left = strtol(many, NULL, 10); left > 0; left--) {
        at = weir__cron_next(&cron, zone, at);
        (void)printf("%" PRId64 "%s", at, left > 1 ? " " : "\n");
    }
    weir__zone_free(zone);
}

int main(void)
{
    char line[1024];

    while (fgets(line, sizeof(line), stdin) != NULL)
        print_times(line);
    return 0;
}
