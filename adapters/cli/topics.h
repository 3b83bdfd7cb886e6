/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_TOPICS_H
#define WEIR_CLI_TOPICS_H

/* The names of the topics on the server. */

#include "adapters/cli/client.h"

struct weir__topics {
    struct weir__client *client;
    char (*names)[WEIR_MAX_TOPIC + 1]; /* owned; in byte order */
    size_t count;
    int rc; /* WEIR_OK while `names` holds all of them */
};

/* Ask and wait; released with weir__topics_fini in any case. WEIR_ENOMEM;
 * what the request came to. BLOCKS. */
int weir__topics_ask(struct weir__client *client,
                     struct weir__topics *ret_topics);

void weir__topics_fini(struct weir__topics *topics);

#endif
