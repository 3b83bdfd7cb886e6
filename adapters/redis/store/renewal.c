/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/renewal.h"

#include <string.h>

#include "core/text.h"

/* Ahead of each call. */
struct head {
    const struct weir__script *script;
    size_t len;
};

void weir__renewals_begin(struct weir__renewals *renewals,
                          const struct weir__script *script)
{
    struct head head = {script, 0};

    renewals->begun = renewals->bytes.len;
    weir__buf_append(&renewals->bytes, &head, sizeof(head));
}

void weir__renewals_end(struct weir__renewals *renewals)
{
    struct weir__buf *bytes = &renewals->bytes;
    struct head head;

    if (bytes->failed)
        return;
    memcpy(&head, bytes->ptr + renewals->begun, sizeof(head));
    head.len = bytes->len - renewals->begun - sizeof(head);
    memcpy(bytes->ptr + renewals->begun, &head, sizeof(head));
}

struct weir_slice weir__renewals_next(const struct weir__renewals *renewals,
                                      size_t *at,
                                      const struct weir__script **ret_script)
{
    const struct weir__buf *bytes = &renewals->bytes;
    struct head head;

    if (bytes->failed || *at >= bytes->len)
        return (struct weir_slice){0};
    memcpy(&head, bytes->ptr + *at, sizeof(head));
    *ret_script = head.script;
    *at += sizeof(head) + head.len;
    return weir__slice_of(bytes->ptr + *at - head.len, head.len);
}

void weir__renewals_reset(struct weir__renewals *renewals)
{
    weir__buf_reset(&renewals->bytes);
}

void weir__renewals_fini(struct weir__renewals *renewals)
{
    weir__buf_fini(&renewals->bytes);
}
