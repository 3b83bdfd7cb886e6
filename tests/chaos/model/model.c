/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/node.h"

/* The parts that several calls share: jobs, packs, nodes, leases, sleepers. */

void *list_room(void *list, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return list;
    *cap = *cap == 0 ? 64 : *cap * 2;
    list = realloc(list, *cap * size);
    if (list == NULL) {
        printf("  out of memory\n");
        exit(1);
    }
    return list;
}

void model_init(struct model *model, int64_t now_us)
{
    *model = (struct model){.now_us = now_us, .mark = -1, .mixed_mark = -1};
    for (size_t i = 0; i < MINUTES; i++)
        model->late[i].minute = -1;
}

void model_fini(struct model *model)
{
    for (size_t i = 0; i < model->pack_count; i++) {
        text_free(&model->packs[i]->crashes);
        free(model->packs[i]);
    }
    free(model->packs);
    free(model->live);
    free(model->dead);
    for (size_t i = 0; i < model->lease_count; i++)
        text_free(&model->leases[i].held);
    free(model->leases);
    for (size_t i = 0; i < ADD_CALL_SLOTS; i++)
        text_free(&model->call_slots[i].refusals);
    text_free(&model->woken);
}

char away_name(unsigned topic)
{
    return (char)('g' + topic);
}

/* --- names -------------------------------------------------------------- */

void seq_text(uint32_t pack, char ret_text[SEQ_LEN + 1])
{
    (void)snprintf(ret_text, SEQ_LEN + 1, "%012x", pack);
}

void node_text(struct node node, char ret_text[SEQ_LEN + 5])
{
    seq_text(node.pack, ret_text);
    ret_text[SEQ_LEN] = (char)('0' + node.lo / 16);
    ret_text[SEQ_LEN + 1] = (char)('0' + node.lo % 16);
    ret_text[SEQ_LEN + 2] = (char)('0' + node.hi / 16);
    ret_text[SEQ_LEN + 3] = (char)('0' + node.hi % 16);
    ret_text[SEQ_LEN + 4] = '\0';
}

void id_text(struct id id, char ret_text[24])
{
    char seq[SEQ_LEN + 1];

    if (id.pack == 0) {
        (void)snprintf(ret_text, 24, "u%u", id.number);
        return;
    }
    seq_text(id.pack, seq);
    weir__made_id(seq, id.number, ret_text);
}

struct id job_id(const struct job *job)
{
    if (job->pack->has_ids)
        return job->id;
    return (struct id){job->pack->number, job->slot};
}

/* --- packs and jobs ----------------------------------------------------- */

struct pack *model_pack_new(struct model *model, unsigned count, bool has_ids)
{
    struct pack *pack =
        calloc(1, sizeof(*pack) + count * sizeof(pack->jobs[0]));

    if (pack == NULL) {
        printf("  out of memory\n");
        exit(1);
    }
    model->packs = list_room(model->packs, model->pack_count, &model->pack_cap,
                             sizeof(struct pack *));
    model->packs[model->pack_count++] = pack;
    pack->number = (uint32_t)model->pack_count;
    pack->count = count;
    pack->header_len = 8; /* the least, of one that is not staged */
    pack->has_ids = has_ids;
    for (unsigned slot = 0; slot < count; slot++) {
        pack->jobs[slot].pack = pack;
        pack->jobs[slot].slot = slot;
    }
    return pack;
}

bool same_id(struct id one, struct id other)
{
    return one.pack == other.pack && one.number == other.number;
}

/* Also of those that weir made, and then moved to another pack. */
static const struct job *indexed(const struct model *model, struct id id)
{
    if (id.pack == 0)
        return model->users[id.number];
    for (size_t i = 0; i < model->live_count; i++)
        if (model->live[i]->is_indexed && same_id(model->live[i]->id, id))
            return model->live[i];
    return NULL;
}

bool model_place(const struct model *model, struct id id, uint32_t *ret_place)
{
    const struct job *job = indexed(model, id);

    *ret_place = job == NULL ? 0 : job->pack->number;
    if (job != NULL)
        return true;
    for (size_t i = 0; i < model->dead_count; i++)
        if (same_id(model->dead[i].id, id))
            return true;
    return false;
}

static void enter_job(struct model *model, struct job *job)
{
    model->live = list_room(model->live, model->live_count, &model->live_cap,
                            sizeof(struct job *));
    job->at = model->live_count;
    model->live[model->live_count++] = job;
    job->state = WAITS;
    job->ended = 0;
    job->is_started = false;
    job->is_indexed = job->pack->has_ids;
    if (job->is_indexed && job->id.pack == 0)
        model->users[job->id.number] = job;
    job->pack->live++;
}

int64_t model_due_ms(const struct model *model, const struct job *job)
{
    int64_t now_ms = model_now_ms(model);
    int64_t due_ms = has_delays(job->pack) ? now_ms + job->ms : job->ms;

    return due_ms < now_ms ? now_ms : due_ms;
}

bool model_takes_mixed(const struct model *model)
{
    return model->mixed > 0 || !model->is_old;
}

void model_enter(struct model *model, struct pack *pack, const bool *refused,
                 int64_t *first_ms)
{
    bool is_one_node;

    pack->is_mixed = is_rising(pack) && model_takes_mixed(model);
    model->mixed_packs += pack->is_mixed;
    is_one_node = is_one_time(pack) || pack->is_mixed;
    pack->is_staged = false;
    pack->is_in_use = true;
    pack->added_ms = model_now_ms(model);
    pack->first_ms = pack->jobs[0].ms + (has_delays(pack) ? pack->added_ms : 0);
    for (unsigned slot = 0; slot < pack->count; slot++) {
        struct job *job = &pack->jobs[slot];

        if (refused[slot])
            continue;
        enter_job(model, job);
        job->due_ms = model_due_ms(model, job);
        if (job->due_ms < *first_ms)
            *first_ms = job->due_ms;
        job->lo = is_one_node ? 0 : slot;
        job->hi = is_one_node ? pack->count - 1 : slot;
    }
    if (is_one_node)
        model_split(pack, 0, pack->count - 1, refused);
}

void model_drop(struct model *model, struct job *job)
{
    model->live_count--;
    model->live[job->at] = model->live[model->live_count];
    model->live[job->at]->at = job->at;
    if (job->is_indexed && job->id.pack == 0)
        model->users[job->id.number] = NULL;
    job->state = GONE;
    job->is_indexed = false;
    job->pack->live--;
    if (job->pack->live == 0)
        job->pack->is_in_use = false;
}

/* --- nodes -------------------------------------------------------------- */

unsigned left_part(unsigned lo, unsigned hi)
{
    unsigned size = 1;

    while (size * 2 < hi - lo + 1)
        size *= 2;
    return size;
}

static bool is_uniform(const bool fates[SLOTS], unsigned lo, unsigned hi)
{
    for (unsigned slot = lo + 1; slot <= hi; slot++)
        if (fates[slot] != fates[lo])
            return false;
    return true;
}

void model_split(struct pack *pack, unsigned lo, unsigned hi,
                 const bool fates[SLOTS])
{
    unsigned part;

    if (!is_uniform(fates, lo, hi)) {
        part = left_part(lo, hi);
        model_split(pack, lo, lo + part - 1, fates);
        model_split(pack, lo + part, hi, fates);
        return;
    }
    for (unsigned slot = lo; slot <= hi; slot++) {
        pack->jobs[slot].lo = lo;
        pack->jobs[slot].hi = hi;
    }
}

int64_t model_mark(const struct model *model, const struct pack *pack)
{
    return pack->is_mixed ? model->mixed_mark : model->mark;
}

void model_split_at_mark(const struct model *model, struct pack *pack,
                         unsigned lo, unsigned hi)
{
    bool fates[SLOTS] = {false};

    for (unsigned slot = lo; slot <= hi; slot++)
        fates[slot] = pack->jobs[slot].due_ms <= model_mark(model, pack);
    model_split(pack, lo, hi, fates);
}

void add_little(struct text *text, uint64_t number, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        const uint8_t byte = (uint8_t)(number >> 8 * i);

        text_add(text, &byte, 1);
    }
}

void times_text(const struct pack *pack, unsigned lo, unsigned hi,
                int64_t first_ms, struct text *ret_text)
{
    add_little(ret_text, (uint64_t)(first_ms - pack->lead_ms), 6);
    for (unsigned slot = lo; slot <= hi; slot++)
        add_little(ret_text,
                   (uint64_t)(pack->jobs[slot].ms - pack->jobs[0].ms) +
                       pack->lead_ms,
                   4);
}

void table_text(const struct pack *pack, unsigned lo, unsigned hi,
                struct text *ret_text)
{
    add_little(ret_text, (uint64_t)pack->added_ms, 6);
    times_text(pack, lo, hi, pack->first_ms, ret_text);
}

/* Of two waiting or two running jobs: by score, then by name. */
static int by_score(const void *left, const void *right)
{
    const struct job *one = *(const struct job *const *)left;
    const struct job *two = *(const struct job *const *)right;

    if (one->state == WAITS && one->due_ms != two->due_ms)
        return one->due_ms < two->due_ms ? -1 : 1;
    if (one->state == RUNS && one->token != two->token)
        return one->token < two->token ? -1 : 1;
    if (one->ended != two->ended)
        return one->ended < two->ended ? -1 : 1;
    if (one->is_started != two->is_started)
        return one->is_started ? 1 : -1;
    if (one->pack != two->pack)
        return one->pack->number < two->pack->number ? -1 : 1;
    return one->slot < two->slot ? -1 : 1;
}

struct job **model_nodes(const struct model *model,
                         bool (*wanted)(const struct job *job, int64_t arg),
                         int64_t arg, size_t *ret_count)
{
    struct job **list = NULL;
    size_t count = 0, cap = 0;

    for (size_t i = 0; i < model->live_count; i++) {
        struct job *job = model->live[i];

        if (job->slot != job->lo || !wanted(job, arg))
            continue;
        list = list_room(list, count, &cap, sizeof(struct job *));
        list[count++] = job;
    }
    if (count > 1)
        qsort(list, count, sizeof(struct job *), by_score);
    *ret_count = count;
    return list;
}

/* --- leases, sleepers --------------------------------------------------- */

struct lease *model_lease(const struct model *model, uint64_t token)
{
    for (size_t i = 0; i < model->lease_count; i++)
        if (model->leases[i].token == token)
            return &model->leases[i];
    return NULL;
}

void model_lease_end(struct model *model, uint64_t token)
{
    struct lease *lease = model_lease(model, token);

    if (lease == NULL)
        return;
    text_free(&lease->held);
    *lease = model->leases[--model->lease_count];
}

static bool is_under(const struct job *job, int64_t token)
{
    return job->state == RUNS && job->token == (uint64_t)token;
}

/* Its worker died: the first time nobody is blamed, then who was started. */
static void suspect(struct model *model, struct job *job)
{
    if (job->ended > 0 && !job->is_started)
        return;
    model->count.crashed++;
    if (job->ended < MOST_ENDED)
        job->ended++;
}

/* A line for the node, as lib/crashes.lua writes it; 4 KiB of them stay. */
static void note_crash(struct model *model, uint64_t token,
                       const struct job *first)
{
    const struct lease *lease = model_lease(model, token);
    struct text *lines = &first->pack->crashes, rest = {0};
    const char *worker =
        lease == NULL ? NULL : strstr(text_of(&lease->held), " @");
    int64_t ms = model_now_ms(model);

    if (lease != NULL && lease->deadline_ms < ms)
        ms = lease->deadline_ms;
    worker = worker == NULL ? "" : worker + 2;
    text_format(lines, "%u %u %lld %.*s\n", first->lo, first->hi, (long long)ms,
                (int)strcspn(worker, "@"), worker);
    if (lines->len < 4096)
        return;
    text_str(&rest, strchr(lines->ptr + lines->len - 4096, '\n') + 1);
    text_free(lines);
    *lines = rest;
}

void model_tell_crashes(const struct job *job, struct text *answer)
{
    size_t most = job->ended < 8 ? job->ended : 8, count = 0;
    const char *line = text_of(&job->pack->crashes);
    char told[4096 / 8][48];

    for (size_t len; *line != '\0'; line += len + 1) {
        char one[64];
        unsigned lo, hi;
        long long ms;
        int at;

        len = strcspn(line, "\n");
        (void)snprintf(one, sizeof(one), "%.*s", (int)len, line); /* fits */
        if (sscanf(one, "%u %u %lld%n", &lo, &hi, &ms, &at) == 3 &&
            lo <= job->slot && job->slot <= hi) {
            const char *worker = one + at + 1;
            int end = (int)strcspn(worker, " ");

            (void)snprintf(told[count++], sizeof(told[0]), " %lld %.*s%s", ms,
                           end > 0 ? end : 2, end > 0 ? worker : "''",
                           worker[end] == '\0' ? " ''" : worker + end);
        }
    }
    for (size_t i = count > most ? count - most : 0; i < count; i++)
        text_str(answer, told[i]);
}

size_t model_give_back(struct model *model, uint64_t token, size_t most,
                       bool is_crash, long long *ret_jobs,
                       long long *ret_spared)
{
    size_t count;
    struct job **nodes = model_nodes(model, is_under, (int64_t)token, &count);

    if (count > most)
        count = most;
    *ret_jobs = 0;
    *ret_spared = 0;
    for (size_t i = 0; i < count; i++) {
        unsigned lo = nodes[i]->lo, hi = nodes[i]->hi;
        bool is_one_due = !nodes[i]->pack->is_mixed || nodes[i]->is_single;

        if (is_crash && (nodes[i]->ended == 0 || nodes[i]->is_started))
            note_crash(model, token, nodes[i]);

        for (unsigned slot = lo; slot <= hi; slot++) {
            struct job *job = &nodes[i]->pack->jobs[slot];

            job->state = WAITS;
            if (is_one_due && job->due_ms > model_now_ms(model))
                job->due_ms = model_now_ms(model); /* the clock went back */
            *ret_spared += job->ended > 0 && !job->is_started;
            if (is_crash)
                suspect(model, job);
            job->is_started = false;
            *ret_jobs += 1;
        }
        model_split_at_mark(model, nodes[i]->pack, lo, hi);
    }
    free(nodes);
    model->count.returned += *ret_jobs;
    return count;
}

int64_t model_rank(const struct worker *worker)
{
    const int64_t far = INT64_C(1) << 44;

    if (!worker->is_busy)
        return worker->wake_ms;
    return (worker->wake_ms < far ? worker->wake_ms : far) - 2 * far;
}

/* The sleeper that would wake last, of equal ones that of the last name, if it
 * wakes behind `due_ms`. */
static struct worker *last_sleeper(struct model *model, bool is_busy,
                                   int64_t due_ms)
{
    struct worker *last = NULL;

    for (size_t i = 0; i < WORKERS; i++) {
        struct worker *worker = &model->workers[i];

        if (worker->is_idle && worker->is_busy == is_busy &&
            worker->wake_ms > due_ms &&
            (last == NULL || worker->wake_ms >= last->wake_ms))
            last = worker;
    }
    return last;
}

bool model_wake(struct model *model, int64_t due_ms)
{
    char lone[SEQ_LEN + 2] = "";

    if (model->lone != 0 && due_ms <= model_now_ms(model)) {
        lone[0] = ':';
        seq_text(model->lone, lone + 1);
    }
    for (;;) {
        struct worker *last = last_sleeper(model, false, due_ms);

        if (last == NULL)
            last = last_sleeper(model, true, due_ms);
        if (last == NULL)
            return false;
        last->is_idle = false;
        if (!last->is_subscribed)
            continue;
        text_format(&model->woken, "%d%s ", (int)(last - model->workers), lone);
        return true;
    }
}

/* Sleepers but `but` that come by themselves from `from_ms` to `to_ms`. */
static int sleepers(const struct model *model, const struct worker *but,
                    bool is_busy, int64_t from_ms, int64_t to_ms)
{
    const int64_t shift = model_rank(&(struct worker){.is_busy = is_busy});
    int count = 0;

    for (size_t i = 0; i < WORKERS; i++) {
        const struct worker *worker = &model->workers[i];
        int64_t rank = model_rank(worker);

        if (worker->is_idle && worker->is_busy == is_busy && worker != but &&
            from_ms <= rank - shift && rank - shift <= to_ms)
            count++;
    }
    return count;
}

int64_t model_behind(struct model *model, struct worker *worker, int64_t at_ms)
{
    int64_t now_ms = model_now_ms(model);
    int count;

    if (sleepers(model, worker, false, now_ms, at_ms) == 0 &&
        sleepers(model, worker, true, now_ms, at_ms) == 0)
        return 0;
    count = sleepers(model, NULL, false, now_ms, at_ms + 512);
    return 5 * (count > 1 ? count : 1);
}

int64_t model_behind_idle(struct model *model, struct worker *worker,
                          int64_t due_ms)
{
    worker->is_idle = false;
    if (sleepers(model, worker, false, model_now_ms(model), due_ms) > 0 ||
        (sleepers(model, worker, false, due_ms + 1, INT64_MAX) > 0 &&
         model_wake(model, due_ms)))
        return 5;
    return 0;
}
