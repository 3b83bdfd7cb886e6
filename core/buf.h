/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BUF_H
#define WEIR_BUF_H

/* A growing byte buffer that owns its bytes. Errors are sticky: after a failed
 * append `failed` is set and further appends do nothing, so a writer checks
 * once at the end. A zeroed struct is an empty buffer. */

#include <weir/base.h>

struct weir__buf {
    uint8_t *ptr; /* NULL while nothing was appended */
    size_t len;   /* bytes written */
    size_t cap;   /* bytes allocated */
    bool failed;  /* out of memory at some append */
};

void weir__buf_fini(struct weir__buf *buf);

/* Empty it and clear `failed`; keeps the memory. */
void weir__buf_reset(struct weir__buf *buf);

void weir__buf_append(struct weir__buf *buf, const void *bytes, size_t len);

/* Room for `len` more bytes, to be written there and then added to buf->len by
 * the caller; NULL when out of memory. */
uint8_t *weir__buf_reserve(struct weir__buf *buf, size_t len);

static inline struct weir_slice weir__buf_slice(const struct weir__buf *buf)
{
    return (struct weir_slice){buf->ptr, buf->len};
}

#endif
