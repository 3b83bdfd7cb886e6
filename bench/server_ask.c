/* SPDX-License-Identifier: MIT */

/* What servers tell about themselves. */

#include "bench/say.h"
#include "bench/server.h"

#include <hiredis.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static redisReply *ask(redisContext *context, const char *command)
{
    redisReply *reply = redisCommand(context, command);

    if (reply != NULL && reply->type == REDIS_REPLY_ERROR) {
        freeReplyObject(reply);
        return NULL;
    }
    return reply;
}

/* The text behind "name:" at the start of a line, or NULL. */
static const char *info_field(const char *info, const char *name)
{
    size_t len = strlen(name);

    for (const char *line = info; line != NULL;) {
        if (strncmp(line, name, len) == 0 && line[len] == ':')
            return line + len + 1;
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}

static redisReply *info(struct bench_server *server, int node,
                        const char *section)
{
    char command[32];
    redisReply *reply;

    (void)snprintf(command, sizeof(command), "INFO %s", section);
    reply = ask(server->control[node], command);
    if (reply != NULL && reply->str == NULL) {
        freeReplyObject(reply);
        reply = NULL;
    }
    return reply;
}

static void info_text(const char *text, const char *name, char *buf, size_t cap)
{
    const char *field = info_field(text, name);
    size_t len = field != NULL ? strcspn(field, "\r\n") : 0;

    if (len > 0 && len < cap) {
        memcpy(buf, field, len);
        buf[len] = '\0';
    }
}

void bench_server_look(struct bench_server *server)
{
    redisReply *reply = info(server, 0, "server");

    (void)snprintf(server->name, sizeof(server->name), "redis");
    (void)snprintf(server->version, sizeof(server->version), "?");
    if (reply == NULL)
        return;
    info_text(reply->str, "server_name", server->name, sizeof(server->name));
    info_text(reply->str, "redis_version", server->version,
              sizeof(server->version));
    info_text(reply->str, "valkey_version", server->version,
              sizeof(server->version));
    freeReplyObject(reply);
}

void bench_server_info_text(struct bench_server *server, const char *section,
                            const char *name, char *buf, size_t cap)
{
    redisReply *reply = info(server, 0, section);

    buf[0] = '\0';
    if (reply == NULL)
        return;
    info_text(reply->str, name, buf, cap);
    freeReplyObject(reply);
}

void bench_server_setting(struct bench_server *server, const char *name,
                          char *buf, size_t cap)
{
    redisReply *reply = redisCommand(server->control[0], "CONFIG GET %s", name);

    buf[0] = '\0';
    if (reply != NULL && reply->type == REDIS_REPLY_ARRAY &&
        reply->elements == 2 && reply->element[1]->str != NULL)
        (void)snprintf(buf, cap, "%s", reply->element[1]->str);
    if (reply != NULL)
        freeReplyObject(reply);
}

static double seconds(const char *text, const char *name)
{
    const char *field = info_field(text, name);

    return field != NULL ? strtod(field, NULL) : -1.0;
}

double bench_server_node_cpu_us(struct bench_server *server, int node)
{
    redisReply *reply = info(server, node, "cpu");
    double user, sys;

    if (reply == NULL)
        return (double)NAN;
    user = seconds(reply->str, "used_cpu_user_main_thread");
    sys = seconds(reply->str, "used_cpu_sys_main_thread");
    if (user < 0 || sys < 0) { /* an older server */
        user = seconds(reply->str, "used_cpu_user");
        sys = seconds(reply->str, "used_cpu_sys");
    }
    freeReplyObject(reply);
    return (user + sys) * 1e6;
}

double bench_server_cpu_us(struct bench_server *server)
{
    double sum = 0;

    for (int i = 0; i < server->node_count; i++)
        sum += bench_server_node_cpu_us(server, i);
    return sum;
}

static int64_t info_number(struct bench_server *server, int node,
                           const char *section, const char *name)
{
    redisReply *reply = info(server, node, section);
    const char *field = reply != NULL ? info_field(reply->str, name) : NULL;
    int64_t number = field != NULL ? strtoll(field, NULL, 10) : -1;

    freeReplyObject(reply);
    return number;
}

int64_t bench_server_info(struct bench_server *server, const char *section,
                          const char *name)
{
    int64_t sum = 0;

    for (int i = 0; i < server->node_count; i++) {
        int64_t number = info_number(server, i, section, name);

        if (number < 0)
            return -1;
        sum += number;
    }
    return sum;
}

static int64_t ask_number(redisContext *context, const char *command)
{
    redisReply *reply = ask(context, command);
    int64_t number = -1;

    if (reply != NULL && reply->type == REDIS_REPLY_INTEGER)
        number = reply->integer;
    else if (reply != NULL && reply->type == REDIS_REPLY_ARRAY)
        number = (int64_t)reply->elements;
    else if (reply != NULL)
        number = 0;
    freeReplyObject(reply);
    return number;
}

int64_t bench_server_ask(struct bench_server *server, const char *command)
{
    int64_t sum = 0;

    for (int i = 0; i < server->node_count; i++) {
        int64_t number = ask_number(server->control[i], command);

        if (number < 0)
            return -1;
        sum += number;
    }
    return sum;
}

/* An entry is its number, its time, and how long it took in us, first. */
static long long slowest_us(const redisReply *log)
{
    long long most = -1;

    for (size_t i = 0; i < log->elements; i++) {
        const redisReply *entry = log->element[i];

        if (entry->elements > 2 && entry->element[2]->integer > most)
            most = entry->element[2]->integer;
    }
    return most;
}

double bench_server_slowest_ms(struct bench_server *server)
{
    long long most = -1;

    for (int i = 0; i < server->node_count; i++) {
        redisReply *log = ask(server->control[i], "SLOWLOG GET 10000");
        long long us = log != NULL ? slowest_us(log) : -1;

        most = us > most ? us : most;
        freeReplyObject(log);
    }
    return most < 0 ? (double)NAN : (double)most / 1000;
}

int64_t bench_server_clock_ahead_us(struct bench_server *server)
{
    int64_t best_ns = INT64_MAX, ahead = 0;

    if (server->is_own)
        return 0; /* one machine, one clock */
    for (int i = 0; i < 20; i++) {
        int64_t begun = bench_now_ns(), wall = bench_wall_ns();
        redisReply *reply = ask(server->control[0], "TIME");
        int64_t took = bench_now_ns() - begun;

        if (reply != NULL && reply->elements == 2 && took < best_ns) {
            best_ns = took;
            ahead = strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
                    strtoll(reply->element[1]->str, NULL, 10) -
                    (wall + took / 2) / 1000;
        }
        freeReplyObject(reply);
    }
    return ahead;
}

int64_t bench_server_count_commands(struct bench_server *server, int64_t ns)
{
    redisContext *monitor = bench_server_connect(server, NULL);
    int64_t deadline = bench_now_ns() + ns, count = 0, left;
    redisReply *reply = monitor != NULL ? ask(monitor, "MONITOR") : NULL;

    if (reply == NULL) {
        redisFree(monitor);
        return -1;
    }
    freeReplyObject(reply);
    while ((left = deadline - bench_now_ns()) > 1000) {
        struct timeval limit = {.tv_sec = (time_t)(left / 1000000000),
                                .tv_usec =
                                    (suseconds_t)(left % 1000000000 / 1000)};
        void *line = NULL;

        (void)redisSetTimeout(monitor, limit);
        if (redisGetReply(monitor, &line) != REDIS_OK)
            break; /* time is over */
        reply = line;
        /* 1700000000.123456 [0 unix:/path] "ping", or [0 lua] in scripts */
        if (reply->str != NULL && strstr(reply->str, " lua] ") == NULL)
            count++;
        freeReplyObject(reply);
    }
    redisFree(monitor);
    return count;
}
