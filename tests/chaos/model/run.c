/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/pack.h"
#include "core/random.h"
#include "tests/model/listen.h"

static const struct operation {
    const char *name;
    void (*fn)(struct run *run);
    unsigned weight;
    bool adds;
} operations[] = {
    {"add", op_add, 210, true},
    {"add again", op_add_again, 12, true},
    {"add to another kind", op_add_other_kind, 4, false},
    {"hand over", op_hand_over, 25, true},
    {"stage only", op_stage_only, 4, false},
    {"claim", op_claim, 230, false},
    {"settle", op_settle, 260, false},
    {"settle again", op_settle_again, 20, false},
    {"follow", op_follow, 25, true},
    {"slot", op_slot, 120, false},
    {"slot late", op_slot_late, 20, false},
    {"requeue", op_requeue, 14, true},
    {"forget", op_forget, 3, false},
    {"purge", op_purge, 6, false},
    {"add a dead one", op_add_dead, 5, true},
    {"duplicates", op_duplicates, 5, true},
    {"large lease", op_large_lease, 5, true},
    {"many crashes", op_many_crashes, 3, true},
    {"back at the mark", op_back_at_mark, 8, true},
    {"many split", op_many_split, 1, true},
    {"start", op_start, 60, false},
    {"start twice", op_start_twice, 5, false},
    {"recall", op_recall, 10, false},
    {"renew", op_renew, 20, false},
    {"release", op_release, 12, false},
    {"stats", op_stats, 25, false},
    {"lateness", op_lateness, 10, false},
    {"pause", op_pause, 6, false},
    {"max_pending", op_max_pending, 20, false},
    {"limits", op_limits, 12, false},
    {"subscribe", op_subscribe, 10, false},
    {"time", op_time, 90, false},
};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* --- chance ------------------------------------------------------------- */

unsigned pick(struct run *run, unsigned count)
{
    return (unsigned)(weir__random_next(&run->random) % count);
}

bool chance(struct run *run, unsigned percent)
{
    return pick(run, 100) < percent;
}

static const struct operation *pick_operation(struct run *run)
{
    unsigned total = 0, at;

    for (size_t i = 0; i < OPERATIONS; i++)
        total += operations[i].weight;
    at = pick(run, total);
    for (size_t i = 0;; i++) {
        if (at < operations[i].weight)
            return &operations[i];
        at -= operations[i].weight;
    }
}

/* --- comparing ---------------------------------------------------------- */

_Noreturn void run_differs(const struct run *run, const char *what,
                           const char *wanted, const char *got)
{
    size_t same = 0, from;

    while (wanted[same] != '\0' && wanted[same] == got[same])
        same++;
    from = same > 200 ? same - 200 : 0;
    printf("  seed %llu, step %ld, %s: %s differs, from byte %zu on\n"
           "    wanted %s%.600s\n    got    %s%.600s\n",
           (unsigned long long)run->options->seed, run->step, run->operation,
           what, same, from > 0 ? "..." : "", wanted + from,
           from > 0 ? "..." : "", got + from);
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

/* The job-level model is the only judge. */
static bool is_measured(void)
{
    static int is_set = -1;

    if (is_set < 0)
        is_set = getenv("WEIR_TEST_JUDGE") != NULL;
    return is_set;
}

static void look_at_jobs(const struct run *run)
{
    const char *problem = listen_problem(run->caller.listener);

    if (problem[0] == '\0')
        return;
    printf("  seed %llu, step %ld, %s: %s\n",
           (unsigned long long)run->options->seed, run->step, run->operation,
           problem);
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

void run_compare(struct run *run)
{
    look_at_jobs(run);
    if (is_measured()) {
        text_clear(&run->wanted);
        return;
    }
    if (run->got.len != run->wanted.len ||
        memcmp(text_of(&run->got), text_of(&run->wanted), run->got.len) != 0)
        run_differs(run, "the answer", text_of(&run->wanted),
                    text_of(&run->got));
    text_clear(&run->wanted);
}

void run_walk(struct run *run)
{
    listen_walk(run->caller.listener);
    look_at_jobs(run);
    if (!is_measured())
        walk(run);
}

void run_check(struct run *run)
{
    text_clear(&run->got);
    call_answer(&run->caller, &run->got);
    run_compare(run);
}

static const char *message_text(const char *message)
{
    static char text[256];

    if (strcmp(message, "t") == 0)
        return "";
    if (strncmp(message, "t ", 2) != 0)
        return "?";
    (void)snprintf(text, sizeof(text), "%c%s",
                   strlen(message) == SEQ_LEN + 2 ? ':' : '=', message + 2);
    return text;
}

/* Appends "3 " for a message to worker 3, "3:SEQ " where it names a pack, and
 * what else it says behind "3=", up to the slots of the pack; false: it was the
 * PONG. */
static bool read_message(struct run *run, struct text *woken)
{
    static const char channel[] = "weir:wake:w";
    redisReply *array = local_take(run->listener);
    bool is_pong;

    if (array == NULL || array->type != REDIS_REPLY_ARRAY ||
        array->elements < 2)
        run_differs(run, "the listener", "an array", "something else");
    is_pong = strcmp(array->element[0]->str, "pong") == 0;
    if (strcmp(array->element[0]->str, "message") == 0) {
        text_str(woken, array->element[1]->str + strlen(channel));
        text_str(woken, message_text(array->element[2]->str));
        text_str(woken, " ");
    }
    freeReplyObject(array);
    return !is_pong;
}

void run_check_woken(struct run *run)
{
    static const char *const ping[] = {"PING", NULL};
    struct text woken = {0};

    local_say(run->listener, ping);
    while (read_message(run, &woken))
        run->woken_seen++;
    if (!is_measured() &&
        strcmp(text_of(&woken), text_of(&run->model.woken)) != 0)
        run_differs(run, "who was woken", text_of(&run->model.woken),
                    text_of(&woken));
    text_clear(&run->model.woken);
    text_free(&woken);
}

/* --- clock, packs ------------------------------------------------------- */

void run_set_clock(struct run *run)
{
    server_set_time(run->caller.server, run->model.now_us);
}

void run_pass(struct run *run, int64_t us)
{
    run->model.now_us += us;
    run_set_clock(run);
}

void body_text(uint32_t body, char ret_text[64])
{
    (void)snprintf(ret_text, 64, "b%u%.*s", body, (int)(body % 30),
                   "..............................");
}

void run_fill(struct run *run, struct pack *pack)
{
    for (unsigned slot = 0; slot < pack->count; slot++)
        pack->jobs[slot].body = ++run->bodies;
}

void run_when(const struct pack *pack, struct weir__buf *ret_buf)
{
    struct text times = {0};
    char text[32];

    weir__buf_reset(ret_buf);
    if (is_rising(pack)) {
        text_add(&times, &pack->form, 1);
        times_text(pack, 0, pack->count - 1, pack->jobs[0].ms, &times);
        weir__buf_append(ret_buf, times.ptr, times.len);
        text_free(&times);
        return;
    }
    if (is_one_time(pack)) {
        (void)snprintf(text, sizeof(text), "%c%lld", pack->form,
                       (long long)pack->jobs[0].ms);
        weir__buf_append(ret_buf, text, strlen(text));
        return;
    }
    weir__buf_append(ret_buf, &pack->form, 1);
    weir__pack_array(ret_buf, pack->count);
    for (unsigned slot = 0; slot < pack->count; slot++)
        weir__pack_uint(ret_buf, (uint64_t)pack->jobs[slot].ms);
}

static void write_pack(const struct pack *pack, struct weir__buf *ret_bytes,
                       unsigned *ret_header_len)
{
    struct weir__pack_job jobs[SLOTS];
    char ids[SLOTS][24], bodies[SLOTS][64];

    for (unsigned slot = 0; slot < pack->count; slot++) {
        id_text(job_id(&pack->jobs[slot]), ids[slot]);
        body_text(pack->jobs[slot].body, bodies[slot]);
        jobs[slot].id.ptr = (const uint8_t *)ids[slot];
        jobs[slot].id.len = strlen(ids[slot]);
        jobs[slot].record.ptr = (const uint8_t *)bodies[slot];
        jobs[slot].record.len = strlen(bodies[slot]);
    }
    weir__pack_write(ret_bytes, jobs, pack->count, pack->has_ids);
    *ret_header_len =
        (unsigned)weir__pack_measure(jobs, pack->count, pack->has_ids)
            .header_len;
}

/* Behind the command's name and key. */
static void stage(struct run *run, struct pack *pack,
                  const struct weir__buf *bytes)
{
    call_bytes(&run->caller, bytes);
    call_str(&run->caller, "NX");
    call_str(&run->caller, "PX");
    call_int(&run->caller, STAGED_MS);
    call_queue(&run->caller);
    if (!pack->is_in_use)
        pack->is_staged = true;
}

void run_stage_in(struct run *run, char topic, struct pack *pack)
{
    struct weir__buf bytes = {0};

    write_pack(pack, &bytes, &pack->header_len);
    call_command(&run->caller, "SET", 5);
    call_topic_pack_key(&run->caller, topic, pack->number);
    stage(run, pack, &bytes);
    weir__buf_fini(&bytes);
}

void run_stage_out(struct run *run, struct pack *pack)
{
    struct weir__buf bytes = {0};

    write_pack(pack, &bytes, &pack->header_len);
    call_command(&run->caller, "SET", 5);
    call_out_key(&run->caller, pack->number);
    stage(run, pack, &bytes);
    weir__buf_fini(&bytes);
}

void run_stage(struct run *run, struct pack *pack)
{
    run_stage_in(run, 't', pack);
}

void run_bring(struct run *run, struct pack *pack)
{
    struct weir__buf bytes = {0};

    write_pack(pack, &bytes, &pack->header_len);
    call_bytes(&run->caller, &bytes);
    weir__buf_fini(&bytes);
    if (!pack->is_in_use)
        pack->is_staged = true;
}

void run_hold(struct run *run, struct node node, uint64_t token)
{
    enum { MOST = 2500, LESS = 1500 };

    if (run->held_count == MOST) { /* the oldest are forgotten */
        memmove(run->held, run->held + (MOST - LESS),
                LESS * sizeof(struct held));
        run->held_count = LESS;
    }
    run->held = list_room(run->held, run->held_count, &run->held_cap,
                          sizeof(struct held));
    run->held[run->held_count++] = (struct held){node, token};
    run->nodes_seen++;
}

void run_forget(struct run *run, size_t index)
{
    run->held_count--;
    memmove(run->held + index, run->held + index + 1,
            (run->held_count - index) * sizeof(struct held));
}

/* --- the run ------------------------------------------------------------ */

static struct settle_call *settle_new(void)
{
    struct settle_call *call = calloc(1, sizeof(*call));

    if (call == NULL) {
        printf("  out of memory\n");
        exit(1);
    }
    return call;
}

/* Workers of a version without mixed packs claimed here, and gave it back. */
static void claim_as_before(struct run *run)
{
    static const char script[] =
        "redis.call('HSET', KEYS[2], 'kind', 'delay', 'claimed', 5, "
        "'returned', 5) "
        "return redis.call('HSET', KEYS[1], '!', 'delay' .. string.rep('-', "
        "60))";
    struct model *model = &run->model;

    model->exists = model->is_old = true;
    model->count.claimed = model->count.returned = 5;
    call_command(&run->caller, "EVAL", 4);
    call_str(&run->caller, script);
    call_int(&run->caller, 2);
    call_keys(&run->caller, "ids meta");
    call_queue(&run->caller);
    text_str(&run->wanted, "1");
    run_check(run);
}

static void start(struct run *run)
{
    static const char *const subscribe[] = {"SUBSCRIBE", "nobody", NULL};

    model_init(&run->model, INT64_C(1700000000123456));
    run->settle = settle_new();
    run->last_settle = settle_new();
    run->follow = settle_new();
    run->random = run->options->seed;
    caller_open(&run->caller, run->options->fault);
    run->listener = local_open(run->caller.server);
    local_say(run->listener, subscribe);
    freeReplyObject(local_take(run->listener));
    run_set_clock(run);
    if (run->options->seed % 2 == 1)
        claim_as_before(run);
}

static void finish(struct run *run)
{
    local_close(run->listener);
    caller_close(&run->caller);
    model_fini(&run->model);
    free(run->held);
    free(run->settle);
    free(run->last_settle);
    for (size_t i = 0; i < CALL_PACKS; i++) {
        text_free(&run->follow->out[i].when);
        text_free(&run->follow->out[i].entry);
    }
    free(run->follow);
    text_free(&run->wanted);
    text_free(&run->got);
}

void run_all(const struct run_options *options)
{
    static const size_t most_live[] = {1300, 1300, 300, 30, 3};
    struct run run = {.options = options, .operation = "start"};

    start(&run);
    for (run.step = 1; run.step <= options->operations; run.step++) {
        const struct operation *operation;

        if (run.step % 500 == 1)
            run.most_live = PICK(&run, most_live);
        do
            operation = pick_operation(&run);
        while (operation->adds && run.model.live_count > run.most_live);
        run.operation = operation->name;
        operation->fn(&run);
        if (run.step % options->walk_every == 0)
            run_walk(&run);
    }
    run.operation = "drain";
    run_send_all(&run);
    run_drain(&run);
    printf(
        "  seed %llu: %ld operations, %lld walks; %lld jobs, %lld mixed packs, "
        "%lld nodes, "
        "%lld verdicts, %lld refused; %lld retried, %lld snoozed, "
        "%lld failed, %lld crashed, %lld woken, "
        "%lld handed over\n",
        (unsigned long long)options->seed, options->operations, run.walks,
        run.model.count.added, run.model.mixed_packs, run.nodes_seen,
        run.model.count.settled, run.refused_seen, run.model.count.retried,
        run.model.count.snoozed, run.model.count.failed,
        run.model.count.crashed, run.woken_seen, run.handed_seen);
    finish(&run);
}
