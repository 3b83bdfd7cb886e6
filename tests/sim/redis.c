/* SPDX-License-Identifier: MIT */
#include "tests/sim/redis.h"

#include <stdlib.h>

/* 15 January 2027, when the world begins. */
#define EPOCH_US INT64_C(1800000000000000)

struct session {
    struct sim_redis *redis;
    struct sim_stream *stream;
    struct server_client *client;
};

static void send_to_client(void *arg, const char *bytes, size_t len)
{
    const struct session *session = arg;

    sim_send(session->stream, bytes, len);
}

static void *begin_session(void *arg, struct sim_stream *stream)
{
    struct session *session = malloc(sizeof(*session));

    SIM_CHECK(session != NULL);
    session->redis = arg;
    session->stream = stream;
    session->client =
        server_connect(session->redis->server, send_to_client, session);
    return session;
}

int64_t sim_redis_now_us(const struct sim_redis *redis)
{
    return EPOCH_US + sim_now() / 1000 + redis->ahead_us;
}

static void wake(void *arg);

/* Plans the end of the first wait of a client. */
static void wake_later(struct sim_redis *redis)
{
    int64_t left_us = server_next_us(redis->server) - sim_redis_now_us(redis);

    if (redis->is_waking || left_us > INT64_MAX / 2000)
        return;
    redis->is_waking = true;
    sim_at(sim_now() + (left_us > 0 ? left_us * 1000 : 0), wake, redis);
}

static void wake(void *arg)
{
    struct sim_redis *redis = arg;

    redis->is_waking = false;
    server_set_time(redis->server, sim_redis_now_us(redis));
    wake_later(redis);
}

static void take_bytes(void *peer, const char *bytes, size_t len)
{
    struct session *session = peer;
    struct sim_redis *redis = session->redis;

    server_set_time(redis->server, sim_redis_now_us(redis));
    if (!server_feed(session->client, bytes, len))
        sim_hang_up(session->stream);
    wake_later(redis);
}

static void end_session(void *peer)
{
    struct session *session = peer;

    server_disconnect(session->client);
    free(session);
}

static const struct sim_service service = {begin_session, take_bytes,
                                           end_session};

void sim_redis_open(struct sim_redis *redis, const char *address)
{
    *redis = (struct sim_redis){.server = server_new(EPOCH_US, sim_random())};
    SIM_CHECK(redis->server != NULL);
    redis->port = sim_listen(address, &service, redis);
}

void sim_redis_close(struct sim_redis *redis)
{
    server_free(redis->server);
}
