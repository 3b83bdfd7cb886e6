/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/lane_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/redis/pack.h"
#include "core/text.h"

enum { WORDS_MAX = 1400, WORD_CAP = 48, PACK_MOST = 64 };

const struct lane_fault *lane_fault;
struct lane_held lane_held[LANE_JOBS];
int lane_claimed[1024];
int lane_claimed_count;
long long lane_next_us, lane_token;
redisReply *lane_reply;

static const char *words[WORDS_MAX];
static size_t lens[WORDS_MAX], word_count;
static char copies[WORDS_MAX][WORD_CAP];
static const struct weir__script *called;
static char faulty_sha1[41]; /* "": not loaded yet */

static void stop(void)
{
    freeReplyObject(lane_reply);
}

/* --- calls ---------------------------------------------------------------- */

static void put_bytes(const void *bytes, size_t len)
{
    EXPECT_TRUE(word_count < WORDS_MAX);
    words[word_count] = bytes;
    lens[word_count++] = len;
}

static void put(const char *text)
{
    put_bytes(text, strlen(text));
}

/* The text is kept until the call. */
static void put_copy(const char *head, const char *text)
{
    char *copy = copies[word_count];

    (void)snprintf(copy, WORD_CAP, "%.16s%.16s", head, text);
    put(copy);
}

static bool has_fault(const struct weir__script *script)
{
    return lane_fault != NULL && lane_fault->script == script;
}

/* With the fault wherever the script has its text: it may include a file more
 * than once. */
static void write_text(struct weir__buf *to, const struct weir__script *script)
{
    const char *from = script->text, *at = NULL;

    if (has_fault(script) && (at = strstr(from, lane_fault->find)) == NULL) {
        printf("  not in the script: %s\n", lane_fault->find);
        (void)fflush(stdout);
        _exit(2); /* 1 would say that a difference was found */
    }
    for (; at != NULL; at = strstr(from, lane_fault->find)) {
        weir__buf_append(to, from, (size_t)(at - from));
        weir__buf_append(to, lane_fault->replace, strlen(lane_fault->replace));
        from = at + strlen(lane_fault->find);
    }
    weir__buf_append(to, from, script->len - (size_t)(from - script->text));
}

/* The server does not know the script of the call. */
static void load(void)
{
    struct weir__buf text = {0};
    redisReply *reply;

    write_text(&text, called);
    reply =
        redis_words(script_proc, 3,
                    (const char *[]){"SCRIPT", "LOAD", (const char *)text.ptr},
                    (const size_t[]){6, 4, text.len});
    EXPECT_INT(REDIS_REPLY_STRING, reply->type);
    if (has_fault(called))
        lens[1] = (size_t)snprintf(faulty_sha1, sizeof(faulty_sha1), "%s",
                                   reply->str);
    freeReplyObject(reply);
    weir__buf_fini(&text);
}

/* `names` are keys with blanks between; `packs` more will come. */
static void begin(const struct weir__script *script, const char *names,
                  size_t packs)
{
    char count[24], name[24];
    size_t keys = 1;

    for (const char *at = names; *at != '\0'; at++)
        keys += *at == ' ';
    word_count = 0;
    called = script;
    put("EVALSHA");
    put(has_fault(script) ? faulty_sha1 : script->sha1);
    (void)snprintf(count, sizeof(count), "%zu", keys + packs);
    put_copy("", count);
    for (size_t len; *names != '\0'; names += len + (names[len] == ' ')) {
        len = strcspn(names, " ");
        (void)snprintf(name, sizeof(name), "%.*s", (int)len, names);
        put_copy("weir:{t}:", name);
    }
}

static const char *call(void)
{
    static char text[8192];
    size_t len = 0;

    if (lane_reply == NULL)
        test_at_end(stop);
    freeReplyObject(lane_reply);
    lane_reply = redis_words(script_proc, word_count, words, lens);
    if (lane_reply->type == REDIS_REPLY_ERROR &&
        strncmp(lane_reply->str, "NOSCRIPT", 8) == 0) {
        load();
        freeReplyObject(lane_reply);
        lane_reply = redis_words(script_proc, word_count, words, lens);
    }
    if (lane_reply->type != REDIS_REPLY_ARRAY)
        return lane_reply->str == NULL ? "?" : lane_reply->str;
    text[0] = '\0';
    for (size_t i = 0; i < lane_reply->elements && len < 8000; i++) {
        const redisReply *one = lane_reply->element[i];

        if (one->type == REDIS_REPLY_INTEGER)
            len += (size_t)snprintf(text + len, sizeof(text) - len, " %lld",
                                    one->integer);
        else
            len += (size_t)snprintf(text + len, sizeof(text) - len, " %.100s",
                                    one->str == NULL ? "nil" : one->str);
    }
    return text[0] == ' ' ? text + 1 : text;
}

/* --- jobs ----------------------------------------------------------------- */

static const char *id_of(int job)
{
    static char id[16];

    (void)snprintf(id, sizeof(id), "j%d", job);
    return id;
}

/* Where it is now, or was when it was claimed. */
static const char *seq_of(int job)
{
    static char seq[13];
    const char *place =
        redis_text(script_proc, "HGET weir:{t}:ids %s", id_of(job));

    if (place != NULL && strlen(place) == 12)
        (void)snprintf(seq, sizeof(seq), "%s", place);
    else
        (void)snprintf(seq, sizeof(seq), "%012d", job);
    return seq;
}

/* A function `ids_of` of a pack's name, its header length, too; and `bounds` of
 * a node. */
#define LUA_PACKS                                                    \
    "local function ids_of(seq) "                                    \
    "  local bytes = redis.call('GET', 'weir:{t}:p:' .. seq) or '' " \
    "  if #bytes < 8 then return {}, 9 end "                         \
    "  local len = bytes:byte(6) + bytes:byte(7) * 256 "             \
    "  return cmsgpack.unpack(bytes:sub(9, len)), len end "          \
    "local function bounds(node) "                                   \
    "  local a, b, c, d = node:byte(13, 16) "                        \
    "  return a * 16 + b - 816, c * 16 + d - 816 end "

const char *lane_node(const char *key, int job)
{
    static const char find[] =
        LUA_PACKS "local seq = redis.call('HGET', 'weir:{t}:ids', ARGV[2]) "
                  "if not seq or #seq < 12 then return '' end "
                  "local nodes = redis.call('ZRANGE', ARGV[1], 0, -1) "
                  "for _, node in ipairs(nodes) do "
                  "  if node:sub(1, 12) == seq then "
                  "    local ids, lo, hi = ids_of(seq), bounds(node) "
                  "    for slot = lo, hi do "
                  "      if ids[slot + 1] == ARGV[2] then return node end "
                  "    end end end "
                  "return ''";

    return redis_text(script_proc, "EVAL %s 0 weir:{t}:%s %s", find, key,
                      id_of(job));
}

bool lane_runs(int job)
{
    const char *node = lane_node("run", job);

    return node[0] != '\0' &&
           redis_int(script_proc, "EVAL %s 0 %s",
                     "return math.floor(redis.call('ZSCORE', 'weir:{t}:run', "
                     "ARGV[1]) + 0)",
                     node) == lane_held[job].token;
}

const char *lane_add_under(int job, const char *when, const char *key,
                           const char *rule)
{
    struct weir__pack_job one = {.id = weir__slice_str(id_of(job)),
                                 .record = weir__slice_str("r")};
    struct weir__buf pack = {0};
    char seq[16], number[24];
    const char *text;

    weir__pack_write(&pack, &one, 1, true);
    (void)snprintf(seq, sizeof(seq), "%012d", job);
    (void)snprintf(number, sizeof(number), "%lld", script_number++);
    begin(&weir__script_delay_add_keyed,
          "wait ids meta idle seen unique due absent", 1);
    put_copy("weir:{t}:p:", seq);
    put("t");
    put("delay");
    put("call_slot");
    put(number);
    put(id_of(job));
    put_bytes(pack.ptr, pack.len);
    put(when);
    put(key);
    put(rule);
    text = call();
    weir__buf_fini(&pack);
    return text;
}

const char *lane_add(int job, const char *when)
{
    return lane_add_under(job, when, "", "");
}

const char *lane_add_pack(int job, int count, const char *when)
{
    struct weir__pack_job jobs[PACK_MOST];
    char ids[PACK_MOST][16], seq[16], numbers[3][24];
    struct weir__buf pack = {0};
    struct weir__pack_size size;

    EXPECT_TRUE(count <= PACK_MOST);
    for (int i = 0; i < count; i++) {
        (void)snprintf(ids[i], sizeof(ids[i]), "%s", id_of(job + i));
        jobs[i] = (struct weir__pack_job){.id = weir__slice_str(ids[i]),
                                          .record = weir__slice_str("r")};
    }
    size = weir__pack_measure(jobs, (size_t)count, true);
    weir__pack_write(&pack, jobs, (size_t)count, true);
    (void)snprintf(seq, sizeof(seq), "%012d", job);
    (void)snprintf(numbers[0], sizeof(numbers[0]), "%lld.0", script_number++);
    (void)snprintf(numbers[1], sizeof(numbers[1]), "%d", count);
    (void)snprintf(numbers[2], sizeof(numbers[2]), "%zu", size.header_len);
    word_count = 0;
    put("SET");
    put_copy("weir:{t}:p:", seq);
    put_bytes(pack.ptr, pack.len);
    put("PX");
    put("60000");
    (void)call();
    weir__buf_fini(&pack);
    begin(&weir__script_delay_add, "wait ids meta idle seen", 1);
    put_copy("weir:{t}:p:", seq);
    put("t");
    put("delay");
    put("call_slot");
    for (size_t i = 0; i < 3; i++)
        put(numbers[i]);
    put(when);
    return call();
}

/* --- claims --------------------------------------------------------------- */

/* The ids of a node's slots, with blanks between; "?": one is not there. */
static const char *ids_at(const char *node)
{
    return redis_text(
        script_proc, "EVAL %s 0 %s",
        LUA_PACKS
        "local seq, told = ARGV[1]:sub(1, 12), {} "
        "local ids, lo, hi = ids_of(seq), bounds(ARGV[1]) "
        "for slot = lo, hi do "
        "  local id = ids[slot + 1] or '?' "
        "  local is_there = redis.call('HGET', 'weir:{t}:ids', id) == seq "
        "  told[#told + 1] = is_there and id or '?' end "
        "return table.concat(told, ' ')",
        node);
}

/* Its jobs. */
static size_t note_node(const redisReply *node, long long told, char *text,
                        size_t cap)
{
    const char *ids = ids_at(node->str);
    unsigned slot =
        (unsigned)(node->str[12] - '0') * 16 + (unsigned)(node->str[13] - '0');
    size_t len = 0;

    for (char *at = NULL; *ids != '\0'; ids = at + (*at == ' ')) {
        int job = *ids == 'j' ? (int)strtol(ids + 1, &at, 10) : -1;

        if (job < 0 || job >= LANE_JOBS || lane_claimed_count >= 1024)
            return len +
                   (size_t)snprintf(text + len, cap - len, " ?%s", node->str);
        lane_claimed[lane_claimed_count++] = job;
        lane_held[job] = (struct lane_held){.slot = slot++,
                                            .token = lane_token,
                                            .due = told / 256,
                                            .state = told % 256};
        (void)snprintf(lane_held[job].node, 17, "%.16s", node->str);
        len += (size_t)snprintf(text + len, cap - len,
                                told % 256 < 2 ? " %d" : " %d+%d", job,
                                (int)(told % 256) / 2);
    }
    return len;
}

const char *lane_claim_as(struct lane_claim claim)
{
    static char text[8192];
    size_t len = 0;
    redisReply *reply;

    begin(&weir__script_delay_claim,
          "wait run lease ids meta idle held due absent", 0);
    put(claim.room);
    put(claim.lease_ms);
    put("1000");
    put(claim.worker);
    put("0");
    put("delay");
    put("");
    put("");
    put(claim.suspects);
    put(claim.limits);
    put("0");
    lane_claimed_count = 0;
    lane_next_us = -2;
    (void)call();
    reply = lane_reply;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 5)
        return reply->str == NULL ? "?" : reply->str;
    lane_token = reply->element[1]->integer;
    lane_next_us = reply->element[2]->integer;
    text[0] = text[1] = '\0';
    for (size_t i = 5; i + 1 < reply->elements && len < 8000; i += 2)
        len += note_node(reply->element[i], reply->element[i + 1]->integer,
                         text + len, sizeof(text) - len);
    return text + (text[0] == ' ');
}

const char *lane_claim(const char *room, const char *limits)
{
    return lane_claim_as((struct lane_claim){"w1", room, "600000", limits, ""});
}

/* --- verdicts ------------------------------------------------------------- */

struct lists {
    struct weir__buf nodes, back, closed, moves, ends;
};

static void put_str(struct weir__buf *buf, const char *text)
{
    weir__pack_str(buf, text, strlen(text));
}

/* What is said of the ids of its node: the one, or how long the header is. */
static void put_header(struct weir__buf *nodes, int job)
{
    const char *node = lane_held[job].node;

    if (strncmp(node + 12, node + 14, 2) == 0)
        put_str(nodes, id_of(job));
    else
        weir__pack_uint(nodes, (uint64_t)redis_int(
                                   script_proc, "EVAL %s 0 %s",
                                   LUA_PACKS "local _, len = ids_of("
                                             "ARGV[1]:sub(1, 12)) return len",
                                   node));
}

static void note_verdict(struct lists *lists, int job, const char *verdict)
{
    uint64_t token = (uint64_t)lane_held[job].token;
    const char *node = lane_held[job].node;
    char slot = (char)lane_held[job].slot;

    if (strcmp(verdict, "back") == 0 || strcmp(verdict, "spare") == 0) {
        weir__pack_array(&lists->back, 4);
        put_str(&lists->back, node);
        weir__pack_uint(&lists->back, token);
        weir__pack_uint(&lists->back, (uint64_t)lane_held[job].due);
        weir__pack_str(&lists->back, &slot, 1);
        return;
    }
    weir__pack_array(&lists->nodes, 5);
    weir__pack_uint(&lists->nodes, 11);
    put_str(&lists->nodes, node);
    weir__pack_uint(&lists->nodes, token);
    put_header(&lists->nodes, job);
    weir__pack_str(&lists->nodes, &slot, 1);
    if (strcmp(verdict, "dead") == 0) {
        weir__pack_array(&lists->ends, 3);
        weir__pack_uint(&lists->ends, lane_held[job].slot);
        put_str(&lists->ends, id_of(job));
        put_str(&lists->ends, "record");
    } else if (strcmp(verdict, "done") != 0) {
        weir__pack_array(&lists->moves, 7);
        put_str(&lists->moves, "r");
        weir__pack_uint(&lists->moves, 1);
        put_str(&lists->moves, id_of(job));
        put_str(&lists->moves, verdict);
        weir__pack_uint(&lists->moves, 1);
        weir__pack_array(&lists->moves, 1);
        weir__pack_uint(&lists->moves, lane_held[job].slot);
        put_str(&lists->moves, "");
    }
}

static void put_list(struct weir__buf *list)
{
    put_bytes(list->len == 0 ? "" : (const char *)list->ptr, list->len);
}

const char *lane_settle_as(int job, const char *verdict, const char *flags)
{
    struct lists lists = {0};
    char seq[13];
    const char *text;

    (void)snprintf(seq, sizeof(seq), "%.12s", lane_held[job].node);
    note_verdict(&lists, job, verdict);
    weir__pack_array(&lists.closed, 1);
    weir__pack_uint(&lists.closed, (uint64_t)lane_held[job].token);
    begin(&weir__script_delay_settle,
          "run lease ids meta wait dead rec idle held due", 2);
    put_copy("weir:{t}:p:", seq);
    put("weir:{t}:absent");
    put("t");
    put_list(&lists.nodes);
    put_list(&lists.back);
    put_list(&lists.closed);
    put_list(&lists.moves);
    put_list(&lists.ends);
    put("9");
    if (strcmp(verdict, "spare") == 0) {
        weir__buf_reset(&lists.ends); /* was none */
        weir__pack_array(&lists.ends, 1);
        weir__pack_uint(&lists.ends, SCRIPT_BACK + lane_held[job].slot);
        put_list(&lists.ends);
    }
    put(flags);
    text = call();
    weir__buf_fini(&lists.nodes);
    weir__buf_fini(&lists.back);
    weir__buf_fini(&lists.closed);
    weir__buf_fini(&lists.moves);
    weir__buf_fini(&lists.ends);
    return text;
}

const char *lane_settle(int job, const char *verdict)
{
    return lane_settle_as(job, verdict, "4");
}

/* --- times --------------------------------------------------------------- */

/* Without what a score has for its region or level. */
static long long score_ms(const char *key, const char *member)
{
    return redis_int(
        script_proc, "EVAL %s 1 weir:{t}:%s %s",
        "return math.floor(redis.call('ZSCORE', KEYS[1], ARGV[1]) % 2 ^ 44)",
        key, member);
}

long long lane_due_ms(int job)
{
    char node[17];

    (void)snprintf(node, sizeof(node), "%s", lane_node("wait", job));
    return score_ms("wait", node);
}

long long lane_turn_ms(const char *lane)
{
    return score_ms("turns", lane);
}

long long lane_now_ms(void)
{
    return redis_int(script_proc, "EVAL %s 0",
                     "local t = redis.call('TIME') return t[1] * 1000 + "
                     "math.floor(t[2] / 1000)");
}

void lane_expect_told(long long ms, long long from_ms, long long later_ms)
{
    EXPECT_INT(ms * 1000, lane_reply->element[0]->integer + lane_next_us);
    EXPECT_TRUE(ms >= from_ms + later_ms);
    EXPECT_TRUE(ms <= lane_now_ms() + later_ms);
}

/* --- the rest ------------------------------------------------------------- */

const char *lane_slot(const char *verb, int job, const char *when)
{
    char seq[13];

    (void)snprintf(seq, sizeof(seq), "%s", seq_of(job));
    begin(&weir__script_delay_slot, "wait run ids meta", 6);
    put_copy("weir:{t}:p:", seq);
    put("weir:{t}:dead");
    put("weir:{t}:rec");
    put("weir:{t}:idle");
    put("weir:{t}:due");
    put("weir:{t}:absent");
    put(verb);
    put(id_of(job));
    put(seq);
    put("");
    put("t");
    put(when);
    (void)call();
    return lane_reply->type == REDIS_REPLY_ARRAY ? lane_reply->element[0]->str
                                                 : lane_reply->str;
}

const char *lane_purge(const int *jobs, int count)
{
    char seqs[64][13], nodes[64][17];

    for (int i = 0; i < count && i < 64; i++) {
        (void)snprintf(seqs[i], 13, "%s", seq_of(jobs[i]));
        (void)snprintf(nodes[i], 17, "%s", lane_node("wait", jobs[i]));
        if (nodes[i][0] == '\0')
            (void)snprintf(nodes[i], 17, "%s", lane_node("run", jobs[i]));
    }
    begin(&weir__script_delay_purge, "wait run lease ids meta held due",
          (size_t)count + 1);
    for (int i = 0; i < count; i++)
        put_copy("weir:{t}:p:", seqs[i]);
    put("weir:{t}:absent");
    for (int i = 0; i < count; i++)
        put(nodes[i]);
    return call();
}

const char *lane_drop(void)
{
    begin(&weir__script_store_drop,
          "ids wait run dead rec lease meta held due seen unique started "
          "options idle",
          0);
    put("t");
    put("3");
    return call();
}

void lane_expire(long long token)
{
    (void)redis_int(script_proc, "ZADD weir:{t}:lease XX 1 %lld", token);
}

void lane_pass_ms(long long ms)
{
    (void)redis_text(
        script_proc, "EVAL %s 0 %lld",
        "local turns = redis.call('ZRANGE', 'weir:{t}:turns', '0', '-1') "
        "for _, lane in ipairs(turns) do redis.call('ZINCRBY', "
        "'weir:{t}:turns', -ARGV[1], lane) end "
        "local rates = redis.call('HGETALL', 'weir:{t}:rates') "
        "for i = 1, #rates, 2 do redis.call('HSET', 'weir:{t}:rates', "
        "rates[i], string.format('%.0f', rates[i + 1] - ARGV[1] * 1000)) end "
        "return 'OK'",
        ms);
}
