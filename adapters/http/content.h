/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_CONTENT_H
#define WEIR_HTTP_CONTENT_H

/* Answers as libmicrohttpd has them. */

#include "adapters/http/http.h"

struct MHD_Response;

struct weir__http_content {
    struct MHD_Response *whole;     /* owned: one share */
    struct MHD_Response *unchanged; /* likewise: 304 */
    char etag[24];
    size_t len;
    size_t refs;    /* its owner's, and requests that are answered with it */
    size_t readers; /* connections that read `whole` */
};

/* Takes the bytes of `buf`, which is empty afterwards. NULL: out of memory. */
struct MHD_Response *weir__response_new(const char *type,
                                        struct weir__buf *buf);

/* False: out of memory. */
bool weir__response_header(struct MHD_Response *response, const char *name,
                           const char *value);

#endif
