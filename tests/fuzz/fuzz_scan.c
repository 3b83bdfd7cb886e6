/* SPDX-License-Identifier: MIT */

/* Any bytes as a msgpack value: reads stay inside of them; what was checked can
 * be printed, and what was not does no harm. */

#include <string.h>

#include "adapters/json/json.h"
#include "adapters/msgpack/scan.h"
#include "tests/fuzz/fuzz.h"

static void find_some(struct weir_slice bytes)
{
    static const char *const paths[] = {"", "0", "a", "a.b", "1.0.a", "."};
    struct weir_value value;

    FUZZ_TRUE(weir__msgpack_head(bytes, &value) <= bytes.len);
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        weir__msgpack_find(bytes, paths[i], &value);
        if (value.type == WEIR_TYPE_STR || value.type == WEIR_TYPE_BIN ||
            value.type == WEIR_TYPE_EXT)
            fuzz_inside(value.as.bytes, bytes.ptr, bytes.len);
    }
}

static void print(struct weir_slice bytes)
{
    char cut[16];
    size_t len = weir__json_print(bytes, cut, sizeof(cut));
    char *whole = malloc(len + 1);

    FUZZ_TRUE(len > 0 && whole != NULL);
    FUZZ_TRUE(weir__json_print(bytes, whole, len + 1) == len);
    FUZZ_TRUE(strlen(whole) == len);
    free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_slice bytes = {data, size};
    size_t len = weir__msgpack_length(bytes);
    bool is_one = weir__msgpack_check(bytes) == WEIR_OK;

    FUZZ_TRUE(len <= size && is_one == (len == size && size > 0));
    find_some(bytes);
    if (is_one)
        print(bytes);
    return 0;
}
