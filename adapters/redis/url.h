/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_URL_H
#define WEIR_REDIS_URL_H

/* Server addresses: redis://[user:pass@]host[:port][/db] and
 * unix:///path.sock[?db=N]. */

#include <weir/base.h>

struct weir__redis_url {
    bool is_unix;
    char host[256]; /* or the socket's path, at most 107 bytes */
    uint16_t port;  /* 0 for a socket */
    char user[128]; /* percent-decoded; "" when none */
    char password[256];
    uint32_t db;
};

/* Parse an address. WEIR_EINVAL with a sentence that never shows a password.
 * rediss:// is refused by name: this build has no TLS. */
int weir__redis_url_parse(const char *text, struct weir__redis_url *ret_url,
                          struct weir_error *err);

/* The address without its password, for messages. */
void weir__redis_url_print(const struct weir__redis_url *url, char *buf,
                           size_t cap);

#endif
