/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_LISTEN_H
#define WEIR_HTTP_LISTEN_H

/* A listening TCP socket of an address as people write it. */

#include <weir/base.h>

struct weir__listen {
    int fd; /* owned */
    bool is_loopback;
    unsigned int port;
    char address[64]; /* "[::1]:8080" */
};

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080"; ":8080": every address of
 * this host; port 0: any free one. Sentences begin with `what`. WEIR_EINVAL:
 * no such thing; WEIR_ESYSTEM: the address is taken, or not of this host.
 * Names beside localhost are not looked up. */
int weir__listen_open(const char *text, const char *what,
                      struct weir__listen *ret_listen, struct weir_error *err);

#endif
