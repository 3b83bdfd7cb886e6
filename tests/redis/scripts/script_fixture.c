/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/script_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/pack.h"
#include "core/text.h"

enum { ARGS_MAX = 64 };

struct redis_proc *script_proc;
redisReply *script_reply;

static const char *args[ARGS_MAX];
static size_t lens[ARGS_MAX], arg_count, key_count;
static char keys[ARGS_MAX][144], key_total[8];

static void stop(void)
{
    freeReplyObject(script_reply);
}

__attribute__((weak)) struct redis_proc *script_start(void)
{
    return redis_start(NULL);
}

static void start(void)
{
    script_proc = script_start();
    test_at_end(stop);
}
TEST_SETUP(start)

/* --- calls -------------------------------------------------------------- */

void script_arg_bytes(const void *bytes, size_t len)
{
    EXPECT_TRUE(arg_count < ARGS_MAX);
    args[arg_count] = bytes;
    lens[arg_count++] = len;
}

void script_arg(const char *text)
{
    script_arg_bytes(text, strlen(text));
}

void script_key(const char *name)
{
    char *to = keys[key_count++];

    (void)snprintf(to, sizeof(keys[0]), "weir:{t}:%s", name);
    script_arg(to);
    (void)snprintf(key_total, sizeof(key_total), "%zu", key_count);
    lens[2] = strlen(key_total);
}

static void load(const struct weir__script *script)
{
    const char *load_words[] = {"SCRIPT", "LOAD", script->text};
    redisReply *sha1 = redis_words(script_proc, 3, load_words,
                                   (const size_t[]){6, 4, script->len});

    EXPECT_STR(script->sha1, sha1->str);
    freeReplyObject(sha1);
}

/* Begin a call; `names` are keys separated by blanks. */
void script_begin(const struct weir__script *script, const char *names)
{
    static char copy[128];

    load(script);
    arg_count = 0;
    key_count = 0;
    script_arg("EVALSHA");
    script_arg(script->sha1);
    script_arg(key_total);
    (void)snprintf(copy, sizeof(copy), "%s", names);
    for (char *name = copy; *name != '\0';) {
        char *end = strchr(name, ' ');

        if (end != NULL)
            *end = '\0';
        script_key(name);
        name = end == NULL ? name + strlen(name) : end + 1;
    }
}

void script_pack_key(char letter)
{
    char name[16] = "p:";

    memset(name + 2, letter, 12);
    script_key(name);
}

/* Ended leases of a claimed node; what is told of several slots of a mixed pack
 * begins with a byte for them. */
static int ended_of(const redisReply *told)
{
    if (told->type == REDIS_REPLY_STRING)
        return told->str[0] / 2;
    return (int)(told->integer % 256 / 2);
}

static const char *element_text(const redisReply *one)
{
    static char text[32];

    if (one->type == REDIS_REPLY_INTEGER) {
        (void)snprintf(text, sizeof(text), "%lld", one->integer);
        return text;
    }
    return one->type == REDIS_REPLY_NIL ? "nil" : one->str;
}

/* The whole reply as one line. */
const char *script_call(void)
{
    static char text[4096];
    size_t len = 0;

    freeReplyObject(script_reply);
    script_reply = redis_words(script_proc, arg_count, args, lens);
    if (script_reply->type != REDIS_REPLY_ARRAY)
        return element_text(script_reply);
    text[0] = '\0';
    for (size_t i = 0; i < (size_t)script_reply->elements; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
                                i == 0 ? "" : " ",
                                element_text(script_reply->element[i]));
    return text;
}

const char *script_run(const struct weir__script *script, const char *names,
                       const char *const *words)
{
    script_begin(script, names);
    for (; *words != NULL; words++)
        script_arg(*words);
    return script_call();
}

const char *script_text(const char *command)
{
    return redis_text(script_proc, command);
}

/* --- packs -------------------------------------------------------------- */

/* `ids` separated by blanks; a number: that many jobs without ids. */
static size_t build(struct weir__buf *buf, const char *ids, size_t *ret_count)
{
    static char copy[2048];
    struct weir__pack_job jobs[256];
    size_t count = 0;
    bool has_ids = ids[0] < '0' || ids[0] > '9';

    (void)snprintf(copy, sizeof(copy), "%s", ids);
    if (has_ids)
        for (char *id = copy, *end = copy; end != NULL;
             id = end == NULL ? NULL : end + 1) {
            end = strchr(id, ' ');
            if (end != NULL)
                *end = '\0';
            jobs[count].id = weir__slice_str(id);
            jobs[count++].record = weir__slice_str("r");
        }
    else
        for (count = 0; count < strtoul(ids, NULL, 10); count++)
            jobs[count].record = weir__slice_str("r");
    weir__pack_write(buf, jobs, count, has_ids);
    *ret_count = count;
    return weir__pack_measure(jobs, count, has_ids).header_len;
}

char script_header[8];
char script_total[8];

static void stage(char letter, const struct weir__buf *buf, size_t header_len,
                  size_t count)
{
    char key[] = "weir:{t}:p:............";
    const char *set_words[] = {"SET", key,  (const char *)buf->ptr,
                               "NX",  "PX", "60000"};
    redisReply *set;

    memset(strchr(key, '.'), letter, 12);
    (void)snprintf(script_header, sizeof(script_header), "%zu", header_len);
    (void)snprintf(script_total, sizeof(script_total), "%zu", count);
    set = redis_words(script_proc, 6, set_words,
                      (const size_t[]){3, sizeof(key) - 1, buf->len, 2, 2, 5});
    EXPECT_TRUE(set->type != REDIS_REPLY_ERROR);
    freeReplyObject(set);
}

void script_stage(char letter, const char *ids)
{
    struct weir__buf buf = {0};
    size_t count, header_len = build(&buf, ids, &count);

    stage(letter, &buf, header_len, count);
    weir__buf_fini(&buf);
}

void script_stage_block(char letter, size_t count, struct weir_slice block)
{
    struct weir__pack_job jobs[256] = {{{0}, {0}}};
    struct weir__buf buf = {0}, plain = {0};

    weir__pack_write(&plain, jobs, count, false);
    weir__buf_append(&buf, plain.ptr, WEIR__PACK_HEAD);
    weir__buf_append(&buf, block.ptr, block.len);
    weir__buf_append(&buf, plain.ptr + WEIR__PACK_HEAD,
                     plain.len - WEIR__PACK_HEAD);
    stage(letter, &buf, WEIR__PACK_HEAD + block.len, count);
    weir__buf_fini(&plain);
    weir__buf_fini(&buf);
}

long long script_number = 1;
const char *script_nonce = "0";

static void next_number(char number[static 40])
{
    (void)snprintf(number, 40, "%lld.%s", script_number++, script_nonce);
}

static void begin_add(const char *call_slot, char letter, const char *when,
                      size_t when_len)
{
    static char number[40];

    next_number(number);
    script_begin(&weir__script_delay_add, "wait ids meta idle seen");
    script_pack_key(letter);
    script_arg("t");
    script_arg("delay");
    script_arg(call_slot);
    script_arg(number);
    script_arg(script_total);
    script_arg(script_header);
    script_arg_bytes(when, when_len);
}

const char *script_add_staged(char letter, const char *when, size_t when_len)
{
    begin_add("call_slot", letter, when, when_len);
    return script_call();
}

const char *script_send_on(char letter)
{
    begin_add("!s", letter, "r0", 2);
    script_arg("");
    return script_call();
}

const char *script_add(char letter, const char *ids, const char *when)
{
    script_stage(letter, ids);
    return script_add_staged(letter, when, strlen(when));
}

const char *script_server = "";

const char *script_add_one(char letter, const char *id, const char *when)
{
    struct weir__buf buf = {0};
    const char *answer;
    char number[40];
    size_t count;

    (void)build(&buf, id[0] == '\0' ? "1" : id, &count);
    next_number(number);
    script_begin(&weir__script_delay_add_one,
                 "wait ids meta idle seen run lease held");
    script_pack_key(letter);
    script_arg("t");
    script_arg("delay");
    script_arg("call_slot");
    script_arg(number);
    script_arg(when);
    script_arg(id);
    script_arg_bytes(buf.ptr, buf.len);
    script_arg(script_server);
    answer = script_call();
    weir__buf_fini(&buf);
    return answer;
}

/* --- claims ------------------------------------------------------------- */

char script_token[24];

void script_begin_claim(const char *room, const char *lease_ms)
{
    script_begin(&weir__script_delay_claim,
                 "wait run lease ids meta idle held due");
    script_arg(room);
    script_arg(lease_ms);
    script_arg("1000");
    script_arg("w1");
    script_arg("0");
    script_arg("delay");
}

/* Nodes and ended leases: "a0003+0 ..."; the token stays in `token`. */
const char *script_claim(const char *room, const char *lease_ms)
{
    static char nodes[2048];
    size_t len = 0;

    script_begin_claim(room, lease_ms);
    (void)script_call();
    EXPECT_INT(REDIS_REPLY_ARRAY, script_reply->type);
    (void)snprintf(script_token, sizeof(script_token), "%lld",
                   script_reply->element[1]->integer);
    nodes[0] = '\0';
    for (size_t i = 5; i + 1 < (size_t)script_reply->elements; i += 2)
        len += (size_t)snprintf(
            nodes + len, sizeof(nodes) - len, "%s%.1s%s+%d", i == 5 ? "" : " ",
            script_reply->element[i]->str, script_reply->element[i]->str + 12,
            ended_of(script_reply->element[i + 1]));
    return nodes;
}

/* A claim whose lease is over at once. */
const char *script_crash(const char *room)
{
    const char *nodes = script_claim(room, "0");

    while (redis_int(script_proc, "EVAL %s 1 weir:{t}:lease",
                     "local t = redis.call('TIME') local z = redis.call("
                     "'ZRANGE', KEYS[1], 0, 0, 'WITHSCORES') return "
                     "tonumber(z[2]) < t[1] * 1000 + math.floor(t[2] / 1000) "
                     "and 1 or 0") == 0)
        continue;
    return nodes;
}

/* --- one job, numbers --------------------------------------------------- */

const char *script_slot(const char *op, const char *id, const char *place,
                        const char *number)
{
    script_begin(&weir__script_delay_slot, "wait run ids meta");
    script_pack_key(place[0]);
    script_key("dead");
    script_key("rec");
    script_arg(op);
    script_arg(id);
    script_arg(place);
    script_arg(number);
    (void)script_call();
    return script_reply->type == REDIS_REPLY_ERROR
               ? script_reply->str
               : script_reply->element[0]->str;
}

long long script_stat(const char *name)
{
    script_begin(&weir__script_delay_stats, "wait meta dead");
    script_arg("1000");
    (void)script_call();
    for (size_t i = 0; i + 1 < script_reply->elements; i += 2)
        if (strcmp(script_reply->element[i]->str, name) == 0)
            return script_reply->element[i + 1]->integer;
    EXPECT_STR(name, "a name of the reply");
    return -1;
}

/* --- keys of another type ------------------------------------------------ */

static const char digest[] =
    "local names, all = redis.call('KEYS', '*'), {} "
    "table.sort(names) "
    "for _, name in ipairs(names) do "
    "  all[#all + 1] = name .. redis.call('DUMP', name) "
    "end "
    "return redis.sha1hex(table.concat(all))";

void script_poison(const char *key)
{
    (void)redis_int(script_proc, "DEL weir:{t}:%s", key);
    EXPECT_STR("OK", redis_text(script_proc, "SET weir:{t}:%s x", key));
}

void script_expect_untouched(const char *key_names, void (*prepare)(void),
                             const char *(*call)(void))
{
    char before[48], key[16];

    for (size_t len; (len = strcspn(key_names, " ")) > 0; key_names += len) {
        (void)snprintf(key, sizeof(key), "%.*s", (int)len, key_names);
        (void)script_text("FLUSHALL");
        prepare();
        script_poison(key);
        (void)snprintf(before, sizeof(before), "%s",
                       redis_text(script_proc, "EVAL %s 0", digest));
        EXPECT_CONTAINS("WRONGTYPE", call());
        if (strcmp(before, redis_text(script_proc, "EVAL %s 0", digest)) != 0)
            EXPECT_STR("", key); /* of another type, and others changed */
        len += key_names[len] == ' ';
    }
}
