/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_RESP_PEER_H
#define WEIR_TEST_RESP_PEER_H

/* A scripted RESP server on a unix socket, for what a real one will not do: odd
 * replies, half of a reply, silence, hanging up. It reads commands and answers
 * each with +OK unless a rule says otherwise. A child of the test, which dies
 * with it. */

#include <stdbool.h>
#include <stddef.h>

struct resp_rule {
    int connection;    /* which one, from 1; 0: any */
    int command;       /* after which command of it, from 1; 0: any */
    const char *bytes; /* sent instead of +OK; NULL: nothing */
    bool hangs_up;     /* then close the connection */
    const char *more;  /* else sent again and again behind it, until the other
                          side hangs up; NULL: nothing */
    int every_ms;      /* at this distance; 0: as fast as it goes */
};

struct resp_peer;

/* The first rule that fits counts; `rules` are kept. Stopped with the test, or
 * before. */
struct resp_peer *resp_peer_start(const struct resp_rule *rules, size_t count);

const char *resp_peer_socket(const struct resp_peer *peer);

/* Kill it, remove its socket, free it. */
void resp_peer_stop(struct resp_peer *peer);

#endif
