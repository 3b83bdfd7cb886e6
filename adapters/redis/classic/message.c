/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/record.h"
#include "adapters/msgpack/scan.h"
#include "adapters/redis/classic/private.h"
#include "core/mem.h"
#include "core/text.h"

/* Messages as they are stored: scripts/lib/message.lua. */

static struct weir_slice behind(struct weir_slice bytes, size_t len)
{
    return weir__slice_of(bytes.ptr + len, bytes.len - len);
}

int weir__message_read(struct weir_slice bytes, struct weir_slice *ret_id,
                       int64_t *ret_due_ms, struct weir__record *ret_record)
{
    struct weir_value array, id, due;

    if (weir__msgpack_check(bytes) != WEIR_OK)
        return WEIR_EMALFORMED;
    bytes = behind(bytes, weir__msgpack_head(bytes, &array));
    if (array.type != WEIR_TYPE_ARRAY || array.as.count != 3)
        return WEIR_EMALFORMED;
    bytes = behind(bytes, weir__msgpack_head(bytes, &id));
    if (id.type != WEIR_TYPE_STR ||
        weir__id_check_any(id.as.bytes, NULL) != WEIR_OK)
        return WEIR_EMALFORMED;
    bytes = behind(bytes, weir__msgpack_head(bytes, &due));
    if (due.type != WEIR_TYPE_INT)
        return WEIR_EMALFORMED;
    *ret_id = id.as.bytes;
    *ret_due_ms = due.as.i64 < 0                  ? 0
                  : due.as.i64 > WEIR__DUE_MAX_MS ? WEIR__DUE_MAX_MS
                                                  : due.as.i64;
    return weir__record_read(bytes, ret_record);
}

void weir__message_free(struct weir__message *message)
{
    if (message == NULL)
        return;
    weir__run_fini(&message->run);
    weir__mem_free(message);
}
