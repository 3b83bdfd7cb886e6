/* SPDX-License-Identifier: MIT */

/* Any text as JSON: what was read can be printed and read again. */

#include <string.h>

#include "adapters/json/json.h"
#include "adapters/msgpack/scan.h"
#include "tests/fuzz/fuzz.h"

static void print_and_read(struct weir_slice value)
{
    size_t len = weir__json_print(value, NULL, 0);
    char *text = malloc(len + 1);
    struct weir__buf again = {0};

    FUZZ_TRUE(len > 0 && text != NULL);
    FUZZ_TRUE(weir__json_print(value, text, len + 1) == len);
    FUZZ_TRUE(weir__json_to_msgpack(weir__slice_of(text, len), &again, NULL) ==
              WEIR_OK);
    FUZZ_TRUE(weir__slice_equal(weir__buf_slice(&again), value));
    weir__buf_fini(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__buf value = {0};
    struct weir_error err = {0};
    int code = weir__json_to_msgpack(weir__slice_of(data, size), &value, &err);

    FUZZ_TRUE(code == WEIR_OK || (value.len == 0 && err.text[0] != '\0'));
    if (code == WEIR_OK) {
        FUZZ_TRUE(weir__msgpack_check(weir__buf_slice(&value)) == WEIR_OK);
        print_and_read(weir__buf_slice(&value));
    }
    weir__buf_fini(&value);
    return 0;
}
