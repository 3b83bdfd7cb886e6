/* SPDX-License-Identifier: MIT */
#include "adapters/redis/probe.h"

#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "adapters/redis/await.h"
#include "adapters/redis/cluster/map.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/conn/resolve.h"
#include "adapters/redis/conn/tls.h"
#include "adapters/redis/monotonic.h"
#include "adapters/redis/script.h"
#include "core/assert.h"
#include "core/buf.h"
#include "core/error.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    WORDS_MAX = WEIR__SCRIPTS_MAX + 2,
    SENTINEL_MS = 300, /* for one of them */
    REPLICA_MS = 250
};

struct weir__probe {
    redisContext *context;
    struct weir__tls *tls; /* its own; NULL: the address's, or none */
    struct ssl_st *ssl;    /* the context's; NULL: no TLS */
    struct weir__await await;
    struct weir__redis_host host;
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

/* What does not go well is in the context, and told with the answer. */
void weir__probe_put(struct weir__probe *probe, const char *const *words)
{
    const char *argv[WORDS_MAX];
    int argc = 0;

    for (; words[argc] != NULL; argc++) {
        WEIR_ASSERT(argc < WORDS_MAX);
        argv[argc] = words[argc];
    }
    WEIR_ASSERT(argc > 0 && probe != NULL);
    (void)redisAppendCommandArgv(probe->context, argc, argv, NULL);
}

void weir__probe_put_load(struct weir__probe *probe,
                          const struct weir__script *script)
{
    (void)redisAppendFormattedCommand(probe->context, script->load,
                                      script->load_len);
}

int weir__probe_take(struct weir__probe *probe, const char **ret_text)
{
    redisReply *reply = weir__await_reply(&probe->await);
    bool is_error;

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

int weir__probe_ask(struct weir__probe *probe, const char *const *words,
                    const char **ret_text)
{
    weir__probe_put(probe, words);
    return weir__probe_take(probe, ret_text);
}

struct redisReply *weir__probe_command(struct weir__probe *probe,
                                       struct weir_slice command)
{
    if (redisAppendFormattedCommand(probe->context, (const char *)command.ptr,
                                    command.len) != REDIS_OK)
        return NULL;
    return weir__await_reply(&probe->await);
}

int weir__probe_map(struct weir__probe *probe,
                    struct weir__cluster_map **ret_map, struct weir_error *err)
{
    static const char question[] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n";
    redisReply *reply = weir__probe_command(probe, weir__slice_str(question));
    int rc;

    if (reply == NULL)
        return weir__error_set(err, WEIR_ECONN, "%s", weir__probe_lost(probe));
    if (reply->type == REDIS_REPLY_ERROR)
        rc = weir__error_set(err,
                             weir__error_is_no_cluster(reply->str)
                                 ? WEIR_ENOTFOUND
                                 : WEIR_ESERVER,
                             "%s", reply->str);
    else
        rc = weir__cluster_map_read(reply, &probe->host, NULL, ret_map, err);
    freeReplyObject(reply);
    return rc;
}

const char *weir__probe_lost(const struct weir__probe *probe)
{
    return probe->context->err != 0 ? probe->context->errstr : NULL;
}

const struct weir__redis_host *weir__probe_host(const struct weir__probe *probe)
{
    return &probe->host;
}

int weir__probe_fd(const struct weir__probe *probe)
{
    return probe->context->fd;
}

/* --- connecting --------------------------------------------------------- */

static struct timeval timeval_of(int64_t ms)
{
    if (ms < 1)
        ms = 1; /* 0 would be no limit */
    return (struct timeval){.tv_sec = (time_t)(ms / 1000),
                            .tv_usec = (suseconds_t)(ms % 1000 * 1000)};
}

/* Add why an address was of no use, and let go of it. Those of a name have a
 * reason each. */
static void add_reason(struct weir_error *why, const char *host,
                       const char *address, redisContext *context)
{
    const char *text = context == NULL ? "out of memory" : context->errstr;
    struct weir_error before = *why;

    if (strcmp(host, address) == 0)
        (void)weir__error_set(why, WEIR_ECONN, "%s", text);
    else
        (void)weir__error_set(why, WEIR_ECONN, "%s%s%s: %s", before.text,
                              before.text[0] != '\0' ? "; " : "", address,
                              text);
    redisFree(context); /* NULL is fine */
}

/* A name's addresses in turn; what time there is, those that are left share. */
static redisContext *reach_host(const struct weir__redis_host *host,
                                int limit_ms, struct weir_error *why)
{
    int64_t until_ms = weir__monotonic_ms() + limit_ms;
    struct weir__addresses addresses;
    const char *missing =
        weir__addresses_find(host->name, limit_ms, &addresses);

    if (missing != NULL) {
        (void)weir__error_set(why, WEIR_ECONN, "no address for host %s: %s",
                              host->name, missing);
        return NULL;
    }
    for (size_t i = 0; i < addresses.count; i++) {
        int64_t left = (int64_t)(addresses.count - i);
        redisContext *context = redisConnectWithTimeout(
            addresses.text[i], host->port,
            timeval_of((until_ms - weir__monotonic_ms()) / left));

        if (context != NULL && context->err == 0)
            return context;
        add_reason(why, host->name, addresses.text[i], context);
    }
    return NULL;
}

static redisContext *reach_socket(const char *path, int limit_ms,
                                  struct weir_error *why)
{
    redisContext *context =
        redisConnectUnixWithTimeout(path, timeval_of(limit_ms));

    if (context != NULL && context->err == 0)
        return context;
    (void)weir__error_set(why, WEIR_ECONN, "%s",
                          context == NULL ? "out of memory" : context->errstr);
    redisFree(context); /* NULL is fine */
    return NULL;
}

/* NULL: not reached, and why. */
static redisContext *reach(const struct weir__redis_url *url, int limit_ms,
                           struct weir_error *err)
{
    struct weir_error why = {0};
    redisContext *context =
        url->is_unix ? reach_socket(url->hosts[0].name, limit_ms, &why)
                     : reach_host(&url->hosts[0], limit_ms, &why);

    if (context == NULL)
        (void)weir__error_set(err, WEIR_ECONN, "%s", why.text);
    else
        (void)redisSetTimeout(context, timeval_of(limit_ms));
    return context;
}

static int secure(struct weir__probe *probe, const struct weir__redis_url *url,
                  int limit_ms, struct weir_error *err)
{
    char *why = probe->context->errstr;
    const size_t cap = sizeof(probe->context->errstr);
    int rc = url->tls == NULL ? weir__tls_new(url, &probe->tls, err) : WEIR_OK;

    if (rc != WEIR_OK || !url->is_tls)
        return rc;
    probe->ssl = weir__tls_begin(url->tls == NULL ? probe->tls : url->tls,
                                 probe->context, url->hosts[0].name, why, cap);
    if (probe->ssl == NULL || !weir__tls_finish(probe->ssl, limit_ms, why, cap))
        return weir__error_set(err, WEIR_ECONN, "%s", why);
    return WEIR_OK;
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
    struct weir_error why = {0};
    int rc;

    if (url->db == 0)
        return WEIR_OK;
    (void)snprintf(db, sizeof(db), "%u", (unsigned)url->db); /* fits */
    rc = demand(probe, words, &why);
    if (rc == WEIR_ESERVER && weir__error_is_no_database(why.text))
        return weir__error_set(err, WEIR_ENOTFOUND, WEIR__ERROR_NO_DATABASE,
                               (unsigned)url->db);
    return rc == WEIR_OK ? rc : weir__error_set(err, rc, "%s", why.text);
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

    rc = secure(probe, url, limit_ms, err);
    if (rc != WEIR_OK)
        return rc;
    weir__await_init(&probe->await, probe->context, probe->ssl, limit_ms);
    rc = log_in(probe, url, err);
    if (rc == WEIR_OK)
        rc = knock(probe, err);
    return rc == WEIR_OK ? choose_db(probe, url, err) : rc;
}

static int open_server(const struct weir__redis_url *url, int limit_ms,
                       struct weir__probe **ret_probe, struct weir_error *err)
{
    struct weir__probe *probe = weir__mem_new(sizeof(*probe));
    int rc;

    if (probe == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    probe->host = url->hosts[0];
    probe->context = reach(url, limit_ms, err);
    rc = probe->context == NULL ? WEIR_ECONN
                                : introduce(probe, url, limit_ms, err);
    if (rc != WEIR_OK) {
        weir__probe_close(probe);
        return rc;
    }
    *ret_probe = probe;
    return WEIR_OK;
}

/* --- sentinels ---------------------------------------------------------- */

/* "" or a line for the host and one for its port. */
static int read_primary(const char *text, const char *service,
                        struct weir__redis_host *ret_host,
                        struct weir_error *err)
{
    const char *end = strchr(text, '\n');

    if (text[0] == '\0')
        return weir__error_set(err, WEIR_ENOTFOUND,
                               "no sentinel knows a primary named %s", service);
    if (end == NULL ||
        !weir__redis_host_read(weir__slice_of(text, (size_t)(end - text)),
                               weir__slice_str(end + 1), ret_host))
        return weir__error_set(err, WEIR_ECONN, "it names no server");
    return WEIR_OK;
}

static int ask_sentinel(const struct weir__redis_url *url,
                        const struct weir__redis_host *sentinel,
                        struct weir__redis_host *ret_host,
                        struct weir_error *err)
{
    const char *words[] = {"SENTINEL", "get-master-addr-by-name", url->service,
                           NULL};
    struct weir__redis_url own;
    struct weir__probe *probe = NULL;
    const char *text;
    int rc;

    weir__redis_url_of_sentinel(url, sentinel, &own);
    rc = open_server(&own, SENTINEL_MS, &probe, err);
    if (rc != WEIR_OK)
        return rc;
    rc = weir__probe_ask(probe, words, &text);
    rc = rc == WEIR_OK ? read_primary(text, url->service, ret_host, err)
                       : weir__error_set(err, rc, "%s", text);
    weir__probe_close(probe);
    return rc;
}

/* Ask them in turn. WEIR_ENOTFOUND where those that answered know none. */
static int find_primary(const struct weir__redis_url *url,
                        struct weir__redis_host *ret_host,
                        struct weir_error *err)
{
    struct weir_error why = {0}, unknown = {0};

    for (size_t i = 0; i < url->host_count; i++) {
        int rc = ask_sentinel(url, &url->hosts[i], ret_host, &why);

        if (rc == WEIR_OK)
            return WEIR_OK;
        if (rc == WEIR_ENOTFOUND)
            unknown = why;
    }
    if (unknown.code != WEIR_OK)
        return weir__error_set(err, unknown.code, "%s", unknown.text);
    return weir__error_set(err, WEIR_ECONN, "no sentinel answers (%s)",
                           why.text);
}

static int demand_primary(struct weir__probe *probe, bool *ret_is_replica,
                          struct weir_error *err)
{
    static const char *const words[] = {"ROLE", NULL};
    const char *text;
    int rc = weir__probe_ask(probe, words, &text);

    *ret_is_replica = rc == WEIR_OK && strncmp(text, "master", 6) != 0;
    if (*ret_is_replica)
        return weir__error_set(err, WEIR_ECONN, "it is no primary");
    return rc == WEIR_OK ? rc : weir__error_set(err, rc, "%s", text);
}

int weir__probe_locate(const struct weir__redis_url *url,
                       struct weir__redis_url *ret_url, struct weir_error *err)
{
    struct weir__redis_host host;
    int rc;

    if (!url->is_sentinel) {
        *ret_url = *url;
        return WEIR_OK;
    }
    rc = find_primary(url, &host, err);
    if (rc == WEIR_OK)
        weir__redis_url_of_server(url, &host, ret_url);
    return rc;
}

static int open_primary(const struct weir__redis_url *url, int limit_ms,
                        struct weir__probe **ret_probe, bool *ret_is_replica,
                        struct weir_error *err)
{
    struct weir__probe *probe = NULL;
    struct weir__redis_url own;
    int rc = weir__probe_locate(url, &own, err);

    *ret_is_replica = false;
    if (rc == WEIR_OK)
        rc = open_server(&own, limit_ms, &probe, err);
    if (rc == WEIR_OK)
        rc = demand_primary(probe, ret_is_replica, err);
    if (rc == WEIR_OK)
        *ret_probe = probe;
    else
        weir__probe_close(probe);
    return rc;
}

/* Nodes of a cluster in turn; each has a reason of its own. */
static int open_any(const struct weir__redis_url *url, int limit_ms,
                    struct weir__probe **ret_probe, struct weir_error *err)
{
    struct weir_error whys = {0};

    for (size_t i = 0; i < url->host_count; i++) {
        const struct weir__redis_host *host = &url->hosts[i];
        struct weir_error why = {0}, before = whys;
        struct weir__redis_url own;
        int rc;

        weir__redis_url_of_server(url, host, &own);
        rc = open_server(&own, limit_ms, ret_probe, &why);
        if (rc == WEIR_OK)
            return rc;
        (void)weir__error_set(&whys, rc, "%s%s%s port %u: %s", before.text,
                              i > 0 ? "; " : "", host->name,
                              (unsigned)host->port, why.text);
    }
    return weir__error_set(err, whys.code, "%s", whys.text);
}

int weir__probe_open(const struct weir__redis_url *url, int limit_ms,
                     struct weir__probe **ret_probe, struct weir_error *err)
{
    const struct timespec pause = {.tv_nsec = REPLICA_MS * 1000000L};
    bool is_replica;
    int rc;

    if (!url->is_sentinel && url->host_count > 1)
        return open_any(url, limit_ms, ret_probe, err);
    if (!url->is_sentinel)
        return open_server(url, limit_ms, ret_probe, err);
    rc = open_primary(url, limit_ms, ret_probe, &is_replica, err);
    if (!is_replica)
        return rc;
    (void)nanosleep(&pause, NULL); /* it may be about to become one */
    return open_primary(url, limit_ms, ret_probe, &is_replica, err);
}

void weir__probe_close(struct weir__probe *probe)
{
    if (probe == NULL)
        return;
    if (probe->context != NULL)
        redisFree(probe->context);
    weir__tls_free(probe->tls);
    weir__buf_fini(&probe->answer);
    weir__mem_free(probe);
}
