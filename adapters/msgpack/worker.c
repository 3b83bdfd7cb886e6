/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/worker.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    FIXMAP = 0x80,
    FIXINT_MAX = 0x7f,
    ARRAY16 = 0xdc,
    STR8 = 0xd9,
    STR16 = 0xda,
    UINT32 = 0xce,
    INT64 = 0xd3,
    BIG = 8
};

enum { TOLD = 3 }; /* numbers of a topic */

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

static void put_array(struct weir__buf *buf, const char *name, size_t count)
{
    const uint8_t head[] = {ARRAY16, (uint8_t)(count >> 8), (uint8_t)count};

    put_text(buf, name);
    weir__buf_append(buf, head, sizeof(head));
}

/* In few bytes; beyond 32 bits the largest of them. */
static void put_count(struct weir__buf *buf, uint64_t count)
{
    const uint32_t some = count < UINT32_MAX ? (uint32_t)count : UINT32_MAX;
    const uint8_t bytes[] = {UINT32, (uint8_t)(some >> 24),
                             (uint8_t)(some >> 16), (uint8_t)(some >> 8),
                             (uint8_t)some};

    if (some <= FIXINT_MAX)
        weir__buf_append(buf, &bytes[4], 1);
    else
        weir__buf_append(buf, bytes, sizeof(bytes));
}

static bool has_groups(const struct weir_worker_topic *topic)
{
    return topic->groups != NULL && topic->groups[0] != '\0';
}

/* Most workers have none. */
static void put_groups(struct weir__buf *buf, const struct weir_worker *worker)
{
    put_array(buf, "groups", worker->topic_count);
    for (size_t i = 0; i < worker->topic_count; i++) {
        const char *text =
            has_groups(&worker->topics[i]) ? worker->topics[i].groups : "";
        const size_t len = strlen(text);
        const uint8_t head[] = {STR16, (uint8_t)(len >> 8), (uint8_t)len};

        WEIR_ASSERT(len <= UINT16_MAX);
        weir__buf_append(buf, head, sizeof(head));
        weir__buf_append(buf, text, len);
    }
}

static void put_topics(struct weir__buf *buf, const struct weir_worker *worker)
{
    const size_t count = worker->topic_count;

    WEIR_ASSERT(count <= WEIR_WORKER_TOPICS);
    put_array(buf, "topics", count);
    for (size_t i = 0; i < count; i++)
        put_text(buf, worker->topics[i].name);
    put_array(buf, "serves", TOLD * count);
    for (size_t i = 0; i < count; i++) {
        put_count(buf, worker->topics[i].concurrency);
        put_count(buf, worker->topics[i].held);
        put_count(buf, worker->topics[i].running);
    }
}

void weir__worker_write(struct weir__buf *buf, const struct weir_worker *worker)
{
    uint8_t head = FIXMAP | (TEXTS + NUMBERS + 3);
    bool is_any = false;

    for (size_t i = 0; i < worker->topic_count && !is_any; i++)
        is_any = has_groups(&worker->topics[i]);
    head += is_any;
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
    if (is_any)
        put_groups(buf, worker);
}
_Static_assert(TEXTS + NUMBERS + 4 < 16, "a small map holds them");
_Static_assert(TOLD *WEIR_WORKER_TOPICS <= UINT16_MAX, "two bytes count them");

/* --- reading -------------------------------------------------------------- */

static void copy_from(char *to, size_t cap, struct weir_slice text,
                      uint8_t least)
{
    size_t len = text.len < cap ? text.len : cap - 1;

    for (size_t i = 0; i < len; i++)
        to[i] = (char)(text.ptr[i] >= least && text.ptr[i] < 0x7f ? text.ptr[i]
                                                                  : '?');
    to[len] = '\0';
}

static void copy_text(char *to, size_t cap, struct weir_slice text)
{
    copy_from(to, cap, text, '!');
}

static int64_t number_of(const struct weir_value *value)
{
    return value->type == WEIR_TYPE_INT && value->as.i64 > 0 ? value->as.i64
                                                             : 0;
}

/* Step over a value of checked bytes, which is told. */
static struct weir_value next(struct weir_slice *bytes)
{
    struct weir_value value;
    size_t len = weir__msgpack_length(*bytes);

    (void)weir__msgpack_head(*bytes, &value);
    *bytes = weir__slice_of(bytes->ptr + len, bytes->len - len);
    return value;
}

/* The elements of the array of that name in a checked map; 0: it has none. */
static size_t open_array(struct weir_slice bytes, const char *name,
                         struct weir_slice *ret_elements)
{
    struct weir_value map, array;
    size_t len = weir__msgpack_head(bytes, &map);

    if (map.type != WEIR_TYPE_MAP)
        return 0;
    bytes = weir__slice_of(bytes.ptr + len, bytes.len - len);
    for (size_t i = 0; i < map.as.count; i++) {
        struct weir_value key = next(&bytes);

        if (key.type != WEIR_TYPE_STR ||
            !weir__slice_equal(key.as.bytes, weir__slice_str(name))) {
            (void)next(&bytes);
            continue;
        }
        len = weir__msgpack_head(bytes, &array);
        *ret_elements = weir__slice_of(bytes.ptr + len, bytes.len - len);
        return array.type == WEIR_TYPE_ARRAY ? array.as.count : 0;
    }
    return 0;
}

/* Those from before `serves` do not tell it. */
static void read_serves(struct weir_slice bytes, struct weir__worker *worker)
{
    struct weir_slice serves;
    size_t count = open_array(bytes, "serves", &serves) / TOLD;

    for (size_t i = 0; i < count && i < worker->told.topic_count; i++) {
        struct weir_value told[TOLD];

        for (size_t k = 0; k < TOLD; k++)
            told[k] = next(&serves);
        worker->topics[i].concurrency = (uint64_t)number_of(&told[0]);
        worker->topics[i].held = (uint64_t)number_of(&told[1]);
        worker->topics[i].running = (uint64_t)number_of(&told[2]);
    }
}

/* Blanks stand between patterns. */
static int read_groups(struct weir_slice bytes, struct weir__worker *worker)
{
    struct weir_slice list;
    size_t count = open_array(bytes, "groups", &list);
    char *to;

    count = count < worker->told.topic_count ? count : worker->told.topic_count;
    if (count == 0)
        return WEIR_OK;
    weir__buf_reset(&worker->groups);
    to = (char *)weir__buf_reserve(&worker->groups, list.len + count);
    if (to == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct weir_value text = next(&list);

        if (text.type != WEIR_TYPE_STR)
            break;
        copy_from(to, text.as.bytes.len + 1, text.as.bytes, ' ');
        worker->topics[i].groups = to;
        to += text.as.bytes.len + 1;
    }
    return WEIR_OK;
}

/* Room for so many topics and their names. */
static int reserve(struct weir__worker *worker, size_t count)
{
    if (worker->topics_cap < count) {
        struct weir_worker_topic *topics =
            weir__mem_grow(worker->topics, count, sizeof(*topics));

        if (topics == NULL)
            return WEIR_ENOMEM;
        worker->topics = topics;
        worker->topics_cap = count;
    }
    weir__buf_reset(&worker->names);
    return weir__buf_reserve(&worker->names, count * (WEIR_MAX_TOPIC + 1)) ==
                   NULL
               ? WEIR_ENOMEM
               : WEIR_OK;
}

static int read_topics(struct weir_slice bytes, struct weir__worker *worker)
{
    struct weir_slice names;
    size_t count = open_array(bytes, "topics", &names);

    count = count < WEIR_WORKER_TOPICS ? count : WEIR_WORKER_TOPICS;
    if (count > 0 && reserve(worker, count) < 0)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct weir_value name = next(&names);
        char *text = (char *)worker->names.ptr + i * (WEIR_MAX_TOPIC + 1);

        if (name.type != WEIR_TYPE_STR)
            break;
        copy_text(text, WEIR_MAX_TOPIC + 1, name.as.bytes);
        worker->topics[i] =
            (struct weir_worker_topic){.name = text, .groups = ""};
        worker->told.topic_count = i + 1;
    }
    worker->told.topics = worker->topics;
    if (worker->told.topics_total < worker->told.topic_count)
        worker->told.topics_total = worker->told.topic_count;
    read_serves(bytes, worker);
    return read_groups(bytes, worker);
}

int weir__worker_read(struct weir_slice bytes, struct weir__worker *worker)
{
    struct weir_worker *told = &worker->told;
    struct weir_value value;

    *told = (struct weir_worker){0};
    if (weir__msgpack_check(bytes) < 0)
        return WEIR_EMALFORMED;
    for (size_t i = 0; i < TEXTS; i++) {
        char *to = (char *)worker + texts[i].to;

        weir__msgpack_find(bytes, texts[i].name, &value);
        to[0] = '\0';
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
    if (worker->name[0] == '\0')
        return WEIR_EMALFORMED;
    return read_topics(bytes, worker);
}

void weir__worker_fini(struct weir__worker *worker)
{
    weir__mem_free(worker->topics);
    weir__buf_fini(&worker->names);
    weir__buf_fini(&worker->groups);
    *worker = (struct weir__worker){0};
}
