/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/delay/private.h"
#include "adapters/redis/monotonic.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/schedule.h"
#include "core/text.h"

/* Schedules of a topic: scripts/delay/cron.lua changes one together with its
 * tick. As with other jobs the index is asked first where the tick is; when it
 * moved in between, everything starts over. A schedule of seconds has a tick
 * that moves each second, so there are more tries than for a job. */

enum { TRIES = 50 };

struct cron_request {
    struct weir__request request; /* first */
    struct weir__delay_topic *topic;
    weir_code_fn fn;
    void *arg;
    int tries;
    const char *verb;
    char name[WEIR_MAX_TOPIC + 1];
    char place[WEIR__SEQ_LEN + 1]; /* ""; or of the tick */
    size_t at;                     /* of the schedule in the record */
    struct weir__buf record;       /* to be set */
};

static void look_up(struct cron_request *cron);

static void finish(struct cron_request *cron, int code, const char *text)
{
    if (cron->fn != NULL)
        cron->fn(code, text, cron->arg);
    weir__buf_fini(&cron->record);
    weir__mem_free(cron);
}

/* What the script's word means; WEIR_ESERVER: there is no such word. */
static int code_of(struct weir_slice word)
{
    static const struct {
        const char *word;
        int code;
    } words[] = {
        {"done", WEIR_OK},        {"same", WEIR_EEXISTS},
        {"none", WEIR_ENOTFOUND}, {"taken", WEIR_EINVAL},
        {"full", WEIR_EFULL},     {"kind", WEIR_EKIND},
    };

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (weir__slice_equal(word, weir__slice_str(words[i].word)))
            return words[i].code;
    return WEIR_ESERVER;
}

static const char *text_of(int code)
{
    switch (code) {
    case WEIR_EEXISTS:
        return "the schedule is the same already";
    case WEIR_ENOTFOUND:
        return "no such schedule";
    case WEIR_EINVAL:
        return "a job has the id NAME@next: delete it, or take another name";
    case WEIR_EFULL:
        return "the topic has 1,024 schedules, more need another topic";
    default:
        return weir_error_text(code);
    }
}

static void on_listed(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    (void)reply; /* it was read */
    finish((struct cron_request *)request /* its first member */, code,
           weir_error_text(code));
}

static void on_changed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct cron_request *cron =
        (struct cron_request *)request; /* its first member */
    bool sets = cron->record.len > 0;
    struct weir_slice word = {0};

    if (code == WEIR_ESERVER && reply != NULL &&
        reply->type == REDIS_REPLY_ERROR) {
        finish(cron, code, weir__error_words(reply->str));
        return;
    }
    if (code == WEIR_OK && !weir__reply_str(reply, 0, &word))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && weir__slice_equal(word, weir__slice_str("moved"))) {
        if (++cron->tries < TRIES)
            look_up(cron);
        else
            finish(cron, WEIR_ESERVER, "its tick moves all the time");
        return;
    }
    if (code == WEIR_OK)
        code = code_of(word);
    if (code == WEIR_EEXISTS && !sets)
        code = WEIR_OK; /* it rests, or goes on, already */
    if (code == WEIR_OK && sets) {
        request->done = on_listed;
        weir__topic_await_listed(&cron->topic->base, request);
        return;
    }
    finish(cron, code, text_of(code));
}

static void request_change(struct cron_request *cron)
{
    const struct weir__prefix *prefix = &cron->topic->base.prefix;
    bool sets = cron->record.len > 0;
    struct weir__buf bytes = {0};

    cron->request.done = on_changed;
    weir__resp_eval(&bytes, &weir__script_delay_cron, 9, sets ? 6 : 4);
    weir__prefix_keys(&bytes, prefix, "wait run ids meta idle due cron");
    if (cron->place[0] == '\0')
        weir__prefix_key(&bytes, prefix, "p:"); /* no pack is looked at */
    else
        weir__prefix_pack(&bytes, prefix, cron->place);
    weir__prefix_key(&bytes, prefix, "absent");
    weir__resp_str(&bytes, cron->topic->base.name);
    weir__resp_str(&bytes, cron->verb);
    weir__resp_str(&bytes, cron->name);
    weir__resp_str(&bytes, cron->place);
    if (sets) {
        weir__resp_int(&bytes, (int64_t)cron->at);
        weir__resp_bytes(&bytes, weir__buf_slice(&cron->record));
    }
    weir__place_send(cron->topic->base.place, &bytes, &weir__script_delay_cron,
                     WEIR__SEND_AGAIN, &cron->request);
}

static void on_index(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct cron_request *cron =
        (struct cron_request *)request; /* its first member */

    if (code != WEIR_OK) {
        finish(cron, code, weir_error_text(code));
        return;
    }
    cron->place[0] = '\0';
    if (reply->type == REDIS_REPLY_STRING &&
        (size_t)reply->len < sizeof(cron->place))
        memcpy(cron->place, reply->str, (size_t)reply->len + 1);
    request_change(cron);
}

static void look_up(struct cron_request *cron)
{
    char id[sizeof(cron->name) + sizeof(WEIR__TICK_SUFFIX)];
    struct weir__buf bytes = {0};

    (void)snprintf(id, sizeof(id), "%s" WEIR__TICK_SUFFIX, cron->name);
    cron->request.done = on_index;
    weir__prefix_command(&bytes, &cron->topic->base.prefix, 3, "HGET", "ids");
    weir__resp_str(&bytes, id);
    weir__place_send(cron->topic->base.place, &bytes, NULL, WEIR__SEND_AGAIN,
                     &cron->request);
}

int weir__delay_cron(struct weir__store_topic *topic,
                     const struct weir__cron_change *what, weir_code_fn fn,
                     void *arg)
{
    static const char *const verbs[] = {
        [WEIR_CRON_DELETE] = "delete",
        [WEIR_CRON_PAUSE] = "pause",
        [WEIR_CRON_RESUME] = "resume",
    };
    const struct weir__record *record = what->record;
    struct cron_request *cron = weir__mem_new(sizeof(*cron));

    WEIR_ASSERT(what->name.len > 0 && what->name.len < sizeof(cron->name));
    if (cron == NULL)
        return WEIR_ENOMEM;
    cron->topic = weir__delay_topic_of(topic);
    cron->fn = fn;
    cron->arg = arg;
    cron->verb = record != NULL ? "set" : verbs[what->verb];
    memcpy(cron->name, what->name.ptr, what->name.len);
    if (record != NULL) {
        WEIR_ASSERT(record->cron.len > WEIR__STATE_LEN);
        weir__record_write(&cron->record, record);
        if (cron->record.failed) {
            weir__buf_fini(&cron->record);
            weir__mem_free(cron);
            return WEIR_ENOMEM;
        }
        /* The last option, and then the body. */
        cron->at = cron->record.len - record->cron.len -
                   (record->body.len > 0 ? record->body.len : 1);
        (void)weir__topic_register(topic); /* it may come into being */
    }
    look_up(cron);
    return WEIR_OK;
}

/* --- listing -------------------------------------------------------------- */

struct list_request {
    struct weir__request request; /* first */
    struct weir__delay_topic *topic;
    weir__cron_fn fn;       /* one of these, or neither */
    weir_count_fn count_fn; /* of ticks that were made anew */
    void *arg;
    const char *mends; /* NULL: list them, else which ticks come at once */
};

/* `A FROM AT RECORD`, or in front P, or N: there is no tick. NULL, or what is
 * wrong. */
static const char *read_value(struct weir_slice value,
                              struct weir__cron_entry *entry)
{
    struct weir_slice record;

    size_t at = 2, blanks = 0;

    entry->from_ms = 0;
    entry->is_paused = value.len > 0 && value.ptr[0] == 'P';
    entry->has_tick = value.len > 0 && value.ptr[0] == 'A';
    for (; at < value.len && blanks < 2; at++) {
        if (value.ptr[at] == ' ')
            blanks++;
        else if (blanks == 0 && entry->from_ms < INT64_MAX / 100)
            entry->from_ms = entry->from_ms * 10 + (value.ptr[at] - '0');
    }
    if (blanks < 2 ||
        (!entry->is_paused && value.ptr[0] != 'A' && value.ptr[0] != 'N'))
        return "what is stored is no schedule";
    record = weir__slice_of(value.ptr + at, value.len - at);
    if (weir__record_read(record, &entry->record) != WEIR_OK)
        return "its record cannot be read; a newer weir may have written it";
    return entry->record.cron.len > 0 ? NULL : "its record has no times";
}

struct named {
    struct weir_slice name, value;
};

static int by_name(const void *one, const void *other)
{
    const struct weir_slice a = ((const struct named *)one)->name;
    const struct weir_slice b = ((const struct named *)other)->name;
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int tell(const struct list_request *list, const struct redisReply *reply,
                int64_t now_ms)
{
    size_t count = reply->elements < 4 ? 0 : (reply->elements - 3) / 2;
    struct named *all = weir__mem_new((count + 1) * sizeof(*all));
    struct weir__cron_entry entry = {.now_ms = now_ms};
    size_t kept = 0;

    if (all == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct named *one = &all[kept];

        kept += weir__reply_str(reply, 3 + 2 * i, &one->name) &&
                weir__reply_str(reply, 4 + 2 * i, &one->value);
    }
    qsort(all, kept, sizeof(*all), by_name);
    for (size_t i = 0; i < kept; i++) {
        entry.name = all[i].name;
        entry.why = read_value(all[i].value, &entry);
        if (weir__topic_check(entry.name, NULL) != WEIR_OK)
            entry.why = "its name is none";
        list->fn(WEIR_OK, &entry, list->arg);
    }
    weir__mem_free(all);
    return WEIR_OK;
}

static void on_list(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct list_request *list =
        (struct list_request *)request; /* its first member */
    int64_t now_ms, mended = 0;
    struct weir_slice word = {0};

    weir__topic_log_error(&list->topic->base, "cron", code, reply);
    if (code == WEIR_OK && !weir__reply_str(reply, 0, &word))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && !weir__slice_equal(word, weir__slice_str("list")))
        code = code_of(word);
    if (code == WEIR_OK && (!weir__reply_int(reply, 1, &now_ms) ||
                            !weir__reply_int(reply, 2, &mended)))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && list->fn != NULL)
        code = tell(list, reply, now_ms);
    if (list->fn != NULL)
        list->fn(code, NULL, list->arg);
    if (list->count_fn != NULL)
        list->count_fn(code, (uint64_t)mended, list->arg);
    weir__mem_free(list);
}

static int request_list(struct weir__delay_topic *topic,
                        const struct list_request *what)
{
    struct list_request *list = weir__mem_new(sizeof(*list));
    struct weir__buf bytes = {0};

    if (list == NULL)
        return WEIR_ENOMEM;
    *list = *what;
    list->topic = topic;
    list->request.done = on_list;
    weir__resp_eval(&bytes, &weir__script_delay_cron, 9,
                    what->mends == NULL ? 2 : 3);
    weir__prefix_keys(&bytes, &topic->base.prefix,
                      "wait run ids meta idle due cron p: absent");
    weir__resp_str(&bytes, topic->base.name);
    weir__resp_str(&bytes, what->mends == NULL ? "list" : "mend");
    if (what->mends != NULL)
        weir__resp_str(&bytes, what->mends);
    weir__place_send(topic->base.place, &bytes, &weir__script_delay_cron,
                     WEIR__SEND_AGAIN, &list->request);
    return WEIR_OK;
}

int weir__delay_crons(struct weir__store_topic *topic, weir__cron_fn fn,
                      void *arg)
{
    return request_list(weir__delay_topic_of(topic),
                        &(struct list_request){.fn = fn, .arg = arg});
}

int weir__delay_mend_ticks(struct weir__delay_topic *topic, const char *which,
                           weir_count_fn fn, void *arg)
{
    return request_list(topic, &(struct list_request){
                                   .count_fn = fn, .arg = arg, .mends = which});
}

void weir__delay_watch_ticks(struct weir__delay_topic *topic, int64_t time_us)
{
    const int64_t step_us = 1000000, each_ns = INT64_C(10000000000);
    bool is_set_back = time_us < topic->time_us - step_us;
    int64_t now_ns = weir__monotonic_ns();

    topic->time_us = time_us;
    if (!topic->has_ticks ||
        (!is_set_back && now_ns - topic->mended_ns < each_ns))
        return;
    topic->mended_ns = now_ns;
    (void)weir__delay_mend_ticks(topic, is_set_back ? "all" : "soon", NULL,
                                 NULL);
}
