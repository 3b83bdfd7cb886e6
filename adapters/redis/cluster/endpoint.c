/* SPDX-License-Identifier: MIT */
#include "adapters/redis/cluster/endpoint.h"

#include <string.h>

#include "core/text.h"

/* Something to look up and to print. */
static bool is_host(struct weir_slice host)
{
    if (host.len >= WEIR__REDIS_TEXT_CAP)
        return false;
    for (size_t i = 0; i < host.len; i++)
        if (host.ptr[i] <= ' ' || host.ptr[i] > '~')
            return false;
    return true;
}

enum weir__endpoint weir__endpoint_read(struct weir_slice host, int64_t port,
                                        const struct weir__redis_host *asked,
                                        struct weir__redis_host *ret_host)
{
    if (port < 0 || port > UINT16_MAX || !is_host(host))
        return WEIR__ENDPOINT_WRONG;
    if (host.len == 0 && asked->port == 0) {
        *ret_host = *asked;
        return WEIR__ENDPOINT_KNOWN;
    }
    if (port == 0 || weir__slice_equal(host, weir__slice_str("?")))
        return WEIR__ENDPOINT_UNKNOWN;
    if (host.len == 0)
        host = weir__slice_str(asked->name);
    memcpy(ret_host->name, host.ptr, host.len);
    ret_host->name[host.len] = '\0';
    ret_host->port = (uint16_t)port;
    return WEIR__ENDPOINT_KNOWN;
}

bool weir__endpoint_equal(const struct weir__redis_host *one,
                          const struct weir__redis_host *other)
{
    return one->port == other->port && strcmp(one->name, other->name) == 0;
}
