/* SPDX-License-Identifier: MIT */
/* The JSON half of <weir/weir.h>. */
#include <weir/weir.h>

#include <string.h>

#include "adapters/json/json.h"
#include "core/mem.h"
#include "core/text.h"

int weir_body_from_json(const char *json, size_t len,
                        struct weir_slice *ret_body, struct weir_error *err)
{
    struct weir__buf buf = {0};
    int rc = weir__json_to_msgpack(weir__slice_of(json, len), &buf, err);

    if (rc < 0) {
        weir__buf_fini(&buf);
        return rc;
    }
    *ret_body = weir__buf_slice(&buf);
    return WEIR_OK;
}

void weir_body_free(struct weir_slice body)
{
    void *ptr;

    /* A slice is read-only, but these bytes were ours to begin with. */
    memcpy(&ptr, &body.ptr, sizeof(ptr));
    weir__mem_free(ptr);
}
