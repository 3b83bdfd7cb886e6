/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_REFUSALS_H
#define WEIR_CLI_REFUSALS_H

/* Says why a topic refused jobs: with which of its limits, as it is stored now.
 * What is refused while the limits are read is said with them. */

#include "adapters/cli/client.h"
#include "adapters/cli/progress.h"

#include <inttypes.h>

struct weir__refusal {
    struct weir__refusal *next;
    uint64_t line; /* of the file; 0: there is none */
    size_t body_len;
    int code; /* WEIR_ETOOBIG or WEIR_EFULL */
};

struct weir__refusals {
    struct weir__client *client;
    const char *topic;
    const char *shown;                 /* the file's name in sentences */
    struct weir__progress *progress;   /* NULL: none is drawn */
    void (*done)(int code, void *arg); /* all was said; never inside a note */
    void *arg;
    struct weir__refusal *first, **end; /* to be said */
    char max_body[32], max_pending[32]; /* as stored; "": not known */
};

/* Set up what the caller gave in the fields down to `arg`. */
void weir__refusals_init(struct weir__refusals *refusals);

/* What a topic refuses by a limit, and not for want of a server. */
bool weir__is_limit(int code);

/* Say it soon. Takes the refusal, which weir__mem_new made. */
void weir__refusals_note(struct weir__refusals *refusals,
                         struct weir__refusal *refusal);

/* Something is still to be said. */
bool weir__refusals_wait(const struct weir__refusals *refusals);

#endif
