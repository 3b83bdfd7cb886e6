/* SPDX-License-Identifier: MIT */
#ifndef WEIR_FACADE_H
#define WEIR_FACADE_H

/* The inside of <weir/weir.h>: what a struct weir_reactor is made of. Shared by
 * weir.c (life), serve.c (handlers and plugins) and request.c (jobs). These
 * three and the command line are the only files that name several adapters. */

#include <weir/weir.h>

#include "adapters/dl/loader.h"
#include "adapters/ev/driver.h"
#include "adapters/redis/url.h"
#include "core/error.h"
#include "core/reactor.h"

/* A plugin's instance serves one topic; kept until the reactor is freed. */
struct weir__bound_plugin {
    struct weir__bound_plugin *next;
    struct weir__plugin_file file;
    struct weir__instance instance;
};

struct weir_reactor {
    struct weir__log log;
    struct weir__redis_url url;
    char name[WEIR_MAX_TOPIC + 1]; /* of this worker */
    void (*on_connection)(int code, const char *text, void *arg);
    void *on_connection_arg;
    struct weir__driver *driver;
    struct weir__store *store;
    struct weir__reactor *core;
    struct weir__bound_plugin *plugins;
    int depth;     /* callbacks of ours on the stack */
    bool is_freed; /* weir_reactor_free was called, maybe deferred */
};

/* The store's handle of a topic, opened at need. WEIR_EINVAL (not a topic
 * name), WEIR_ECANCELED (the reactor is being freed), WEIR_ENOMEM. */
int weir__facade_topic(struct weir_reactor *reactor, const char *topic,
                       struct weir__store_topic **ret_topic,
                       struct weir_error *err);

#endif
