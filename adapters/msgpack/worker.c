/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/worker.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/text.h"

enum { FIXMAP = 0x80, ARRAY16 = 0xdc, STR8 = 0xd9, INT64 = 0xd3, BIG = 8 };

/* --- what there is -------------------------------------------------------- */

/* Texts: their places in struct weir_worker and in struct weir__worker. */
static const struct {
    const char *name;
    size_t from, to, cap;
} texts[] = {
#define TEXT(name)                                      \
    {                                                   \
#        name, offsetof(struct weir_worker, name),      \
            offsetof(struct weir__worker, name),        \
            sizeof(((struct weir__worker *)NULL)->name) \
    }
    TEXT(name),
    TEXT(host),
    TEXT(version),
    TEXT(transport),
#undef TEXT
};

/* Numbers of 64 bits, none below 0. */
static const struct {
    const char *name;
    size_t at;
} numbers[] = {
    {"pid", offsetof(struct weir_worker, pid)},
    {"topics_total", offsetof(struct weir_worker, topics_total)},
    {"held", offsetof(struct weir_worker, held)},
    {"running", offsetof(struct weir_worker, running)},
    {"connections", offsetof(struct weir_worker, connections)},
    {"lag_us", offsetof(struct weir_worker, lag_us)},
    {"since_ms", offsetof(struct weir_worker, since_ms)},
};

enum {
    TEXTS = sizeof(texts) / sizeof(texts[0]),
    NUMBERS = sizeof(numbers) / sizeof(numbers[0])
};

/* --- writing -------------------------------------------------------------- */

static void put_text(struct weir__buf *buf, const char *text)
{
    size_t len = strlen(text);
    uint8_t head[2] = {STR8, len > UINT8_MAX ? UINT8_MAX : (uint8_t)len};

    weir__buf_append(buf, head, sizeof(head));
    weir__buf_append(buf, text, head[1]);
}

static void put_number(struct weir__buf *buf, int64_t number)
{
    uint8_t bytes[1 + BIG] = {INT64};

    for (size_t i = BIG; i > 0; i--, number >>= 8)
        bytes[i] = (uint8_t)(number & 0xff);
    weir__buf_append(buf, bytes, sizeof(bytes));
}

static void put_topics(struct weir__buf *buf, const struct weir_worker *worker)
{
    const uint8_t head[] = {ARRAY16, 0, (uint8_t)worker->topic_count};

    put_text(buf, "topics");
    weir__buf_append(buf, head, sizeof(head));
    for (size_t i = 0; i < worker->topic_count; i++)
        put_text(buf, worker->topics[i]);
}

void weir__worker_write(struct weir__buf *buf, const struct weir_worker *worker)
{
    const uint8_t head = FIXMAP | (TEXTS + NUMBERS + 2);

    weir__buf_append(buf, &head, 1);
    for (size_t i = 0; i < TEXTS; i++) {
        const char *text;

        memcpy(&text, (const char *)worker + texts[i].from, sizeof(text));
        put_text(buf, texts[i].name);
        put_text(buf, text);
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t number;

        memcpy(&number, (const char *)worker + numbers[i].at, sizeof(number));
        put_text(buf, numbers[i].name);
        put_number(buf, number);
    }
    put_text(buf, "stopping");
    put_number(buf, worker->is_stopping);
    put_topics(buf, worker);
}
_Static_assert(TEXTS + NUMBERS + 2 < 16, "a small map holds them");
_Static_assert(WEIR_WORKER_TOPICS <= UINT8_MAX, "one byte counts them");

/* --- reading -------------------------------------------------------------- */

static void copy_text(char *to, size_t cap, struct weir_slice text)
{
    size_t len = text.len < cap ? text.len : cap - 1;

    for (size_t i = 0; i < len; i++)
        to[i] = (char)(text.ptr[i] > 0x20 && text.ptr[i] < 0x7f ? text.ptr[i]
                                                                : '?');
    to[len] = '\0';
}

static int64_t number_of(const struct weir_value *value)
{
    return value->type == WEIR_TYPE_INT && value->as.i64 > 0 ? value->as.i64
                                                             : 0;
}

static void read_topics(struct weir_slice bytes, struct weir__worker *worker)
{
    for (size_t i = 0; i < WEIR_WORKER_TOPICS; i++) {
        struct weir_value value;
        char path[24];

        (void)snprintf(path, sizeof(path), "topics.%zu", i); /* fits */
        weir__msgpack_find(bytes, path, &value);
        if (value.type != WEIR_TYPE_STR)
            return;
        copy_text(worker->topic[i], sizeof(worker->topic[i]), value.as.bytes);
        worker->topics[i] = worker->topic[i];
        worker->told.topic_count = i + 1;
    }
}

int weir__worker_read(struct weir_slice bytes, struct weir__worker *ret_worker)
{
    struct weir_worker *told = &ret_worker->told;
    struct weir_value value;

    *ret_worker = (struct weir__worker){.told.topics = ret_worker->topics};
    if (weir__msgpack_check(bytes) < 0)
        return WEIR_EMALFORMED;
    for (size_t i = 0; i < TEXTS; i++) {
        char *to = (char *)ret_worker + texts[i].to;

        weir__msgpack_find(bytes, texts[i].name, &value);
        if (value.type == WEIR_TYPE_STR)
            copy_text(to, texts[i].cap, value.as.bytes);
        memcpy((char *)told + texts[i].from, &to, sizeof(to));
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t number;

        weir__msgpack_find(bytes, numbers[i].name, &value);
        number = number_of(&value);
        memcpy((char *)told + numbers[i].at, &number, sizeof(number));
    }
    weir__msgpack_find(bytes, "stopping", &value);
    told->is_stopping = number_of(&value) != 0;
    read_topics(bytes, ret_worker);
    return ret_worker->name[0] == '\0' ? WEIR_EMALFORMED : WEIR_OK;
}
