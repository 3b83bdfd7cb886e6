/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/chaos/model/run.h"

/* The walk through index, dead jobs, leases, counters, sleepers and lateness:
 * what the model says that a key holds, and what it holds, as sorted lines
 * "field value". */

struct lines {
    char **list;
    size_t count, cap;
};

static void add_line(struct lines *lines, const char *field, const char *value)
{
    size_t len = strlen(field) + strlen(value) + 3;
    char *line = malloc(len);

    if (line == NULL) {
        printf("  out of memory\n");
        exit(1);
    }
    (void)snprintf(line, len, "%s %s\n", field, value);
    lines->list =
        list_room(lines->list, lines->count, &lines->cap, sizeof(char *));
    lines->list[lines->count++] = line;
}

static void add_number(struct lines *lines, const char *field, long long value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%lld", value);
    add_line(lines, field, text);
}

/* In hexadecimal digits. */
static void add_bytes(struct lines *lines, const char *field, const char *bytes,
                      size_t len)
{
    struct text digits = {0};

    for (size_t i = 0; i < len; i++)
        text_format(&digits, "%02x", (unsigned char)bytes[i]);
    add_line(lines, field, text_of(&digits));
    text_free(&digits);
}

static int by_text(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void join(struct lines *lines, struct text *ret_text)
{
    if (lines->count > 1)
        qsort(lines->list, lines->count, sizeof(char *), by_text);
    for (size_t i = 0; i < lines->count; i++) {
        text_str(ret_text, lines->list[i]);
        free(lines->list[i]);
    }
    free(lines->list);
    *lines = (struct lines){0};
}

/* Compare and forget both. */
static void compare(struct run *run, const char *what, struct lines *wanted,
                    struct lines *got)
{
    struct text one = {0}, two = {0};

    join(wanted, &one);
    join(got, &two);
    if (strcmp(text_of(&one), text_of(&two)) != 0)
        run_differs(run, what, text_of(&one), text_of(&two));
    text_free(&one);
    text_free(&two);
}

static void add_pairs(struct lines *lines, const redisReply *reply,
                      bool skips_zero)
{
    for (size_t i = 0; i + 1 < reply->elements; i += 2) {
        const char *value = reply->element[i + 1]->str;

        if (!skips_zero || strcmp(value, "0") != 0)
            add_line(lines, reply->element[i]->str, value);
    }
}

/* Fields and values of a hash, or members and scores of a sorted set. Counters
 * that are zero are as good as none. */
static void read_lines(struct run *run, const char *key, bool is_hash,
                       bool skips_zero, struct lines *ret_lines)
{
    redisReply *reply;

    call_command(&run->caller, is_hash ? "HGETALL" : "ZRANGE", is_hash ? 1 : 4);
    call_keys(&run->caller, key);
    if (!is_hash) {
        call_str(&run->caller, "0");
        call_str(&run->caller, "-1");
        call_str(&run->caller, "WITHSCORES");
    }
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    add_pairs(ret_lines, reply, skips_zero);
    freeReplyObject(reply);
}

/* --- index and dead jobs ------------------------------------------------ */

static void check_index(struct run *run)
{
    const struct model *model = &run->model;
    struct lines wanted = {0}, got = {0};
    char id[24], seq[SEQ_LEN + 1], sentinel[66];

    memset(sentinel, '-', 65);
    memcpy(sentinel, "delay", 5);
    sentinel[65] = '\0';
    if (model->exists)
        add_line(&wanted, "!", sentinel);
    for (size_t i = 0; i < model->live_count; i++) {
        if (!model->live[i]->is_indexed)
            continue;
        id_text(model->live[i]->id, id);
        seq_text(model->live[i]->pack->number, seq);
        add_line(&wanted, id, seq);
    }
    for (size_t i = 0; i < model->dead_count; i++) {
        id_text(model->dead[i].id, id);
        add_line(&wanted, id, "D");
    }
    read_lines(run, "ids", true, false, &got);
    compare(run, "the index", &wanted, &got);
    if (!model->exists)
        return;
    call_command(&run->caller, "OBJECT", 2);
    call_str(&run->caller, "ENCODING");
    call_keys(&run->caller, "ids");
    call_queue(&run->caller);
    text_str(&run->wanted, "hashtable"); /* else each look-up is a search */
    run_check(run);
}

static void check_dead(struct run *run)
{
    const struct model *model = &run->model;
    struct lines times = {0}, got_times = {0}, records = {0}, got_records = {0};
    char id[24], body[64];

    for (size_t i = 0; i < model->dead_count; i++) {
        id_text(model->dead[i].id, id);
        body_text(model->dead[i].body, body);
        add_number(&times, id, model->dead[i].died_ms);
        add_line(&records, id, body);
    }
    read_lines(run, "dead", false, false, &got_times);
    read_lines(run, "rec", true, false, &got_records);
    compare(run, "the dead", &times, &got_times);
    compare(run, "records of the dead", &records, &got_records);
}

/* --- leases and sleepers ------------------------------------------------ */

static void check_leases(struct run *run)
{
    const struct model *model = &run->model;
    struct lines wanted = {0}, got = {0};
    char token[24];

    for (size_t i = 0; i < model->lease_count; i++) {
        (void)snprintf(token, sizeof(token), "%llu",
                       (unsigned long long)model->leases[i].token);
        add_number(&wanted, token, model->leases[i].deadline_ms);
    }
    read_lines(run, "lease", false, false, &got);
    compare(run, "the leases", &wanted, &got);
    for (size_t i = 0; i < model->live_count; i++)
        if (model->live[i]->state == RUNS &&
            model_lease(model, model->live[i]->token) == NULL)
            run_differs(run, "a running job", "a lease", "none");
}

/* --- due times, what claims hold ---------------------------------------- */

/* Each mixed pack that lives has its times. */
static void check_due(struct run *run)
{
    const struct model *model = &run->model;
    struct lines wanted = {0}, got = {0};
    redisReply *reply;

    for (size_t i = 0; i < model->pack_count; i++) {
        const struct pack *pack = model->packs[i];
        struct text table = {0};
        char seq[SEQ_LEN + 1];

        if (!pack->is_in_use || !pack->is_mixed)
            continue;
        seq_text(pack->number, seq);
        table_text(pack, 0, pack->count - 1, &table);
        add_bytes(&wanted, seq, table.ptr, table.len);
        text_free(&table);
    }
    call_command(&run->caller, "HGETALL", 1);
    call_keys(&run->caller, "due");
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        add_bytes(&got, reply->element[i]->str, reply->element[i + 1]->str,
                  (size_t)reply->element[i + 1]->len);
    freeReplyObject(reply);
    compare(run, "times of mixed packs", &wanted, &got);
}

/* Token, "NODE@DUE NODE@DUE ", token, ... */
static const char held_script[] =
    "local out, all = {}, redis.call('HGETALL', KEYS[1]) "
    "for i = 1, #all, 2 do "
    "  local text, flat = '', cmsgpack.unpack(all[i + 1]) "
    "  for j = 1, #flat - 1, 2 do "
    "    if flat[j]:byte() ~= 33 then " /* '!': it was deleted */
    "      text = text .. string.format('%s@%.0f ', flat[j], flat[j + 1]) end "
    "  end "
    "  text = text .. flat[#flat] "
    "  out[i], out[i + 1] = all[i], text "
    "end "
    "return out";

/* Each lease has what its claim took, and nothing else is held. */
static void check_held(struct run *run)
{
    const struct model *model = &run->model;
    struct lines wanted = {0}, got = {0};
    redisReply *reply;
    char token[24];

    for (size_t i = 0; i < model->lease_count; i++) {
        const struct lease *lease = &model->leases[i];
        struct text held = {0};

        (void)snprintf(token, sizeof(token), "%llu",
                       (unsigned long long)lease->token);
        text_str(&held, text_of(&lease->held));
        text_int(&held, (long long)lease->length_ms);
        add_line(&wanted, token, text_of(&held));
        text_free(&held);
    }
    call_command(&run->caller, "EVAL", 3);
    call_str(&run->caller, held_script);
    call_int(&run->caller, 1);
    call_keys(&run->caller, "held");
    call_queue(&run->caller);
    reply = call_reply(&run->caller);
    add_pairs(&got, reply, false);
    freeReplyObject(reply);
    compare(run, "what claims hold", &wanted, &got);
}

static void check_idle(struct run *run)
{
    struct lines wanted = {0}, got = {0};

    for (size_t i = 0; i < WORKERS; i++) {
        const struct worker *worker = &run->model.workers[i];
        char name[3] = {'w', (char)('0' + i), '\0'};

        if (worker->is_idle && model_rank(worker) == INT64_MAX)
            add_line(&wanted, name, "inf");
        else if (worker->is_idle && model_rank(worker) == INT64_MIN)
            add_line(&wanted, name, "-inf");
        else if (worker->is_idle)
            add_number(&wanted, name, model_rank(worker));
    }
    read_lines(run, "idle", false, false, &got);
    compare(run, "the sleepers", &wanted, &got);
}

static void check_started(struct run *run)
{
    struct lines wanted = {0}, got = {0};
    char node[SEQ_LEN + 5], value[64];

    for (size_t i = 0; i < WORKERS; i++) {
        const struct start *start = &run->model.started[i];
        char name[3] = {'w', (char)('0' + i), '\0'};

        if (start->node.pack == 0)
            continue;
        node_text(start->node, node);
        (void)snprintf(value, sizeof(value), "%s %u %llu", node, start->ended,
                       (unsigned long long)start->token);
        add_line(&wanted, name, value);
    }
    for (size_t i = 0; i < run->model.pack_count; i++) {
        const struct pack *pack = run->model.packs[i];
        char field[SEQ_LEN + 2] = "!";

        if (pack->crashes.len == 0)
            continue;
        seq_text(pack->number, field + 1);
        add_line(&wanted, field, text_of(&pack->crashes));
    }
    read_lines(run, "started", true, false, &got);
    compare(run, "the started", &wanted, &got);
}

/* --- counters ----------------------------------------------------------- */

static void add_counters(const struct counters *count, struct lines *lines)
{
    const struct {
        const char *name;
        long long value;
    } fields[] = {
        {"added", count->added},       {"claimed", count->claimed},
        {"settled", count->settled},   {"retried", count->retried},
        {"snoozed", count->snoozed},   {"failed", count->failed},
        {"expired", count->expired},   {"returned", count->returned},
        {"crashed", count->crashed},   {"dropped", count->dropped},
        {"delwait", count->delwait},   {"delrun", count->delrun},
        {"requeued", count->requeued},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (fields[i].value != 0)
            add_number(lines, fields[i].name, fields[i].value);
}

static void add_server(const struct model *model, struct lines *lines)
{
    char text[48];
    int len = snprintf(text, sizeof(text), "%016x", model->server);

    if (model->server == 0)
        return;
    if (model->grace_ms > 0)
        (void)snprintf(text + len, sizeof(text) - (size_t)len, " %lld",
                       (long long)model->grace_ms);
    add_line(lines, "server", text);
    add_number(lines, "met", model->met_ms);
}

static void add_offer(const struct model *model, struct lines *lines)
{
    const struct offer *offer = &model->offer;
    char text[96];

    (void)snprintf(text, sizeof(text), "%lld %lld %lld w%d",
                   (long long)offer->lease_ms, offer->number,
                   (long long)offer->us, offer->worker);
    if (offer->number != 0)
        add_line(lines, "offer", text);
}

static void add_limits(const struct model *model, struct lines *lines)
{
    struct text limits = {0};
    char bucket[64];

    model_limits_text(model->rate, model->parallel, &limits);
    if (limits.len > 0)
        add_line(lines, "limits", text_of(&limits));
    text_free(&limits);
    (void)snprintf(bucket, sizeof(bucket), "%.0f %.0f %.0f", model->full_us,
                   model->visit_us, model->high_us);
    if (model->has_bucket)
        add_line(lines, "bucket", bucket);
    if (model->has_rated)
        add_number(lines, "rated", model->rated);
}

static void check_meta(struct run *run)
{
    const struct model *model = &run->model;
    struct lines wanted = {0}, got = {0};
    long long ready = 0;

    for (size_t i = 0; i < model->live_count; i++)
        ready +=
            model->live[i]->state == WAITS &&
            model->live[i]->due_ms <= model_mark(model, model->live[i]->pack);
    add_counters(&model->count, &wanted);
    if (ready != 0 && !run->options->clock_goes_back)
        add_number(&wanted, "ready", ready);
    if (model->mark >= 0)
        add_number(&wanted, "mark", model->mark);
    if (model->mixed_mark >= 0)
        add_number(&wanted, "mixed_mark", model->mixed_mark);
    if (model->mixed > 0)
        add_number(&wanted, "mixed", model->mixed);
    if (model->exists)
        add_line(&wanted, "kind", "delay");
    if (model->is_paused)
        add_line(&wanted, "paused", "1");
    if (model->max_pending > 0)
        add_number(&wanted, "max_pending", model->max_pending);
    if (model->revision > 0)
        add_number(&wanted, "revision", model->revision);
    add_limits(model, &wanted);
    add_offer(model, &wanted);
    add_server(model, &wanted);
    read_lines(run, "meta", true, true, &got);
    for (size_t i = 0; i < got.count && run->options->clock_goes_back; i++)
        if (strncmp(got.list[i], "ready ", 6) == 0) {
            free(got.list[i]);
            got.list[i] = got.list[--got.count];
        }
    compare(run, "the counters", &wanted, &got);
}

/* The counters of `meta` give the true numbers of jobs: as stats.lua adds them
 * up. */
static void check_sums(struct run *run)
{
    const struct counters *count = &run->model.count;
    long long waiting = count->added + count->retried + count->snoozed +
                        count->returned + count->requeued - count->claimed -
                        count->delwait;
    long long running =
        count->claimed - count->settled - count->returned - count->delrun;

    for (size_t i = 0; i < run->model.live_count; i++)
        if (run->model.live[i]->state == WAITS)
            waiting--;
        else
            running--;
    if (waiting != 0 || running != 0)
        run_differs(run, "the sums of the counters", "true", "not true");
}

static void check_late(struct run *run)
{
    struct lines wanted = {0}, got = {0};
    char field[24];

    for (int slot = 0; slot < MINUTES; slot++) {
        const struct minute *minute = &run->model.late[slot];

        if (minute->minute < 0)
            continue;
        (void)snprintf(field, sizeof(field), "%d", slot);
        add_number(&wanted, field, minute->minute);
        (void)snprintf(field, sizeof(field), "%d:max", slot);
        add_number(&wanted, field, minute->max);
        for (int i = 0; i < BUCKETS; i++) {
            (void)snprintf(field, sizeof(field), "%d:%d", slot, i);
            if (minute->buckets[i] > 0)
                add_number(&wanted, field, minute->buckets[i]);
        }
    }
    read_lines(run, "late", true, false, &got);
    compare(run, "the lateness", &wanted, &got);
}

/* What a call slot refused shows when its call is repeated. */
static void check_seen(struct run *run)
{
    struct lines wanted = {0}, got = {0};
    char field[24];

    for (int i = 0; i < ADD_CALL_SLOTS; i++) {
        const struct call_slot *call_slot = &run->model.call_slots[i];

        (void)snprintf(field, sizeof(field), "s%d", i);
        if (call_slot->number > 0)
            add_number(&wanted, field, call_slot->number);
    }
    read_lines(run, "seen", true, false, &got);
    for (size_t i = 0; i < got.count; i++) {
        char *rest = strchr(got.list[i], '.');

        if (rest != NULL)
            memcpy(rest, "\n", 2);
    }
    compare(run, "the call slots", &wanted, &got);
}

/* Each entry of the outbox has its pack, each pack its entry. */
static const char outbox_script[] =
    "local out, base = {}, 'weir:{t}:o:' "
    "for _, seq in ipairs(redis.call('HKEYS', 'weir:{t}:relay')) do "
    "  local ttl = redis.call('PTTL', base .. seq) "
    "  out[#out + 1] = seq .. (ttl == -1 and ' pack\\n' or ' no pack\\n') "
    "end "
    "for _, key in ipairs(redis.call('KEYS', base .. '*')) do "
    "  local seq = string.sub(key, -12) "
    "  if redis.call('PTTL', key) == -1 and "
    "     redis.call('HEXISTS', 'weir:{t}:relay', seq) == 0 then "
    "    out[#out + 1] = seq .. ' no entry\\n' "
    "  end "
    "end "
    "table.sort(out) "
    "return table.concat(out)";

static void check_outbox(struct run *run)
{
    const struct settle_call *call = run->follow;
    struct lines wanted = {0};
    struct text text = {0};

    for (size_t i = 0; i < call->outs; i++) {
        char seq[SEQ_LEN + 1];

        seq_text(call->out[i].pack->number, seq);
        if (call->out[i].is_recorded)
            add_line(&wanted, seq, "pack");
    }
    join(&wanted, &text);
    text_str(&run->wanted, text.len > 0 ? text_of(&text) : "''");
    text_free(&text);
    call_command(&run->caller, "EVAL", 2);
    call_str(&run->caller, outbox_script);
    call_int(&run->caller, 0);
    call_queue(&run->caller);
    run_check(run);
}

void walk_tables(struct run *run)
{
    check_index(run);
    check_dead(run);
    check_leases(run);
    check_due(run);
    check_held(run);
    check_idle(run);
    check_started(run);
    check_meta(run);
    check_sums(run);
    check_late(run);
    check_seen(run);
    check_outbox(run);
}
