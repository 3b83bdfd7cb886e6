/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_SERVER_H
#define WEIR_BENCH_SERVER_H

/* The server that is measured: a private redis-server with its data in a
 * directory of its own, gone when we are, however we end; or somebody else's.
 * With it a connection of our own that asks what it spends. Everything BLOCKS;
 * an `err` holds the sentence. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <weir/base.h>

#include "adapters/redis/url.h"

struct redisContext;

struct bench_server_options {
    const char *redis;       /* address of somebody else's; NULL: our own */
    const char *data;        /* folder for our own server's directory */
    bool tcp;                /* members connect over TCP */
    bool tls;                /* with TLS */
    const char *persistence; /* "none", "everysec", "always" */
};

struct bench_server {
    bool is_own;
    char url[WEIR__REDIS_URL_CAP]; /* for members */
    struct weir__tls *tls;         /* NULL: no TLS */
    struct redisContext *control;
    char name[16], version[32];
    /* Of our own server only. */
    char dir[96];
    pid_t pid, guard_pid;
    int guard_fd;
    uint16_t port; /* 0: unix socket only */
};

/* WEIR_ENOTFOUND (no redis-server in PATH), WEIR_ECONN (cannot be reached),
 * WEIR_EINVAL (the address), WEIR_ESYSTEM. */
int bench_server_start(struct bench_server *server,
                       const struct bench_server_options *options,
                       struct weir_error *err);

/* End our own server and remove its directory, or leave somebody else's
 * alone. A zeroed one is fine. */
void bench_server_stop(struct bench_server *server);

/* Begin anew: our own server loses everything, somebody else's what is in
 * keys and topics named weir-bench.*. */
int bench_server_clear(struct bench_server *server, struct weir_error *err);

/* Fill in its name and version. Done by bench_server_start. */
void bench_server_look(struct bench_server *server);

/* CPU time of the server's main thread so far in us; NAN: no answer. */
double bench_server_cpu_us(struct bench_server *server);

/* A number of INFO, or -1. */
int64_t bench_server_info(struct bench_server *server, const char *section,
                          const char *name);

/* A command without blanks in its arguments; its reply as a number, the length
 * of an array, or -1. */
int64_t bench_server_ask(struct bench_server *server, const char *command);

/* How far the server's clock is ahead of ours in us. */
int64_t bench_server_clock_ahead_us(struct bench_server *server);

/* Commands that clients (not scripts) send within `ns`; -1: it went wrong. */
int64_t bench_server_count_commands(struct bench_server *server, int64_t ns);

/* A connection of one's own to the same server, or NULL with `err`. */
struct redisContext *bench_server_connect(const struct bench_server *server,
                                          struct weir_error *err);

#endif
