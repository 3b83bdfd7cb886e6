/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_TLS_H
#define WEIR_CONN_TLS_H

/* TLS below a connection: hiredis_ssl, with an SSL object of ours, because
 * hiredis checks no name. Knows OpenSSL so that nobody else has to. Where
 * hiredis is too old to have TLS, tls_none.c stands in and refuses. */

#include "adapters/redis/url.h"

struct redisContext;
struct ssl_st;
struct weir__tls;

/* What an address says of TLS, its files read: for any number of connections,
 * on any thread. *ret_tls is NULL for an address without. WEIR_EINVAL, with a
 * sentence that names the parameter; WEIR_ENOMEM. */
int weir__tls_new(const struct weir__redis_url *url, struct weir__tls **ret_tls,
                  struct weir_error *err);

/* After the last connection that used it. NULL is fine. */
void weir__tls_free(struct weir__tls *tls);

/* Begin TLS on a connected context, which does not block from then on. Its
 * reads and writes go on with the handshake. The certificate has to name
 * `host`, or the address's server_name. The result belongs to the context.
 * NULL: it failed, and `why` says how; the context is of no use. This alone
 * may raise SIGPIPE. */
struct ssl_st *weir__tls_begin(const struct weir__tls *tls,
                               struct redisContext *context, const char *host,
                               char *why, size_t cap);

/* Go on with the handshake until it is through. BLOCKS up to `limit_ms`. */
bool weir__tls_finish(struct ssl_st *ssl, int limit_ms, char *why, size_t cap);

/* Before the context is read or written: forget others' errors, by which
 * OpenSSL would judge. */
void weir__tls_prepare(void);

/* After that: why the connection ended, where TLS is the reason. */
bool weir__tls_reason(const struct ssl_st *ssl, char *text, size_t cap);

#endif
