/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/url.h"
#include "core/assert.h"

/* From one address to that of one server. */

/* What only data servers are told, or only sentinels. */
static void clear_login(struct weir__redis_url *url)
{
    url->is_sentinel = false;
    url->host_count = 1;
    url->service[0] = '\0';
    url->sentinel_user[0] = '\0';
    url->sentinel_password[0] = '\0';
}

void weir__redis_url_of_sentinel(const struct weir__redis_url *url,
                                 const struct weir__redis_host *host,
                                 struct weir__redis_url *ret_url)
{
    WEIR_ASSERT(url->is_sentinel);
    *ret_url = *url;
    clear_login(ret_url);
    ret_url->hosts[0] = *host;
    memcpy(ret_url->user, url->sentinel_user, sizeof(ret_url->user));
    memcpy(ret_url->password, url->sentinel_password,
           sizeof(ret_url->password));
    ret_url->password_file[0] = '\0';
    ret_url->has_password_in_env = false;
    ret_url->db = 0;
}

void weir__redis_url_of_server(const struct weir__redis_url *url,
                               const struct weir__redis_host *host,
                               struct weir__redis_url *ret_url)
{
    *ret_url = *url;
    clear_login(ret_url);
    ret_url->hosts[0] = *host;
}

static bool read_port(struct weir_slice text, uint16_t *ret_port)
{
    unsigned long value = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || value > UINT16_MAX)
            return false;
        value = value * 10 + (unsigned long)(text.ptr[i] - '0');
    }
    *ret_port = (uint16_t)value;
    return value > 0 && value <= UINT16_MAX;
}

bool weir__redis_host_read(struct weir_slice name, struct weir_slice port,
                           struct weir__redis_host *ret_host)
{
    if (name.len == 0 || name.len >= sizeof(ret_host->name) ||
        !read_port(port, &ret_host->port))
        return false;
    memcpy(ret_host->name, name.ptr, name.len);
    ret_host->name[name.len] = '\0';
    return true;
}
