/* SPDX-License-Identifier: MIT */
#include "core/buf.h"

#include <string.h>

#include "core/assert.h"
#include "core/mem.h"

enum { BUF_FIRST_CAP = 256 };

void weir__buf_fini(struct weir__buf *buf)
{
    weir__mem_free(buf->ptr);
    *buf = (struct weir__buf){0};
}

void weir__buf_reset(struct weir__buf *buf)
{
    buf->len = 0;
    buf->failed = false;
}

uint8_t *weir__buf_reserve(struct weir__buf *buf, size_t len)
{
    WEIR_ASSERT(buf->len <= buf->cap);
    if (buf->failed)
        return NULL;
    if (buf->cap - buf->len < len) {
        size_t cap = buf->cap < BUF_FIRST_CAP ? BUF_FIRST_CAP : buf->cap;
        uint8_t *ptr;

        while (cap - buf->len < len && cap <= SIZE_MAX / 2)
            cap *= 2;
        ptr = cap - buf->len < len ? NULL : weir__mem_grow(buf->ptr, cap, 1);
        if (ptr == NULL) {
            buf->failed = true;
            return NULL;
        }
        buf->ptr = ptr;
        buf->cap = cap;
    }
    return buf->ptr + buf->len;
}

void weir__buf_append(struct weir__buf *buf, const void *bytes, size_t len)
{
    uint8_t *to;

    if (len == 0)
        return;
    to = weir__buf_reserve(buf, len);
    if (to == NULL)
        return;
    memcpy(to, bytes, len);
    buf->len += len;
}
