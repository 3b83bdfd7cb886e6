/* SPDX-License-Identifier: MIT */
#include "tests/model/heard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls that add. */

enum { TOPIC, KIND, CALL_SLOT, NUMBER, FIRST };
enum {
    IS_FULL = 256,
    IS_HELD = 512,
    IN_USE_SLOT = -1,
    MISSING_SLOT = -2,
    BAD_SLOT = -3
};

/* "{-1, kind}": the topic is of another kind, and nothing was done. */
static bool is_other_kind(const struct call_heard *call)
{
    return heard_reply(call, 0) == -1;
}

/* What the reply has behind the number of added. One more may come: the
 * revision of the options. */
static void judge(struct call_heard *call, long long added, struct line *wanted,
                  size_t elements)
{
    const redisReply *reply = call->reply;
    struct line got = line_new();
    const char *wanted_text = line_text(wanted);

    for (size_t i = 1; i <= elements && i < reply->elements; i++) {
        if (reply->element[i]->type == REDIS_REPLY_INTEGER)
            line_add(&got, " %lld", reply->element[i]->integer);
        else
            line_add(&got, " '%s'", reply->element[i]->str);
    }
    if (heard_reply(call, 0) != added || reply->elements < elements + 1 ||
        reply->elements > elements + 2 ||
        strcmp(line_text(&got), wanted_text) != 0)
        topic_problem(call->topic->model,
                      "an add is answered with (%lld%s), and should be with "
                      "(%lld%s)",
                      heard_reply(call, 0), line_text(&got), added,
                      wanted_text);
    line_free(&got);
}

static size_t words_in(const char *text)
{
    size_t count = 0;

    for (; *text != '\0'; text++)
        count += *text == ' ';
    return count;
}

/* True: the call is a repeat, or came too late, and was judged. */
static bool is_said(struct call_heard *call, size_t each)
{
    struct line wanted = line_new();
    char *call_slot = heard_text(call->args[CALL_SLOT]);
    char *number = heard_text(call->args[NUMBER]);
    const char *said = topic_said(call->topic->model, call_slot, number);

    if (said != NULL)
        line_add(&wanted, "%s",
                 strcmp(said, "late") != 0 ? said
                 : each == 3               ? " 0 -4 ''"
                                           : " 0 -4");
    if (said != NULL)
        judge(call, 0, &wanted, words_in(line_text(&wanted)));
    line_free(&wanted);
    free(call_slot);
    free(number);
    return said != NULL;
}

static void say(struct call_heard *call, struct line *answer)
{
    char *call_slot = heard_text(call->args[CALL_SLOT]);
    char *number = heard_text(call->args[NUMBER]);

    topic_say(call->topic->model, call_slot, number, line_text(answer));
    free(call_slot);
    free(number);
}

/* Does the answer call the pack malformed? The model does not check packs. */
static bool is_bad(const struct call_heard *call, size_t index)
{
    for (size_t i = 1; i + 1 < call->reply->elements; i += 2)
        if (heard_reply(call, i) == (long long)index &&
            heard_reply(call, i + 1) == BAD_SLOT)
            return true;
    return false;
}

/* An id that came in this pack before, added or not. */
static bool came_before(const struct draft *draft, unsigned slot)
{
    for (unsigned i = 0; i < slot; i++)
        if (strcmp(draft->ids[i], draft->ids[slot]) == 0)
            return true;
    return false;
}

/* What an outbox sends: slots that are left out. Such a pack comes whole where
 * there is room for one job. */
static struct slice sent_on(const struct call_heard *call, bool *ret_is_sent)
{
    struct slice rest = {"", 0};

    *ret_is_sent = (call->arg_count - FIRST) % 3 == 1;
    if (*ret_is_sent)
        rest = call->args[call->arg_count - 1];
    if (heard_is(rest, "@@")) { /* these are restored */
        *ret_is_sent = false;
        rest.len = 0;
    }
    return rest;
}

/* What was refused before, when a producer adds the rest again: pairs of a pack
 * and a slot. */
static bool is_left_out(const struct call_heard *call, size_t index,
                        unsigned slot)
{
    struct slice pairs = call->args[call->arg_count - 1];

    if ((call->arg_count - FIRST) % 3 != 2)
        return false;
    for (size_t i = 0; i + 1 < pairs.len; i += 2)
        if ((uint8_t)pairs.ptr[i] == index && (uint8_t)pairs.ptr[i + 1] == slot)
            return true;
    return false;
}

static long long add_pack(struct call_heard *call, size_t index,
                          const struct draft *draft, struct line *answer)
{
    struct slice when = call->args[FIRST + 3 * index + 2];
    struct pack *pack = heard_pack_new(call, draft->seq, draft->count);
    int64_t due[SLOTS] = {0};
    struct topic *model = call->topic->model;
    long long added = 0, most = model->max_pending;
    bool is_sent;
    struct slice out = sent_on(call, &is_sent);
    char *lane;

    if (is_sent)
        model->max_pending = 0;
    heard_when(call, when, draft->count, due, &lane);
    for (unsigned slot = 0; slot < draft->count; slot++) {
        enum add_outcome outcome;

        if ((out.len > 0 && memchr(out.ptr, (int)slot, out.len) != NULL) ||
            is_left_out(call, index, slot))
            continue;
        outcome = topic_add(model, draft->ids[slot], lane, due[slot],
                            &pack->jobs[slot]);

        added += outcome == ADDED;
        if (outcome == FULL && came_before(draft, slot))
            outcome = EXISTS;
        if (outcome != ADDED)
            line_add(answer, " %zu %u", index,
                     slot + (outcome == FULL ? IS_FULL : 0));
    }
    free(lane);
    model->max_pending = most;
    return added;
}

void drafts_of_add(struct call_heard *call)
{
    for (size_t i = 0; FIRST + 3 * i + 2 < call->arg_count; i++)
        heard_draft(call, call->keys[5 + i], NULL);
}

void heard_add(struct call_heard *call)
{
    struct line answer = line_new();
    long long added = 0;
    bool is_sent;

    (void)sent_on(call, &is_sent);
    if (is_other_kind(call) || is_said(call, 2))
        return;
    if (is_sent && topic_is_full(call->topic->model)) {
        if (heard_reply(call, 0) != -2)
            topic_problem(call->topic->model, "a full topic takes what an "
                                              "outbox sends");
        return;
    }
    for (size_t i = 0; i < call->draft_count; i++) {
        const struct draft *draft = &call->drafts[i];

        if (draft->place != STAGED)
            line_add(&answer, " %zu %d", i,
                     draft->place == MISSING ? MISSING_SLOT : IN_USE_SLOT);
        else if (is_bad(call, i))
            line_add(&answer, " %zu %d", i, BAD_SLOT);
        else
            added += add_pack(call, i, draft, &answer);
    }
    judge(call, added, &answer, words_in(line_text(&answer)));
    if (!is_sent || call->drafts[0].place != MISSING)
        say(call, &answer); /* what an outbox sends is staged again */
    line_free(&answer);
}

/* --- one job ------------------------------------------------------------- */

enum { ONE_WHEN = 4, ONE_ID, ONE_PACK, ONE_SERVER, ONE_PACK_KEY };

void drafts_of_add_one(struct call_heard *call)
{
    if (call->arg_count > ONE_PACK && call->key_count > ONE_PACK_KEY)
        heard_draft(call, call->keys[ONE_PACK_KEY], &call->args[ONE_PACK]);
}

/* The message says TOPIC NODE TOKEN DUE_MS TIME_US AGE_US NUMBER ... */
static void judge_hand_over(struct call_heard *call, const struct job *job)
{
    struct topic *model = call->topic->model;
    const struct offer *offer = &model->offer;
    bool is_handed = call->arg_count > ONE_SERVER &&
                     heard_is_server(call, call->args[ONE_SERVER]) &&
                     topic_is_handed(model, job);
    long long due_ms = 0, time_us = 0, age_us = 0, number = 0;

    if (is_handed != (call->handed[0] != '\0')) {
        topic_problem(model, "%s %s handed to %s", job->id,
                      is_handed ? "is not" : "is",
                      is_handed ? offer->worker : call->handed_to);
        return;
    }
    if (!is_handed)
        return;
    if (strcmp(call->handed_to, offer->worker) != 0 ||
        sscanf(call->handed, "%*s %*s %*s %lld %lld %lld %lld", &due_ms,
               &time_us, &age_us, &number) != 4 ||
        due_ms != job->due_ms || time_us != server_time(call->server) ||
        age_us != time_us - offer->us || number != offer->number)
        topic_problem(model, "%s is handed to %s by offer %lld: %s", job->id,
                      offer->worker, offer->number, call->handed);
    topic_withdraw(model, NULL);
}

/* Was it handed to a worker? Then it runs. */
static void look_at_hand_over(struct call_heard *call, const char *seq,
                              struct job *job)
{
    char node[NODE_LEN + 1], token[24];
    double score, deadline;

    (void)snprintf(node, sizeof(node), "%s0000", seq);
    if (!heard_score(call, "run", node, &score))
        return;
    (void)snprintf(token, sizeof(token), "%.0f", score);
    if (!heard_score(call, "lease", token, &deadline)) {
        topic_problem(call->topic->model, "%s runs without a lease", job->id);
        return;
    }
    topic_hand_over(call->topic->model, job, (uint64_t)score,
                    (int64_t)deadline - call->now_ms);
}

void heard_add_one(struct call_heard *call)
{
    const struct draft *draft = call->drafts;
    struct line answer = line_new();
    struct pack *pack;
    enum add_outcome outcome;
    int64_t due_ms = 0;
    char *lane;

    if (is_other_kind(call) || call->draft_count == 0 || is_said(call, 2))
        return;
    heard_when(call, call->args[ONE_WHEN], 1, &due_ms, &lane);
    free(lane);                   /* there is none */
    if (draft->place == IN_USE) { /* a pack of this name is there */
        outcome = topic_find(call->topic->model, draft->ids[0]) != NULL ? EXISTS
                  : topic_is_full(call->topic->model)                   ? FULL
                                                                        : HELD;
        pack = NULL;
    } else {
        pack = heard_pack_new(call, draft->seq, 1);
        outcome = topic_add(call->topic->model, draft->ids[0], NULL, due_ms,
                            &pack->jobs[0]);
    }
    if (outcome != ADDED)
        line_add(&answer, " 0 %d",
                 outcome == EXISTS ? 0
                 : outcome == FULL ? IS_FULL
                                   : IN_USE_SLOT);
    judge(call, outcome == ADDED, &answer, words_in(line_text(&answer)));
    say(call, &answer);
    if (outcome == ADDED) {
        judge_hand_over(call, pack->jobs[0]);
        look_at_hand_over(call, draft->seq, pack->jobs[0]);
    }
    line_free(&answer);
}

/* --- jobs with keys ------------------------------------------------------ */

enum { KEYED_FIRST_PACK = 8, EACH = 5 };

void drafts_of_add_keyed(struct call_heard *call)
{
    for (size_t i = 0; FIRST + EACH * i + EACH - 1 < call->arg_count; i++) {
        struct slice pack = call->args[FIRST + EACH * i + 1];

        heard_draft(call, call->keys[KEYED_FIRST_PACK + i],
                    pack.len > 0 ? &pack : NULL);
    }
}

static struct unique_rule read_rule(struct slice text)
{
    static const char *const modes[] = {"reject", "replace", "debounce",
                                        "throttle"};
    struct unique_rule rule = {.most_ms = -1};
    char mode[16] = "", hold[24] = "";
    long long most = -1;
    char *whole = heard_text(text);

    if (sscanf(whole, "%15s %23s %lld", mode, hold, &most) < 2)
        server_fail("a rule is none: %s", whole);
    for (int i = 0; i < 4; i++)
        if (strcmp(mode, modes[i]) == 0)
            rule.mode = (enum unique_mode)i;
    rule.form = strcmp(hold, "until-done") == 0    ? UNTIL_DONE
                : strcmp(hold, "until-start") == 0 ? UNTIL_START
                                                   : FOR;
    if (rule.form == FOR)
        rule.ms = strtoll(hold, NULL, 10);
    rule.most_ms = most;
    free(whole);
    return rule;
}

static enum add_outcome add_keyed_one(struct call_heard *call, size_t i,
                                      struct job **ret_job)
{
    const struct slice *args = call->args + FIRST + EACH * i;
    const struct draft *draft = &call->drafts[i];
    enum add_outcome outcome;
    struct unique_rule rule;
    int64_t due_ms = 0;
    char *lane, *key;

    heard_when(call, args[2], 1, &due_ms, &lane);
    if (args[3].len + args[4].len == 0) {
        outcome =
            topic_add(call->topic->model, draft->ids[0], lane, due_ms, ret_job);
    } else {
        rule = read_rule(args[4]);
        rule.key = key = heard_text(args[3]);
        outcome = topic_add_unique(call->topic->model, draft->ids[0], lane,
                                   due_ms, &rule, ret_job);
        free(key);
    }
    free(lane);
    return outcome;
}

void heard_add_keyed(struct call_heard *call)
{
    struct line answer = line_new();
    long long added = 0;

    if (is_other_kind(call) || is_said(call, 3))
        return;
    for (size_t i = 0; i < call->draft_count; i++) {
        const struct draft *draft = &call->drafts[i];
        struct job *job = NULL;
        enum add_outcome outcome;

        if (call->args[FIRST + EACH * i + 2].len == 0) { /* no time */
            line_add(&answer, " %zu %d ''", i, BAD_SLOT);
            continue;
        }
        if (draft->place != STAGED) { /* where it would have been added */
            line_add(&answer, " %zu %d ''", i,
                     draft->place == MISSING ? MISSING_SLOT : IN_USE_SLOT);
            continue;
        }
        outcome = add_keyed_one(call, i, &job);
        if (outcome == ADDED)
            heard_pack_new(call, draft->seq, 1)->jobs[0] = job;
        added += outcome == ADDED;
        if (outcome == HELD)
            line_add(&answer, " %zu %d '%s'", i, IS_HELD, job->id);
        else if (outcome != ADDED)
            line_add(&answer, " %zu %d ''", i, outcome == FULL ? IS_FULL : 0);
    }
    judge(call, added, &answer, words_in(line_text(&answer)));
    say(call, &answer);
    line_free(&answer);
}
