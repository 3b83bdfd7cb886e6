/* SPDX-License-Identifier: MIT */

/* The inside of <weir/test.h>: core under a clock that only weir_trial_advance
 * moves, over a store in memory. */

#include "adapters/weir/trial_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/headers.h"
#include "adapters/msgpack/origin.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#define START_MS      INT64_C(1700000000000)
#define BLOCK_WARN_MS 100 /* of virtual time: never */
#define MS_NS         INT64_C(1000000)
#define LONGEST_MS    (INT64_C(36500) * 24 * 3600 * 1000)
#define TIMER_MAX_MS  (INT64_MAX / MS_NS / 2) /* so long that it never comes */

static int64_t clock_ns(void *arg)
{
    return ((const struct weir_trial *)arg)->now_ns;
}

int64_t weir__trial_now_ms(const struct weir_trial *trial)
{
    return trial->start_ms + trial->now_ns / MS_NS;
}

/* --- timers of the plugin, under the clock of the trial ---------------- */

struct weir__trial_timer {
    struct weir_timer port;                 /* first: what the plugin holds */
    struct weir__heap_node node;            /* second */
    struct weir__trial_timer *next, **link; /* among all of them */
    weir_timer_fn fn;
    void *arg;
};

/* The casts are from first members. */
static struct weir__trial_loop *loop_of(struct weir_loop *port)
{
    return (struct weir__trial_loop *)port;
}

static struct weir__trial_timer *timer_of(struct weir_timer *port)
{
    return (struct weir__trial_timer *)port;
}

static struct weir__trial_timer *timer_at(struct weir__heap_node *node)
{
    char *start = (char *)node - offsetof(struct weir__trial_timer, node);

    return (struct weir__trial_timer *)(void *)start;
}

static struct weir_timer *timer_new(struct weir_loop *port, weir_timer_fn fn,
                                    void *arg)
{
    struct weir__trial_loop *loop = loop_of(port);
    struct weir__trial_timer *timer;

    WEIR_ASSERT(fn != NULL);
    if (weir__heap_reserve(&loop->due, loop->timer_count + 1) < 0)
        return NULL;
    timer = weir__mem_new(sizeof(*timer));
    if (timer == NULL)
        return NULL;
    timer->port.loop = port;
    timer->fn = fn;
    timer->arg = arg;
    timer->next = loop->timers;
    timer->link = &loop->timers;
    if (timer->next != NULL)
        timer->next->link = &timer->next;
    loop->timers = timer;
    loop->timer_count++;
    return &timer->port;
}

static void timer_stop(struct weir_timer *port)
{
    struct weir__trial_timer *timer = timer_of(port);

    if (weir__heap_has(&timer->node))
        weir__heap_remove(&loop_of(port->loop)->due, &timer->node);
}

/* 0 ms are 1: a timer that starts itself anew would stop time. */
static void timer_start(struct weir_timer *port, int64_t ms)
{
    struct weir__trial_loop *loop = loop_of(port->loop);
    int64_t at_ns;
    int rc;

    if (ms < 1)
        ms = 1;
    if (ms > TIMER_MAX_MS)
        ms = TIMER_MAX_MS;
    at_ns = loop->trial->now_ns + ms * MS_NS;
    timer_stop(port);
    rc = weir__heap_push(&loop->due, &timer_of(port)->node, at_ns);
    WEIR_ASSERT(rc == WEIR_OK); /* there was room for each */
}

static void timer_free(struct weir_timer *port)
{
    struct weir__trial_timer *timer = timer_of(port);

    timer_stop(port);
    *timer->link = timer->next;
    if (timer->next != NULL)
        timer->next->link = timer->link;
    loop_of(port->loop)->timer_count--;
    weir__mem_free(timer);
}

/* What comes back belongs to the other loop and is used through it. */
static struct weir_watch *watch_new(struct weir_loop *port, int fd,
                                    weir_watch_fn fn, void *arg)
{
    return weir_watch_new(loop_of(port)->watches, fd, fn, arg);
}

static int64_t now_ms(const struct weir_loop *port)
{
    return ((const struct weir__trial_loop *)port)->trial->now_ns / MS_NS;
}

static void log_text(struct weir_loop *port, enum weir_level level,
                     const char *text)
{
    weir_loop_log(loop_of(port)->watches, level, text);
}

static const struct weir_loop_ops loop_ops = {
    .size = sizeof(loop_ops),
    .timer_new = timer_new,
    .timer_start = timer_start,
    .timer_stop = timer_stop,
    .timer_free = timer_free,
    .watch_new = watch_new,
    .now_ms = now_ms,
    .log = log_text,
};

static void loop_init(struct weir_trial *trial)
{
    trial->timers.port.ops = &loop_ops;
    trial->timers.trial = trial;
}

static void loop_fini(struct weir_trial *trial)
{
    struct weir__trial_loop *loop = &trial->timers;

    if (loop->timer_count > 0)
        weir__log(&trial->log, WEIR_LEVEL_WARN,
                  "%s: plugin %s was closed and left %zu timers behind; they "
                  "are stopped",
                  trial->topic, trial->file.copy.name, loop->timer_count);
    while (loop->timers != NULL)
        timer_free(&loop->timers->port);
    weir__heap_fini(&loop->due);
}

static bool loop_run(struct weir_trial *trial)
{
    bool is_due = false;

    for (;;) {
        struct weir__heap_node *node = weir__heap_first(&trial->timers.due);
        const struct weir__trial_timer *timer;

        if (node == NULL || node->at_ns > trial->now_ns)
            return is_due;
        (void)weir__heap_pop(&trial->timers.due); /* that node */
        is_due = true;
        timer = timer_at(node);
        timer->fn(timer->arg); /* may free it */
    }
}

static int64_t loop_next_ns(const struct weir_trial *trial)
{
    const struct weir__heap_node *node = weir__heap_first(&trial->timers.due);

    return node == NULL ? -1 : node->at_ns;
}

/* --- life -------------------------------------------------------------- */

static void on_completed(uint64_t ticket,
                         const struct weir__completion *completion, void *arg)
{
    struct weir_trial *trial = arg;

    if (trial->core != NULL)
        weir__reactor_complete(trial->core, ticket, completion);
}

static int open_mailbox(struct weir_trial *trial)
{
    struct weir__mailbox_options options = {
        .completed = on_completed,
        .arg = trial,
    };

    trial->loop = weir__loop_new();
    if (trial->loop == NULL)
        return WEIR_ENOMEM;
    options.loop = trial->loop;
    return weir__mailbox_open(&options, &trial->mailbox);
}

static int open_parts(struct weir_trial *trial)
{
    struct weir__reactor_options core = {
        .codec = &weir__facade_codec,
        .clock = clock_ns,
        .clock_arg = trial,
        .seed = 1, /* the same jitter each time */
        .log = &trial->log,
        .block_warn_ms = BLOCK_WARN_MS,
    };

    if (open_mailbox(trial) < 0)
        return WEIR_ENOMEM;
    core.mailbox = weir__mailbox_port(trial->mailbox);
    trial->core = weir__reactor_new(&core);
    if (trial->core == NULL)
        return WEIR_ENOMEM;
    weir__reactor_attach(trial->core, &trial->store.port);
    return WEIR_OK;
}

/* Copes with a half-built trial. */
void weir_trial_free(struct weir_trial *trial)
{
    if (trial == NULL)
        return;
    WEIR_ASSERT(!trial->is_running);
    if (trial->core != NULL) {
        weir__reactor_halt(trial->core);
        (void)weir__reactor_drop_pending(trial->core); /* nobody completes */
    }
    weir__trial_store_fini(trial);
    weir__reactor_free(trial->core);
    trial->core = NULL; /* what the plugin completes now is over */
    weir__instance_close(&trial->instance);
    loop_fini(trial);
    weir__ev_loop_close(trial->timers.watches);
    weir__mailbox_close(trial->mailbox, 0);
    weir__loop_free(trial->loop);
    weir__trial_free_notes(trial);
    weir__mem_free(trial);
}

/* The table from wherever it is; none for a plain function. */
static int find_table(struct weir_trial *trial,
                      const struct weir_trial_options *options,
                      struct weir_error *err)
{
    const struct weir_topic_options *serve = &options->serve;
    const struct weir_plugin *table =
        options->table == NULL ? serve->table : options->table;
    int handlers = (serve->run != NULL || serve->run_batch != NULL) +
                   (serve->plugin != NULL) + (table != NULL);

    if (handlers != 1)
        return weir__error_set(err, WEIR_EINVAL,
                               "a trial needs one handler: a function, the "
                               "path of a plugin, or its table");
    if (table != NULL)
        return weir__plugin_check(table, "of the trial", &trial->file, err);
    if (serve->plugin != NULL)
        return weir__plugin_load(serve->plugin, &trial->file, err);
    return WEIR_OK;
}

static int open_loop(struct weir_trial *trial)
{
    struct weir__ev_loop_options watches = {
        .loop = trial->loop,
        .plugin = trial->file.copy.name,
        .topic = trial->topic,
        .log = &trial->log,
        .depth = &trial->depth,
    };

    return weir__ev_loop_open(&watches, &trial->timers.watches);
}

static int open_handler(struct weir_trial *trial,
                        const struct weir_trial_options *options,
                        struct weir__lane_options *lane, struct weir_error *err)
{
    struct weir__instance_options instance = {
        .topic = trial->topic,
        .options = options->serve.plugin_options,
        .option_count = options->serve.plugin_option_count,
        .host = &weir__host,
        .self = options->serve.plugin == NULL ? options->serve.self : NULL,
    };
    int rc = find_table(trial, options, err);

    if (rc < 0 || trial->file.table == NULL)
        return rc; /* or a function */
    if (open_loop(trial) < 0)
        return weir__error_code(err, WEIR_ENOMEM);
    instance.loop = &trial->timers.port;
    rc = weir__instance_open(&trial->file, &instance, &trial->instance, err);
    if (rc < 0)
        return rc;
    lane->handler = trial->file.copy.name;
    lane->run = trial->file.copy.run;
    lane->run_batch = trial->file.copy.run_batch;
    lane->flush = trial->file.copy.flush;
    lane->self = trial->instance.self;
    lane->limit = trial->instance.limit;
    return WEIR_OK;
}

static int serve(struct weir_trial *trial,
                 const struct weir_trial_options *options,
                 struct weir_error *err)
{
    const char *topic = options->topic == NULL ? "trial" : options->topic;
    struct weir__lane_options lane;
    int rc = weir__facade_lane(topic, &options->serve, &lane, err);

    if (rc < 0)
        return rc;
    memcpy(trial->topic, topic, strlen(topic));
    if (open_parts(trial) < 0)
        return weir__error_code(err, WEIR_ENOMEM);
    rc = open_handler(trial, options, &lane, err);
    if (rc < 0)
        return rc;
    if (weir__reactor_serve(trial->core, &lane) < 0)
        return weir__error_code(err, WEIR_ENOMEM);
    weir__reactor_connection(trial->core, true);
    return WEIR_OK;
}

int weir_trial_open(const struct weir_trial_options *options,
                    struct weir_trial **ret_trial, struct weir_error *err)
{
    struct weir_trial *trial = weir__mem_new(sizeof(*trial));
    int rc;

    if (trial == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    trial->start_ms = options->start_ms == 0 ? START_MS : options->start_ms;
    trial->log = (struct weir__log){
        .fn = weir__trial_log, .arg = trial, .level = WEIR_LEVEL_DEBUG};
    trial->on_line = options->log;
    trial->on_line_arg = options->log_arg;
    weir__trial_store_init(trial);
    loop_init(trial);
    rc = serve(trial, options, err);
    if (rc < 0) {
        weir_trial_free(trial);
        return rc;
    }
    *ret_trial = trial;
    return WEIR_OK;
}

/* --- jobs and time ----------------------------------------------------- */

static int add(struct weir_trial *trial, const struct weir_new_job *job,
               struct weir__record *record, struct weir_error *err)
{
    char made[24];
    struct weir__new_job new_job = {
        .id = weir__slice_str(job->id),
        .record = record,
        .delay_ms = job->delay_ms,
        .group = weir__slice_str(job->group),
    };
    int rc = weir__facade_check_job(job, err);

    if (rc == WEIR_OK && job->group != NULL)
        rc = weir__group_check(new_job.group, err);

    if (rc < 0)
        return rc;
    if (record->counters.attempt > 0)
        record->counters.attempt--; /* stored are the finished runs */
    record->retry = weir__slice_str(job->retry);
    record->url = weir__slice_str(job->url);
    record->ttl_ms = job->ttl_ms;
    record->body = job->body;
    if (job->id == NULL) {
        (void)snprintf(made, sizeof(made), "@%" PRIu64, ++trial->made_ids);
        new_job.id = weir__slice_str(made); /* fits */
    }
    rc = weir__trial_store_add(trial, &new_job);
    return weir__error_code(err, rc);
}

/* As the store writes the record of a job that moves. */
static void put_origin(const struct weir_origin *origin,
                       struct weir__record *record, struct weir__buf *headers)
{
    if (origin == NULL || !weir__origin_write(headers, origin, record->headers))
        return;
    record->headers = weir__buf_slice(headers);
    record->reason = origin->reason;
    record->spent = origin->attempts;
    if (record->counters.attempt == 0)
        record->counters.attempt = origin->attempts + 1;
}

int weir_trial_add(struct weir_trial *trial, const struct weir_trial_job *job,
                   struct weir_error *err)
{
    struct weir_new_job new_job = {
        .id = job->id,
        .body = job->body,
        .delay_ms = job->delay_ms,
        .retry = job->retry,
        .ttl_ms = job->ttl_ms,
        .url = job->url,
        .group = job->group,
    };
    struct weir__record record = {.counters = job->counters};
    struct weir__buf given = {0}, headers = {0};
    struct weir_slice body = {0};
    int rc = weir__headers_check(job->headers, job->header_count, err);

    if (rc < 0)
        return rc;
    if (job->header_count > 0)
        weir__headers_write(&given, job->headers, job->header_count);
    record.headers = weir__buf_slice(&given);
    if (job->json != NULL) {
        rc = weir_body_from_json(job->json, strlen(job->json), &body, err);
        new_job.body = body;
    }
    put_origin(job->origin, &record, &headers);
    if (rc == WEIR_OK && (given.failed || headers.failed))
        rc = weir__error_code(err, WEIR_ENOMEM);
    if (rc == WEIR_OK)
        rc = add(trial, &new_job, &record, err);
    weir__buf_fini(&headers);
    weir__buf_fini(&given);
    weir_body_free(body);
    return rc;
}

/* --- time ----------------------------------------------------------------- */

/* Ns until the next timer of the instance, or `wait_ns` when that is sooner;
 * -1: never. */
static int64_t sooner(const struct weir_trial *trial, int64_t wait_ns)
{
    int64_t next_ns = loop_next_ns(trial);

    if (next_ns < 0 || (wait_ns >= 0 && wait_ns <= next_ns - trial->now_ns))
        return wait_ns;
    return next_ns - trial->now_ns;
}

/* Run what can run now. Returns ns until something more can, -1: nothing
 * will. */
static int64_t run_due(struct weir_trial *trial)
{
    weir__mailbox_here(trial->mailbox);
    for (;;) {
        bool is_due = loop_run(trial);
        int64_t wait_ns = weir__reactor_tick(trial->core);

        if (!weir__trial_store_answer(trial) && !is_due && wait_ns != 0)
            return sooner(trial, wait_ns);
    }
}

void weir_trial_advance(struct weir_trial *trial, int64_t ms)
{
    int64_t until_ns;

    WEIR_ASSERT(!trial->is_running && ms >= 0 && ms <= LONGEST_MS);
    until_ns = trial->now_ns + ms * MS_NS;
    trial->is_running = true;
    weir__loop_turn(trial->loop, 0);
    for (;;) {
        int64_t wait_ns = run_due(trial);

        if (wait_ns < 0 || wait_ns > until_ns - trial->now_ns)
            break;
        trial->now_ns += wait_ns;
    }
    trial->now_ns = until_ns;
    trial->is_running = false;
}

/* How long the loop may sleep: not beyond either, rounded up to ms. */
static int64_t sleep_ms(int64_t wait_ns, int64_t left_ns)
{
    int64_t ns = wait_ns < 0 || wait_ns > left_ns ? left_ns : wait_ns;

    return (ns + MS_NS - 1) / MS_NS;
}

bool weir_trial_wait(struct weir_trial *trial, int64_t ms)
{
    int64_t until_ns = trial->now_ns + ms * MS_NS;
    int64_t ahead_ns = weir__driver_clock(NULL) - trial->now_ns;

    WEIR_ASSERT(!trial->is_running && ms >= 0 && ms <= LONGEST_MS);
    trial->is_running = true;
    for (;;) {
        int64_t wait_ns = run_due(trial), left_ns = until_ns - trial->now_ns;

        if (trial->store.out_count == 0 || left_ns <= 0)
            break;
        weir__loop_turn(trial->loop, sleep_ms(wait_ns, left_ns));
        trial->now_ns = weir__driver_clock(NULL) - ahead_ns;
    }
    trial->is_running = false;
    return trial->store.out_count == 0;
}

int64_t weir_trial_elapsed_ms(const struct weir_trial *trial)
{
    return trial->now_ns / MS_NS;
}
