/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_PEER_H
#define WEIR_TEST_PEER_H

/* A server within the fuzzed process: shakes hands as Redis does and answers
 * everything else with the replies that the input consists of, in order, until
 * there are no more. */

#include <stdbool.h>

#include "core/buf.h"

enum { PEER_CLIENTS = 8 };

struct peer_client {
    int fd; /* -1: none */
    struct weir__buf in;
};

struct peer {
    int listener;
    char url[64];
    struct peer_client clients[PEER_CLIENTS];
    struct weir_slice replies; /* what is left of the input */
    size_t time;               /* how it answers TIME */
    bool is_silent;            /* a reply was asked for and none was left */
};

/* Listen on a socket of its own. */
void peer_open(struct peer *peer);

/* Begin with other replies, without connections. */
void peer_reset(struct peer *peer, struct weir_slice replies);

/* Take connections, read commands, answer. False when nothing happened. */
bool peer_turn(struct peer *peer);

#endif
