/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include "adapters/redis/conn/compat.h"
#include "adapters/redis/conn/tls.h"
#include "core/assert.h"
#include "core/error.h"

/* TLS of a build that has none: no context is ever made, so nothing else is
 * called. */

int weir__tls_new(const struct weir__redis_url *url, struct weir__tls **ret_tls,
                  struct weir_error *err)
{
    *ret_tls = NULL;
    if (!url->is_tls)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "redis address: rediss:// needs TLS, and this weir was built against "
        "hiredis %d.%d.%d%s; use one built with hiredis 1.0 or newer, as in "
        "Debian 13, or a tunnel such as stunnel",
        HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH,
        HIREDIS_MAJOR < 1 ? ", which has none" : " without its hiredis_ssl");
}

void weir__tls_free(struct weir__tls *tls)
{
    (void)tls; /* NULL */
}

struct ssl_st *weir__tls_begin(const struct weir__tls *tls,
                               struct redisContext *context, const char *host,
                               char *why, size_t cap)
{
    (void)tls;
    (void)context;
    (void)host;
    (void)why;
    (void)cap;
    WEIR_UNREACHABLE("TLS without a context");
}

bool weir__tls_finish(struct ssl_st *ssl, int limit_ms, char *why, size_t cap)
{
    (void)ssl;
    (void)limit_ms;
    (void)why;
    (void)cap;
    WEIR_UNREACHABLE("TLS without a context");
}

void weir__tls_prepare(void)
{
    WEIR_UNREACHABLE("TLS without a context");
}

bool weir__tls_reason(const struct ssl_st *ssl, char *text, size_t cap)
{
    (void)ssl;
    (void)text;
    (void)cap;
    WEIR_UNREACHABLE("TLS without a context");
}
