/* SPDX-License-Identifier: MIT */
#include "tests/chaos/once/once_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "core/random.h"
#include "core/text.h"

enum { BEGIN_S = 1600000000 };

/* --- chance, differences -------------------------------------------------- */

unsigned once_pick(struct once_run *run, unsigned count)
{
    return (unsigned)(weir__random_next(&run->random) % count);
}

bool once_chance(struct once_run *run, unsigned percent)
{
    return once_pick(run, 100) < percent;
}

_Noreturn void once_differs(struct once_run *run, const char *what,
                            const char *wanted, const char *got)
{
    printf("seed %" PRIu64 ", add %lld, %s: %s: wanted %s, got %s\n",
           run->options->seed, run->once.added, run->operation, what, wanted,
           got);
    (void)fflush(stdout);
    _exit(1);
}

/* What was queued must answer run->wanted. */
void once_check(struct once_run *run)
{
    text_clear(&run->got);
    call_answer(&run->caller, &run->got);
    if (strcmp(text_of(&run->wanted), text_of(&run->got)) != 0)
        once_differs(run, "the answer", text_of(&run->wanted),
                     text_of(&run->got));
    text_clear(&run->wanted);
}

/* Each operation has a millisecond of its own: so have names. */
void once_pass(struct once_run *run, int64_t ms)
{
    run->once.now_ms += ms;
    server_set_time(run->caller.server, run->once.now_ms * 1000);
}

/* --- jobs and packs ------------------------------------------------------- */

struct once_pack *once_pack_new(struct once_run *run)
{
    struct once_pack *pack = calloc(1, sizeof(*pack));

    if (run->pack_count == run->pack_cap) {
        run->pack_cap = run->pack_cap == 0 ? 4096 : run->pack_cap * 2;
        run->packs = realloc(run->packs, run->pack_cap * sizeof(pack));
    }
    if (pack == NULL || run->packs == NULL)
        abort();
    run->names.producer = (uint32_t)run->pack_count;
    weir__seq_next(&run->names, run->once.now_ms, pack->seq);
    run->packs[run->pack_count++] = pack;
    return pack;
}

/* By its name: the last 24 bits are its number. */
struct once_pack *once_pack_named(struct once_run *run, const char *seq)
{
    static const char letters[] =
        "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    size_t number = 0;

    for (size_t i = 8; i < 12; i++) {
        const char *at = strchr(letters, seq[i]);

        if (at == NULL || seq[i] == '\0')
            once_differs(run, "a name", "of a pack", seq);
        number = number * 64 + (size_t)(at - letters);
    }
    if (number >= run->pack_count ||
        memcmp(run->packs[number]->seq, seq, SEQ_CAP - 1) != 0)
        once_differs(run, "a name", "of a pack", seq);
    return run->packs[number];
}

void once_put(struct once_pack *pack, struct once_job *job)
{
    job->pack = pack;
    job->slot = pack->count;
    pack->jobs[pack->count++] = job;
}

/* One that moves says when it was added. */
void once_write_pack(struct once_pack *pack, bool moves,
                     struct weir__buf *ret_buf)
{
    struct weir__pack_job jobs[PACK_JOBS];
    struct weir__buf records[PACK_JOBS] = {{0}};

    for (size_t i = 0; i < pack->count; i++) {
        struct weir__record record = {0};

        if (moves)
            record.added_ms = pack->jobs[i]->added_ms;
        weir__record_write(&records[i], &record);
        jobs[i].id = weir__slice_str(pack->jobs[i]->id);
        jobs[i].record = weir__buf_slice(&records[i]);
    }
    weir__pack_write(ret_buf, jobs, pack->count, true);
    pack->header_len = weir__pack_measure(jobs, pack->count, true).header_len;
    for (size_t i = 0; i < pack->count; i++)
        weir__buf_fini(&records[i]);
}

void once_stage(struct once_run *run, struct once_pack *pack, bool moves)
{
    struct weir__buf buf = {0};

    once_write_pack(pack, moves, &buf);
    call_stage(&run->caller, pack->seq, &buf);
    call_queue(&run->caller);
    weir__buf_fini(&buf);
}

/* Some job in this state; NULL: none was found soon. */
struct once_job *once_job_in(struct once_run *run, enum once_state state)
{
    for (int i = 0; i < 20 && run->once.count > 0; i++) {
        struct once_job *job =
            run->once.list[once_pick(run, (unsigned)run->once.count)];

        if (job->state == state)
            return job;
    }
    return NULL;
}

/* --- all of it ------------------------------------------------------------ */

/* Slots that are left in packs, ids, jobs that were added, and that wait. */
static void once_op_count(struct once_run *run)
{
    long long live = 0;

    for (size_t i = 0; i < run->once.count; i++)
        live += run->once.list[i]->state != DEAD;
    call_command(&run->caller, "EVAL", 2);
    call_str(&run->caller,
             "local left, call = 0, redis.call "
             "for _, key in ipairs(call('KEYS', 'weir:{t}:p:*')) do "
             "  local last, gone = call('GETRANGE', key, 2, 3):byte(1, 2) "
             "  left = left + last + 1 - gone "
             "end "
             "local count = call('HMGET', 'weir:{t}:meta', 'added', "
             "'retried', 'requeued', 'claimed', 'delwait') "
             "for i = 1, 5 do count[i] = tonumber(count[i] or 0) end "
             "return { left, math.max(call('HLEN', 'weir:{t}:ids'), 1) - 1, "
             "count[1], "
             "count[1] + count[2] + count[3] - count[4] - count[5] }");
    call_int(&run->caller, 0);
    call_queue(&run->caller);
    text_format(&run->wanted, "(%lld %zu %lld %lld)", live, run->once.count,
                run->once.added, run->once.waiting);
    once_check(run);
}

static const struct operation {
    const char *name;
    void (*fn)(struct once_run *run);
    unsigned weight;
} operations[] = {
    {"add", once_op_add, 300},
    {"repeat", once_op_repeat, 100},
    {"add plain", once_op_add_plain, 60},
    {"claim", once_op_claim, 120},
    {"finish", once_op_finish, 900},
    {"requeue", once_op_requeue, 30},
    {"slot", once_op_slot, 60},
    {"max_pending", once_op_max_pending, 4},
    {"count", once_op_count, 2},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static void step(struct once_run *run)
{
    unsigned total = 0, at;

    for (size_t i = 0; i < OPERATIONS; i++)
        total += operations[i].weight;
    at = once_pick(run, total);
    for (size_t i = 0; i < OPERATIONS; i++) {
        if (at < operations[i].weight) {
            run->operation = operations[i].name;
            once_pass(run,
                      1 + (once_chance(run, 10) ? once_pick(run, 100) : 0));
            operations[i].fn(run);
            return;
        }
        at -= operations[i].weight;
    }
}

/* Whatever is left runs, too. */
static void drain(struct once_run *run)
{
    run->operation = "drain";
    while (run->once.count > 0) {
        struct once_job *job = run->once.list[0];

        once_pass(run, 50);
        if (job->state == DEAD)
            once_op_requeue(run);
        once_op_claim(run);
        for (int i = 0; i < 50; i++)
            once_op_finish(run);
    }
    once_op_count(run);
}

static void fini(struct once_run *run)
{
    for (size_t i = 0; i < run->pack_count; i++)
        free(run->packs[i]);
    for (size_t i = 0; i < PRODUCERS; i++) {
        text_free(&run->last[i].bytes);
        text_free(&run->last[i].told);
        text_free(&run->before[i].bytes);
        text_free(&run->before[i].told);
    }
    while (run->jobs != NULL) {
        struct once_job *job = run->jobs;

        run->jobs = job->next;
        free(job);
    }
    text_free(&run->wanted);
    text_free(&run->got);
    free(run->once.list);
    free(run->once.keys);
    free(run->packs);
}

void once_run(const struct once_options *options)
{
    struct once_run run = {.options = options, .random = options->seed};

    run.once.now_ms = INT64_C(1000) * BEGIN_S;
    run.once.key_count = options->keys;
    run.once.keys = calloc((size_t)options->keys, sizeof(*run.once.keys));
    caller_open(&run.caller, options->fault);
    while (run.adds < options->adds)
        step(&run);
    drain(&run);
    printf("  %ld adds on %d keys, %lld repeats: %lld were added, %lld runs\n",
           run.adds, options->keys, run.repeats, run.once.added,
           run.once.started);
    caller_close(&run.caller);
    fini(&run);
}
