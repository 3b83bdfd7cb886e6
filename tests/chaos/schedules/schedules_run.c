/* SPDX-License-Identifier: MIT */
#include "tests/chaos/schedules/schedules_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "core/random.h"

#define BEGIN_MS INT64_C(1600000000123)

/* --- chance, differences -------------------------------------------------- */

unsigned sched_pick(struct sched_run *run, unsigned count)
{
    return (unsigned)(weir__random_next(&run->random) % count);
}

bool sched_chance(struct sched_run *run, unsigned percent)
{
    return sched_pick(run, 100) < percent;
}

_Noreturn void sched_differs(const struct sched_run *run, const char *what,
                             const char *wanted, const char *got)
{
    printf("seed %" PRIu64 ", step %ld, %s: %s: wanted %s, got %s\n",
           run->options->seed, run->step, run->operation, what, wanted, got);
    (void)fflush(stdout);
    _exit(1);
}

/* Prints the first line that differs. */
void sched_check(struct sched_run *run, const char *what)
{
    char *wanted, *got;
    size_t at = 0, from = 0;

    text_clear(&run->got);
    call_answer(&run->caller, &run->got);
    if (strcmp(text_of(&run->wanted), text_of(&run->got)) == 0) {
        text_clear(&run->wanted);
        return;
    }
    wanted = run->wanted.ptr;
    got = run->got.ptr;
    for (; wanted[at] != '\0' && wanted[at] == got[at]; at++)
        if (wanted[at] == '\n')
            from = at + 1;
    wanted[from + strcspn(wanted + from, "\n")] = '\0';
    got[from + strcspn(got + from, "\n")] = '\0';
    sched_differs(run, what, wanted + from, got + from);
}

/* Each operation has a millisecond of its own: so have names. */
void sched_pass(struct sched_run *run, int64_t ms)
{
    run->model.now_ms += ms;
    server_set_time(run->caller.server, run->model.now_ms * 1000);
}

/* --- what operations share ------------------------------------------------ */

void sched_place(struct sched_run *run, const char *id,
                 char ret_place[WEIR__SEQ_LEN + 1])
{
    redisReply *reply;

    call_command(&run->caller, "HGET", 2);
    call_keys(&run->caller, "ids");
    call_str(&run->caller, id);
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    (void)snprintf(ret_place, WEIR__SEQ_LEN + 1, "%s",
                   reply->type == REDIS_REPLY_STRING ? reply->str : "");
    freeReplyObject(reply);
}

struct sched_job *sched_job_in(struct sched_run *run, enum sched_state state)
{
    struct sched_model *model = &run->model;
    size_t from = model->top == 0 ? 0 : sched_pick(run, (unsigned)model->top);

    for (size_t i = 0; i < model->top; i++) {
        struct sched_job *job = &model->jobs[(from + i) % model->top];

        if (job->state == state)
            return job;
    }
    return NULL;
}

bool sched_is_held(struct sched_run *run, const struct sched_held *held)
{
    const struct sched_job *job = sched_find(&run->model, held->id);

    return job != NULL && job->state == RUNS && job->token == held->token;
}

/* --- all of it ------------------------------------------------------------ */

static const struct operation {
    const char *name;
    void (*fn)(struct sched_run *run);
    unsigned weight;
} operations[] = {
    {"change", sched_op_change, 120}, {"stale", sched_op_stale, 15},
    {"list", sched_op_list, 20},      {"add", sched_op_add, 40},
    {"claim", sched_op_claim, 250},   {"expire", sched_op_expire, 25},
    {"slot", sched_op_slot, 60},      {"lose", sched_op_lose, 20},
    {"settle", sched_op_settle, 700}, {"again", sched_op_again, 60},
    {"back", sched_op_back, 25},      {"full", sched_op_full, 10},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* Mostly little, sometimes so much that times are missed. */
static int64_t time_passing(struct sched_run *run)
{
    if (sched_pick(run, 200) == 0)
        return 1 + sched_pick(run, 70000);
    return 1 + (sched_chance(run, 40) ? sched_pick(run, 60) : 0);
}

static void step(struct sched_run *run)
{
    unsigned total = 0, at;

    for (size_t i = 0; i < OPERATIONS; i++)
        total += operations[i].weight;
    at = sched_pick(run, total);
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (at < operations[i].weight) {
            run->operation = operations[i].name;
            sched_pass(run, time_passing(run));
            operations[i].fn(run);
            sched_check_state(run);
            return;
        }
        at -= operations[i].weight;
    }
}

/* Returns what the script does, as text in run->got. */
static const char *ask(struct sched_run *run, const char *script)
{
    call_command(&run->caller, "EVAL", 2);
    call_str(&run->caller, script);
    call_int(&run->caller, 0);
    call_queue(&run->caller);
    text_clear(&run->got);
    call_answer(&run->caller, &run->got);
    return text_of(&run->got);
}

/* Leases of what was deleted while it ran end, too. */
static void end_leases(struct sched_run *run)
{
    static const char script[] =
        "local left = redis.call('ZRANGE', 'weir:{t}:lease', 0, -1) "
        "for _, token in ipairs(left) do "
        "  redis.call('ZADD', 'weir:{t}:lease', 1, token) "
        "end "
        "return #left";

    while (strcmp(ask(run, script), "0") != 0)
        sched_op_claim(run);
}

/* All schedules are deleted and what is left runs; then nothing is there but
 * what is there once jobs were. */
static void drain(struct sched_run *run)
{
    /* Notes of crashes stay until there are many. */
    static const char script[] = "redis.call('DEL', 'weir:{t}:started') "
                                 "local keys = redis.call('KEYS', '*') "
                                 "table.sort(keys) "
                                 "return table.concat(keys, ' ')";
    struct sched_job *job;

    run->operation = "drain";
    for (size_t i = 0; i < NAMES; i++)
        sched_change_one(run, i, DELETE, 0);
    while (run->model.top > 0) {
        sched_pass(run, 2000);
        sched_op_claim(run);
        while (run->held_count > 0)
            sched_op_settle(run);
        while ((job = sched_job_in(run, DEAD)) != NULL)
            sched_delete_job(run, job);
        sched_check_state(run);
    }
    end_leases(run);
    if (strcmp(ask(run, script), "weir:{t}:ids weir:{t}:meta weir:{t}:seen") !=
        0)
        sched_differs(run, "the end", "nothing", text_of(&run->got));
}

static void sent_fini(struct sched_sent *sent)
{
    for (size_t i = 0; i < STAGED; i++)
        text_free(&sent->staged[i]);
    text_free(&sent->call);
    text_free(&sent->refused);
}

void sched_run(const struct sched_options *options)
{
    struct sched_run *run = calloc(1, sizeof(*run));

    if (run == NULL)
        abort();
    run->options = options;
    run->random = options->seed;
    run->model.now_ms = BEGIN_MS;
    run->operation = "begin";
    caller_open(&run->caller, options->fault);
    for (; run->step < options->operations; run->step++)
        step(run);
    drain(run);
    printf("  %ld operations: %lld jobs made, %lld ids were there, %lld "
           "verdicts refused, %lld repeats\n",
           run->step, run->model.made, run->duplicates, run->refused,
           run->repeats);
    caller_close(&run->caller);
    sent_fini(&run->last);
    sent_fini(&run->before);
    text_free(&run->wanted);
    text_free(&run->got);
    free(run);
}
