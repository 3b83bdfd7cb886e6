/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "tests/chaos/model/model.h"

/* Jobs that are added with the verdicts of others, to this topic and to two
 * more: which of them come to something. */

char away_name(unsigned topic)
{
    return (char)('g' + topic);
}

static bool is_unmet(const struct settle_call *call, struct source source)
{
    return call->entry[source.entry].unmet[source.slot] != 0;
}

static bool is_refused(const struct settle_call *call, struct source source)
{
    return call->entry[source.entry].refused[source.slot];
}

bool model_is_out(const struct settle_call *call, struct source source)
{
    return is_refused(call, source) ||
           (source.is_instead && !is_unmet(call, source));
}

bool model_adds_nothing(const struct settle_call *call, struct source source)
{
    return is_refused(call, source) || is_unmet(call, source);
}

/* --- before ------------------------------------------------------------- */

static bool is_same(struct source one, struct source other)
{
    return one.entry == other.entry && one.slot == other.slot;
}

/* How many jobs the source adds to the topic; 0 where it was met before place
 * `slot` of away number `at`. */
static long long wanted(const struct settle_call *call, size_t at,
                        unsigned slot)
{
    struct source source = call->away[at].sources[slot];
    long long count = 0;

    for (size_t i = 0; i < call->aways; i++)
        for (unsigned j = 0; j < call->away[i].pack->count; j++) {
            if (call->away[i].topic != call->away[at].topic ||
                !is_same(call->away[i].sources[j], source))
                continue;
            if (count == 0 && (i != at || j != slot))
                return 0;
            count++;
        }
    return count;
}

static bool has_bound(const struct away_topic *topic)
{
    return topic->is_other_kind || topic->max_pending > 0;
}

/* A source is unmet where the jobs that it adds do not all fit. */
static void look_at(struct settle_call *call, unsigned topic)
{
    long long left =
        call->topic[topic].is_other_kind ? 0 : call->topic[topic].max_pending;

    for (size_t i = 0; i < call->aways; i++)
        for (unsigned slot = 0; slot < call->away[i].pack->count; slot++) {
            struct source source = call->away[i].sources[slot];
            long long count =
                call->away[i].topic == topic ? wanted(call, i, slot) : 0;

            if (count <= left)
                left -= count;
            else
                call->entry[source.entry].unmet[source.slot] |=
                    (unsigned char)(1 << topic);
        }
}

void model_look_away(struct settle_call *call)
{
    for (size_t i = 0; i < call->entries; i++)
        memset(call->entry[i].unmet, 0, sizeof(call->entry[i].unmet));
    for (unsigned topic = 0; topic < AWAY_TOPICS && call->aways > 0; topic++)
        if (has_bound(&call->topic[topic]))
            look_at(call, topic);
}

/* --- ids ---------------------------------------------------------------- */

/* Jobs that live on keep their ids, also before they are written. */
static bool is_kept(const struct settle_call *call, struct id id)
{
    for (size_t i = 0; i < call->moves; i++)
        for (unsigned slot = 0; slot < call->move[i].pack->count; slot++)
            if (!call->move[i].is_new &&
                !model_is_out(call, call->move[i].sources[slot]) &&
                same_id(call->move[i].pack->jobs[slot].id, id))
                return true;
    for (size_t i = 0; i < call->ends; i++)
        if (!model_is_out(call, call->end[i].source) &&
            same_id(call->end[i].id, id))
            return true;
    return false;
}

bool model_is_free(const struct model *model, const struct settle_call *call,
                   struct id id)
{
    uint32_t place;

    return !model_place(model, id, &place) && !is_kept(call, id);
}

/* --- elsewhere ---------------------------------------------------------- */

static bool is_there_already(const struct settle_call *call, size_t away,
                             unsigned slot)
{
    struct id id = call->away[away].pack->jobs[slot].id;

    for (size_t i = 0; i <= away; i++) {
        const struct away *other = &call->away[i];
        unsigned end = i == away ? slot : other->pack->count;

        for (unsigned j = 0; j < end; j++)
            if (other->topic == call->away[away].topic &&
                other->pack->has_ids && other->is_there[j] &&
                same_id(other->pack->jobs[j].id, id))
                return true;
    }
    return call->away[away].is_taken[slot];
}

/* Returns how many ids exist there. */
static long long send_pack(const struct model *model, struct settle_call *call,
                           size_t at, int64_t *first_ms)
{
    struct away *away = &call->away[at];
    long long twins = 0;

    away->pack->is_in_use = false;
    for (unsigned slot = 0; slot < away->pack->count; slot++) {
        struct job *job = &away->pack->jobs[slot];

        away->is_there[slot] = !model_adds_nothing(call, away->sources[slot]);
        if (away->is_there[slot] && away->pack->has_ids &&
            is_there_already(call, at, slot)) {
            away->is_there[slot] = false;
            twins++;
        }
        if (!away->is_there[slot])
            continue;
        away->pack->is_in_use = true;
        job->due_ms = model_due_ms(model, job);
        if (job->due_ms < *first_ms)
            *first_ms = job->due_ms;
    }
    away->pack->is_staged = false;
    return twins;
}

static void wake_away(struct model *model, struct away_topic *topic)
{
    if (topic->has_sleeper && model->workers[0].is_subscribed)
        text_str(&model->woken, "0? ");
    topic->has_sleeper = false;
}

long long model_send_away(struct model *model, struct settle_call *call)
{
    long long twins = 0;

    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++) {
        int64_t first_ms = INT64_MAX;

        for (size_t i = 0; i < call->aways; i++)
            if (call->away[i].topic == topic && !call->away[i].pack->is_in_use)
                twins += send_pack(model, call, i, &first_ms);
        if (first_ms != INT64_MAX)
            wake_away(model, &call->topic[topic]);
    }
    return twins;
}

static bool is_told(const struct settle_call *call, unsigned topic)
{
    for (size_t i = 0; i < call->aways; i++)
        for (unsigned slot = 0; slot < call->away[i].pack->count; slot++) {
            struct source source = call->away[i].sources[slot];
            const struct entry *entry = &call->entry[source.entry];

            if (call->away[i].topic == topic && !entry->refused[source.slot] &&
                (entry->unmet[source.slot] >> topic & 1) != 0)
                return true;
        }
    return false;
}

void model_say_unmet(const struct settle_call *call, struct text *answer)
{
    for (unsigned topic = 0; topic < AWAY_TOPICS; topic++)
        if (is_told(call, topic))
            text_format(answer, " %d %c",
                        call->topic[topic].is_other_kind ? -2 : -3,
                        away_name(topic));
}
