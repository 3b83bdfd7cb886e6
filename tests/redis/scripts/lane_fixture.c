/* SPDX-License-Identifier: MIT */
#include "tests/redis/scripts/lane_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/pack.h"
#include "core/text.h"

enum { WORDS_MAX = 1400, WORD_CAP = 48 };

const struct lane_fault *lane_fault;
struct lane_held lane_held[LANE_JOBS];
int lane_claimed[1024];
int lane_claimed_count;
long long lane_next_us, lane_token;
redisReply *lane_reply;

static redisContext *context;
static const char *words[WORDS_MAX];
static size_t lens[WORDS_MAX], word_count;
static char copies[WORDS_MAX][WORD_CAP];
static struct weir__buf text_of_script;

static void stop(void)
{
    freeReplyObject(lane_reply);
    redisFree(context);
    weir__buf_fini(&text_of_script);
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

/* With the fault wherever the script has its text: it may include a file more
 * than once. */
static void put_script(const struct weir__script *script)
{
    const char *from = script->text, *at;
    struct weir__buf *to = &text_of_script;

    if (lane_fault == NULL || lane_fault->script != script) {
        put_bytes(script->text, script->len);
        return;
    }
    at = strstr(from, lane_fault->find);
    if (at == NULL)
        EXPECT_STR("in the script", lane_fault->find);
    to->len = 0;
    for (; at != NULL; at = strstr(from, lane_fault->find)) {
        weir__buf_append(to, from, (size_t)(at - from));
        weir__buf_append(to, lane_fault->replace, strlen(lane_fault->replace));
        from = at + strlen(lane_fault->find);
    }
    weir__buf_append(to, from, script->len - (size_t)(from - script->text));
    put_bytes(to->ptr, to->len);
}

/* `names` are keys with blanks between; `packs` more will come. */
static void begin(const struct weir__script *script, const char *names,
                  size_t packs)
{
    char count[24], name[24];
    size_t keys = 1;

    if (context == NULL) {
        context = redisConnectUnix(redis_socket(script_proc));
        EXPECT_TRUE(context != NULL && context->err == 0);
        test_at_end(stop);
    }
    for (const char *at = names; *at != '\0'; at++)
        keys += *at == ' ';
    word_count = 0;
    put("EVAL");
    put_script(script);
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

    freeReplyObject(lane_reply);
    lane_reply = redisCommandArgv(context, (int)word_count, words, lens);
    EXPECT_TRUE(lane_reply != NULL);
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

/* --- claims --------------------------------------------------------------- */

/* The job that is there; -1: there is none. */
static int job_at(const char *node)
{
    char seq[13];
    const char *id;

    (void)snprintf(seq, sizeof(seq), "%.12s", node);
    id = redis_text(script_proc, "EVAL %s 1 weir:{t}:ids %s",
                    "local all = redis.call('HGETALL', KEYS[1]) "
                    "for i = 2, #all, 2 do if all[i] == ARGV[1] then "
                    "return all[i - 1] end end",
                    seq);
    return id == NULL || id[0] != 'j' ? -1 : (int)strtol(id + 1, NULL, 10);
}

/* Several are told as one where they came as plain packs. */
static size_t note_node(const redisReply *node, long long told, char *text,
                        size_t cap)
{
    int job = job_at(node->str);

    if (job < 0 || job >= LANE_JOBS)
        return (size_t)snprintf(text, cap, " ?%s", node->str);
    lane_claimed[lane_claimed_count++] = job;
    (void)snprintf(lane_held[job].seq, 13, "%.12s", node->str);
    lane_held[job].token = lane_token;
    lane_held[job].due = told / 256;
    lane_held[job].state = told % 256;
    return (size_t)snprintf(text, cap, told % 256 < 2 ? " %d" : " %d+%d", job,
                            (int)(told % 256) / 2);
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

static void note_verdict(struct lists *lists, int job, const char *verdict,
                         const char *node)
{
    uint64_t token = (uint64_t)lane_held[job].token;

    if (strcmp(verdict, "back") == 0) {
        weir__pack_array(&lists->back, 4);
        put_str(&lists->back, node);
        weir__pack_uint(&lists->back, token);
        weir__pack_uint(&lists->back, (uint64_t)lane_held[job].due);
        put_str(&lists->back, "");
        return;
    }
    weir__pack_array(&lists->nodes, 5);
    weir__pack_uint(&lists->nodes, 11);
    put_str(&lists->nodes, node);
    weir__pack_uint(&lists->nodes, token);
    put_str(&lists->nodes, id_of(job)); /* of a small part, and so its id */
    put_str(&lists->nodes, "");
    if (strcmp(verdict, "dead") == 0) {
        weir__pack_array(&lists->ends, 3);
        weir__pack_uint(&lists->ends, 0);
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
        weir__pack_uint(&lists->moves, 0);
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
    char node[17];
    const char *text;

    (void)snprintf(node, sizeof(node), "%s0000", lane_held[job].seq);
    note_verdict(&lists, job, verdict, node);
    weir__pack_array(&lists.closed, 1);
    weir__pack_uint(&lists.closed, (uint64_t)lane_held[job].token);
    begin(&weir__script_delay_settle,
          "run lease ids meta wait dead rec idle held due", 2);
    put_copy("weir:{t}:p:", lane_held[job].seq);
    put("weir:{t}:absent");
    put("t");
    put_list(&lists.nodes);
    put_list(&lists.back);
    put_list(&lists.closed);
    put_list(&lists.moves);
    put_list(&lists.ends);
    put("9");
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

    (void)snprintf(node, sizeof(node), "%s0000", seq_of(job));
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
    char seqs[64][13];

    for (int i = 0; i < count && i < 64; i++)
        (void)snprintf(seqs[i], 13, "%s", seq_of(jobs[i]));
    begin(&weir__script_delay_purge, "wait run lease ids meta held due",
          (size_t)count + 1);
    for (int i = 0; i < count; i++)
        put_copy("weir:{t}:p:", seqs[i]);
    put("weir:{t}:absent");
    for (int i = 0; i < count; i++)
        put_copy(seqs[i], "0000");
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
