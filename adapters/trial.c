/* SPDX-License-Identifier: MIT */
#include <weir/test.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/ev/loop.h"
#include "adapters/ev/plugin_loop.h"
#include "adapters/facade.h"
#include "adapters/msgpack/origin.h"
#include "adapters/trial/loop.h"
#include "adapters/trial/store.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* The inside of <weir/test.h>: core under a clock that only weir_trial_advance
 * moves, over a store in memory. */

#define START_MS      INT64_C(1700000000000)
#define BLOCK_WARN_MS 100 /* of virtual time: never */
#define MS_NS         INT64_C(1000000)
#define LONGEST_MS    (INT64_C(36500) * 24 * 3600 * 1000)

/* What happened, each with its texts behind it. */
struct noted_run {
    struct weir_trial_run run;
    char text[];
};

struct noted_line {
    struct weir_trial_line line;
    char text[];
};

struct weir_trial {
    char topic[WEIR_MAX_TOPIC + 1];
    int64_t start_ms;
    int64_t now_ns;
    bool is_running; /* inside weir_trial_advance */
    struct weir__log log;
    weir_log_fn on_line;
    void *on_line_arg;
    struct ev_loop *loop; /* for what other threads and descriptors bring */
    int depth;            /* callbacks of it on the stack */
    struct weir_loop *watches;
    struct weir__trial_loop *timers;
    struct weir__ev_mailbox *mailbox;
    struct weir__reactor *core;
    struct weir__trial_store *store;
    struct weir__plugin_file file;
    struct weir__instance instance;
    uint64_t made_ids;
    struct noted_run **runs;
    size_t run_count;
    struct noted_line **lines;
    size_t line_count;
};

static int64_t clock_ns(void *arg)
{
    return ((const struct weir_trial *)arg)->now_ns;
}

static int64_t clock_ms(void *arg)
{
    const struct weir_trial *trial = arg;

    return trial->start_ms + trial->now_ns / MS_NS;
}

/* --- what happened ----------------------------------------------------- */

/* Append a copy; without memory the line is only passed on. */
static void note_line(struct weir_trial *trial, enum weir_level level,
                      const char *text)
{
    size_t len = strlen(text);
    struct noted_line *noted = weir__mem_new(sizeof(*noted) + len + 1);
    struct noted_line **lines = weir__mem_grow(
        trial->lines, trial->line_count + 1, sizeof(struct noted_line *));

    if (lines != NULL)
        trial->lines = lines;
    if (lines == NULL || noted == NULL) {
        weir__mem_free(noted);
        return;
    }
    memcpy(noted->text, text, len + 1);
    noted->line = (struct weir_trial_line){level, noted->text};
    trial->lines[trial->line_count++] = noted;
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    struct weir_trial *trial = arg;

    note_line(trial, level, text);
    if (trial->on_line != NULL)
        trial->on_line(level, text, trial->on_line_arg);
}

/* Copy `from` to `*to` with a NUL and move on. */
static const char *put_text(char **to, struct weir_slice from)
{
    char *start = *to;

    if (from.len > 0)
        memcpy(start, from.ptr, from.len);
    start[from.len] = '\0';
    *to += from.len + 1;
    return start;
}

/* The number of the run whose counters these are: failures counted it already,
 * and the store counts what is done. */
static uint32_t attempt_of(const struct weir__trial_job *job,
                           const struct weir__run *run)
{
    uint32_t attempt = job->record.counters.attempt;

    return run->outcome == WEIR__OUTCOME_SNOOZE ? attempt + 1 : attempt;
}

static struct noted_run *copy_run(const struct weir_trial *trial,
                                  const struct weir__trial_job *job,
                                  const struct weir__run *run)
{
    struct weir_slice reason = weir__slice_str(run->reason);
    struct weir_slice dead = {0};
    struct noted_run *noted;
    char *text;

    if (run->outcome == WEIR__OUTCOME_DEAD)
        dead = run->record.reason;
    noted =
        weir__mem_new(sizeof(*noted) + job->id.len + reason.len + dead.len + 3);
    if (noted == NULL)
        return NULL;
    text = noted->text;
    noted->run = (struct weir_trial_run){
        .id = put_text(&text, job->id),
        .attempt = attempt_of(job, run),
        .verdict = run->verdict,
        .reason = put_text(&text, reason),
        .delay_ms = job->state == WEIR_TRIAL_WAITING ? run->delay_ms : -1,
        .dead = put_text(&text, dead),
        .timed_out = run->is_timed_out,
        .elapsed_ms = weir_trial_elapsed_ms(trial),
    };
    return noted;
}

static void on_verdict(const struct weir__trial_job *job,
                       const struct weir__run *run, void *arg)
{
    struct weir_trial *trial = arg;
    struct noted_run *noted = copy_run(trial, job, run);
    struct noted_run **runs = weir__mem_grow(trial->runs, trial->run_count + 1,
                                             sizeof(struct noted_run *));

    if (runs != NULL)
        trial->runs = runs;
    if (runs == NULL || noted == NULL) {
        weir__mem_free(noted);
        on_log(WEIR_LEVEL_ERROR, "out of memory: a run is not in the list",
               trial);
        return;
    }
    trial->runs[trial->run_count++] = noted;
}

static void free_notes(struct weir_trial *trial)
{
    for (size_t i = 0; i < trial->run_count; i++)
        weir__mem_free(trial->runs[i]);
    for (size_t i = 0; i < trial->line_count; i++)
        weir__mem_free(trial->lines[i]);
    weir__mem_free(trial->runs);
    weir__mem_free(trial->lines);
}

size_t weir_trial_run_count(const struct weir_trial *trial)
{
    return trial->run_count;
}

const struct weir_trial_run *weir_trial_run_at(const struct weir_trial *trial,
                                               size_t i)
{
    return i < trial->run_count ? &trial->runs[i]->run : NULL;
}

const struct weir_trial_run *weir_trial_last(const struct weir_trial *trial)
{
    return trial->run_count == 0 ? NULL
                                 : &trial->runs[trial->run_count - 1]->run;
}

size_t weir_trial_line_count(const struct weir_trial *trial)
{
    return trial->line_count;
}

const struct weir_trial_line *weir_trial_line_at(const struct weir_trial *trial,
                                                 size_t i)
{
    return i < trial->line_count ? &trial->lines[i]->line : NULL;
}

bool weir_trial_logged(const struct weir_trial *trial, const char *part)
{
    for (size_t i = 0; i < trial->line_count; i++)
        if (strstr(trial->lines[i]->text, part) != NULL)
            return true;
    return false;
}

enum weir_trial_state weir_trial_state(const struct weir_trial *trial,
                                       const char *id)
{
    const struct weir__trial_job *job =
        weir__trial_store_find(trial->store, weir__slice_str(id));

    return job == NULL ? WEIR_TRIAL_NONE : job->state;
}

struct weir_counters weir_trial_counters(const struct weir_trial *trial,
                                         const char *id)
{
    const struct weir__trial_job *job =
        weir__trial_store_find(trial->store, weir__slice_str(id));

    return job == NULL ? (struct weir_counters){0} : job->record.counters;
}

void weir_trial_each_counter(const struct weir_trial *trial, weir_counter_fn fn,
                             void *arg)
{
    int rc = weir__reactor_counters(trial->core, weir__slice_str(trial->topic),
                                    fn, arg);

    WEIR_ASSERT(rc == WEIR_OK); /* it serves that topic */
}

/* --- life -------------------------------------------------------------- */

static int out_of_memory(struct weir_error *err)
{
    return weir__error_set(err, WEIR_ENOMEM, "%s",
                           weir_error_text(WEIR_ENOMEM));
}

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
    struct weir__trial_store_options store = {
        .now_ms = clock_ms,
        .now_ns = clock_ns,
        .verdict = on_verdict,
        .arg = trial,
    };
    struct weir__reactor_options core = {
        .codec = &weir__facade_codec,
        .clock = clock_ns,
        .clock_arg = trial,
        .seed = 1, /* the same jitter each time */
        .log = &trial->log,
        .block_warn_ms = BLOCK_WARN_MS,
    };

    if (open_mailbox(trial) < 0 ||
        weir__trial_store_open(&store, &trial->store) < 0)
        return WEIR_ENOMEM;
    core.mailbox = weir__mailbox_port(trial->mailbox);
    trial->core = weir__reactor_new(&core);
    if (trial->core == NULL)
        return WEIR_ENOMEM;
    weir__reactor_attach(trial->core, weir__trial_store_port(trial->store));
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
    if (trial->store != NULL) {
        struct weir__store *port = weir__trial_store_port(trial->store);

        port->ops->close(port);
    }
    weir__reactor_free(trial->core);
    trial->core = NULL; /* what the plugin completes now is over */
    weir__instance_close(&trial->instance);
    weir__trial_loop_close(trial->timers);
    weir__ev_loop_close(trial->watches);
    weir__mailbox_close(trial->mailbox, 0);
    weir__loop_free(trial->loop);
    free_notes(trial);
    weir__mem_free(trial);
}

/* The table from wherever it is; none for a plain function. */
static int find_table(struct weir_trial *trial,
                      const struct weir_trial_options *options,
                      struct weir_error *err)
{
    const struct weir_topic_options *serve = &options->serve;
    int handlers = (serve->run != NULL || serve->run_batch != NULL) +
                   (serve->plugin != NULL) + (options->table != NULL);

    if (handlers != 1)
        return weir__error_set(err, WEIR_EINVAL,
                               "a trial needs one handler: a function, the "
                               "path of a plugin, or its table");
    if (options->table != NULL)
        return weir__plugin_check(options->table, "of the trial", &trial->file,
                                  err);
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
    struct weir__trial_loop_options timers = {
        .now_ns = clock_ns,
        .arg = trial,
        .plugin = trial->file.copy.name,
        .topic = trial->topic,
        .log = &trial->log,
    };
    int rc = weir__ev_loop_open(&watches, &trial->watches);

    if (rc < 0)
        return rc;
    timers.watches = trial->watches;
    return weir__trial_loop_open(&timers, &trial->timers);
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
    };
    int rc = find_table(trial, options, err);

    if (rc < 0 || trial->file.table == NULL)
        return rc; /* or a function */
    if (open_loop(trial) < 0)
        return out_of_memory(err);
    instance.loop = weir__trial_loop_port(trial->timers);
    rc = weir__instance_open(&trial->file, &instance, &trial->instance, err);
    if (rc < 0)
        return rc;
    lane->handler = trial->file.copy.name;
    lane->run = trial->file.copy.run;
    lane->run_batch = trial->file.copy.run_batch;
    lane->flush = trial->file.copy.flush;
    lane->self = trial->instance.self;
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
        return out_of_memory(err);
    rc = open_handler(trial, options, &lane, err);
    if (rc < 0)
        return rc;
    lane.store = weir__trial_store_port(trial->store);
    if (weir__reactor_serve(trial->core, &lane) < 0)
        return out_of_memory(err);
    weir__reactor_connection(trial->core, lane.store, true);
    return WEIR_OK;
}

int weir_trial_open(const struct weir_trial_options *options,
                    struct weir_trial **ret_trial, struct weir_error *err)
{
    struct weir_trial *trial = weir__mem_new(sizeof(*trial));
    int rc;

    if (trial == NULL)
        return out_of_memory(err);
    trial->start_ms = options->start_ms == 0 ? START_MS : options->start_ms;
    trial->log = (struct weir__log){on_log, trial, WEIR_LEVEL_DEBUG};
    trial->on_line = options->log;
    trial->on_line_arg = options->log_arg;
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
    };
    int rc = weir__facade_check_job(job, err);

    if (rc < 0)
        return rc;
    if (record->counters.attempt > 0)
        record->counters.attempt--; /* stored are the finished runs */
    record->retry = weir__slice_str(job->retry);
    record->url = weir__slice_str(job->url);
    record->ttl_ms = job->ttl_ms;
    record->body = job->body;
    if (job->id == NULL) {
        (void)snprintf(made, sizeof(made), "~%" PRIu64, ++trial->made_ids);
        new_job.id = weir__slice_str(made); /* fits */
    }
    rc = weir__trial_store_add(trial->store, &new_job);
    return rc < 0 ? weir__error_set(err, rc, "%s", weir_error_text(rc)) : rc;
}

/* As the store writes the record of a job that moves. */
static void put_origin(const struct weir_origin *origin,
                       struct weir__record *record, struct weir__buf *headers)
{
    if (origin == NULL ||
        !weir__origin_write(headers, origin, (struct weir_slice){0}))
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
    };
    struct weir__record record = {.counters = job->counters};
    struct weir__buf headers = {0};
    struct weir_slice body = {0};
    int rc = WEIR_OK;

    if (job->json != NULL) {
        rc = weir_body_from_json(job->json, strlen(job->json), &body, err);
        new_job.body = body;
    }
    put_origin(job->origin, &record, &headers);
    if (rc == WEIR_OK && headers.failed)
        rc = out_of_memory(err);
    if (rc == WEIR_OK)
        rc = add(trial, &new_job, &record, err);
    weir__buf_fini(&headers);
    weir_body_free(body);
    return rc;
}

/* --- time ----------------------------------------------------------------- */

/* Ns until the next timer of the instance, or `wait_ns` when that is sooner;
 * -1: never. */
static int64_t sooner(const struct weir_trial *trial, int64_t wait_ns)
{
    int64_t next_ns =
        trial->timers == NULL ? -1 : weir__trial_loop_next_ns(trial->timers);

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
        bool is_due =
            trial->timers != NULL && weir__trial_loop_run(trial->timers);
        int64_t wait_ns = weir__reactor_tick(trial->core);

        if (!weir__trial_store_answer(trial->store) && !is_due && wait_ns != 0)
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

        if (weir__trial_store_out(trial->store) == 0 || left_ns <= 0)
            break;
        weir__loop_turn(trial->loop, sleep_ms(wait_ns, left_ns));
        trial->now_ns = weir__driver_clock(NULL) - ahead_ns;
    }
    trial->is_running = false;
    return weir__trial_store_out(trial->store) == 0;
}

int64_t weir_trial_elapsed_ms(const struct weir_trial *trial)
{
    return trial->now_ns / MS_NS;
}
