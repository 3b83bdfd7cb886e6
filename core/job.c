/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "core/assert.h"
#include "core/header.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* What handlers see of a run: the host's half of <weir/plugin.h>. */

#define DELAY_MAX_MS (INT64_C(365) * 24 * 3600 * 1000)

const char *weir_job_state_name(enum weir_job_state state)
{
    static const char *const names[] = {
        [WEIR_JOB_SCHEDULED] = "scheduled",
        [WEIR_JOB_READY] = "ready",
        [WEIR_JOB_RUNNING] = "running",
        [WEIR_JOB_DEAD] = "dead",
    };

    return names[state];
}

/* Every run starts with its job, so the cast is to the enclosing object. */
struct weir__run *weir__run_of(const struct weir_job *job)
{
    union {
        const struct weir_job *job;
        struct weir__run *run;
    } same = {.job = job};

    WEIR_ASSERT(job != NULL && same.run->magic == WEIR__RUN_MAGIC);
    return same.run;
}

void weir__run_fini(struct weir__run *run)
{
    weir__mem_free(run->reason);
    run->reason = NULL;
    weir__follows_fini(&run->follows);
    run->magic = 0;
}

static struct weir_slice job_id(const struct weir_job *job)
{
    return weir__run_of(job)->id;
}

static struct weir_slice job_topic(const struct weir_job *job)
{
    return weir__slice_str(weir__run_of(job)->lane->name);
}

static struct weir_slice job_url(const struct weir_job *job)
{
    return weir__run_of(job)->record.url;
}

static struct weir_slice job_group(const struct weir_job *job)
{
    return weir__run_of(job)->group;
}

static struct weir_slice job_body(const struct weir_job *job)
{
    return weir__run_of(job)->record.body;
}

static void job_counters(const struct weir_job *job,
                         struct weir_counters *ret_counters)
{
    *ret_counters = weir__run_of(job)->record.counters;
    ret_counters->attempt++; /* stored are the finished runs */
}

static uint64_t job_token(const struct weir_job *job)
{
    return weir__run_of(job)->token;
}

static int64_t job_due_ms(const struct weir_job *job)
{
    return weir__run_of(job)->due_ms;
}

static int64_t job_added_ms(const struct weir_job *job)
{
    return weir__run_of(job)->record.added_ms;
}

static int64_t job_lateness_us(const struct weir_job *job)
{
    return weir__run_of(job)->start_late_us;
}

static void job_value(const struct weir_job *job, const char *path,
                      struct weir_value *ret_value)
{
    const struct weir__run *run = weir__run_of(job);

    run->lane->reactor->options.codec->value(run->record.body, path, ret_value);
}

static size_t job_body_json(const struct weir_job *job, char *buf, size_t cap)
{
    const struct weir__run *run = weir__run_of(job);

    return run->lane->reactor->options.codec->json(run->record.body, buf, cap);
}

static bool job_origin(const struct weir_job *job,
                       struct weir_origin *ret_origin)
{
    const struct weir__run *run = weir__run_of(job);
    const struct weir__codec *codec = run->lane->reactor->options.codec;

    if (run->record.headers.len == 0 ||
        !codec->origin(run->record.headers, ret_origin))
        return false;
    ret_origin->reason = run->record.reason;
    ret_origin->attempts = run->record.spent;
    return true;
}

/* Handlers that block see the copy in their thread run, and are on a thread
 * beside the loop's. */
static struct weir__pool *pool_of(const struct weir__run *run)
{
    return run->lane->reactor->options.pool;
}

static void job_log(const struct weir_job *job, enum weir_level level,
                    const char *text)
{
    const struct weir__run *run = weir__run_of(job);

    if (text == NULL)
        text = "";
    if (run->thread_run != NULL)
        pool_of(run)->log(pool_of(run), run->thread_run, level, text);
    else
        weir__log_job(run->lane->reactor->options.log, level, run->lane->name,
                      run->id, "%s", text);
}

static void job_set_delay(struct weir_job *job, int64_t delay_ms)
{
    struct weir__run *run = weir__run_of(job);

    if (delay_ms < 0 || delay_ms > DELAY_MAX_MS) {
        delay_ms = delay_ms < 0 ? 0 : DELAY_MAX_MS;
        job_log(job, WEIR_LEVEL_WARN,
                "the handler's delay is outside 0 to 365 d, using the bound");
    }
    run->delay_ms = delay_ms;
}

/* Cut at a character's start, so that the text stays UTF-8. */
static size_t cut_len(const char *text)
{
    size_t len = strlen(text);

    if (len <= WEIR__REASON_MAX)
        return len;
    len = WEIR__REASON_MAX;
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

/* Without memory the verdict still counts, only its text is lost. */
static void job_set_reason(struct weir_job *job, const char *text)
{
    struct weir__run *run = weir__run_of(job);
    size_t len;

    weir__mem_free(run->reason);
    run->reason = NULL;
    if (text == NULL)
        return;
    len = cut_len(text);
    run->reason = weir__mem_new(len + 1);
    if (run->reason != NULL)
        memcpy(run->reason, text, len);
}

/* Only while the handler is on the stack: later nobody would drop it. */
static struct weir_handle job_handle(struct weir_job *job)
{
    struct weir__run *run = weir__run_of(job);
    struct weir__reactor *reactor = run->lane->reactor;

    WEIR_ASSERT(run->phase != WEIR__PHASE_READY);
    if (run->thread_run == NULL && run->ticket == 0 &&
        run->phase == WEIR__PHASE_RUNNING)
        run->ticket = weir__ticket_take(&reactor->tickets, run);
    return (struct weir_handle){
        .host = &weir__host,
        .owner = reactor->options.mailbox,
        .ticket = run->ticket,
    };
}

static void job_on_cancel(struct weir_job *job, weir_cancel_fn fn, void *arg)
{
    struct weir__run *run = weir__run_of(job);

    run->cancel = fn;
    run->cancel_arg = arg;
}

static bool job_canceled(const struct weir_job *job)
{
    const struct weir__run *run = weir__run_of(job);

    return run->thread_run != NULL &&
           pool_of(run)->is_canceled(pool_of(run), run->thread_run);
}

static size_t job_headers(const struct weir_job *job,
                          struct weir_header *ret_headers, size_t cap)
{
    const struct weir__run *run = weir__run_of(job);
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = 0;

    if (run->record.headers.len > 0)
        count = run->lane->reactor->options.codec->headers(run->record.headers,
                                                           headers);
    if (count > cap)
        count = cap;
    if (count > 0)
        memcpy(ret_headers, headers, count * sizeof(*headers));
    return count;
}

static struct weir_slice job_header(const struct weir_job *job,
                                    const char *name)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    const struct weir_header *found =
        weir__header_find(headers, job_headers(job, headers, WEIR_MAX_HEADERS),
                          weir__slice_str(name));

    return found == NULL ? (struct weir_slice){0} : found->value;
}

/* A trace goes on in the jobs that a job of it adds, unless these say anything
 * of one: a state belongs to its parent. Returns how many there are then. */
static size_t pass_trace(const struct weir_job *job,
                         struct weir_header headers[WEIR_MAX_HEADERS],
                         size_t count)
{
    const struct weir_slice parent = weir__slice_str("traceparent");
    const struct weir_slice state = weir__slice_str("tracestate");
    struct weir_header own[WEIR_MAX_HEADERS];
    size_t own_count = job_headers(job, own, WEIR_MAX_HEADERS);
    const struct weir_header *found = weir__header_find(own, own_count, parent);

    if (found == NULL || count == WEIR_MAX_HEADERS ||
        weir__header_find(headers, count, parent) != NULL ||
        weir__header_find(headers, count, state) != NULL)
        return count;
    headers[count++] = *found;
    found = weir__header_find(own, own_count, state);
    if (found != NULL && count < WEIR_MAX_HEADERS)
        headers[count++] = *found;
    return count;
}

/* Keep a checked job that a run adds, with its headers as a record has them. */
static int keep_follow(struct weir__run *run, struct weir_slice topic,
                       const struct weir_follow *follow)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = follow->header_count;
    struct weir__buf map = {0};
    int rc = WEIR_ENOMEM;

    if (count > 0)
        memcpy(headers, follow->headers, count * sizeof(*headers));
    count = pass_trace(&run->job, headers, count);
    if (count > 0)
        run->lane->reactor->options.codec->put_headers(&map, headers, count);
    if (!map.failed)
        rc = weir__follow_add(&run->follows, topic, follow,
                              weir__buf_slice(&map));
    weir__buf_fini(&map);
    return rc;
}

/* `size`: of the caller's struct, which may be an older or newer one. */
static int follow_to(struct weir_job *job, struct weir_slice topic,
                     const struct weir_follow *follow, size_t size)
{
    struct weir__run *run = weir__run_of(job);
    const struct weir__lane *lane = run->lane;
    struct weir_follow own = {0};
    struct weir_new_job checked;
    int rc;

    if (lane->store->ops->takes_follows != NULL &&
        !lane->store->ops->takes_follows(lane->topic))
        return WEIR_EKIND;
    memcpy(&own, follow, size < sizeof(own) ? size : sizeof(own));
    checked = (struct weir_new_job){
        .id = own.id,
        .body = own.body,
        .delay_ms = own.delay_ms,
        .at_ms = own.at_ms,
        .retry = own.retry,
        .ttl_ms = own.ttl_ms,
        .url = own.url,
        .headers = own.headers,
        .header_count = own.header_count,
        .key = own.key,
        .priority = own.priority,
    };
    rc = lane->reactor->options.codec->check(&checked, NULL);
    return rc < 0 ? rc : keep_follow(run, topic, &own);
}

static int job_follow(struct weir_job *job, const struct weir_follow *follow,
                      size_t size)
{
    return follow_to(job, (struct weir_slice){0}, follow, size);
}

static int job_follow_to(struct weir_job *job, const char *topic,
                         const struct weir_follow *follow, size_t size)
{
    struct weir_slice name = weir__slice_str(topic == NULL ? "" : topic);

    if (weir__topic_check(name, NULL) < 0)
        return WEIR_EINVAL;
    if (weir__slice_equal(name, job_topic(job)))
        name.len = 0;
    return follow_to(job, name, follow, size);
}

static int complete(struct weir_handle handle, enum weir_verdict verdict,
                    int64_t delay_ms, const char *why)
{
    struct weir__mailbox *mailbox = handle.owner;
    struct weir__completion completion = {verdict, delay_ms, why};

    if (verdict < WEIR_DONE || verdict > WEIR_FAIL || handle.ticket == 0)
        return WEIR_EINVAL;
    return mailbox->post(mailbox, handle.ticket, &completion);
}

const struct weir_host weir__host = {
    .size = sizeof(struct weir_host),
    .job_id = job_id,
    .job_topic = job_topic,
    .job_url = job_url,
    .job_body = job_body,
    .job_counters = job_counters,
    .job_token = job_token,
    .job_due_ms = job_due_ms,
    .job_lateness_us = job_lateness_us,
    .job_value = job_value,
    .job_body_json = job_body_json,
    .job_origin = job_origin,
    .job_set_delay = job_set_delay,
    .job_set_reason = job_set_reason,
    .job_log = job_log,
    .job_handle = job_handle,
    .job_on_cancel = job_on_cancel,
    .complete = complete,
    .job_canceled = job_canceled,
    .job_group = job_group,
    .job_follow = job_follow,
    .job_count = weir__run_count,
    .job_follow_to = job_follow_to,
    .job_added_ms = job_added_ms,
    .job_headers = job_headers,
    .job_header = job_header,
};
