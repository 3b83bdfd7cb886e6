/* SPDX-License-Identifier: MIT */

#include "tests/sim/conn_world.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "adapters/redis/conn/conn.h"
#include "adapters/redis/resp.h"

enum { LOOP_S = 120 };

/* --- the server: counts its INCR, and says OK to all else ---------------- */

struct conn_world conn_world;

static struct sim_port *port;

struct session {
    struct sim_stream *stream;
    char text[8192];
    size_t len;
};

static void *begin_session(void *arg, struct sim_stream *stream)
{
    struct session *session = calloc(1, sizeof(*session));

    (void)arg;
    SIM_CHECK(session != NULL);
    session->stream = stream;
    return session;
}

static void answer(struct session *session, const char *command)
{
    char reply[32] = "+OK\r\n";

    if (strstr(command, "INCR") != NULL)
        (void)snprintf(reply, sizeof(reply), ":%d\r\n",
                       ++conn_world.executed); /* fits */
    sim_send(session->stream, reply, strlen(reply));
}

/* How long the first command is; 0: it is not whole yet. */
static size_t command_len(const struct session *session)
{
    const char *at = session->text + 1;
    long words;

    if (session->len == 0 || strstr(at, "\r\n") == NULL)
        return 0;
    SIM_CHECK(session->text[0] == '*');
    words = strtol(at, NULL, 10);
    for (at = strstr(at, "\r\n") + 2; words > 0; words--) {
        char *end;

        if (strstr(at, "\r\n") == NULL)
            return 0;
        SIM_CHECK(*at == '$');
        at = at + 1 + strtol(at + 1, &end, 10) + (end - at - 1) + 4;
        if (at > session->text + session->len)
            return 0;
    }
    return (size_t)(at - session->text);
}

static void take_bytes(void *peer, const char *bytes, size_t len)
{
    struct session *session = peer;

    SIM_CHECK(session->len + len < sizeof(session->text));
    memcpy(session->text + session->len, bytes, len);
    session->len += len;
    session->text[session->len] = '\0';
    while ((len = command_len(session)) > 0) {
        char command[256];

        (void)snprintf(command, sizeof(command), "%.*s", (int)len,
                       session->text); /* cut */
        session->len -= len;
        memmove(session->text, session->text + len, session->len + 1);
        answer(session, command);
    }
}

static const struct sim_service server = {begin_session, take_bytes, free};

/* --- the client ---------------------------------------------------------- */

static struct client {
    struct weir__redis_url url;
    struct weir__conn *conn;
    ev_timer next, end;
    long last; /* answer */
} client;

static void on_state(int code, const char *text, void *arg)
{
    (void)arg;
    sim_note(text, text == NULL ? 0 : strlen(text));
    if (code == WEIR_OK)
        conn_world.readies++;
    else
        conn_world.losses++;
}

static void on_reply(int code, const struct redisReply *reply, void *arg)
{
    ++*(int *)arg;
    SIM_CHECK(code == WEIR_OK);
    conn_world.falls += reply->integer <= client.last;
    client.last = (long)reply->integer;
}

static void send_next(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__buf bytes = {0};

    (void)events;
    weir__resp_words(&bytes, (const char *const[]){"INCR", "n", NULL});
    SIM_CHECK(
        weir__conn_send(client.conn, &bytes, NULL, WEIR__SEND_AGAIN, on_reply,
                        &conn_world.answers[conn_world.sent++]) == WEIR_OK);
    weir__conn_flush(client.conn);
    if (conn_world.sent == CONN_COMMANDS)
        return;
    ev_timer_set(timer, (double)sim_below(200) * 1e-3, 0.);
    ev_timer_start(loop, timer);
}

static void end_loop(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)timer;
    (void)events;
    ev_break(loop, EVBREAK_ALL);
}

static void run_client(void *arg)
{
    struct ev_loop *loop = ev_loop_new(EVFLAG_AUTO);
    struct weir__conn_options options = {.loop = loop,
                                         .url = &client.url,
                                         .seed = sim_random(),
                                         .name = "sim",
                                         .on_state = on_state};

    client.url.host_count = 1;
    client.url.hosts[0].port = 6379;
    (void)snprintf(client.url.hosts[0].name, sizeof(client.url.hosts[0].name),
                   "%s", (const char *)arg); /* fits */
    SIM_CHECK(weir__conn_open(&options, &client.conn) == WEIR_OK);
    ev_timer_init(&client.next, send_next, 0.1, 0.);
    ev_timer_start(loop, &client.next);
    ev_timer_init(&client.end, end_loop, LOOP_S, 0.);
    ev_timer_start(loop, &client.end);
    ev_run(loop, 0);
    weir__conn_close(client.conn);
    ev_loop_destroy(loop);
}

static void cut_again(void *arg)
{
    sim_cut(port);
    if (sim_one_in(3))
        sim_stall(port, sim_now() + (int64_t)sim_below(2000) * SIM_MS);
    if (conn_world.sent < CONN_COMMANDS)
        sim_at(sim_now() + (int64_t)sim_below(3000) * SIM_MS, cut_again, arg);
}

uint64_t conn_world_run(uint64_t seed, bool cuts, const char *host)
{
    uint64_t hash;

    memset(&client, 0, sizeof(client));
    memset(&conn_world, 0, sizeof(conn_world));
    sim_open(seed);
    sim_net.in_pieces = true;
    sim_name("redis.example", "10.0.0.1");
    port = sim_listen("10.0.0.1:6379", &server, NULL);
    (void)sim_start("client", run_client, (void *)(uintptr_t)host);
    sim_net.cut_one_in = cuts ? 50 : 0;
    if (cuts)
        sim_at(sim_now() + SIM_S, cut_again, NULL);
    sim_run(sim_now() + (LOOP_S + 10) * SIM_S);
    hash = sim_hash();
    sim_close();
    return hash;
}
