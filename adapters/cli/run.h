/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RUN_H
#define WEIR_CLI_RUN_H

/* One worker of weir run: it connects, learns the kinds of its topics, serves
 * them until a signal or --until-empty ends it, and drains. */

#include "adapters/cli/client.h"
#include "adapters/cli/kind_questions.h"
#include "adapters/cli/notify.h"
#include "adapters/cli/reload.h"
#include "adapters/cli/until_empty.h"
#include "adapters/web/web.h"
#include "core/error.h"

struct weir__run {
    /* Filled by the owner; what they point to is kept. */
    const struct weir__args *args; /* --handle and --config, for reloads */
    struct weir__cli *configured;  /* with what the file says */
    const char *const *said;       /* options of every topic by flags */
    const char *metrics;           /* its address; NULL: none */
    bool until_empty, may_evict;
    struct weir__services services; /* checked; the owner's to release */
    double drain_s;
    struct weir__log log;

    /* Its own; zeroed at first. */
    struct weir__client client;
    struct weir__kind_questions kinds; /* of the services, in their order */
    struct ev_timer kinds_limit;
    struct weir__watch watch;
    struct weir__notify notify;
    struct weir__web web; /* of --metrics */
    struct weir__serving serving;
    struct weir__reload reload;
    struct ev_timer drain, hurry;
    bool is_serving; /* what is known later is served then */
    bool is_stopping, is_hurrying;
    enum weir__exit exit_code; /* when the wait ends well */
};

/* From the connection to the end: what to exit with; the sentence was printed.
 * BLOCKS. */
enum weir__exit weir__run_worker(struct weir__run *run);

#endif
