/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/script_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "adapters/redis/resp.h"
#include "adapters/redis/script.h"
#include "tests/chaos/model/model.h"
#include "tests/model/listen.h"

static const struct weir__script *const scripts[SCRIPTS] = {
    [SCRIPT_ADD] = &weir__script_delay_add,
    [SCRIPT_ADD_ONE] = &weir__script_delay_add_one,
    [SCRIPT_ADD_KEYED] = &weir__script_delay_add_keyed,
    [SCRIPT_CLAIM] = &weir__script_delay_claim,
    [SCRIPT_SETTLE] = &weir__script_delay_settle,
    [SCRIPT_SETTLE_ONE] = &weir__script_delay_settle_one,
    [SCRIPT_RENEW] = &weir__script_delay_renew,
    [SCRIPT_SLOT] = &weir__script_delay_slot,
    [SCRIPT_STATS] = &weir__script_delay_stats,
    [SCRIPT_LATENESS] = &weir__script_store_lateness,
    [SCRIPT_REQUEUE] = &weir__script_delay_requeue,
    [SCRIPT_FORGET] = &weir__script_delay_forget,
    [SCRIPT_PURGE] = &weir__script_delay_purge,
    [SCRIPT_PAUSE] = &weir__script_store_pause,
    [SCRIPT_SET] = &weir__script_store_set,
    [SCRIPT_START] = &weir__script_delay_start,
    [SCRIPT_RECALL] = &weir__script_delay_recall,
    [SCRIPT_UNDELIVERABLE] = &weir__script_delay_undeliverable,
    [SCRIPT_CRON] = &weir__script_delay_cron,
    [SCRIPT_PULL] = &weir__script_delay_pull,
    [SCRIPT_PUSH] = &weir__script_delay_push,
    [SCRIPT_LIST_CLAIM] = &weir__script_external_claim_list,
    [SCRIPT_LIST_SETTLE] = &weir__script_external_settle,
    [SCRIPT_LIST_STATS] = &weir__script_external_stats,
    [SCRIPT_BOUNDED_ADD] = &weir__script_bounded_add,
    [SCRIPT_BOUNDED_CLAIM] = &weir__script_bounded_claim,
    [SCRIPT_BOUNDED_SETTLE] = &weir__script_bounded_settle,
    [SCRIPT_BOUNDED_STATS] = &weir__script_bounded_stats,
};

static _Noreturn void give_up(const char *what, const char *detail)
{
    printf("  script_call: %s: %s\n", what, detail);
    (void)fflush(stdout); /* the test has failed already */
    _exit(2);             /* 1 would say that a difference was found */
}

/* --- loading ------------------------------------------------------------ */

/* Replace the first of them; false: there is none. */
static bool replace(struct text *text, const char *find, const char *with)
{
    const char *at = strstr(text_of(text), find);
    struct text result = {0};

    if (at == NULL)
        return false;
    text_add(&result, text->ptr, (size_t)(at - text->ptr));
    text_str(&result, with);
    text_str(&result, at + strlen(find));
    text_free(text);
    *text = result;
    return true;
}

/* It is in the text exactly once. */
static void plant(struct text *text, const struct fault *fault)
{
    const char *at = strstr(text_of(text), fault->find);

    if (at == NULL || strstr(at + 1, fault->find) != NULL)
        give_up("not in the script exactly once", fault->find);
    (void)replace(text, fault->find, fault->replace);
}

static void load(struct caller *caller, enum script script)
{
    const struct fault *fault = caller->fault;
    struct text text = {0};
    redisReply *reply;

    text_add(&text, scripts[script]->text, scripts[script]->len);
    /* No field of `started` goes at random. */
    (void)replace(&text, "count <= 1000 then return", "true then return");
    (void)replace(&text, "call('HLEN', started) <= 1000", "true");
    if (fault != NULL && fault->script == script)
        plant(&text, fault);
    call_command(caller, "SCRIPT", 2);
    call_str(caller, "LOAD");
    call_str(caller, text_of(&text));
    call_queue(caller);
    reply = call_reply(caller);
    if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != 40)
        give_up("the server does not load", reply == NULL ? "" : reply->str);
    memcpy(caller->sha[script], reply->str, 41);
    listen_alias(caller->listener, caller->sha[script], scripts[script]);
    freeReplyObject(reply);
    text_free(&text);
}

void caller_open(struct caller *caller, const struct fault *fault)
{
    *caller = (struct caller){.server = server_new(0, 1), .fault = fault};
    if (caller->server == NULL)
        give_up("no server", "out of memory");
    caller->link = local_open(caller->server);
    caller->listener = listen_open(caller->server, "t");
    for (enum script script = 0; script < SCRIPT_RARE; script++)
        load(caller, script);
}

void caller_close(struct caller *caller)
{
    weir__buf_fini(&caller->bytes);
    local_close(caller->link);
    listen_close(caller->listener);
    server_free(caller->server);
}

/* --- writing ------------------------------------------------------------ */

void call_script(struct caller *caller, enum script script, size_t keys,
                 size_t args)
{
    if (caller->sha[script][0] == '\0')
        load(caller, script);
    weir__resp_command(&caller->bytes, 3 + keys + args);
    weir__resp_str(&caller->bytes, "EVALSHA");
    weir__resp_str(&caller->bytes, caller->sha[script]);
    weir__resp_int(&caller->bytes, (int64_t)keys);
}

void call_command(struct caller *caller, const char *name, size_t args)
{
    weir__resp_command(&caller->bytes, 1 + args);
    weir__resp_str(&caller->bytes, name);
}

void call_topic_keys(struct caller *caller, char topic, const char *names)
{
    while (*names != '\0') {
        size_t len = strcspn(names, " ");
        char key[64];

        (void)snprintf(key, sizeof(key), "weir:{%c}:%.*s", topic, (int)len,
                       names);
        weir__resp_str(&caller->bytes, key);
        names += len;
        names += strspn(names, " ");
    }
}

void call_keys(struct caller *caller, const char *names)
{
    call_topic_keys(caller, 't', names);
}

void call_topic_pack_key(struct caller *caller, char topic, uint32_t pack)
{
    char key[16 + SEQ_LEN];

    (void)snprintf(key, sizeof(key), "weir:{%c}:p:", topic);
    seq_text(pack, key + strlen(key));
    weir__resp_str(&caller->bytes, key);
}

void call_out_key(struct caller *caller, uint32_t pack)
{
    char key[16 + SEQ_LEN] = "weir:{t}:o:";

    seq_text(pack, key + strlen(key));
    weir__resp_str(&caller->bytes, key);
}

void call_pack_key(struct caller *caller, uint32_t pack)
{
    call_topic_pack_key(caller, 't', pack);
}

void call_seq_key(struct caller *caller, const char *seq)
{
    char key[16 + SEQ_LEN];

    (void)snprintf(key, sizeof(key), "weir:{t}:p:%s", seq);
    weir__resp_str(&caller->bytes, key);
}

void call_stage(struct caller *caller, const char *seq,
                const struct weir__buf *bytes)
{
    call_command(caller, "SET", 5);
    call_seq_key(caller, seq);
    call_bytes(caller, bytes);
    call_str(caller, "NX");
    call_str(caller, "PX");
    call_int(caller, STAGED_MS);
}

void call_claim(struct caller *caller, unsigned room, unsigned most_nodes,
                const char *worker)
{
    call_script(caller, SCRIPT_CLAIM, 9, 7);
    call_keys(caller, "wait run lease ids meta idle held due absent");
    call_int(caller, room);
    call_int(caller, 3600000);
    call_int(caller, most_nodes);
    call_str(caller, worker);
    call_int(caller, 0);
    call_str(caller, "delay");
    call_str(caller, "");
    call_queue(caller);
}

void call_str(struct caller *caller, const char *str)
{
    weir__resp_str(&caller->bytes, str);
}

void call_int(struct caller *caller, int64_t value)
{
    weir__resp_int(&caller->bytes, value);
}

void call_bytes(struct caller *caller, const struct weir__buf *buf)
{
    weir__resp_bytes(&caller->bytes, weir__buf_slice(buf));
}

void call_queue(struct caller *caller)
{
    if (caller->bytes.failed)
        give_up("a command", "out of memory");
    local_give(caller->link, caller->bytes.ptr, caller->bytes.len);
    weir__buf_reset(&caller->bytes);
    caller->pending++;
}

/* --- reading ------------------------------------------------------------ */

struct redisReply *call_reply(struct caller *caller)
{
    redisReply *reply = NULL;

    for (; caller->pending > 0; caller->pending--) {
        freeReplyObject(reply);
        reply = local_take(caller->link);
        if (reply == NULL)
            give_up("a command", "no reply");
    }
    return reply;
}

void reply_text(const struct redisReply *reply, struct text *ret_text)
{
    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        text_int(ret_text, reply->integer);
        break;
    case REDIS_REPLY_NIL:
        text_str(ret_text, "nil");
        break;
    case REDIS_REPLY_ARRAY:
        text_str(ret_text, "(");
        for (size_t i = 0; i < reply->elements; i++) {
            if (i > 0)
                text_str(ret_text, " ");
            reply_text(reply->element[i], ret_text);
        }
        text_str(ret_text, ")");
        break;
    default:
        if (reply->len == 0)
            text_str(ret_text, "''");
        text_bytes(ret_text, reply->str, (size_t)reply->len);
        break;
    }
}

void call_answer(struct caller *caller, struct text *ret_text)
{
    struct redisReply *reply = call_reply(caller);

    reply_text(reply, ret_text);
    freeReplyObject(reply);
}
