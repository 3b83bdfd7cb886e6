/* SPDX-License-Identifier: MIT */

/* What happened in a trial: runs, lines of the log, jobs that were added. */

#include "adapters/weir/trial_private.h"

#include <string.h>

#include "adapters/msgpack/headers.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Takes a note; false when there is no memory for it. */
static bool keep(struct weir__notes *notes, void *note)
{
    void **list =
        weir__mem_grow(notes->list, notes->count + 1, sizeof(*notes->list));

    if (list != NULL)
        notes->list = list;
    if (list == NULL || note == NULL) {
        weir__mem_free(note);
        return false;
    }
    list[notes->count++] = note;
    return true;
}

static const void *note_at(const struct weir__notes *notes, size_t i)
{
    return i < notes->count ? notes->list[i] : NULL;
}

/* Without memory the line is only passed on. */
static void note_line(struct weir_trial *trial, enum weir_level level,
                      const char *text)
{
    size_t len = strlen(text);
    struct weir_trial_line *noted = weir__mem_new(sizeof(*noted) + len + 1);

    if (noted != NULL) {
        noted->level = level;
        noted->text = memcpy(noted + 1, text, len + 1);
    }
    (void)keep(&trial->lines, noted);
}

void weir__trial_log(enum weir_level level, const char *text, void *arg)
{
    struct weir_trial *trial = arg;

    note_line(trial, level, text);
    if (trial->on_line != NULL)
        trial->on_line(level, text, trial->on_line_arg);
}

struct weir_slice weir__trial_copy(char **to, struct weir_slice from)
{
    char *start = *to;

    if (from.len > 0)
        memcpy(start, from.ptr, from.len);
    start[from.len] = '\0';
    *to += from.len + 1;
    return weir__slice_of(start, from.len);
}

static const char *put_text(char **to, struct weir_slice from)
{
    return (const char *)weir__trial_copy(to, from).ptr;
}

/* The number of the run whose counters these are: failures counted it already,
 * and the store counts what is done. */
static uint32_t attempt_of(const struct weir__trial_job *job,
                           const struct weir__run *run)
{
    uint32_t attempt = job->record.counters.attempt;

    return run->outcome == WEIR__OUTCOME_SNOOZE ? attempt + 1 : attempt;
}

static struct weir_trial_run *copy_run(const struct weir_trial *trial,
                                       const struct weir__trial_job *job,
                                       const struct weir__run *run)
{
    struct weir_slice reason = weir__slice_str(run->reason);
    struct weir_slice dead = {0};
    struct weir_trial_run *noted;
    char *text;

    if (run->outcome == WEIR__OUTCOME_DEAD)
        dead = run->record.reason;
    noted =
        weir__mem_new(sizeof(*noted) + job->id.len + reason.len + dead.len + 3);
    if (noted == NULL)
        return NULL;
    text = (char *)(noted + 1);
    *noted = (struct weir_trial_run){
        .id = put_text(&text, job->id),
        .attempt = attempt_of(job, run),
        .verdict = run->verdict,
        .reason = put_text(&text, reason),
        .delay_ms = job->state == WEIR_TRIAL_WAITING ? run->delay_ms : -1,
        .dead = put_text(&text, dead),
        .timed_out = run->is_timed_out,
        .elapsed_ms = weir_trial_elapsed_ms(trial),
        .held_ms = job->held_ms,
    };
    return noted;
}

static int64_t delay_of(const struct weir_trial *trial,
                        const struct weir__follow *follow)
{
    int64_t delay_ms = follow->delay_ms;

    if (follow->at_ms != 0)
        delay_ms = follow->at_ms - weir__trial_now_ms(trial);
    return delay_ms < 0 ? 0 : delay_ms;
}

static struct weir_trial_follow *copy_follow(const struct weir_trial *trial,
                                             const struct weir__run *run,
                                             const struct weir__follow *follow)
{
    const struct weir__record *record = &follow->record;
    size_t len = weir__facade_codec.json(record->body, NULL, 0);
    struct weir_header headers[WEIR_MAX_HEADERS];
    struct weir_trial_follow *noted;
    struct weir_slice map;
    size_t count;
    char *text;

    noted = weir__mem_new(sizeof(*noted) + sizeof(headers) + WEIR_MAX_TOPIC +
                          run->id.len + follow->id.len + record->url.len +
                          record->retry.len + record->headers.len + len + 7);
    if (noted == NULL)
        return NULL;
    text = (char *)(noted + 1) + sizeof(headers);
    map = weir__trial_copy(&text, record->headers);
    count = weir__headers_read(map, headers);
    memcpy(noted + 1, headers, count * sizeof(*headers));
    *noted = (struct weir_trial_follow){
        .topic = put_text(&text, follow->topic.len > 0
                                     ? follow->topic
                                     : weir__slice_str(trial->topic)),
        .by = put_text(&text, run->id),
        .id = put_text(&text, follow->id),
        .url = put_text(&text, record->url),
        .retry = put_text(&text, record->retry),
        .delay_ms = delay_of(trial, follow),
        .ttl_ms = record->ttl_ms,
        .headers = (struct weir_header *)(noted + 1),
        .header_count = count,
    };
    noted->json = text;
    (void)weir__facade_codec.json(record->body, text, len + 1);
    return noted;
}

void weir__trial_verdict(struct weir_trial *trial,
                         const struct weir__trial_job *job,
                         const struct weir__run *run)
{
    const struct weir__follow *follow = run->follows.first;

    if (!keep(&trial->runs, copy_run(trial, job, run)))
        weir__trial_log(WEIR_LEVEL_ERROR,
                        "out of memory: a run is not in the list", trial);
    for (; follow != NULL; follow = follow->next)
        if (!keep(&trial->follows, copy_follow(trial, run, follow)))
            weir__trial_log(WEIR_LEVEL_ERROR,
                            "out of memory: a job that was added is not in "
                            "the list",
                            trial);
}

static void free_notes(struct weir__notes *notes)
{
    for (size_t i = 0; i < notes->count; i++)
        weir__mem_free(notes->list[i]);
    weir__mem_free(notes->list);
}

void weir__trial_free_notes(struct weir_trial *trial)
{
    free_notes(&trial->runs);
    free_notes(&trial->lines);
    free_notes(&trial->follows);
}

/* --- what a test asks ----------------------------------------------------- */

size_t weir_trial_run_count(const struct weir_trial *trial)
{
    return trial->runs.count;
}

const struct weir_trial_run *weir_trial_run_at(const struct weir_trial *trial,
                                               size_t i)
{
    return note_at(&trial->runs, i);
}

const struct weir_trial_run *weir_trial_last(const struct weir_trial *trial)
{
    return weir_trial_run_at(trial, trial->runs.count - 1); /* or beyond */
}

size_t weir_trial_follow_count(const struct weir_trial *trial)
{
    return trial->follows.count;
}

const struct weir_trial_follow *
weir_trial_follow_at(const struct weir_trial *trial, size_t i)
{
    return note_at(&trial->follows, i);
}

size_t weir_trial_line_count(const struct weir_trial *trial)
{
    return trial->lines.count;
}

const struct weir_trial_line *weir_trial_line_at(const struct weir_trial *trial,
                                                 size_t i)
{
    return note_at(&trial->lines, i);
}

bool weir_trial_logged(const struct weir_trial *trial, const char *part)
{
    for (size_t i = 0; i < trial->lines.count; i++)
        if (strstr(weir_trial_line_at(trial, i)->text, part) != NULL)
            return true;
    return false;
}

enum weir_trial_state weir_trial_state(const struct weir_trial *trial,
                                       const char *id)
{
    const struct weir__trial_job *job =
        weir__trial_store_find(trial, weir__slice_str(id));

    return job == NULL ? WEIR_TRIAL_NONE : job->state;
}

struct weir_counters weir_trial_counters(const struct weir_trial *trial,
                                         const char *id)
{
    const struct weir__trial_job *job =
        weir__trial_store_find(trial, weir__slice_str(id));

    return job == NULL ? (struct weir_counters){0} : job->record.counters;
}

void weir_trial_each_counter(const struct weir_trial *trial, weir_counter_fn fn,
                             void *arg)
{
    int rc = weir__reactor_counters(trial->core, weir__slice_str(trial->topic),
                                    fn, arg);

    WEIR_ASSERT(rc == WEIR_OK); /* it serves that topic */
}

struct wanted {
    const char *name;
    uint64_t value;
};

static void on_counter(const char *name, uint64_t value, void *arg)
{
    struct wanted *wanted = arg;

    if (name != NULL && strcmp(name, wanted->name) == 0)
        wanted->value = value;
}

uint64_t weir_trial_counter(const struct weir_trial *trial, const char *name)
{
    struct wanted wanted = {.name = name};

    weir_trial_each_counter(trial, on_counter, &wanted);
    return wanted.value;
}
