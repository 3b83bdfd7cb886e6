/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/error.h"
#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"

/* Names on the server, slots of calls, and what is logged of its errors. */

#define LOG_EVERY_NS INT64_C(5000000000) /* the same error of the server */
#define LOSS_NS      INT64_C(1000000000) /* the same loss */

void weir__prefix_init(struct weir__prefix *prefix,
                       const struct weir__redis *store, struct weir_slice topic)
{
    int len = snprintf(prefix->text, sizeof(prefix->text),
                       "%s:{%.*s}:", store->url.prefix, (int)topic.len,
                       (const char *)topic.ptr);

    WEIR_ASSERT(len > 0 && (size_t)len < sizeof(prefix->text));
    prefix->len = (size_t)len;
}

void weir__topic_name(struct weir__store_topic *topic, struct weir_slice name)
{
    WEIR_ASSERT(name.len < sizeof(topic->name));
    memset(topic->name, 0, sizeof(topic->name));
    if (name.len > 0)
        memcpy(topic->name, name.ptr, name.len);
    weir__prefix_init(&topic->prefix, topic->store, name);
}

static void append_key(struct weir__buf *buf, const struct weir__prefix *prefix,
                       const char *name, size_t len)
{
    char key[WEIR__KEY_MAX];

    WEIR_ASSERT(prefix->len + len <= sizeof(key));
    memcpy(key, prefix->text, prefix->len);
    memcpy(key + prefix->len, name, len);
    weir__resp_bytes(
        buf, (struct weir_slice){(const uint8_t *)key, prefix->len + len});
}

void weir__prefix_key(struct weir__buf *buf, const struct weir__prefix *prefix,
                      const char *name)
{
    append_key(buf, prefix, name, strlen(name));
}

void weir__prefix_keys(struct weir__buf *buf, const struct weir__prefix *prefix,
                       const char *names)
{
    while (*names != '\0') {
        size_t len = strcspn(names, " ");

        append_key(buf, prefix, names, len);
        names += len + (names[len] == ' ');
    }
}

static void append_pack(struct weir__buf *buf,
                        const struct weir__prefix *prefix, char folder,
                        const char *seq)
{
    char name[2 + WEIR__SEQ_LEN] = {folder, ':'};

    memcpy(name + 2, seq, WEIR__SEQ_LEN);
    append_key(buf, prefix, name, sizeof(name));
}

void weir__prefix_pack(struct weir__buf *buf, const struct weir__prefix *prefix,
                       const char *seq)
{
    append_pack(buf, prefix, 'p', seq);
}

void weir__prefix_outgoing(struct weir__buf *buf,
                           const struct weir__prefix *prefix, const char *seq)
{
    append_pack(buf, prefix, 'o', seq);
}

void weir__prefix_command(struct weir__buf *buf,
                          const struct weir__prefix *prefix, size_t argc,
                          const char *name, const char *key)
{
    weir__resp_command(buf, argc);
    weir__resp_str(buf, name);
    weir__prefix_key(buf, prefix, key);
}

int64_t weir__digits_read(struct weir_slice digits)
{
    int64_t number = 0;

    for (size_t i = 0; i < digits.len && i < 18; i++) {
        if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
            break;
        number = number * 10 + (digits.ptr[i] - '0');
    }
    return number;
}

void weir__topics_key(struct weir__buf *buf, const struct weir__redis *store)
{
    char key[WEIR__KEY_MAX];

    (void)snprintf(key, sizeof(key), "%s:topics", store->url.prefix); /* fits */
    weir__resp_str(buf, key);
}

void weir__wake_channel(char *buf, size_t cap,
                        const struct weir__server *server)
{
    int len = snprintf(buf, cap, "%s:wake:%s", server->store->url.prefix,
                       server->worker);

    WEIR_ASSERT(len > 0 && (size_t)len < cap);
}

/* --- call slots --------------------------------------------------------- */

void weir__topic_next_seq(const struct weir__store_topic *topic,
                          char seq[WEIR__SEQ_LEN])
{
    struct weir__redis *store = topic->store;
    struct weir__call_slots *slots = &store->call_slots;

    WEIR_ASSERT(store->seqs.producer != 0);
    weir__seq_next(&store->seqs, weir__topic_server_ms(topic), seq);
    if (slots->name[0] == '\0')
        memcpy(slots->name, seq, WEIR__SEQ_LEN);
}

bool weir__call_slot_take(struct weir__redis *store, uint32_t *ret_call_slot)
{
    struct weir__call_slots *slots = &store->call_slots;
    uint32_t *list;

    if (slots->free_count > 0) {
        *ret_call_slot = slots->free[--slots->free_count];
        return true;
    }
    list = weir__mem_grow(slots->free, slots->count + 1u, sizeof(*list));
    if (list == NULL)
        return false;
    slots->free = list;
    *ret_call_slot = slots->count++;
    return true;
}

void weir__call_slot_leave(struct weir__redis *store, uint32_t call_slot)
{
    WEIR_ASSERT(store->call_slots.free_count < store->call_slots.count);
    store->call_slots.free[store->call_slots.free_count++] = call_slot;
}

/* The clock moves on in each copy of the process. */
uint32_t weir__call_nonce(struct weir__redis *store)
{
    uint64_t *random = &store->call_slots.random;

    *random ^= store->options.seed ^ (uint64_t)weir__redis_now_ns(store);
    return (uint32_t)weir__random_next(random);
}

void weir__call_slot_write(struct weir__buf *buf,
                           const struct weir__redis *store, uint32_t call_slot,
                           uint64_t number, uint32_t nonce)
{
    char text[WEIR__SEQ_LEN + 20];
    int len = snprintf(text, sizeof(text), "%s%" PRIu32, store->call_slots.name,
                       call_slot);

    WEIR_ASSERT(len > WEIR__SEQ_LEN && (size_t)len < sizeof(text));
    weir__resp_str(buf, text);
    len = snprintf(text, sizeof(text), "%" PRIu64 ".%" PRIu32, number, nonce);
    WEIR_ASSERT(len > 0 && (size_t)len < sizeof(text));
    weir__resp_str(buf, text);
}

/* --- errors ------------------------------------------------------------- */

enum { HINT_CAP = 320 };

/* An error that begins like this one was not logged for a while. */
static bool is_news(struct weir__store_topic *topic, const char *text)
{
    int64_t now_ns = weir__redis_now_ns(topic->store);
    char begin[sizeof(topic->error)];

    (void)snprintf(begin, sizeof(begin), "%s", text); /* cut */
    if (strcmp(begin, topic->error) == 0 &&
        now_ns - topic->error_ns < LOG_EVERY_NS)
        return false;
    memcpy(topic->error, begin, sizeof(begin));
    topic->error_ns = now_ns;
    return true;
}

/* The server does not say which key, or in a script which command. */
static const char *hint_of_denied(const struct weir__store_topic *topic,
                                  char buf[HINT_CAP])
{
    (void)snprintf(
        buf, HINT_CAP,
        "; see weir doctor: it needs the keys %.*s* and the commands "
        "of weir doctor --acl %s",
        (int)topic->prefix.len, topic->prefix.text, topic->name); /* fits */
    return buf;
}

/* What to add to an error that only people can end. */
static const char *hint_of(const struct weir__store_topic *topic,
                           const char *text, char buf[HINT_CAP])
{
    if (weir__error_is_cross_slot(text))
        return "; in a cluster the key of a list or stream needs {TOPIC} in "
               "its name";
    switch (weir__error_classify(text)) {
    case WEIR__ERROR_REFUSED:
    case WEIR__ERROR_FULL:
        return "; no writes until that is over, see weir doctor";
    case WEIR__ERROR_DENIED:
        return hint_of_denied(topic, buf);
    case WEIR__ERROR_MISTAKE:
        return "; does another program write these keys?";
    case WEIR__ERROR_OTHER:
    case WEIR__ERROR_NOSCRIPT:
    case WEIR__ERROR_TURNED_AWAY:
    case WEIR__ERROR_CLUSTER:
    case WEIR__ERROR_NOAUTH:
        break;
    }
    return NULL;
}

/* Without the name of the script and the line in it. */
static size_t words_of(const char *text)
{
    const char *script = strstr(text, " script: ");

    return script != NULL ? (size_t)(script - text) : strlen(text);
}

void weir__topic_log_error(struct weir__store_topic *topic, const char *what,
                           int code, const struct redisReply *reply)
{
    const struct weir__log *log = topic->store->options.log;
    bool is_told = code == WEIR_ESERVER && reply != NULL &&
                   reply->type == REDIS_REPLY_ERROR;
    const char *text = is_told ? weir__error_core(reply->str)
                       : code == WEIR_ESERVER && reply != NULL
                           ? "the answer makes no sense"
                           : weir_error_text(code);
    char buf[HINT_CAP];
    const char *hint = is_told ? hint_of(topic, text, buf) : NULL;

    if (code == WEIR_OK || code == WEIR_ECANCELED || !is_news(topic, text))
        return;
    weir__log(log, hint != NULL ? WEIR_LEVEL_ERROR : WEIR_LEVEL_WARN,
              "redis: %s %s: %.*s%s", topic->name, what, (int)words_of(text),
              text, hint != NULL ? hint : "");
}

void weir__topic_log_aside(struct weir__store_topic *topic,
                           const struct redisReply *reply, size_t from)
{
    size_t last = (size_t)reply->elements - 1;
    int64_t now_ns = weir__redis_now_ns(topic->store), count;

    if (reply->elements <= from || !weir__reply_int(reply, last, &count) ||
        count <= 0)
        return;
    topic->aside += (uint64_t)count;
    if (topic->aside_ns != 0 && now_ns - topic->aside_ns < LOG_EVERY_NS)
        return;
    weir__log(topic->store->options.log, WEIR_LEVEL_ERROR,
              "redis: %s: %" PRIu64 " members or counters of its keys were not "
              "written by weir; they were set aside, does another program "
              "write these keys?",
              topic->name, topic->aside);
    topic->aside = 0;
    topic->aside_ns = now_ns;
}

static void tell_loss(struct weir__store_topic *topic, enum weir__loss loss,
                      struct weir_slice where)
{
    static const char *const hows[] = {
        "claimed jobs are lost, their packs are gone",
        "claimed jobs cannot be read and never run",
        ("verdicts came too late or were not taken; a retry or death that was "
         "logged of these jobs may not happen"),
        "jobs for other topics are lost, their packs in the outbox are gone",
    };

    _Static_assert(sizeof(hows) / sizeof(hows[0]) == WEIR__LOSSES, "for each");
    weir__log(topic->store->options.log,
              loss == WEIR__LOSS_VERDICTS ? WEIR_LEVEL_WARN : WEIR_LEVEL_ERROR,
              "redis: %s: %zu %s%s%.*s", topic->name, topic->losses[loss].jobs,
              hows[loss], where.len > 0 ? ": " : "", (int)where.len,
              (const char *)where.ptr);
    topic->losses[loss].ns = weir__redis_now_ns(topic->store);
    topic->losses[loss].jobs = 0;
}

static bool may_tell(const struct weir__store_topic *topic,
                     enum weir__loss loss)
{
    int64_t ns = topic->losses[loss].ns;

    return ns == INT64_MIN || weir__redis_now_ns(topic->store) - ns >= LOSS_NS;
}

void weir__topic_log_loss(struct weir__store_topic *topic, enum weir__loss loss,
                          size_t jobs, struct weir_slice where)
{
    topic->losses[loss].jobs += jobs;
    if (may_tell(topic, loss))
        tell_loss(topic, loss, where);
}

void weir__topic_log_losses(struct weir__store_topic *topic, bool is_last)
{
    for (enum weir__loss loss = 0; loss < WEIR__LOSSES; loss++)
        if (topic->losses[loss].jobs > 0 && (is_last || may_tell(topic, loss)))
            tell_loss(topic, loss, weir__slice_str(""));
}
