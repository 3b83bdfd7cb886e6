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

/* --- adding --------------------------------------------------------------- */

static struct once_job *once_job_new(struct once_run *run)
{
    struct once_job *job = calloc(1, sizeof(*job));
    struct once_pack *pack = once_pack_new(run);

    if (job == NULL)
        abort();
    once_put(pack, job);
    job->added_ms = weir__seq_ms(pack->seq);
    if (once_chance(run, 20)) {
        job->user = 1 + once_pick(run, USERS);
        (void)snprintf(job->id, sizeof(job->id), "u%u", job->user);
    } else {
        weir__made_id(pack->seq, 0, job->id);
    }
    return job;
}

/* Whoever was refused is not there any more. */
static void once_keep(struct once_run *run, struct once_job *job, bool is_added)
{
    if (is_added) {
        job->next = run->jobs;
        run->jobs = job;
        return;
    }
    job->pack->count = 0;
    free(job);
}

static struct once_rule rule_new(struct once_run *run)
{
    static const int64_t times[] = {1, 20, 300, 5000};
    static const int64_t mosts[] = {-1, 0, 50, 2000};
    struct once_rule rule = {.mode = (enum once_mode)once_pick(run, MODES),
                             .form = (enum once_form)once_pick(run, 3),
                             .most = -1};

    if (rule.mode == THROTTLE)
        rule.form = FOR;
    if (rule.form == FOR)
        rule.ms = ONCE_PICK(run, times);
    if (rule.mode == DEBOUNCE)
        rule.most = ONCE_PICK(run, mosts);
    return rule;
}

static void write_rule(struct once_run *run, const struct once_rule *rule)
{
    static const char *const modes[] = {"reject", "replace", "debounce",
                                        "throttle"};
    struct text text = {0};

    text_format(&text, "%s ", modes[rule->mode]);
    if (rule->form == FOR)
        text_int(&text, rule->ms);
    else
        text_str(&text,
                 rule->form == UNTIL_DONE ? "until-done" : "until-start");
    if (rule->most >= 0)
        text_format(&text, " %lld", (long long)rule->most);
    call_str(&run->caller, text_of(&text));
    text_free(&text);
}

static void write_add(struct once_run *run, const struct once_add *add)
{
    const struct once_job *job = add->job;
    struct weir__buf buf = {0};
    char text[32];

    call_str(&run->caller, job->user > 0 ? job->id : "");
    once_write_pack(job->pack, false, &buf);
    call_bytes(&run->caller, &buf);
    weir__buf_fini(&buf);
    (void)snprintf(text, sizeof(text), "%c%" PRId64,
                   add->is_absolute ? 'a' : 'r', add->when_ms);
    call_str(&run->caller, text);
    (void)snprintf(text, sizeof(text), "k%d", add->key);
    call_str(&run->caller, text);
    write_rule(run, &add->rule);
}

/* The command stays for a repeat. */
static void send_new(struct once_run *run, struct once_call *call,
                     unsigned producer)
{
    struct sent *last = &run->last[producer], *before = &run->before[producer];
    struct caller *caller = &run->caller;
    char slot[8];

    call_script(caller, SCRIPT_ADD_KEYED, 8 + call->count, 4 + 5 * call->count);
    call_keys(caller, "wait ids meta idle seen unique due absent");
    for (size_t i = 0; i < call->count; i++)
        call_seq_key(&run->caller, call->adds[i].job->pack->seq);
    call_str(caller, "t");
    call_str(caller, "delay");
    (void)snprintf(slot, sizeof(slot), "s%u", producer);
    call_str(caller, slot);
    call_int(caller, ++run->numbers);
    for (size_t i = 0; i < call->count; i++)
        write_add(run, &call->adds[i]);
    if (once_chance(run, 20)) {
        struct sent old = *before;

        *before = *last;
        *last = old;
    }
    text_clear(&last->bytes);
    text_clear(&last->told);
    text_add(&last->bytes, caller->bytes.ptr, caller->bytes.len);
    call_queue(caller);
}

void once_op_add(struct once_run *run)
{
    static const int64_t delays[] = {0, 0, 0, 10, 300, 4000};
    struct once_call call = {.count = 1 + once_pick(run, CALL_JOBS)};
    unsigned producer = once_pick(run, PRODUCERS);
    long long added;

    for (size_t i = 0; i < call.count; i++) {
        call.adds[i].job = once_job_new(run);
        call.adds[i].key = (int)once_pick(run, (unsigned)run->options->keys);
        call.adds[i].rule = rule_new(run);
        call.adds[i].when_ms = ONCE_PICK(run, delays);
        call.adds[i].is_absolute = once_chance(run, 20);
        if (call.adds[i].is_absolute)
            call.adds[i].when_ms +=
                run->once.now_ms - (once_chance(run, 50) ? 5 : 0);
    }
    run->adds += (long)call.count;
    send_new(run, &call, producer);
    added = once_add(&run->once, &call, &run->last[producer].told);
    text_format(&run->wanted, "(%lld%s)", added,
                text_of(&run->last[producer].told));
    once_check(run);
    for (size_t i = 0; i < call.count; i++)
        once_keep(run, call.adds[i].job, call.is_added[i]);
}

/* It changes nothing; what is old hears that it is late. */
void once_op_repeat(struct once_run *run)
{
    unsigned producer = once_pick(run, PRODUCERS);
    bool is_late = once_chance(run, 25);
    struct sent *sent = is_late ? &run->before[producer] : &run->last[producer];

    if (sent->bytes.len == 0)
        return;
    run->repeats++;
    weir__buf_append(&run->caller.bytes, sent->bytes.ptr, sent->bytes.len);
    call_queue(&run->caller);
    text_format(&run->wanted, "(0%s)",
                is_late ? " 0 -4 ''" : text_of(&sent->told));
    once_check(run);
}

/* A job without a key, whose id somebody may have had who had one. */
void once_op_add_plain(struct once_run *run)
{
    struct once_job *job = once_job_new(run);
    char number[24];
    bool is_new;

    if (job->user == 0) {
        once_keep(run, job, false);
        return;
    }
    is_new = run->once.users[job->user - 1] == NULL;
    once_stage(run, job->pack, false);
    call_script(&run->caller, SCRIPT_ADD, 6, 7);
    call_keys(&run->caller, "wait ids meta idle seen");
    call_seq_key(&run->caller, job->pack->seq);
    call_str(&run->caller, "t");
    call_str(&run->caller, "delay");
    call_str(&run->caller, "plain");
    (void)snprintf(number, sizeof(number), "%lld.0", ++run->numbers);
    call_str(&run->caller, number);
    call_int(&run->caller, 1);
    call_int(&run->caller, (int64_t)job->pack->header_len);
    call_str(&run->caller, "r0");
    if (!is_new)
        text_str(&run->wanted, "(0 0 0)");
    else if (run->once.max_pending > 0 &&
             run->once.waiting >= run->once.max_pending)
        text_str(&run->wanted, "(0 0 256)");
    else
        text_str(&run->wanted, "(1)");
    call_queue(&run->caller);
    is_new = strcmp(text_of(&run->wanted), "(1)") == 0;
    if (is_new)
        once_enter(&run->once, job, run->once.now_ms);
    run->once.added += is_new;
    once_keep(run, job, is_new);
    once_check(run);
}
