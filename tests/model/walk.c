/* SPDX-License-Identifier: MIT */
#include "tests/model/heard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/private.h"

/* Where a job belongs on the server: docs/packs.md. */

enum { PACK_GONE_AT = 3 };

/* Each node of `name` holds jobs in that state. Notes where they are, and
 * returns how many. */
static size_t walk_nodes(const struct call_heard *call, const char *name,
                         enum job_state state)
{
    const struct object *object = heard_object(call, name);
    size_t found = 0;

    for (size_t i = 0; object != NULL && i < object->table.count; i++) {
        const struct entry *entry = object->table.list[i];
        unsigned lo = 1, hi = 0;

        if (!heard_node(entry->name, entry->len, &lo, &hi))
            topic_problem(call->topic->model, "%s has %s", name, entry->name);
        for (unsigned slot = lo; slot <= hi; slot++) {
            struct job *job = heard_job(call, entry->name, slot);
            struct pack *pack;

            found++;
            if (job == NULL || job->state != state ||
                (state == RUNS && (uint64_t)entry->score != job->token)) {
                topic_problem(call->topic->model,
                              "%s has slot %u of %s, whose job (%s) is not "
                              "there",
                              name, slot, entry->name,
                              job == NULL ? "not known" : job->id);
                continue;
            }
            job->is_seen = true;
            pack = heard_pack(call, entry->name);
            pack->live++;
            job->place = pack->seq;
        }
    }
    return found;
}

static void walk_jobs(const struct call_heard *call)
{
    struct topic *model = call->topic->model;
    size_t waiting, running;

    for (size_t i = 0; i < model->live_count; i++) {
        model->live[i]->is_seen = false;
        model->live[i]->place = "nothing";
    }
    waiting = walk_nodes(call, "wait", WAITS);
    running = walk_nodes(call, "run", RUNS);
    for (size_t i = 0; i < model->live_count; i++)
        if (!model->live[i]->is_seen)
            topic_problem(model, "%s is nowhere", model->live[i]->id);
    if (waiting + running != model->live_count)
        topic_problem(model, "%zu jobs wait or run, and %zu on the server",
                      model->live_count, waiting + running);
}

/* A pack is there for as long as a job of it is, and counts the others. */
static void walk_packs(const struct call_heard *call)
{
    const struct table *keys = &call->server->keys;
    size_t len = strlen(call->topic->prefix);

    for (size_t i = 0; i < keys->count; i++) {
        const struct entry *key = keys->list[i];
        const struct object *object = key->object;
        struct pack *pack;

        if (key->len != len + 2 + SEQ_LEN ||
            memcmp(key->name, call->topic->prefix, len) != 0 ||
            memcmp(key->name + len, "p:", 2) != 0 || object->expires_ms != 0)
            continue;
        pack = heard_pack(call, key->name + len + 2);
        if (pack == NULL || object->type != TEXT ||
            object->text.len <= PACK_GONE_AT || pack->live == 0) {
            topic_problem(call->topic->model, "pack %s has no jobs",
                          key->name + len + 2);
            continue;
        }
        if ((uint8_t)object->text.ptr[PACK_GONE_AT] != pack->count - pack->live)
            topic_problem(call->topic->model,
                          "of %u jobs of pack %s %u are there, and it counts "
                          "%u that are gone",
                          pack->count, key->name + len + 2, pack->live,
                          (unsigned)(uint8_t)object->text.ptr[PACK_GONE_AT]);
        pack->live = 0;
    }
}

/* --- the index ----------------------------------------------------------- */

static void check_index(const struct call_heard *call, const struct object *ids,
                        const struct job *job, const char *place, size_t *count)
{
    bool is_named = job->id[0] != '@' || job->has_moved || job->state == DEAD;
    const struct entry *entry =
        ids == NULL
            ? NULL
            : table_find(&ids->table, (struct slice){job->id, strlen(job->id)});

    *count += entry != NULL;
    if (is_named != (entry != NULL) ||
        (entry != NULL && !heard_is(entry_value(entry), place)))
        topic_problem(call->topic->model, "%s is in %s, and the index says %s",
                      job->id, place, entry == NULL ? "nothing" : entry->value);
}

static void walk_index(const struct call_heard *call)
{
    const struct topic *model = call->topic->model;
    const struct object *ids = heard_object(call, "ids");
    size_t count = 0, fields = ids == NULL ? 0 : ids->table.count;

    for (size_t i = 0; i < model->live_count; i++)
        check_index(call, ids, model->live[i], model->live[i]->place, &count);
    for (size_t i = 0; i < model->dead_count; i++)
        check_index(call, ids, model->dead[i], "D", &count);
    if (ids != NULL && table_find(&ids->table, (struct slice){"!", 1}) != NULL)
        fields--; /* no id */
    if (count != fields)
        topic_problem(call->topic->model,
                      "the index has %zu ids, and %zu jobs have one", fields,
                      count);
}

/* --- the dead, leases, counters ------------------------------------------ */

static void walk_dead(const struct call_heard *call)
{
    const struct topic *model = call->topic->model;
    const struct object *dead = heard_object(call, "dead"),
                        *records = heard_object(call, "rec");
    size_t dead_count = dead == NULL ? 0 : dead->table.count,
           record_count = records == NULL ? 0 : records->table.count;

    for (size_t i = 0; i < model->dead_count; i++) {
        double score;

        if (!heard_score(call, "dead", model->dead[i]->id, &score) ||
            (int64_t)score != model->dead[i]->died_ms)
            topic_problem(call->topic->model, "%s is not among the dead",
                          model->dead[i]->id);
    }
    if (dead_count != model->dead_count || record_count != model->dead_count)
        topic_problem(call->topic->model,
                      "%zu jobs are dead; the server has %zu, and %zu records",
                      model->dead_count, dead_count, record_count);
}

static void walk_leases(const struct call_heard *call)
{
    const struct topic *model = call->topic->model;
    const struct object *leases = heard_object(call, "lease");
    const struct object *held = heard_object(call, "held");
    size_t lease_count = leases == NULL ? 0 : leases->table.count,
           held_count = held == NULL ? 0 : held->table.count;

    for (size_t i = 0; i < model->lease_count; i++) {
        char token[24];
        double deadline;

        (void)snprintf(token, sizeof(token), "%llu",
                       (unsigned long long)model->leases[i].token);
        if (!heard_score(call, "lease", token, &deadline) ||
            (int64_t)deadline != model->leases[i].deadline_ms)
            topic_problem(call->topic->model,
                          "the lease of %s is not there, or ends at another "
                          "time",
                          token);
    }
    if (lease_count != model->lease_count || held_count != model->lease_count)
        topic_problem(call->topic->model,
                      "there are %zu leases; the server has %zu, and knows "
                      "what %zu of them hold",
                      model->lease_count, lease_count, held_count);
}

static void walk_counters(const struct call_heard *call)
{
    const struct counters *count = &call->topic->model->count;
    const struct {
        const char *name;
        long long value;
    } counters[] = {
        {"added", count->added},     {"settled", count->settled},
        {"retried", count->retried}, {"snoozed", count->snoozed},
        {"failed", count->failed},   {"expired", count->expired},
        {"crashed", count->crashed}, {"delwait", count->delwait},
        {"delrun", count->delrun},   {"requeued", count->requeued},
    };

    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        const struct entry *entry = heard_meta(call, counters[i].name);
        long long value = entry == NULL ? 0 : heard_int(entry_value(entry));

        if (value != counters[i].value)
            topic_problem(call->topic->model,
                          "%lld were %s, and %lld on the server",
                          counters[i].value, counters[i].name, value);
    }
}

/* Busy ones stand 2^45 earlier. */
static void walk_sleepers(const struct call_heard *call)
{
    static const double BUSY = 35184372088832.0;
    const struct topic *model = call->topic->model;
    const struct object *idle = heard_object(call, "idle");
    size_t count = idle == NULL ? 0 : idle->table.count;

    for (size_t i = 0; i < model->sleeper_count; i++) {
        const struct sleeper *sleeper = &model->sleepers[i];
        double score = 0;
        bool is_there = heard_score(call, "idle", sleeper->name, &score);

        score += sleeper->is_busy ? BUSY : 0;
        if (!is_there ||
            (sleeper->wake_ms > 0 && sleeper->wake_ms < INT64_MAX &&
             (int64_t)score != sleeper->wake_ms &&
             (int64_t)score > call->now_ms))
            topic_problem(call->topic->model,
                          "%s sleeps until %lld, and the server says %.0f",
                          sleeper->name, (long long)sleeper->wake_ms,
                          is_there ? score : -1);
    }
    if (count != model->sleeper_count)
        topic_problem(call->topic->model,
                      "%zu workers sleep, and %zu on the server",
                      model->sleeper_count, count);
}

void heard_walk(const struct call_heard *call)
{
    walk_sleepers(call);
    walk_jobs(call);
    walk_packs(call);
    walk_index(call);
    walk_dead(call);
    walk_leases(call);
    walk_counters(call);
}
