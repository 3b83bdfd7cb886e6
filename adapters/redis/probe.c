/* SPDX-License-Identifier: MIT */
#include "adapters/redis/probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "adapters/redis/await.h"
#include "core/assert.h"
#include "core/buf.h"
#include "core/error.h"
#include "core/mem.h"

enum { WORDS_MAX = 16 };

struct weir__probe {
    redisContext *context;
    struct weir__await await;
    struct weir__buf answer;
};

/* --- answers ------------------------------------------------------------ */

/* Arrays within arrays are put in line with the others. */
static void append_reply(struct weir__buf *buf, const redisReply *reply)
{
    char number[24];
    int len;

    switch (reply->type) {
    case REDIS_REPLY_INTEGER:
        len = snprintf(number, sizeof(number), "%lld", reply->integer);
        weir__buf_append(buf, number, (size_t)len);
        break;
    case REDIS_REPLY_ARRAY:
        for (size_t i = 0; i < (size_t)reply->elements; i++) {
            if (i > 0)
                weir__buf_append(buf, "\n", 1);
            append_reply(buf, reply->element[i]);
        }
        break;
    default:
        if (reply->str != NULL)
            weir__buf_append(buf, reply->str, strlen(reply->str));
        break;
    }
}

int weir__probe_ask(struct weir__probe *probe, const char *const *words,
                    const char **ret_text)
{
    const char *argv[WORDS_MAX];
    redisReply *reply;
    bool is_error;
    int argc = 0;

    for (; words[argc] != NULL; argc++) {
        WEIR_ASSERT(argc < WORDS_MAX);
        argv[argc] = words[argc];
    }
    WEIR_ASSERT(argc > 0);
    reply = redisAppendCommandArgv(probe->context, argc, argv, NULL) == REDIS_OK
                ? weir__await_reply(&probe->await)
                : NULL;
    if (reply == NULL) {
        *ret_text = probe->context->errstr;
        return WEIR_ECONN;
    }
    is_error = reply->type == REDIS_REPLY_ERROR;
    weir__buf_reset(&probe->answer);
    append_reply(&probe->answer, reply);
    weir__buf_append(&probe->answer, "", 1);
    freeReplyObject(reply);
    if (probe->answer.failed) {
        *ret_text = "out of memory";
        return WEIR_ENOMEM;
    }
    *ret_text = (const char *)probe->answer.ptr;
    return is_error ? WEIR_ESERVER : WEIR_OK;
}

struct redisReply *weir__probe_command(struct weir__probe *probe,
                                       struct weir_slice command)
{
    if (redisAppendFormattedCommand(probe->context, (const char *)command.ptr,
                                    command.len) != REDIS_OK)
        return NULL;
    return weir__await_reply(&probe->await);
}

const char *weir__probe_lost(const struct weir__probe *probe)
{
    return probe->context->err != 0 ? probe->context->errstr : NULL;
}

int weir__probe_fd(const struct weir__probe *probe)
{
    return probe->context->fd;
}

/* --- connecting --------------------------------------------------------- */

static redisContext *reach(const struct weir__redis_url *url, int limit_ms)
{
    const struct timeval limit = {.tv_sec = limit_ms / 1000,
                                  .tv_usec = limit_ms % 1000 * 1000};
    const char *host = url->hosts[0].name;
    redisContext *context =
        url->is_unix ? redisConnectUnixWithTimeout(host, limit)
                     : redisConnectWithTimeout(
                           strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
                           url->hosts[0].port, limit);

    if (context != NULL && context->err == 0)
        (void)redisSetTimeout(context, limit); /* connecting has its own */
    return context;
}

/* What must go well before anything can be asked. */
static int demand(struct weir__probe *probe, const char *const *words,
                  struct weir_error *err)
{
    const char *text;
    int rc = weir__probe_ask(probe, words, &text);

    return rc == WEIR_OK ? rc : weir__error_set(err, rc, "%s", text);
}

static int log_in(struct weir__probe *probe, const struct weir__redis_url *url,
                  struct weir_error *err)
{
    char password[WEIR__REDIS_PASSWORD_CAP];
    const char *simple[] = {"AUTH", password, NULL};
    const char *named[] = {"AUTH", url->user, password, NULL};

    if (weir__redis_url_password(url, password, err) != WEIR_OK)
        return WEIR_ECONN;
    if (password[0] == '\0')
        return WEIR_OK;
    return demand(probe, url->user[0] != '\0' ? named : simple, err);
}

static int choose_db(struct weir__probe *probe,
                     const struct weir__redis_url *url, struct weir_error *err)
{
    char db[16];
    const char *words[] = {"SELECT", db, NULL};

    if (url->db == 0)
        return WEIR_OK;
    (void)snprintf(db, sizeof(db), "%u", (unsigned)url->db); /* fits */
    return demand(probe, words, err);
}

/* Without a password where one is needed, everything else is refused, too.
 * Other refusals are not of interest. */
static int knock(struct weir__probe *probe, struct weir_error *err)
{
    static const char *const words[] = {"PING", NULL};
    const char *text;
    int rc = weir__probe_ask(probe, words, &text);

    if (rc == WEIR_OK ||
        (rc == WEIR_ESERVER && strncmp(text, "NOAUTH", 6) != 0))
        return WEIR_OK;
    return weir__error_set(err, rc, "%s", text);
}

static int introduce(struct weir__probe *probe,
                     const struct weir__redis_url *url, int limit_ms,
                     struct weir_error *err)
{
    int rc;

    weir__await_init(&probe->await, probe->context, limit_ms);
    rc = log_in(probe, url, err);
    if (rc == WEIR_OK)
        rc = knock(probe, err);
    return rc == WEIR_OK ? choose_db(probe, url, err) : rc;
}

int weir__probe_open(const struct weir__redis_url *url, int limit_ms,
                     struct weir__probe **ret_probe, struct weir_error *err)
{
    struct weir__probe *probe = weir__mem_new(sizeof(*probe));
    int rc;

    if (probe == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    probe->context = reach(url, limit_ms);
    if (probe->context == NULL)
        rc = weir__error_set(err, WEIR_ENOMEM, "out of memory");
    else if (probe->context->err != 0)
        rc = weir__error_set(err, WEIR_ECONN, "%s", probe->context->errstr);
    else
        rc = introduce(probe, url, limit_ms, err);
    if (rc != WEIR_OK) {
        weir__probe_close(probe);
        return rc;
    }
    *ret_probe = probe;
    return WEIR_OK;
}

void weir__probe_close(struct weir__probe *probe)
{
    if (probe == NULL)
        return;
    if (probe->context != NULL)
        redisFree(probe->context);
    weir__buf_fini(&probe->answer);
    weir__mem_free(probe);
}
