/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"
#include "core/lane.h"

/* What one process takes and another one settles. */

void weir__facade_info(const struct weir_job *job,
                       struct weir_job_info *ret_info)
{
    const struct weir__run *run = weir__run_of(job);
    const struct weir__record *record = &run->record;

    *ret_info = (struct weir_job_info){
        .id = run->id,
        .state = WEIR_JOB_RUNNING,
        .counters = record->counters,
        .due_ms = run->due_ms,
        .url = record->url,
        .retry = record->retry,
        .ttl_ms = record->ttl_ms,
        .error = record->error,
        .body = record->body,
        .group = run->group,
        .added_ms = record->added_ms,
        .lease_left_ms = -1,
        .headers = record->headers,
        .attempts = record->attempts,
    };
}

int weir__facade_adopt(struct weir_reactor *reactor, const char *topic,
                       const char *token)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    return rc < 0 ? rc : reactor->store->ops->adopt(handle, token);
}

int weir__facade_prolong(struct weir_reactor *reactor, const char *topic,
                         const struct weir__prolong *what, weir_count_fn fn,
                         void *arg)
{
    struct weir__store_topic *handle;
    int rc = weir__facade_open(reactor, topic, NULL, &handle, NULL);

    return rc < 0 ? rc : reactor->store->ops->prolong(handle, what, fn, arg);
}
