/* SPDX-License-Identifier: MIT */

/* Bodies of answers, and the headers that all of them have. */

#include "adapters/http/content.h"

#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

/* Against scripts from elsewhere, frames, guesses at the type, and addresses
 * told to others. */
static const char *const headers[][2] = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; "
     "img-src 'self' data:; connect-src 'self'; form-action 'self'; "
     "frame-ancestors 'none'; base-uri 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"X-Frame-Options", "DENY"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
};

bool weir__response_header(struct MHD_Response *response, const char *name,
                           const char *value)
{
    return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_headers(struct MHD_Response *response, const char *type)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        if (!weir__response_header(response, headers[i][0], headers[i][1]))
            return false;
    }
    return type == NULL ||
           weir__response_header(response, "Content-Type", type);
}

static struct MHD_Response *new_response(const char *type, void *bytes,
                                         size_t len,
                                         MHD_ContentReaderFreeCallback release)
{
    struct MHD_Response *response =
        release != NULL
            ? MHD_create_response_from_buffer_with_free_callback(len, bytes,
                                                                 release)
            : MHD_create_response_from_buffer(len, bytes,
                                              MHD_RESPMEM_PERSISTENT);

    if (response != NULL && add_headers(response, type))
        return response;
    if (response != NULL)
        MHD_destroy_response(response);
    else if (release != NULL)
        release(bytes);
    return NULL;
}

struct MHD_Response *weir__response_new(const char *type, struct weir__buf *buf)
{
    uint8_t *bytes = buf->ptr;
    size_t len = buf->len;

    if (buf->failed) {
        weir__buf_fini(buf);
        return NULL;
    }
    memset(buf, 0, sizeof(*buf));
    if (len == 0) {
        weir__mem_free(bytes);
        return new_response(type, NULL, 0, NULL);
    }
    return new_response(type, bytes, len, weir__mem_free);
}

/* --- content ------------------------------------------------------------ */

/* The ETag of the bytes: two different contents of one length meet once in
 * 2^64. */
static void make_etag(struct weir__http_content *content,
                      struct weir_slice bytes)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (size_t i = 0; i < bytes.len; i++)
        hash = (hash ^ bytes.ptr[i]) * UINT64_C(1099511628211);
    (void)snprintf(content->etag, sizeof(content->etag), "\"%016" PRIx64 "\"",
                   hash); /* fits */
}

static struct weir__http_content *finish(struct weir__http_content *content)
{
    struct MHD_Response *both[2];

    content->unchanged = new_response(NULL, NULL, 0, NULL);
    both[0] = content->whole;
    both[1] = content->unchanged;
    for (size_t i = 0; i < 2; i++) {
        if (both[i] == NULL ||
            !weir__response_header(both[i], "ETag", content->etag) ||
            !weir__response_header(both[i], "Cache-Control", "no-cache")) {
            weir__http_content_free(content);
            return NULL;
        }
    }
    return content;
}

struct weir__http_content *weir__http_content_new(const char *type,
                                                  struct weir__buf *buf)
{
    struct weir__http_content *content = weir__mem_new(sizeof(*content));

    if (content == NULL) {
        weir__buf_fini(buf);
        return NULL;
    }
    content->refs = 1;
    content->len = buf->len;
    make_etag(content, weir__buf_slice(buf));
    content->whole = weir__response_new(type, buf);
    return finish(content);
}

struct weir__http_content *weir__http_content_static(const char *type,
                                                     struct weir_slice bytes)
{
    struct weir__http_content *content = weir__mem_new(sizeof(*content));

    if (content == NULL)
        return NULL;
    content->refs = 1;
    make_etag(content, bytes);
    /* libmicrohttpd has no type for bytes that it only reads */
    content->whole =
        new_response(type, (void *)(uintptr_t)bytes.ptr, bytes.len, NULL);
    return finish(content);
}

void weir__http_content_free(struct weir__http_content *content)
{
    if (content == NULL || --content->refs > 0)
        return;
    if (content->whole != NULL)
        MHD_destroy_response(content->whole);
    if (content->unchanged != NULL)
        MHD_destroy_response(content->unchanged);
    weir__mem_free(content);
}
