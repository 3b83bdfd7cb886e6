/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_RELOAD_H
#define WEIR_CLI_RELOAD_H

/* Reading the configuration file again while weir run serves: the file is
 * checked wholly, then topics come, go and change, all or none. What was wrong
 * has been printed, and what happened is logged. */

#include "adapters/cli/kind_questions.h"
#include "adapters/cli/notify.h"
#include "adapters/cli/serving.h"

#include <ev.h>
#include <sys/types.h>
#include <time.h>

/* A plugin's file as it was when its code was loaded, which is for good. */
struct weir__loaded {
    char *file; /* owned */
    dev_t device;
    ino_t inode;
    struct timespec changed;
};

struct weir__reload {
    /* Filled by the owner; what they point to is kept. */
    struct ev_loop *loop;
    struct weir__serving serving;
    const struct weir__args *args;              /* --handle and --config */
    struct weir__services *services;            /* what is served */
    const struct weir__kind_questions *waiting; /* of topics at the start */
    const struct weir__notify *notify;
    const char *never;        /* why nothing is ever changed; NULL: it is */
    void (*taken)(void *arg); /* the services are others */
    void *arg;

    /* Its own; zeroed at first. */
    struct weir__services first; /* what the program was started with */
    struct weir__services next;
    struct weir__kind_questions kinds; /* of topics that come */
    size_t *coming;                    /* where they are in `next`; owned */
    struct ev_timer slow;
    enum weir__exit found; /* by the questions */
    bool is_cluster;
    bool is_ready;
    bool is_wanted; /* asked for before that */
    bool is_asking;
    bool is_again; /* asked for meanwhile */
    bool is_over;
    struct weir__loaded *loaded; /* owned */
    size_t loaded_count;
};

/* Read the file again, or say why not. May come before the topics are served;
 * while one waits for the server, the next one takes its place. BLOCKS on the
 * file and on plugins that are opened. */
void weir__reload(struct weir__reload *reload);

/* The topics of the start are served. */
void weir__reload_ready(struct weir__reload *reload, bool is_cluster);

/* The program ends: nothing is changed any more. */
void weir__reload_stop(struct weir__reload *reload);

/* After the reactor was freed; a zeroed struct is fine. */
void weir__reload_fini(struct weir__reload *reload);

#endif
