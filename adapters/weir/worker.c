/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Which workers there are, and what this one tells of itself. */

static int by_name(const void *one, const void *other)
{
    return strcmp(((const struct weir_worker_topic *)one)->name,
                  ((const struct weir_worker_topic *)other)->name);
}

static void describe_topics(struct weir__reactor *core,
                            struct weir_worker *worker)
{
    size_t count;
    struct weir_worker_topic *topics = weir__reactor_topics(core, &count);

    if (count > 1)
        qsort(topics, count, sizeof(topics[0]), by_name);
    worker->topics = topics;
    worker->topic_count =
        count < WEIR_WORKER_TOPICS ? count : WEIR_WORKER_TOPICS;
}

static bool describe(const struct weir_reactor *reactor,
                     struct weir_worker *ret_worker)
{
    struct weir_worker worker = {
        .name = reactor->name,
        .host = reactor->host,
        .pid = getpid(),
        .version = WEIR_VERSION,
        .transport = reactor->url.is_unix  ? "unix"
                     : reactor->url.is_tls ? "tls"
                                           : "tcp",
    };
    bool is_worker = reactor->core != NULL && /* else it is being freed */
                     weir__reactor_describe(reactor->core, &worker);

    if (reactor->core != NULL)
        describe_topics(reactor->core, &worker);
    *ret_worker = worker;
    return is_worker;
}

bool weir__facade_describe(struct weir_worker *ret_worker, void *arg)
{
    return describe(arg, ret_worker);
}

void weir_reactor_worker(const struct weir_reactor *reactor,
                         struct weir_worker *ret_worker)
{
    (void)describe(reactor, ret_worker); /* also where it has stopped */
}

int weir_reactor_workers(struct weir_reactor *reactor, weir_workers_fn fn,
                         void *arg)
{
    int rc = weir__facade_check_thread(reactor, NULL);

    if (rc < 0)
        return rc;
    if (reactor->is_freed)
        return WEIR_ECANCELED;
    return reactor->store->ops->workers(reactor->store, fn, arg);
}
