/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"

/* Jobs that died elsewhere are added to the dead. */

struct bury {
    struct weir__request request; /* first */
    struct weir__delay_topic *topic;
    weir_added_fn fn;
    void *arg;
    char id[WEIR_MAX_ID + 1];
};

static void on_buried(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct bury *bury = (struct bury *)request; /* its first member */

    weir__topic_log_error(&bury->topic->base, "add", code, reply);
    if (code == WEIR_OK && reply->type == REDIS_REPLY_ARRAY)
        code = WEIR_EKIND;
    else if (code == WEIR_OK && reply->type != REDIS_REPLY_INTEGER)
        code = WEIR_ESERVER;
    else if (code == WEIR_OK && reply->integer == 0)
        code = WEIR_EEXISTS;
    bury->fn(code, bury->id, bury->arg);
    weir__mem_free(bury);
}

/* Sent once: a repeat would find the job. */
int weir__delay_bury(struct weir__store_topic *base,
                     const struct weir__new_job *job, weir_added_fn fn,
                     void *arg)
{
    struct weir__delay_topic *topic = weir__delay_topic_of(base);
    struct weir__buf bytes = {0}, record = {0};
    struct bury *bury = weir__mem_new(sizeof(*bury));

    WEIR_ASSERT(job->died_ms > 0 && job->id.len > 0);
    if (bury == NULL)
        return WEIR_ENOMEM;
    weir__record_write(&record, job->record);
    if (record.failed) {
        weir__buf_fini(&record);
        weir__mem_free(bury);
        return WEIR_ENOMEM;
    }
    bury->request.done = on_buried;
    bury->topic = topic;
    bury->fn = fn;
    bury->arg = arg;
    memcpy(bury->id, job->id.ptr, job->id.len);
    (void)weir__topic_register(base);
    weir__resp_eval(&bytes, &weir__script_delay_bury, 4, 4);
    weir__prefix_keys(&bytes, &base->prefix, "ids meta dead rec");
    weir__resp_str(&bytes, "delay");
    weir__resp_bytes(&bytes, job->id);
    weir__resp_int(&bytes, job->died_ms);
    weir__resp_bytes(&bytes, weir__buf_slice(&record));
    weir__buf_fini(&record);
    weir__place_send(base->place, &bytes, &weir__script_delay_bury,
                     WEIR__SEND_ONCE, &bury->request);
    return WEIR_OK;
}
