/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_LISTING_H
#define WEIR_CLI_LISTING_H

/* Jobs printed as they come: all of them at once may be gigabytes. */

#include "adapters/cli/client.h"

struct weir__listing {
    struct weir__client client;
    const char *topic;
    size_t limit; /* more are not printed */
    size_t count; /* printed */
    bool is_more; /* than `limit` */
    bool is_short_of_memory;
    void (*print_line)(const struct weir_job_info *job); /* for people */
};

/* A weir_show_fn with the listing as `arg`; ends the client's wait. */
void weir__listing_take(int code, const struct weir_job_info *job, void *arg);

/* After a request with weir__listing_take returned `code`: wait for it, say
 * what went wrong, close what was printed. `doing` as weir__client_exit. */
enum weir__exit weir__listing_finish(struct weir__listing *listing, int code,
                                     const char *doing);

#endif
