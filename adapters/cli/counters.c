/* SPDX-License-Identifier: MIT */
#include "adapters/cli/counters.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LINE_CAP = 400 }; /* with its topic it fits into a line of the log */

struct line {
    const struct weir__log *log;
    const char *topic;
    char text[LINE_CAP];
    size_t len;
};

static void log_line(struct line *line)
{
    if (line->len > 0)
        weir__log(line->log, WEIR_LEVEL_INFO, "%s counters:%s", line->topic,
                  line->text);
    line->len = 0;
}

static void add_to_line(const char *name, uint64_t value, void *arg)
{
    struct line *line = arg;
    char item[80];
    size_t len;

    if (name == NULL) {
        log_line(line);
        return;
    }
    len = (size_t)snprintf(item, sizeof(item), " %s=%" PRIu64, name,
                           value); /* fits: 1 + 40 + 1 + 20 */
    if (line->len + len >= sizeof(line->text))
        log_line(line);
    memcpy(line->text + line->len, item, len + 1);
    line->len += len;
}

void weir__counters_log(struct weir_reactor *reactor, const char *topic,
                        const struct weir__log *log)
{
    struct line line = {.log = log, .topic = topic};

    (void)!weir_reactor_counters(reactor, topic, add_to_line, &line);
}
