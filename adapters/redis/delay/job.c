/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/attempts.h"
#include "adapters/msgpack/record.h"
#include "adapters/redis/delay/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* One job by its id: show, delete, reschedule, forget. First the index says
 * where the job is (or the id itself, where weir made it), then the slot script
 * looks there; to show it, its bytes are fetched as well. When the job moved in
 * between, everything starts over. */

enum { TRIES = 5 };

struct job_request {
    struct weir__request request;
    struct weir__delay_topic *topic;
    weir_show_fn show_fn; /* exactly one of the four */
    weir_delete_fn delete_fn;
    weir_reschedule_fn reschedule_fn;
    weir_count_fn forget_fn; /* delete it if it is dead */
    void *arg;
    int64_t delay_ms, at_ms; /* to reschedule */
    int tries;
    size_t id_len;
    char id[WEIR_MAX_ID + 1];
    char place[WEIR__SEQ_LEN + 1]; /* seq, or "D": dead */
    char slot_text[12];            /* "": by the index */
    enum weir_job_state state;
    struct weir_job_info info;
    uint32_t crashes;
    struct weir__buf told;     /* crashes, as the server noted them */
    struct weir__buf attempts; /* the record's, and behind them these */
    size_t slot;
    char worker[WEIR_MAX_TOPIC + 1];
};

static void look_up(struct job_request *job);

static void finish(struct job_request *job, int code,
                   const struct weir_job_info *info)
{
    if (job->show_fn != NULL)
        job->show_fn(code, code == WEIR_OK ? info : NULL, job->arg);
    if (job->delete_fn != NULL)
        job->delete_fn(code, job->state, job->arg);
    if (job->reschedule_fn != NULL)
        job->reschedule_fn(code, job->state, job->info.due_ms, job->arg);
    if (job->forget_fn != NULL)
        job->forget_fn(code, code == WEIR_OK, job->arg);
    weir__buf_fini(&job->told);
    weir__buf_fini(&job->attempts);
    weir__mem_free(job);
}

static void start_over(struct job_request *job)
{
    job->tries++;
    if (job->tries < TRIES)
        look_up(job);
    else
        finish(job, WEIR_ESERVER, NULL);
}

/* --- show: the record --------------------------------------------------- */

int weir__job_read(struct weir_slice bytes, const char *seq,
                   struct weir_job_info *info)
{
    struct weir__record record;
    int rc = weir__record_read(bytes, &record);

    if (rc == WEIR_ENEWER)
        return rc;
    if (rc != WEIR_OK)
        record = (struct weir__record){
            .reason = weir__slice_str("malformed")}; /* there, but unreadable */
    info->counters = record.counters;
    info->url = record.url;
    info->key = record.key;
    info->unique = record.unique;
    info->priority = weir__priority_name(record.priority);
    info->retry = record.retry;
    info->ttl_ms = record.ttl_ms;
    info->reason = record.reason;
    info->error = record.error;
    info->body = record.body;
    info->headers = record.headers;
    info->attempts = record.attempts;
    info->is_tick = record.cron.len > 0;
    info->added_ms = record.added_ms > 0 ? record.added_ms
                     : seq == NULL       ? 0
                                         : weir__seq_ms(seq);
    return WEIR_OK;
}

/* Crashes of a suspect are in its record when it has ended. */
static void add_told(struct job_request *job)
{
    struct weir_attempt all[2 * WEIR_MAX_ATTEMPTS];
    size_t count = weir__attempts_read(job->info.attempts, all);

    if (job->told.len == 0)
        return;
    count += weir__attempts_read(weir__buf_slice(&job->told), all + count);
    weir__attempts_write(&job->attempts, all, count);
    if (!job->attempts.failed)
        job->info.attempts = weir__buf_slice(&job->attempts);
}

static void show_record(struct job_request *job, struct weir_slice bytes)
{
    struct weir_job_info *info = &job->info;
    int rc = weir__job_read(
        bytes, job->state == WEIR_JOB_DEAD ? NULL : job->place, info);

    info->id = weir__slice_of(job->id, job->id_len);
    info->state = job->state;
    info->counters.crashes += job->crashes;
    add_told(job);
    finish(job, rc, info);
}

static void on_bytes(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct job_request *job =
        (struct job_request *)request; /* its first member */
    struct weir__pack pack;
    struct weir_slice bytes;

    if (code != WEIR_OK) {
        finish(job, code, NULL);
        return;
    }
    if (reply->type != REDIS_REPLY_STRING) { /* it left in between */
        start_over(job);
        return;
    }
    bytes = weir__slice_of(reply->str, (size_t)reply->len);
    if (job->state != WEIR_JOB_DEAD) {
        code = weir__pack_read(bytes, &pack);
        bytes = code == WEIR_OK && job->slot < pack.count
                    ? weir__pack_record(&pack, job->slot)
                    : (struct weir_slice){0};
    }
    if (code == WEIR_ENEWER)
        finish(job, code, NULL);
    else
        show_record(job, bytes);
}

static void fetch(struct job_request *job)
{
    struct weir__buf bytes = {0};

    job->request.done = on_bytes;
    if (job->state == WEIR_JOB_DEAD) {
        weir__prefix_command(&bytes, &job->topic->base.prefix, 3, "HGET",
                             "rec");
        weir__resp_str(&bytes, job->id);
    } else {
        weir__resp_command(&bytes, 2);
        weir__resp_str(&bytes, "GET");
        weir__prefix_pack(&bytes, &job->topic->base.prefix, job->place);
    }
    weir__place_send(job->topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &job->request);
}

/* --- the slot script ---------------------------------------------------- */

static void read_worker(struct job_request *job, const struct redisReply *reply)
{
    struct weir_job_info *info = &job->info;
    struct weir_slice worker;

    if (job->state != WEIR_JOB_RUNNING ||
        !weir__reply_int(reply, 4, &info->lease_left_ms) ||
        !weir__reply_int(reply, 5, &info->claimed_ms) ||
        !weir__reply_str(reply, 6, &worker))
        return;
    worker = weir__worker_name(worker);
    if (worker.len > 0)
        memcpy(job->worker, worker.ptr, worker.len);
    info->worker = weir__slice_of(job->worker, worker.len);
}

/* False if the script knows no such state. */
static bool read_state(struct job_request *job, const struct redisReply *reply)
{
    static const enum weir_job_state states[] = {
        WEIR_JOB_SCHEDULED, WEIR_JOB_READY, WEIR_JOB_RUNNING, WEIR_JOB_DEAD};
    struct weir_slice name, none = {0};
    int64_t crashes, slot;

    if (!weir__reply_str(reply, 0, &name) ||
        !weir__reply_int(reply, 1, &job->info.due_ms) ||
        !weir__reply_int(reply, 2, &crashes) ||
        !weir__reply_int(reply, 3, &slot))
        return false;
    job->crashes = (uint32_t)crashes;
    job->slot = (size_t)slot;
    if (job->show_fn != NULL && reply->elements > 7 && crashes > 0)
        weir__add_crashes(reply->element[7], 0, job->crashes, 0, &none,
                          &job->told);
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        const char *state = weir_job_state_name(states[i]);

        if (weir__slice_equal(name, weir__slice_str(state))) {
            job->state = states[i];
            read_worker(job, reply);
            return true;
        }
    }
    return false;
}

static void on_slot(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct job_request *job =
        (struct job_request *)request; /* its first member */
    struct weir_slice word;

    if (code == WEIR_OK && reply->elements == 1) /* a word alone */
        weir__conn_replay_nothing(job->topic->base.place->server->commands);
    if (code != WEIR_OK)
        finish(job, code, NULL);
    else if (!weir__reply_str(reply, 0, &word))
        finish(job, WEIR_ESERVER, NULL);
    else if (weir__slice_equal(word, weir__slice_str("none")))
        finish(job, WEIR_ENOTFOUND, NULL);
    else if (weir__slice_equal(word, weir__slice_str("moved")))
        start_over(job);
    else if (weir__slice_equal(word, weir__slice_str("tick")))
        finish(job, WEIR_EINVAL, NULL);
    else if (!read_state(job, reply))
        finish(job, WEIR_ESERVER, NULL);
    else if (job->show_fn != NULL)
        fetch(job);
    else if (job->reschedule_fn != NULL && job->state != WEIR_JOB_SCHEDULED &&
             job->state != WEIR_JOB_READY)
        finish(job, WEIR_EINVAL, NULL);
    else
        finish(job, WEIR_OK, NULL);
}

static void write_when(struct weir__buf *bytes, const struct job_request *job)
{
    char when[24];
    int len =
        snprintf(when, sizeof(when), "%c%" PRId64, job->at_ms != 0 ? 'a' : 'r',
                 job->at_ms != 0 ? job->at_ms : job->delay_ms);

    WEIR_ASSERT(len > 0 && (size_t)len < sizeof(when));
    weir__resp_str(bytes, when);
}

static const char *verb_of(const struct job_request *job)
{
    return job->show_fn != NULL         ? "show"
           : job->reschedule_fn != NULL ? "reschedule"
                                        : "delete";
}

/* A delete that is repeated would not find its job, and a delay would begin
 * anew: these are sent once. Where a server that forgot the delete is told of
 * it again, it can meet no other job: the place is that of a pack, of which
 * there is one only. "D" is that of many. */
static unsigned flags_of(const struct job_request *job)
{
    if (job->show_fn != NULL)
        return WEIR__SEND_AGAIN;
    return job->delete_fn != NULL && strcmp(job->place, "D") != 0
               ? WEIR__SEND_REPLAY
               : WEIR__SEND_ONCE;
}

static void request_slot(struct job_request *job)
{
    struct weir__buf bytes = {0};

    job->request.done = on_slot;
    weir__resp_eval(&bytes, &weir__script_delay_slot, 12, 6);
    weir__prefix_keys(&bytes, &job->topic->base.prefix, "wait run ids meta");
    if (strcmp(job->place, "D") == 0)
        weir__prefix_key(&bytes, &job->topic->base.prefix,
                         "p:"); /* no pack is looked at */
    else
        weir__prefix_pack(&bytes, &job->topic->base.prefix, job->place);
    weir__prefix_keys(&bytes, &job->topic->base.prefix,
                      "dead rec idle due absent lease held");
    weir__resp_str(&bytes, verb_of(job));
    weir__resp_str(&bytes, job->id);
    weir__resp_str(&bytes, job->place);
    weir__resp_str(&bytes, job->slot_text);
    weir__resp_str(&bytes, job->topic->base.name);
    write_when(&bytes, job);
    weir__place_send(job->topic->base.place, &bytes, &weir__script_delay_slot,
                     flags_of(job), &job->request);
}

/* --- the index ---------------------------------------------------------- */

/* Where a made id says that its job was put. */
static bool read_place(struct job_request *job)
{
    const char *seq;
    unsigned slot;

    if (!weir__made_id_read(weir__slice_of(job->id, job->id_len), &seq, &slot))
        return false;
    memcpy(job->place, seq, WEIR__SEQ_LEN);
    job->place[WEIR__SEQ_LEN] = '\0';
    (void)snprintf(job->slot_text, sizeof(job->slot_text), "%u", slot);
    return true;
}

static void on_index(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct job_request *job =
        (struct job_request *)request; /* its first member */

    if (code != WEIR_OK) {
        finish(job, code, NULL);
        return;
    }
    if (reply->type == REDIS_REPLY_STRING &&
        (size_t)reply->len < sizeof(job->place)) {
        memcpy(job->place, reply->str, (size_t)reply->len + 1);
        job->slot_text[0] = '\0';
    } else if (!read_place(job)) {
        finish(job, WEIR_ENOTFOUND, NULL);
        return;
    }
    if (job->forget_fn != NULL && strcmp(job->place, "D") != 0)
        finish(job, WEIR_ENOTFOUND, NULL); /* there is one, but not dead */
    else
        request_slot(job);
}

static void look_up(struct job_request *job)
{
    struct weir__buf bytes = {0};

    job->request.done = on_index;
    weir__prefix_command(&bytes, &job->topic->base.prefix, 3, "HGET", "ids");
    weir__resp_str(&bytes, job->id);
    weir__place_send(job->topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &job->request);
}

/* --- the port ----------------------------------------------------------- */

static int begin(struct weir__store_topic *topic, struct weir_slice id,
                 const struct job_request *what)
{
    struct job_request *job = weir__mem_new(sizeof(*job));

    WEIR_ASSERT(id.len > 0 && id.len <= WEIR_MAX_ID);
    if (job == NULL)
        return WEIR_ENOMEM;
    *job = *what;
    job->topic = weir__delay_topic_of(topic);
    memcpy(job->id, id.ptr, id.len);
    job->id_len = id.len;
    look_up(job);
    return WEIR_OK;
}

int weir__delay_show(struct weir__store_topic *topic, struct weir_slice id,
                     weir_show_fn fn, void *arg)
{
    return begin(topic, id, &(struct job_request){.show_fn = fn, .arg = arg});
}

int weir__delay_remove(struct weir__store_topic *topic, struct weir_slice id,
                       weir_delete_fn fn, void *arg)
{
    return begin(topic, id, &(struct job_request){.delete_fn = fn, .arg = arg});
}

int weir__delay_forget(struct weir__store_topic *topic, struct weir_slice id,
                       weir_count_fn fn, void *arg)
{
    return begin(topic, id, &(struct job_request){.forget_fn = fn, .arg = arg});
}

int weir__delay_reschedule(struct weir__store_topic *topic,
                           const struct weir__reschedule *what,
                           weir_reschedule_fn fn, void *arg)
{
    WEIR_ASSERT(what->delay_ms >= 0 && what->at_ms >= 0);
    return begin(topic, what->id,
                 &(struct job_request){.reschedule_fn = fn,
                                       .arg = arg,
                                       .delay_ms = what->delay_ms,
                                       .at_ms = what->at_ms});
}
