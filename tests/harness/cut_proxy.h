/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_CUT_PROXY_H
#define WEIR_TEST_CUT_PROXY_H

/* Stands between a client and a server on 127.0.0.1 and hangs up on both: on
 * the n-th connection when n - 1 bytes went through, in one direction. A child
 * of the test, which dies with it. */

#include <stdbool.h>

struct cut_proxy_options {
    int port;          /* of the server */
    bool counts_sent;  /* what the client sends; else what it is answered */
    int cut_at;        /* the first connection's bytes, instead of 0 */
    int byte_every_ms; /* answers come one byte at a time, and are not cut */
};

/* Returns the port to connect to. One in a test. */
int cut_proxy_start(const struct cut_proxy_options *options);

#endif
