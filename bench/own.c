/* SPDX-License-Identifier: MIT */
#include "bench/own.h"

#include "adapters/redis/conn/tls.h"
#include "adapters/server/ask.h"
#include "adapters/server/spawn.h"
#include "bench/say.h"
#include "core/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { START_LIMIT_MS = 10000, LOOK_AGAIN_NS = 2000000, PATH_CAP = 128 };

/* Nodes of a cluster talk to each other at their port and so many. */
enum { BUS = 10000, PORT_MAX = 65535, PORT_TRIES = 200 };

/* --- the guard -------------------------------------------------------- */

/* Waits until nobody holds the other end, then kills the servers it was told of
 * and removes the directory. */
_Noreturn static void guard_main(const char *dir, int fd)
{
    pid_t pids[BENCH_NODES_MAX + 1];
    size_t count = 0;

    (void)setsid(); /* out of reach of ^C */
    while (count <= BENCH_NODES_MAX &&
           read(fd, &pids[count], sizeof(pids[0])) == (ssize_t)sizeof(pids[0]))
        count++;
    for (size_t i = 0; i < count; i++)
        (void)kill(pids[i], SIGKILL);
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

/* --- files and ports -------------------------------------------------- */

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

/* Of a file of a node; "": its directory. The first node has the directory of
 * all, the others one each in there. */
static void write_path(const struct bench_server *server, int node,
                       const char *name, char path[PATH_CAP])
{
    if (node == 0)
        (void)snprintf(path, PATH_CAP, "%s%s", server->dir, name); /* fits */
    else
        (void)snprintf(path, PATH_CAP, "%s/%d%s", server->dir, node, name);
}

/* A socket that has a port of 127.0.0.1, 0: any; -1: taken. */
static int bind_port(uint16_t port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* A port that is free now. 0: none. */
static uint16_t free_port(void)
{
    struct sockaddr_in address;
    socklen_t len = sizeof(address);
    int fd = bind_port(0);
    uint16_t port = 0;

    if (fd >= 0 && getsockname(fd, (struct sockaddr *)&address, &len) == 0)
        port = ntohs(address.sin_port);
    if (fd >= 0)
        (void)close(fd);
    return port;
}

/* The same, and that of its bus is free, too. */
static uint16_t free_ports(void)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        uint16_t port = free_port();
        int fd = port != 0 && port + BUS <= PORT_MAX
                     ? bind_port((uint16_t)(port + BUS))
                     : -1;

        if (fd < 0)
            continue;
        (void)close(fd);
        return port;
    }
    return 0;
}

/* --- TLS -------------------------------------------------------------- */

/* WEIR_EINVAL: this weir has none. Nothing was made yet. */
static int need_tls(struct weir_error *err)
{
    struct weir__redis_url url;
    struct weir__tls *tls = NULL;
    int rc = weir__redis_url_parse("rediss://127.0.0.1", &url, err);

    if (rc == WEIR_OK)
        rc = weir__tls_new(&url, &tls, err);
    weir__tls_free(tls);
    return rc;
}

/* A certificate that stands for itself. */
static int make_certificate(const struct bench_server *server,
                            struct weir_error *err)
{
    char pem[PATH_CAP], key[PATH_CAP];
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

    write_path(server, 0, "/tls.pem", pem);
    write_path(server, 0, "/tls.key", key);
    rc = weir__spawn(argv, -1, &pid, err);
    while (rc == WEIR_OK && weir__process_is_alive(pid))
        bench_rest_ns(LOOK_AGAIN_NS);
    return rc;
}

/* --- servers ---------------------------------------------------------- */

static int spawn(struct bench_server *server, int node,
                 const struct bench_server_options *options,
                 struct weir_error *err)
{
    bool writes = strcmp(options->persistence, "none") != 0;
    char port[8], dir[PATH_CAP], socket_path[PATH_CAP], log[PATH_CAP];
    const char *plain_port = options->tls ? "0" : port;
    const char *const argv[] = {"redis-server",
                                "--port",
                                plain_port,
                                "--bind",
                                "127.0.0.1",
                                "--unixsocket",
                                socket_path,
                                "--dir",
                                dir,
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
                                "--cluster-enabled",
                                options->nodes > 0 ? "yes" : "no",
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

    (void)snprintf(port, sizeof(port), "%u", (unsigned)server->own[node].port);
    write_path(server, node, "", dir);
    write_path(server, node, "/redis.sock", socket_path);
    write_path(server, node, "/redis.log", log);
    if (node > 0 && mkdir(dir, 0700) != 0)
        return weir__error_set(err, WEIR_ESYSTEM,
                               "cannot make the directory %s: %s", dir,
                               strerror(errno));
    return weir__spawn(argv, server->guard_fd, &server->own[node].pid, err);
}

static int await_start(const struct bench_server *server, int node,
                       struct weir_error *err)
{
    int64_t deadline = bench_now_ns() + START_LIMIT_MS * INT64_C(1000000);
    struct weir__server_info info;
    char path[PATH_CAP];

    write_path(server, node, "/redis.sock", path);
    while (weir__server_ask(path, &info) != WEIR__SERVER_READY) {
        if (!weir__process_is_alive(server->own[node].pid))
            return weir__error_set(err, WEIR_ECONN,
                                   "the private redis-server ended at once; "
                                   "try redis-server --port 0");
        if (bench_now_ns() > deadline)
            return weir__error_set(err, WEIR_ECONN,
                                   "the private redis-server does not answer");
        bench_rest_ns(LOOK_AGAIN_NS);
    }
    return WEIR_OK;
}

static int start_node(struct bench_server *server, int node,
                      const struct bench_server_options *options,
                      struct weir_error *err)
{
    struct bench_own *one = &server->own[node];
    int rc;

    if (options->nodes > 0)
        one->port = free_ports();
    else
        one->port = options->tcp ? free_port() : 0;
    rc = spawn(server, node, options, err);
    return rc == WEIR_OK ? await_start(server, node, err) : rc;
}

static void write_url(struct bench_server *server, bool has_tls)
{
    size_t cap = sizeof(server->url), used = 0;

    if (server->own[0].port == 0) {
        (void)snprintf(server->url, cap, "unix://%s/redis.sock", server->dir);
        return;
    }
    /* As many as an address may have. */
    for (int i = 0; i < server->own_count && i < WEIR__REDIS_HOSTS_MAX; i++)
        used +=
            (size_t)snprintf(server->url + used, cap - used, "%s127.0.0.1:%u",
                             i > 0     ? ","
                             : has_tls ? "rediss://"
                                       : "redis://",
                             (unsigned)server->own[i].port); /* fits */
    if (has_tls)
        (void)snprintf(server->url + used, cap - used, "?ca=%s/tls.pem",
                       server->dir);
}

int bench_own_start(struct bench_server *server,
                    const struct bench_server_options *options,
                    struct weir_error *err)
{
    int count = options->nodes > 0 ? options->nodes : 1;
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
    for (int i = 0; i < count && rc == WEIR_OK; i++) {
        rc = start_node(server, i, options, err);
        server->own_count += rc == WEIR_OK;
    }
    if (rc == WEIR_OK)
        write_url(server, options->tls);
    return rc;
}

void bench_own_stop(struct bench_server *server)
{
    (void)close(server->guard_fd);
    (void)waitpid(server->guard_pid, NULL, 0);
    server->is_own = false;
}
