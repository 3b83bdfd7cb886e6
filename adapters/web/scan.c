/* SPDX-License-Identifier: MIT */
#include "adapters/web/scan.h"

#include "adapters/cli/output.h"
#include "adapters/json/json.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <ev.h>
#include <stdio.h>
#include <string.h>

/* The first batch is small, so few jobs are read twice, even large ones. */
enum { FIRST = 32, LEAST = 8, BATCH = 1000, BATCH_BYTES = 8 * 1024 * 1024 };

/* For all batches; the reader may have gone long ago. */
static const double LIMIT_S = 120.0;

struct scan {
    struct weir__web *web;
    struct weir__scan_options options;
    char topic[WEIR_MAX_TOPIC + 1];
    char after[WEIR_MAX_PLACE + 1]; /* of the last job that was read */
    char *program;                  /* owned */
    struct weir__buf lines;         /* of the batch */
    struct weir__scanned jobs[BATCH];
    size_t most;      /* jobs to read for this batch */
    size_t count;     /* of `jobs` */
    size_t looked_at; /* in all, with those that the precondition left out */
    size_t read;      /* in this batch, likewise */
    size_t found;     /* jobs that the program took */
    uint64_t failed;
    double began_s;
    bool is_full; /* the batch is; what follows comes with the next one */
    bool is_short_of_memory;
};

struct json_object *weir__scan_row(const char *topic,
                                   const struct weir_job_info *job)
{
    struct weir_job_info plain = *job;
    struct json_object *object;

    plain.body = (struct weir_slice){0};
    plain.attempts = (struct weir_slice){0};
    object = weir__job_json(topic, &plain);
    if (object == NULL)
        return NULL;
    json_object_object_del(object, "body");
    json_object_object_del(object, "topic");
    weir__object_put(&object, weir__field_number("body_bytes", job->body.len));
    return object;
}

static void forget_batch(struct scan *scan)
{
    for (size_t i = 0; i < scan->count; i++)
        (void)json_object_put(scan->jobs[i].row);
    scan->count = scan->read = 0;
    scan->is_full = false;
    weir__buf_reset(&scan->lines);
}

static void end(struct scan *scan, int code, const char *text, const char *next)
{
    weir__sieves_release(&scan->web->sieves);
    scan->options.end(code, text, next, scan->failed, scan->options.arg);
    forget_batch(scan);
    weir__buf_fini(&scan->lines);
    weir__mem_free(scan->program);
    weir__mem_free(scan);
}

static int read_batch(struct scan *scan);

/* --- what the program took ------------------------------------------------ */

static size_t smaller(size_t one, size_t other)
{
    return one < other ? one : other;
}

/* Kinds without places of their own read all jobs in front of a place again, so
 * few large batches are cheaper. */
static bool is_numbered(const char *place)
{
    return place[0] != '\0' && place[1] == '#';
}

/* As many jobs as fit and as are needed, if they are as large as those of this
 * batch and the program takes as many as before: others are read twice. */
static size_t next_size(const struct scan *scan)
{
    size_t bytes = scan->lines.len / scan->read + 1, wanted;
    size_t size = smaller(2 * scan->most, BATCH);

    if (is_numbered(scan->after))
        return BATCH;
    size = smaller(size, BATCH_BYTES / bytes + 1);
    if (scan->options.wanted == 0)
        return size;
    wanted = scan->options.wanted - scan->found;
    return smaller(size, wanted * scan->looked_at / (scan->found + 1) + LEAST);
}

static void go_on(struct scan *scan)
{
    const bool is_last = scan->read < scan->most && !scan->is_full;
    int rc;

    if (is_last || scan->looked_at >= scan->options.most) {
        end(scan, WEIR_OK, NULL, is_last ? "" : scan->after);
        return;
    }
    if (ev_now(scan->web->loop) - scan->began_s > LIMIT_S) {
        end(scan, WEIR_EINVAL, "where: the program did not end in time", "");
        return;
    }
    scan->most = next_size(scan);
    forget_batch(scan);
    rc = read_batch(scan);
    if (rc != WEIR_OK)
        end(scan, rc, NULL, "");
}

static void on_taken(int code, const char *taken, const char *text, void *arg)
{
    struct scan *scan = arg;

    if (code != WEIR_OK) {
        end(scan, code, text, "");
        return;
    }
    for (size_t i = 0; i < scan->count; i++) {
        scan->failed += taken[i] == 'f' ? 1 : 0;
        scan->found += taken[i] == 'y' ? 1 : 0;
        if (taken[i] == 'y' &&
            !scan->options.found(&scan->jobs[i], scan->options.arg)) {
            end(scan, WEIR_OK, NULL, scan->jobs[i].place);
            return;
        }
    }
    go_on(scan);
}

/* --- reading -------------------------------------------------------------- */

static void copy(char *to, size_t cap, struct weir_slice text)
{
    const size_t len = text.len < cap - 1 ? text.len : cap - 1;

    if (len > 0)
        memcpy(to, text.ptr, len);
    to[len] = '\0';
}

static void take_line(struct scan *scan, const struct weir_job_info *job)
{
    struct json_object *object = weir__job_json(scan->topic, job);
    struct weir__buf escaped = {0};
    struct weir_slice line;

    if (object != NULL && weir__json_line(object, &escaped, &line)) {
        weir__buf_append(&scan->lines, line.ptr, line.len);
        weir__buf_append(&scan->lines, "", 1);
    } else {
        scan->is_short_of_memory = true;
    }
    weir__buf_fini(&escaped);
    (void)json_object_put(object);
}

static void take_job(struct scan *scan, const struct weir_job_info *job)
{
    struct weir__scanned *scanned = &scan->jobs[scan->count];

    WEIR_ASSERT(scan->read < scan->most && scan->count <= scan->read);
    scan->read++;
    scan->looked_at++;
    copy(scan->after, sizeof(scan->after), job->place);
    if (scan->options.precondition != NULL &&
        !scan->options.precondition(job, scan->options.arg))
        return;
    scan->count++;
    copy(scanned->id, sizeof(scanned->id), job->id);
    copy(scanned->place, sizeof(scanned->place), job->place);
    weir__group_key(job, scanned->key);
    scanned->row =
        scan->options.wants_rows ? weir__scan_row(scan->topic, job) : NULL;
    take_line(scan, job);
    scan->is_full = scan->lines.len >= BATCH_BYTES;
    scan->is_short_of_memory |=
        scan->lines.failed ||
        (scan->options.wants_rows && scanned->row == NULL);
}

static void on_job(int code, const struct weir_job_info *job, void *arg)
{
    struct scan *scan = arg;

    if (job != NULL) {
        if (!scan->is_full && !scan->is_short_of_memory &&
            scan->read < scan->most)
            take_job(scan, job);
        return;
    }
    if (code == WEIR_OK && scan->is_short_of_memory)
        code = WEIR_ENOMEM;
    if (code == WEIR_OK && scan->count == 0) {
        go_on(scan);
        return;
    }
    if (code == WEIR_OK)
        code = weir__sieve_start(&scan->web->sieves, scan->program,
                                 &scan->lines, scan->count, on_taken, scan);
    if (code != WEIR_OK)
        end(scan, code,
            code == WEIR_EINVAL ? "after is no place in this list" : NULL, "");
}

static int read_batch(struct scan *scan)
{
    const struct weir_list list = {
        .state = scan->options.state,
        .limit = scan->most,
        .after = scan->after[0] != '\0' ? scan->after : NULL,
    };

    return weir_reactor_list_from(scan->web->reactor, scan->topic, &list,
                                  on_job, scan);
}

int weir__scan(struct weir__web *web, const struct weir__scan_options *options)
{
    const char *after = options->after != NULL ? options->after : "";
    const size_t len = strlen(options->program) + 1;
    struct scan *scan;
    char *program;
    int rc = WEIR_ENOMEM;

    if (!weir__sieves_hold(&web->sieves)) {
        options->end(WEIR_EFULL, "other filters are at work, try again", "", 0,
                     options->arg);
        return WEIR_OK;
    }
    scan = weir__mem_new(sizeof(*scan));
    program = weir__mem_new(len);
    if (scan != NULL && program != NULL) {
        scan->web = web;
        scan->options = *options;
        scan->program = program;
        scan->most = is_numbered(after) ? BATCH : FIRST;
        scan->began_s = ev_now(web->loop);
        memcpy(program, options->program, len);
        copy(scan->topic, sizeof(scan->topic), weir__slice_str(options->topic));
        copy(scan->after, sizeof(scan->after), weir__slice_str(after));
        rc = read_batch(scan);
    }
    if (rc != WEIR_OK) {
        weir__sieves_release(&web->sieves);
        weir__mem_free(program);
        weir__mem_free(scan);
    }
    return rc;
}
