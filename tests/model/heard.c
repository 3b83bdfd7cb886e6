/* SPDX-License-Identifier: MIT */
#include "tests/model/heard.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "tests/model/tree.h"
#include "tests/sim/server/private.h"

/* --- arguments and replies ----------------------------------------------- */

long long heard_int(struct slice text)
{
    char digits[32];

    (void)snprintf(digits, sizeof(digits), "%.*s", (int)text.len,
                   text.ptr); /* cut */
    return strtoll(digits, NULL, 10);
}

bool heard_is(struct slice text, const char *word)
{
    return text.len == strlen(word) && memcmp(text.ptr, word, text.len) == 0;
}

char *heard_text(struct slice text)
{
    return topic_text(text.ptr, text.len);
}

void heard_list(struct slice text, msgpack_unpacked *ret_list)
{
    size_t at = 0;

    msgpack_unpacked_init(ret_list);
    if (text.len == 0) {
        ret_list->data.type = MSGPACK_OBJECT_ARRAY;
        ret_list->data.via.array.size = 0;
        return;
    }
    if (msgpack_unpack_next(ret_list, text.ptr, text.len, &at) !=
            MSGPACK_UNPACK_SUCCESS ||
        ret_list->data.type != MSGPACK_OBJECT_ARRAY)
        server_fail("an argument is no msgpack array");
}

long long heard_reply(const struct call_heard *call, size_t i)
{
    const redisReply *reply = call->reply;

    if (reply->type != REDIS_REPLY_ARRAY || i >= reply->elements ||
        reply->element[i]->type != REDIS_REPLY_INTEGER)
        return INT64_MIN;
    return reply->element[i]->integer;
}

/* The stream's memory moves, so the answer does not. */
struct line line_new(void)
{
    return (struct line){0};
}

void line_add(struct line *answer, const char *format, ...)
{
    va_list args;

    if (answer->out == NULL)
        answer->out = open_memstream(&answer->ptr, &answer->len);
    if (answer->out == NULL)
        server_fail("the listener has no memory for an answer");
    va_start(args, format);
    (void)vfprintf(answer->out, format, args);
    va_end(args);
}

const char *line_text(struct line *answer)
{
    if (answer->out == NULL)
        return "";
    if (fflush(answer->out) != 0)
        server_fail("the listener has no memory for an answer");
    return answer->ptr;
}

void line_free(struct line *answer)
{
    if (answer->out != NULL)
        (void)fclose(answer->out); /* it is memory */
    free(answer->ptr);
}

/* --- keys ---------------------------------------------------------------- */

struct object *heard_object(const struct call_heard *call, const char *name)
{
    char key[160];
    int len =
        snprintf(key, sizeof(key), "%s%s", call->topic->prefix, name); /* cut */

    return key_object(call->server, (struct slice){key, (size_t)len});
}

bool heard_score(const struct call_heard *call, const char *name,
                 const char *member, double *ret_score)
{
    const struct object *object = heard_object(call, name);
    const struct entry *entry =
        object == NULL ? NULL
                       : table_find(&object->table,
                                    (struct slice){member, strlen(member)});

    if (entry == NULL)
        return false;
    *ret_score = entry->score;
    return true;
}

const struct entry *heard_meta(const struct call_heard *call, const char *name)
{
    const struct object *meta = heard_object(call, "meta");

    return meta == NULL
               ? NULL
               : table_find(&meta->table, (struct slice){name, strlen(name)});
}

bool heard_has_limits(const struct call_heard *call)
{
    return heard_meta(call, "limits") != NULL;
}

bool heard_is_server(const struct call_heard *call, struct slice own)
{
    const struct entry *entry = heard_meta(call, "server");

    return entry != NULL && own.len > 0 && own.len == entry->value_len &&
           memcmp(own.ptr, entry->value, own.len) == 0;
}

/* --- packs --------------------------------------------------------------- */

static int by_seq(const void *one, const void *other)
{
    return memcmp(((const struct pack *)one)->seq,
                  ((const struct pack *)other)->seq, SEQ_LEN);
}

static struct pack *find_pack(const struct call_heard *call, const char *seq)
{
    struct pack wanted;

    memcpy(wanted.seq, seq, SEQ_LEN);
    return tree_find(&call->topic->packs, &wanted, by_seq);
}

struct pack *heard_pack_new(const struct call_heard *call, const char *seq,
                            unsigned count)
{
    struct pack *pack = find_pack(call, seq);

    if (pack == NULL) {
        pack = calloc(1, sizeof(*pack));
        if (pack == NULL)
            server_fail("the listener has no memory for a pack");
        memcpy(pack->seq, seq, SEQ_LEN);
        tree_add(&call->topic->packs, pack, by_seq);
    }
    memset(pack->jobs, 0, sizeof(pack->jobs));
    pack->count = count;
    return pack;
}

/* The ids of a pack; the caller's to be freed. Returns how many. */
static unsigned read_ids(const char *seq, struct slice bytes, char *ids[SLOTS])
{
    struct weir_slice known[SLOTS];
    struct weir__pack pack;

    if (weir__pack_read(
            (struct weir_slice){(const uint8_t *)bytes.ptr, bytes.len}, &pack) <
        0)
        return 0;
    if (pack.has_ids)
        weir__pack_ids(&pack, known);
    for (unsigned slot = 0; slot < pack.count; slot++) {
        char made[WEIR__MADE_ID_LEN + 1];

        weir__made_id(seq, slot, made);
        ids[slot] = pack.has_ids ? topic_text((const char *)known[slot].ptr,
                                              known[slot].len)
                                 : topic_text(made, strlen(made));
    }
    return (unsigned)pack.count;
}

/* A pack that a script made, of jobs that moved. */
static struct pack *learn_pack(const struct call_heard *call, const char *seq)
{
    const struct object *object;
    struct pack *pack;
    char name[SEQ_LEN + 3], *ids[SLOTS];
    unsigned count;

    (void)snprintf(name, sizeof(name), "p:%.12s", seq);
    object = heard_object(call, name);
    if (object == NULL)
        return NULL;
    count =
        read_ids(seq, (struct slice){object->text.ptr, object->text.len}, ids);
    pack = heard_pack_new(call, seq, count);
    for (unsigned slot = 0; slot < count; slot++) {
        pack->jobs[slot] = topic_find(call->topic->model, ids[slot]);
        free(ids[slot]);
    }
    return pack;
}

struct pack *heard_pack(const struct call_heard *call, const char *seq)
{
    struct pack *pack = find_pack(call, seq);

    return pack != NULL ? pack : learn_pack(call, seq);
}

struct job *heard_job(const struct call_heard *call, const char *seq,
                      unsigned slot)
{
    const struct pack *pack = heard_pack(call, seq);

    return pack == NULL || slot >= pack->count ? NULL : pack->jobs[slot];
}

bool heard_node(const char *name, size_t len, unsigned *ret_lo,
                unsigned *ret_hi)
{
    return weir__node_read((struct weir_slice){(const uint8_t *)name, len},
                           ret_lo, ret_hi) == 0;
}

static struct draft *draft_new(struct call_heard *call)
{
    struct draft *draft;

    call->drafts = realloc(call->drafts,
                           (call->draft_count + 1) * sizeof(call->drafts[0]));
    if (call->drafts == NULL)
        server_fail("the listener has no memory for a pack");
    draft = &call->drafts[call->draft_count++];
    memset(draft, 0, sizeof(*draft));
    return draft;
}

void heard_note(struct call_heard *call, bool is_there)
{
    draft_new(call)->place = is_there ? IN_USE : MISSING;
}

void heard_draft(struct call_heard *call, struct slice key,
                 const struct slice *bytes)
{
    const struct object *object = key_object(call->server, key);
    struct draft *draft = draft_new(call);

    memcpy(draft->seq, key.ptr + key.len - SEQ_LEN, SEQ_LEN);
    if (bytes != NULL) {
        draft->place = object == NULL ? STAGED : IN_USE;
        draft->count = read_ids(draft->seq, *bytes, draft->ids);
        return;
    }
    if (object == NULL)
        return;
    draft->place = object->expires_ms != 0 ? STAGED : IN_USE;
    draft->count =
        read_ids(draft->seq, (struct slice){object->text.ptr, object->text.len},
                 draft->ids);
}

/* --- due times ----------------------------------------------------------- */

uint64_t heard_little(const char *bytes, size_t count)
{
    uint64_t number = 0;

    while (count > 0)
        number = number << 8 | (uint8_t)bytes[--count];
    return number;
}

static void read_array(const struct call_heard *call, struct slice times,
                       unsigned count, int64_t from_ms, int64_t *ret_due)
{
    msgpack_unpacked list;

    (void)call;
    heard_list(times, &list);
    for (unsigned slot = 0; slot < count && slot < list.data.via.array.size;
         slot++)
        ret_due[slot] = list.data.via.array.ptr[slot].via.i64 + from_ms;
    msgpack_unpacked_destroy(&list);
}

void heard_when(const struct call_heard *call, struct slice when,
                unsigned count, int64_t *ret_due, char **ret_lane)
{
    char form = when.len == 0 ? '\0' : when.ptr[0];
    struct slice rest = {when.ptr + 1, when.len - 1};
    int64_t now_ms = call->now_ms, base_ms;
    const char *blank;

    *ret_lane = NULL;
    if (form == 'l') { /* l, level, r or a, ms, blank, key */
        blank = memchr(when.ptr, ' ', when.len);
        *ret_lane = malloc(when.len);
        if (blank == NULL || *ret_lane == NULL)
            server_fail("a time is none: %.*s", (int)when.len, when.ptr);
        (void)snprintf(*ret_lane, when.len, "%c%.*s", when.ptr[1],
                       (int)(when.ptr + when.len - blank) - 1, blank + 1);
        form = when.ptr[2];
        rest = (struct slice){when.ptr + 3, (size_t)(blank - when.ptr) - 3};
    }
    switch (form) {
    case 'r':
    case 'a':
        base_ms = heard_int(rest) + (form == 'r' ? now_ms : 0);
        for (unsigned slot = 0; slot < count; slot++)
            ret_due[slot] = base_ms;
        break;
    case 'p':
    case 'q':
        read_array(call, rest, count, form == 'p' ? now_ms : 0, ret_due);
        break;
    case 's':
    case 't':
        base_ms =
            (int64_t)heard_little(rest.ptr, 6) + (form == 's' ? now_ms : 0);
        for (unsigned slot = 0; slot < count; slot++)
            ret_due[slot] =
                base_ms + (int64_t)heard_little(rest.ptr + 6 + 4 * slot, 4);
        break;
    default:
        server_fail("a time is none: %.*s", (int)when.len, when.ptr);
    }
}
