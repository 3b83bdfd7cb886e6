/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_RESP_PEER_H
#define WEIR_TEST_RESP_PEER_H

/* A scripted RESP server, for what a real one will not do: odd replies, half of
 * a reply, silence, hanging up, slots that are nowhere. It reads commands and
 * answers each with +OK unless a rule says otherwise. A child of the test, with
 * which it dies. */

#include <stdbool.h>
#include <stddef.h>

struct resp_rule {
    int connection;    /* which one, from 1; 0: any */
    int command;       /* after which command of it, from 1; 0: any */
    const char *words; /* stands in the command, whose words are joined by
                          blanks: "CLUSTER SLOTS", "{t}"; NULL: in any */
    int times;         /* for so many commands only; 0: for all */
    const char *bytes; /* sent instead of +OK; NULL: nothing */
    bool hangs_up;     /* then close the connection */
    const char *more;  /* else sent again and again behind it, until the other
                          side hangs up; NULL: nothing */
    int every_ms;      /* at this distance; 0: as fast as it goes */
};

struct resp_peer;

/* On a unix socket. The first rule that fits counts; `rules` are kept. Stopped
 * with the test, or before. */
struct resp_peer *resp_peer_start(const struct resp_rule *rules, size_t count);

const char *resp_peer_socket(const struct resp_peer *peer);

/* On a port of 127.0.0.1, so that rules of others can name it: who connects
 * before resp_peer_run waits. */
struct resp_peer *resp_peer_prepare(void);
void resp_peer_run(struct resp_peer *peer, const struct resp_rule *rules,
                   size_t count);

/* Before it runs: what no rule fits goes to the server at this socket, whose
 * answers come in the order of the commands; kept. */
void resp_peer_stand_before(struct resp_peer *peer, const char *socket);

int resp_peer_port(const struct resp_peer *peer);

/* The commands that came, in their order: lines of the connection's number and
 * the words, cut to 200 bytes, with dots for what cannot be printed. Valid
 * until the next one. */
const char *resp_peer_heard(struct resp_peer *peer);

/* A range of slots and its node. */
struct resp_range {
    int first, last;
    const char *host; /* NULL: nil */
    int port;
};

/* The answer to CLUSTER SLOTS that says so; ends the test where it does not
 * fit. */
void resp_slots(const struct resp_range *ranges, size_t count, char *buf,
                size_t cap);

/* It answers nothing more, and takes nothing: SIGSTOP. */
void resp_peer_pause(const struct resp_peer *peer);

/* Kill it, remove its socket, free it. */
void resp_peer_stop(struct resp_peer *peer);

#endif
