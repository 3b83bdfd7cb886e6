/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_TOPICS_H
#define WEIR_CLI_TOPICS_H

/* Which topics there are, and which of them a mistyped name means. */

#include "adapters/cli/client.h"

/* The names of the topics on the server. */
struct weir__topics {
    struct weir__client *client;
    char (*names)[WEIR_MAX_TOPIC + 1]; /* owned; in byte order */
    size_t count;
    int rc; /* WEIR_OK while `names` holds all of them */
};

/* Ask for the names, and wait with weir__client_wait; released with
 * weir__topics_fini in any case. WEIR_ENOMEM; what the request came to. */
int weir__topics_ask(struct weir__client *client,
                     struct weir__topics *ret_topics);

/* Keep the names that match one of `count` patterns as of file names; a name
 * matches itself, and with no pattern all stay. Returns the first pattern that
 * no name matches, NULL if there is none. */
const char *weir__topics_keep(struct weir__topics *topics,
                              const char *const *patterns, size_t count);

void weir__topics_fini(struct weir__topics *topics);

/* The topic whose name is nearest to that of `topic`, which does not exist; ""
 * when none is near, or the server does not tell. BLOCKS. */
void weir__topics_near(struct weir__client *client, const char *topic,
                       char ret_near[WEIR_MAX_TOPIC + 1]);

#endif
