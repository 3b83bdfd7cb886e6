/* SPDX-License-Identifier: MIT */
#include "bench/server.h"

#include "adapters/redis/conn/tls.h"
#include "adapters/redis/probe.h"
#include "adapters/redis/url.h"
#include "adapters/server/ask.h"
#include "adapters/server/spawn.h"
#include "bench/say.h"
#include "core/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_LIMIT_MS = 10000, LOOK_AGAIN_NS = 2000000, CONNECT_S = 3 };

/* --- the guard -------------------------------------------------------- */

/* Waits until nobody holds the other end, then kills the server it was told of
 * and removes the directory. */
_Noreturn static void guard_main(const char *dir, int fd)
{
    pid_t pid = 0, told;

    (void)setsid(); /* out of reach of ^C */
    while (read(fd, &told, sizeof(told)) == (ssize_t)sizeof(told))
        pid = told;
    if (pid > 0)
        (void)kill(pid, SIGKILL);
    (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
    _exit(1);
}

static int guard_start(struct bench_server *server, struct weir_error *err)
{
    int ends[2];

    if (pipe(ends) != 0)
        return weir__error_set(err, WEIR_ESYSTEM, "cannot make a pipe: %s",
                               strerror(errno));
    server->guard_pid = fork();
    if (server->guard_pid == 0) {
        (void)close(ends[1]);
        guard_main(server->dir, ends[0]);
    }
    (void)close(ends[0]);
    server->guard_fd = ends[1];
    if (server->guard_pid > 0)
        return WEIR_OK;
    (void)close(ends[1]);
    (void)rmdir(server->dir);
    return weir__error_set(err, WEIR_ESYSTEM, "cannot fork: %s",
                           strerror(errno));
}

/* --- our own server --------------------------------------------------- */

static int make_dir(struct bench_server *server, const char *data,
                    struct weir_error *err)
{
    const char *folder = data != NULL ? data : getenv("TMPDIR");
    int len;

    if (folder == NULL || folder[0] != '/')
        folder = data != NULL ? data : "/tmp";
    len = snprintf(server->dir, sizeof(server->dir), "%s/weir-bench-XXXXXX",
                   folder);
    if (len < 0 || (size_t)len >= sizeof(server->dir))
        return weir__error_set(err, WEIR_EINVAL,
                               "the name of the folder %.40s... is too long "
                               "for a socket in it; give a shorter --data",
                               folder);
    if (mkdtemp(server->dir) == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "cannot make a directory in %s: %s", folder,
                               strerror(errno));
    return WEIR_OK;
}

/* A port of 127.0.0.1 that is free now. 0: none. */
static uint16_t free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    uint16_t port = 0;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd >= 0 &&
        bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        (void)close(fd);
    return port;
}

static int read_tls(const char *address, struct weir__tls **ret_tls,
                    struct weir_error *err)
{
    struct weir__redis_url url;
    int rc = weir__redis_url_parse(address, &url, err);

    return rc == WEIR_OK ? weir__tls_new(&url, ret_tls, err) : rc;
}

/* WEIR_EINVAL: this weir has none. Nothing was made yet. */
static int need_tls(struct weir_error *err)
{
    struct weir__tls *tls = NULL;
    int rc = read_tls("rediss://127.0.0.1", &tls, err);

    weir__tls_free(tls);
    return rc;
}

/* A certificate that stands for itself. */
static int make_certificate(const struct bench_server *server,
                            struct weir_error *err)
{
    char pem[112], key[112];
    const char *const argv[] = {"openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:P-256",
                                "-nodes",
                                "-subj",
                                "/CN=weir-bench",
                                "-addext",
                                "subjectAltName=IP:127.0.0.1",
                                "-keyout",
                                key,
                                "-out",
                                pem,
                                NULL};
    pid_t pid;
    int rc;

    (void)snprintf(pem, sizeof(pem), "%s/tls.pem", server->dir); /* fits */
    (void)snprintf(key, sizeof(key), "%s/tls.key", server->dir);
    rc = weir__spawn(argv, &pid, err);
    while (rc == WEIR_OK && weir__process_is_alive(pid))
        bench_rest_ns(LOOK_AGAIN_NS);
    return rc;
}

static int spawn(struct bench_server *server,
                 const struct bench_server_options *options,
                 struct weir_error *err)
{
    bool writes = strcmp(options->persistence, "none") != 0;
    char port[8], socket_path[112], log[112];
    const char *plain_port = options->tls ? "0" : port;
    const char *const argv[] = {"redis-server",
                                "--port",
                                plain_port,
                                "--bind",
                                "127.0.0.1",
                                "--unixsocket",
                                socket_path,
                                "--dir",
                                server->dir,
                                "--logfile",
                                log,
                                "--save",
                                "",
                                "--appendonly",
                                writes ? "yes" : "no",
                                "--appendfsync",
                                writes ? options->persistence : "no",
                                "--daemonize",
                                "no",
                                options->tls ? "--tls-port" : NULL,
                                port,
                                "--tls-cert-file",
                                "tls.pem",
                                "--tls-key-file",
                                "tls.key",
                                "--tls-ca-cert-file",
                                "tls.pem",
                                "--tls-auth-clients",
                                "no",
                                NULL};

    server->port = options->tcp ? free_port() : 0;
    (void)snprintf(port, sizeof(port), "%u", (unsigned)server->port);
    (void)snprintf(socket_path, sizeof(socket_path), "%s/redis.sock",
                   server->dir);
    (void)snprintf(log, sizeof(log), "%s/redis.log", server->dir);
    return weir__spawn(argv, &server->pid, err);
}

static int await_start(struct bench_server *server, bool has_tls,
                       struct weir_error *err)
{
    int64_t deadline = bench_now_ns() + START_LIMIT_MS * INT64_C(1000000);
    struct weir__server_info info;
    char path[112];

    (void)snprintf(path, sizeof(path), "%s/redis.sock", server->dir);
    while (weir__server_ask(path, &info) != WEIR__SERVER_READY) {
        if (!weir__process_is_alive(server->pid))
            return weir__error_set(err, WEIR_ECONN,
                                   "the private redis-server ended at once; "
                                   "try redis-server --port 0");
        if (bench_now_ns() > deadline)
            return weir__error_set(err, WEIR_ECONN,
                                   "the private redis-server does not answer");
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    if (has_tls)
        (void)snprintf(server->url, sizeof(server->url),
                       "rediss://127.0.0.1:%u?ca=%s/tls.pem",
                       (unsigned)server->port, server->dir); /* fits */
    else if (server->port != 0)
        (void)snprintf(server->url, sizeof(server->url), "redis://127.0.0.1:%u",
                       (unsigned)server->port);
    else
        (void)snprintf(server->url, sizeof(server->url), "unix://%s", path);
    return WEIR_OK;
}

static int start_own(struct bench_server *server,
                     const struct bench_server_options *options,
                     struct weir_error *err)
{
    int rc = options->tls ? need_tls(err) : WEIR_OK;

    if (rc == WEIR_OK)
        rc = make_dir(server, options->data, err);
    if (rc < 0)
        return rc;
    rc = guard_start(server, err);
    if (rc < 0)
        return rc;
    server->is_own = true;
    if (options->tls)
        rc = make_certificate(server, err);
    if (rc == WEIR_OK)
        rc = spawn(server, options, err);
    if (rc == WEIR_OK &&
        write(server->guard_fd, &server->pid, sizeof(server->pid)) !=
            (ssize_t)sizeof(server->pid))
        rc = weir__error_set(err, WEIR_ESYSTEM, "a guard process is gone");
    return rc == WEIR_OK ? await_start(server, options->tls, err) : rc;
}

/* --- connections ------------------------------------------------------ */

static int introduce(redisContext *context, const struct weir__redis_url *url)
{
    char password[WEIR__REDIS_PASSWORD_CAP];
    redisReply *reply = NULL;
    bool ok = weir__redis_url_password(url, password, NULL) == WEIR_OK;

    if (ok && password[0] != '\0') {
        reply = url->user[0] != '\0'
                    ? redisCommand(context, "AUTH %s %s", url->user, password)
                    : redisCommand(context, "AUTH %s", password);
        ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    if (ok && url->db != 0) {
        reply = redisCommand(context, "SELECT %u", url->db);
        ok = reply != NULL && reply->type == REDIS_REPLY_STATUS;
        freeReplyObject(reply);
    }
    return ok ? WEIR_OK : WEIR_ECONN;
}

/* Begun without blocking, then as any connection of hiredis that blocks. */
static bool secure(const struct bench_server *server, redisContext *context,
                   const char *host)
{
    char *why = context->errstr;
    struct ssl_st *ssl;

    if (server->tls == NULL)
        return true;
    ssl = weir__tls_begin(server->tls, context, host, why,
                          sizeof(context->errstr));
    if (ssl == NULL || !weir__tls_finish(ssl, CONNECT_S * 1000, why,
                                         sizeof(context->errstr))) {
        context->err = REDIS_ERR_OTHER;
        return false;
    }
    context->flags |= REDIS_BLOCK;
    return fcntl(context->fd, F_SETFL,
                 fcntl(context->fd, F_GETFL) & ~O_NONBLOCK) == 0;
}

/* A name that sentinels do not know is a mistake in the address. */
static int locate(const struct bench_server *server,
                  struct weir__redis_url *ret_url, struct weir_error *err)
{
    struct weir__redis_url given;
    struct weir_error why;
    int rc = weir__redis_url_parse(server->url, &given, &why);

    if (rc == WEIR_OK)
        rc = weir__probe_locate(&given, ret_url, &why);
    if (rc == WEIR_ENOTFOUND)
        rc = WEIR_EINVAL;
    return rc == WEIR_OK ? rc : weir__error_set(err, rc, "%s", why.text);
}

struct redisContext *bench_server_connect(const struct bench_server *server,
                                          struct weir_error *err)
{
    struct timeval limit = {.tv_sec = CONNECT_S};
    struct weir__redis_url url;
    redisContext *context;
    char shown[300];

    if (locate(server, &url, err) < 0)
        return NULL;
    context = url.is_unix
                  ? redisConnectUnixWithTimeout(url.hosts[0].name, limit)
                  : redisConnectWithTimeout(url.hosts[0].name,
                                            url.hosts[0].port, limit);
    if (context != NULL && context->err == 0 &&
        secure(server, context, url.hosts[0].name) &&
        introduce(context, &url) == WEIR_OK)
        return context;
    weir__redis_url_print(&url, shown, sizeof(shown));
    (void)weir__error_set(
        err, WEIR_ECONN, "cannot reach redis at %s: %s", shown,
        context != NULL && context->err != 0 ? context->errstr
                                             : "it turned us away");
    redisFree(context);
    return NULL;
}

/* --- beginning and ending --------------------------------------------- */

/* Somebody else's server: delete what our topics left there. Lists and streams
 * have their names; what the floors wrote has names in letters. */
static int clear_ours(struct bench_server *server)
{
    static const char script[] =
        "for _, pattern in ipairs({ARGV[1] .. ':{weir-bench.*', "
        "'weir-bench.[a-z]*'}) do "
        "local c = '0' repeat local r = redis.call('SCAN', c, 'MATCH', "
        "pattern, 'COUNT', 1000) c = r[1] for _, k in ipairs(r[2]) do "
        "redis.call('UNLINK', k) end until c == '0' end "
        "local topics = ARGV[1] .. ':topics' "
        "for _, t in ipairs(redis.call('SMEMBERS', topics)) do "
        "if t:sub(1, 11) == 'weir-bench.' then "
        "redis.call('UNLINK', t) redis.call('SREM', topics, t) end end "
        "return 1";
    struct weir__redis_url url;
    redisReply *reply = NULL;
    bool ok;

    if (weir__redis_url_parse(server->url, &url, NULL) == WEIR_OK)
        reply =
            redisCommand(server->control, "EVAL %s 0 %s", script, url.prefix);
    ok = reply != NULL && reply->type == REDIS_REPLY_INTEGER;
    freeReplyObject(reply);
    return ok ? WEIR_OK : WEIR_ESERVER;
}

int bench_server_clear(struct bench_server *server, struct weir_error *err)
{
    int rc;

    if (server->is_own)
        rc = bench_server_ask(server, "FLUSHALL SYNC") >= 0 ? WEIR_OK
                                                            : WEIR_ESERVER;
    else
        rc = clear_ours(server);
    if (rc < 0)
        return weir__error_set(err, rc,
                               "the server did not delete what we left");
    return WEIR_OK;
}

int bench_server_start(struct bench_server *server,
                       const struct bench_server_options *options,
                       struct weir_error *err)
{
    int rc = WEIR_OK;

    *server = (struct bench_server){.guard_fd = -1};
    if (options->redis != NULL)
        (void)snprintf(server->url, sizeof(server->url), "%s", options->redis);
    else
        rc = start_own(server, options, err);
    if (rc == WEIR_OK)
        rc = read_tls(server->url, &server->tls, err);
    if (rc == WEIR_OK) {
        server->control = bench_server_connect(server, err);
        if (server->control == NULL)
            rc = err->code;
    }
    if (rc < 0) {
        bench_server_stop(server);
        return rc;
    }
    bench_server_look(server);
    return WEIR_OK;
}

void bench_server_stop(struct bench_server *server)
{
    if (server->control != NULL && !server->is_own)
        (void)clear_ours(server);
    redisFree(server->control);
    server->control = NULL;
    weir__tls_free(server->tls);
    server->tls = NULL;
    if (!server->is_own)
        return;
    (void)close(server->guard_fd);
    (void)waitpid(server->guard_pid, NULL, 0);
    server->is_own = false;
}
