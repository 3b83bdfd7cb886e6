/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLUSTER_ENDPOINT_H
#define WEIR_CLUSTER_ENDPOINT_H

/* Where a node of a cluster is, as one of them tells it. */

#include "adapters/redis/url.h"

/* What is told need not be an address: no host at all is the one at which the
 * node that answers was asked, and "?" one that it does not know, as port 0 is
 * none for connections of this kind. */
enum weir__endpoint {
    WEIR__ENDPOINT_KNOWN,
    WEIR__ENDPOINT_UNKNOWN,
    WEIR__ENDPOINT_WRONG /* no host or port can be this */
};

/* `asked` is that address; of a socket, which has port 0, no host means that
 * server, whatever the port. `*ret_host` is written where it is known. */
enum weir__endpoint weir__endpoint_read(struct weir_slice host, int64_t port,
                                        const struct weir__redis_host *asked,
                                        struct weir__redis_host *ret_host);

/* Whether both are one address. */
bool weir__endpoint_equal(const struct weir__redis_host *one,
                          const struct weir__redis_host *other);

#endif
