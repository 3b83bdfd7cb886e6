/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_SERVING_H
#define WEIR_CLI_SERVING_H

/* Having a reactor serve what weir__services say. Every refusal has been
 * printed. */

#include "adapters/cli/services.h"

struct weir__serving {
    struct weir_reactor *reactor;
    const char *const *said; /* by flags, of every topic; NULL ends them */
    const struct weir__log *log;
};

/* How the service is to be served, by the plugin's file. Borrows from both. */
struct weir_topic_options
weir__serving_options(const struct weir__serving *serving,
                      const struct weir__service *service);

/* A topic is of this kind on the server: that counts, a worker does not change
 * it. */
enum weir__exit weir__serving_kind(const struct weir__serving *serving,
                                   const struct weir__services *services,
                                   const struct weir__service *service,
                                   const char *kind);

/* Serve it from now on. */
enum weir__exit weir__serve(const struct weir__serving *serving,
                            const struct weir__service *service);

#endif
