/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "adapters/msgpack/record.h"
#include "core/text.h"
#include "tests/chaos/schedules/schedules_run.h"

/* What people do with schedules. */

size_t sched_write_record(const struct weir__schedule *schedule,
                          struct weir__buf *ret_buf)
{
    const uint8_t body = BODY;
    struct weir__buf text = {0};
    size_t len;

    weir__schedule_write(&text, schedule);
    len = text.len;
    weir__record_write(
        ret_buf, &(struct weir__record){.cron = weir__buf_slice(&text),
                                        .body = weir__slice_of(&body, 1)});
    weir__buf_fini(&text);
    return ret_buf->len - len - 1;
}

static void call_cron(struct sched_run *run, size_t name, enum sched_verb verb,
                      size_t what, const char *place)
{
    static const char *const verbs[] = {"set", "pause", "resume", "delete"};
    struct caller *caller = &run->caller;
    struct weir__buf record = {0};
    size_t at = sched_write_record(&sched_whats[what], &record);
    char text[8];

    call_script(caller, SCRIPT_CRON, 9, verb == SET ? 6 : 4);
    call_keys(caller, "wait run ids meta idle due cron");
    call_seq_key(caller, place);
    call_keys(caller, "absent");
    call_str(caller, "t");
    call_str(caller, verbs[verb]);
    (void)snprintf(text, sizeof(text), "s%zu", name);
    call_str(caller, text);
    call_str(caller, place);
    if (verb == SET) {
        call_int(caller, (int64_t)at);
        call_bytes(caller, &record);
    }
    call_queue(caller);
    weir__buf_fini(&record);
}

void sched_change_one(struct sched_run *run, size_t name, enum sched_verb verb,
                      size_t what)
{
    char id[ID_CAP], place[WEIR__SEQ_LEN + 1];

    sched_tick_id(name, id);
    sched_place(run, id, place);
    call_cron(run, name, verb, what, place);
    text_format(&run->wanted, "(%s)",
                sched_change(&run->model, name, verb, what));
    sched_check(run, "the answer");
}

void sched_op_change(struct sched_run *run)
{
    static const enum sched_verb verbs[] = {SET,   SET,    SET,    PAUSE,
                                            PAUSE, RESUME, RESUME, DELETE};
    size_t name = sched_pick(run, NAMES), what = sched_pick(run, WHATS);

    if (sched_chance(run, 40))
        what = run->model.schedules[name].what;
    if (sched_chance(run, 40)) { /* a short rest, just before some time */
        sched_change_one(run, name, PAUSE, what);
        sched_pass(run, 1);
        sched_check_state(run);
        sched_change_one(run, name, RESUME, what);
        return;
    }
    sched_change_one(run, name, verbs[sched_pick(run, 8)], what);
}

/* Somebody asks who has read the index before it changed. */
void sched_op_stale(struct sched_run *run)
{
    size_t name = sched_pick(run, NAMES);
    char id[ID_CAP], place[WEIR__SEQ_LEN + 1];

    sched_tick_id(name, id);
    sched_place(run, id, place);
    call_cron(run, name, (enum sched_verb)sched_pick(run, 4),
              sched_pick(run, WHATS),
              place[0] != '\0' && sched_chance(run, 50) ? "" : "000000000000");
    text_str(&run->wanted, "(moved)");
    sched_check(run, "the answer");
}

void sched_op_list(struct sched_run *run)
{
    long long set = 0, mended;
    redisReply *reply;
    char wanted[80], got[80];

    call_script(&run->caller, SCRIPT_CRON, 9, 2);
    call_keys(&run->caller, "wait run ids meta idle due cron p: absent");
    call_str(&run->caller, "t");
    call_str(&run->caller, "list");
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 3)
        sched_differs(run, "the list", "a list",
                      reply->type == REDIS_REPLY_ERROR ? reply->str : "none");
    mended = sched_mend(&run->model);
    for (size_t i = 0; i < NAMES; i++)
        set += run->model.schedules[i].state != 0;
    (void)snprintf(wanted, sizeof(wanted), "at %lld, %lld mended, %lld",
                   (long long)run->model.now_ms, mended, set);
    (void)snprintf(got, sizeof(got), "at %lld, %lld mended, %zu",
                   reply->element[1]->integer, reply->element[2]->integer,
                   (reply->elements - 3) / 2);
    freeReplyObject(reply);
    if (strcmp(wanted, got) != 0)
        sched_differs(run, "the list", wanted, got);
}
