/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_SERVER_H
#define WEIR_BENCH_SERVER_H

/* What is measured: a private redis-server with its data in a directory of its
 * own, gone when we are, however we end; several of them, which are a cluster;
 * or somebody else's. With it a connection of our own to each server, that asks
 * what it spends. Everything BLOCKS; an `err` holds the sentence. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <weir/base.h>

#include "adapters/redis/url.h"

struct redisContext;
struct weir__cluster_map;

enum { BENCH_NODES_MAX = 64 };

struct bench_server_options {
    const char *redis;       /* address of somebody else's; NULL: our own */
    const char *data;        /* folder for our own server's directory */
    bool tcp;                /* members connect over TCP */
    bool tls;                /* with TLS */
    const char *persistence; /* "none", "everysec", "always" */
    int nodes;               /* primaries of a cluster of our own, over TCP; 0:
                                one server, no cluster */
};

struct bench_own {
    pid_t pid;
    uint16_t port; /* 0: unix socket only */
};

struct bench_server {
    bool is_own;
    char url[WEIR__REDIS_URL_CAP]; /* for members */
    struct weir__tls *tls;         /* NULL: no TLS */
    struct weir__cluster_map *map; /* NULL: no cluster */
    /* To the nodes, in the order of the map; one where there is none. */
    struct redisContext *control[BENCH_NODES_MAX];
    int node_count;
    char name[16], version[32]; /* of the first one */
    /* Of our own servers only. */
    struct bench_own own[BENCH_NODES_MAX];
    int own_count;
    char dir[92];
    pid_t guard_pid;
    int guard_fd;
};

/* WEIR_ENOTFOUND (no redis-server in PATH), WEIR_ECONN (cannot be reached),
 * WEIR_EINVAL (the address), WEIR_ESYSTEM. */
int bench_server_start(struct bench_server *server,
                       const struct bench_server_options *options,
                       struct weir_error *err);

/* End our own server and remove its directory, or leave somebody else's
 * alone. A zeroed one is fine. Of several of our own the last one that was
 * started has to be the first: it holds what the others are watched by. */
void bench_server_stop(struct bench_server *server);

/* Begin anew: our own server loses everything, somebody else's what is in
 * keys and topics named weir-bench.*. */
int bench_server_clear(struct bench_server *server, struct weir_error *err);

/* Which of the nodes has a topic; -1: none of them. */
int bench_server_node_of(const struct bench_server *server, const char *topic);

/* Fill in its name and version. Done by bench_server_start. */
void bench_server_look(struct bench_server *server);

/* CPU time of a node's main thread so far in us, and of all nodes together;
 * NAN: no answer. */
double bench_server_node_cpu_us(struct bench_server *server, int node);
double bench_server_cpu_us(struct bench_server *server);

/* A number of INFO, the sum over all nodes; -1: no answer. */
int64_t bench_server_info(struct bench_server *server, const char *section,
                          const char *name);

/* A text of INFO or a setting of CONFIG GET of the first node; "" when it does
 * not tell. */
void bench_server_info_text(struct bench_server *server, const char *section,
                            const char *name, char *buf, size_t cap);
void bench_server_setting(struct bench_server *server, const char *name,
                          char *buf, size_t cap);

/* A command without blanks in its arguments to each node; the sum of what they
 * answer as a number, the length of an array, or -1. */
int64_t bench_server_ask(struct bench_server *server, const char *command);

/* The longest command in the SLOWLOG of all nodes; NAN: there is none. */
double bench_server_slowest_ms(struct bench_server *server);

/* How far the clock of the first node is ahead of ours in us. */
int64_t bench_server_clock_ahead_us(struct bench_server *server);

/* Commands that clients (not scripts) send to the first node within `ns`; -1:
 * it went wrong. */
int64_t bench_server_count_commands(struct bench_server *server, int64_t ns);

/* A connection of one's own to the first node that answers, or NULL with
 * `err`. */
struct redisContext *bench_server_connect(const struct bench_server *server,
                                          struct weir_error *err);

#endif
