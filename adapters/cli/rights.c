/* SPDX-License-Identifier: MIT */

/* The commands that weir calls, and the rule that allows them. */

#include "adapters/cli/rights.h"

#include "core/assert.h"
#include "core/error.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* CONFIG GET tells doctor what the server keeps; but it tells the password of
 * the server as well. SCAN finds what doctor --mend removes; but it tells the
 * names of all keys. A server before 7.2 knows no WAITAOF, and takes no rule
 * with what it does not know. */
const struct weir__right weir__rights[] = {
    {"AUTH x", WEIR__RIGHT_BOTH},
    {"PING", WEIR__RIGHT_BOTH},
    {"SELECT 0", WEIR__RIGHT_ALWAYS},
    {"CLIENT|SETNAME x", WEIR__RIGHT_BOTH},
    {"CLIENT|ID", WEIR__RIGHT_ALWAYS},
    {"TIME", WEIR__RIGHT_ALWAYS},
    {"INFO", WEIR__RIGHT_ALWAYS},
    {"ROLE", WEIR__RIGHT_ALWAYS},
    {"CLUSTER|NODES", WEIR__RIGHT_ALWAYS},
    {"CLUSTER|SLOTS", WEIR__RIGHT_ALWAYS},
    {"CONFIG|GET x", WEIR__RIGHT_BEYOND},
    {"SCAN 0", WEIR__RIGHT_BEYOND},
    {"SCRIPT|LOAD x", WEIR__RIGHT_ALWAYS},
    {"SCRIPT|EXISTS 0", WEIR__RIGHT_ALWAYS},
    {"EVALSHA 0 0", WEIR__RIGHT_ALWAYS},
    {"WAIT 0 1", WEIR__RIGHT_ALWAYS},
    {"WAITAOF 0 0 1", WEIR__RIGHT_BEYOND},
    {"SUBSCRIBE CHANNEL", WEIR__RIGHT_BOTH},
    {"PUBLISH CHANNEL x", WEIR__RIGHT_ALWAYS},
    {"SET KEY x NX PX 1", WEIR__RIGHT_ALWAYS},
    {"GET KEY", WEIR__RIGHT_ALWAYS},
    {"MGET KEY", WEIR__RIGHT_ALWAYS},
    {"DEL KEY", WEIR__RIGHT_ALWAYS},
    {"UNLINK KEY", WEIR__RIGHT_ALWAYS},
    {"EXISTS KEY", WEIR__RIGHT_ALWAYS},
    {"RENAME KEY KEY", WEIR__RIGHT_ALWAYS},
    {"RENAMENX KEY KEY", WEIR__RIGHT_ALWAYS},
    {"PERSIST KEY", WEIR__RIGHT_ALWAYS},
    {"PTTL KEY", WEIR__RIGHT_ALWAYS},
    {"GETRANGE KEY 0 1", WEIR__RIGHT_ALWAYS},
    {"SETRANGE KEY 0 x", WEIR__RIGHT_ALWAYS},
    {"SADD KEY x", WEIR__RIGHT_ALWAYS},
    {"SREM KEY x", WEIR__RIGHT_ALWAYS},
    {"SSCAN KEY 0", WEIR__RIGHT_ALWAYS},
    {"HGET KEY x", WEIR__RIGHT_ALWAYS},
    {"HMGET KEY x", WEIR__RIGHT_ALWAYS},
    {"HGETALL KEY", WEIR__RIGHT_ALWAYS},
    {"HKEYS KEY", WEIR__RIGHT_ALWAYS},
    {"HVALS KEY", WEIR__RIGHT_ALWAYS},
    {"HLEN KEY", WEIR__RIGHT_ALWAYS},
    {"HEXISTS KEY x", WEIR__RIGHT_ALWAYS},
    {"HRANDFIELD KEY", WEIR__RIGHT_ALWAYS},
    {"HSCAN KEY 0", WEIR__RIGHT_ALWAYS},
    {"HSET KEY x x", WEIR__RIGHT_ALWAYS},
    {"HSETNX KEY x x", WEIR__RIGHT_ALWAYS},
    {"HINCRBY KEY x 1", WEIR__RIGHT_ALWAYS},
    {"HDEL KEY x", WEIR__RIGHT_ALWAYS},
    {"LLEN KEY", WEIR__RIGHT_ALWAYS},
    {"LINDEX KEY 0", WEIR__RIGHT_ALWAYS},
    {"LSET KEY 0 x", WEIR__RIGHT_ALWAYS},
    {"LRANGE KEY 0 0", WEIR__RIGHT_ALWAYS},
    {"LPUSH KEY x", WEIR__RIGHT_ALWAYS},
    {"RPUSH KEY x", WEIR__RIGHT_ALWAYS},
    {"LPOP KEY", WEIR__RIGHT_ALWAYS},
    {"LTRIM KEY 0 0", WEIR__RIGHT_ALWAYS},
    {"ZADD KEY 0 x", WEIR__RIGHT_ALWAYS},
    {"ZREM KEY x", WEIR__RIGHT_ALWAYS},
    {"ZCARD KEY", WEIR__RIGHT_ALWAYS},
    {"ZCOUNT KEY 0 1", WEIR__RIGHT_ALWAYS},
    {"ZSCORE KEY x", WEIR__RIGHT_ALWAYS},
    {"ZMSCORE KEY x", WEIR__RIGHT_ALWAYS},
    {"ZRANDMEMBER KEY", WEIR__RIGHT_ALWAYS},
    {"ZRANGE KEY 0 1", WEIR__RIGHT_ALWAYS},
    {"ZRANGEBYSCORE KEY 0 1", WEIR__RIGHT_ALWAYS},
    {"ZREVRANGEBYSCORE KEY 1 0", WEIR__RIGHT_ALWAYS},
    {"ZPOPMIN KEY", WEIR__RIGHT_ALWAYS},
    {"ZSCAN KEY 0", WEIR__RIGHT_ALWAYS},
    {"ZREMRANGEBYRANK KEY 0 0", WEIR__RIGHT_ALWAYS},
    {"BLMOVE KEY KEY LEFT LEFT 1", WEIR__RIGHT_LIST},
    {"XADD KEY * x x", WEIR__RIGHT_STREAM},
    {"XDEL KEY 0-1", WEIR__RIGHT_STREAM},
    {"XLEN KEY", WEIR__RIGHT_STREAM},
    {"XRANGE KEY - +", WEIR__RIGHT_STREAM},
    {"XREAD STREAMS KEY 0-0", WEIR__RIGHT_STREAM},
    {"XREADGROUP GROUP x x STREAMS KEY >", WEIR__RIGHT_STREAM},
    {"XACK KEY x 0-1", WEIR__RIGHT_STREAM},
    {"XCLAIM KEY x x 1 0-1", WEIR__RIGHT_STREAM},
    {"XAUTOCLAIM KEY x x 1 0", WEIR__RIGHT_STREAM},
    {"XPENDING KEY x", WEIR__RIGHT_STREAM},
    {"XGROUP|CREATE KEY x 0", WEIR__RIGHT_STREAM},
    {"XGROUP|SETID KEY x 0", WEIR__RIGHT_STREAM},
    {"XINFO|GROUPS KEY", WEIR__RIGHT_STREAM},
    {"SENTINEL|GET-MASTER-ADDR-BY-NAME x", WEIR__RIGHT_SENTINEL},
    {"SENTINEL|SENTINELS x", WEIR__RIGHT_SENTINEL},
    {"SENTINEL|CKQUORUM x", WEIR__RIGHT_SENTINEL},
    {"MULTI", WEIR__RIGHT_ALWAYS},
    {"DISCARD", WEIR__RIGHT_ALWAYS},
    {NULL, WEIR__RIGHT_ALWAYS},
};

void weir__right_name(const struct weir__right *right,
                      char ret_name[WEIR__RIGHT_NAME_CAP])
{
    size_t len = strcspn(right->command, " ");

    WEIR_ASSERT(len < WEIR__RIGHT_NAME_CAP);
    for (size_t i = 0; i < len; i++)
        ret_name[i] = (char)tolower((unsigned char)right->command[i]);
    ret_name[len] = '\0';
}

/* --- the rule ------------------------------------------------------------ */

static void append(struct weir__buf *buf, const char *text)
{
    weir__buf_append(buf, text, strlen(text));
}

/* Blanks end a pattern, and redis-cli takes quotes for its own. */
static bool is_plain(const char *name)
{
    for (; *name != '\0'; name++)
        if (isgraph((unsigned char)*name) == 0 || strchr("'\"", *name) != NULL)
            return false;
    return true;
}

/* " ~KEY", and no other key. */
static int append_key(struct weir__buf *buf, const char *key,
                      struct weir_error *err)
{
    if (!is_plain(key))
        return weir__error_set(err, WEIR_EINVAL,
                               "the key \"%s\" cannot stand in an ACL rule: "
                               "give ~PATTERN by hand",
                               key);
    append(buf, " ~");
    for (; *key != '\0'; key++) {
        if (strchr("*?[]\\", *key) != NULL)
            append(buf, "\\");
        weir__buf_append(buf, key, 1);
    }
    return WEIR_OK;
}

/* Keys that are weir's own: of all topics, or of one. What workers tell of
 * themselves, and the names of topics, are in keys of their own. */
static void append_own(struct weir__buf *buf, const char *prefix,
                       const char *topic)
{
    static const char *const shared[] = {":topics", ":{weir:topics}:workers",
                                         ":producers"};

    append(buf, " ~");
    append(buf, prefix);
    if (topic == NULL) {
        append(buf, ":*");
        return;
    }
    append(buf, ":{");
    append(buf, topic);
    append(buf, "}:*");
    for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        append(buf, " ~");
        append(buf, prefix);
        append(buf, shared[i]);
    }
}

/* What the topics of the file need. */
static int append_topics(struct weir__buf *buf,
                         const struct weir__config *config, const char *only,
                         bool ret_has[], struct weir_error *err)
{
    for (size_t i = 0; config != NULL && i < config->topic_count; i++) {
        const struct weir__config_topic *topic = &config->topics[i];
        const struct weir__options *values = &topic->values;
        bool is_list = strcmp(values->kind, "list") == 0;
        int rc;

        if ((!is_list && strcmp(values->kind, "stream") != 0) ||
            (only != NULL && strcmp(topic->name, only) != 0))
            continue;
        ret_has[is_list ? WEIR__RIGHT_LIST : WEIR__RIGHT_STREAM] = true;
        rc = append_key(buf, values->key[0] != '\0' ? values->key : topic->name,
                        err);
        if (rc != WEIR_OK)
            return rc;
    }
    return WEIR_OK;
}

static int append_user(struct weir__buf *buf, const char *user,
                       struct weir_error *err)
{
    if (!is_plain(user))
        return weir__error_set(err, WEIR_EINVAL,
                               "the user \"%s\" cannot stand in an ACL rule",
                               user);
    append(buf, "ACL SETUSER ");
    append(buf, user[0] != '\0' ? user : "weir");
    append(buf, " on >PASSWORD resetkeys resetchannels");
    return WEIR_OK;
}

static int append_commands(struct weir__buf *buf, const bool has[])
{
    char name[WEIR__RIGHT_NAME_CAP];

    append(buf, " -@all");
    for (const struct weir__right *right = weir__rights; right->command != NULL;
         right++) {
        if (!has[right->of])
            continue;
        weir__right_name(right, name);
        append(buf, " +");
        append(buf, name);
    }
    return buf->failed ? WEIR_ENOMEM : WEIR_OK;
}

int weir__rights_rule(struct weir__buf *buf, const struct weir__redis_url *url,
                      const struct weir__config *config, const char *topic,
                      struct weir_error *err)
{
    bool has[] = {[WEIR__RIGHT_ALWAYS] = true,
                  [WEIR__RIGHT_BOTH] = true,
                  [WEIR__RIGHT_BEYOND] = false};
    int rc = append_user(buf, url->user, err);

    if (rc != WEIR_OK)
        return rc;
    append_own(buf, url->prefix, topic);
    rc = append_topics(buf, config, topic, has, err);
    if (rc != WEIR_OK)
        return rc;
    append(buf, " &");
    append(buf, url->prefix);
    append(buf, ":wake:*");
    return append_commands(buf, has);
}

int weir__rights_sentinel_rule(struct weir__buf *buf,
                               const struct weir__redis_url *url,
                               struct weir_error *err)
{
    static const bool has[] = {[WEIR__RIGHT_BOTH] = true,
                               [WEIR__RIGHT_SENTINEL] = true,
                               [WEIR__RIGHT_BEYOND] = false};
    int rc = append_user(buf, url->sentinel_user, err);

    if (rc != WEIR_OK)
        return rc;
    append(buf, " &+switch-master");
    return append_commands(buf, has);
}
