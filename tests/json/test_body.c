/* SPDX-License-Identifier: MIT */
#include <weir/weir.h>

#include <string.h>

#include "adapters/json/json.h"
#include "tests/harness/oom.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

/* JSON of an array of 200 texts: long enough that buffers grow more than once.
 * Released with weir__buf_fini. */
static struct weir__buf long_json(void)
{
    struct weir__buf json = {0};

    weir__buf_append(&json, "[", 1);
    for (int i = 0; i < 200; i++)
        weir__buf_append(&json, "\"0123456789\",", 13);
    weir__buf_append(&json, "{\"key\":1.5}]", 12);
    return json;
}

TEST(a_body_is_made_of_json)
{
    struct weir_slice body = {0};

    EXPECT_INT(WEIR_OK, weir_body_from_json("{\"a\":[1]}", 9, &body, NULL));
    EXPECT_MEM("\x81\xa1"
               "a\x91\x01",
               5, body.ptr, body.len);
    weir_body_free(body);
    weir_body_free((struct weir_slice){0});
}

TEST(a_refused_body_leaves_the_result_alone)
{
    struct weir_slice body = BYTES("kept");
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EINVAL, weir_body_from_json("[1", 2, &body, &err));
    EXPECT_STR("json: unexpected end of data at byte 3", err.text);
    EXPECT_INT(WEIR_EINVAL, weir_body_from_json(NULL, 0, &body, NULL));
    EXPECT_MEM("kept", 4, body.ptr, body.len);
}

TEST(making_a_body_survives_any_allocation_failure)
{
    struct weir__buf json = long_json();
    struct weir_slice body = {0};
    int rc = WEIR_ENOMEM;
    int failures = 0;

    for (; rc == WEIR_ENOMEM; failures++) {
        struct weir_error err = {0};

        oom_after(failures);
        rc = weir_body_from_json((const char *)json.ptr, json.len, &body, &err);
        oom_off();
        EXPECT_INT(rc, err.code);
    }
    EXPECT_INT(WEIR_OK, rc);
    EXPECT_TRUE(failures > 3);
    weir_body_free(body);
    weir__buf_fini(&json);
}

/* A value whose printing needs memory of our own: broken UTF-8, a key that is
 * an array, binary. */
static const char hard[] = "\x82\x91\x01\xa2\xff\xff"
                           "\xa2\xff"
                           "k\xc4\x03"
                           "abc";

TEST(printing_survives_any_allocation_failure)
{
    size_t len = 0;
    char text[100] = "";
    int failures = 0;

    for (; len == 0; failures++) {
        oom_after(failures);
        len = weir__json_print(BYTES(hard), text, sizeof(text));
        oom_off();
    }
    EXPECT_STR("{\"[1]\":\"\xef\xbf\xbd\xef\xbf\xbd\","
               "\"\xef\xbf\xbdk\":{\"$bin\":\"YWJj\"}}",
               text);
    EXPECT_TRUE(failures > 3);
}
