/* SPDX-License-Identifier: MIT */
#include "adapters/redis/resp.h"

#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/harness/test.h"

static void expect_bytes(const char *wanted, struct weir__buf *buf)
{
    EXPECT_TRUE(!buf->failed);
    EXPECT_MEM(wanted, strlen(wanted), buf->ptr, buf->len);
    weir__buf_fini(buf);
}

TEST(a_command_is_written_as_an_array_of_bulk_strings)
{
    struct weir__buf buf = {0};

    weir__resp_command(&buf, 3);
    weir__resp_str(&buf, "SET");
    weir__resp_bytes(&buf, (struct weir_slice){(const uint8_t *)"k\r\n", 3});
    weir__resp_int(&buf, -12);
    expect_bytes("*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$3\r\n-12\r\n", &buf);
}

TEST(a_command_of_words_ends_with_them)
{
    static const char *const words[] = {"CLIENT", "ID", NULL};
    struct weir__buf buf = {0};

    weir__resp_words(&buf, words);
    expect_bytes("*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n", &buf);
}

TEST(an_empty_argument_keeps_its_frame)
{
    struct weir__buf buf = {0};

    weir__resp_command(&buf, 2);
    weir__resp_str(&buf, "");
    weir__resp_bytes(&buf, (struct weir_slice){NULL, 0});
    expect_bytes("*2\r\n$0\r\n\r\n$0\r\n\r\n", &buf);
}

TEST(an_argument_can_be_written_in_place)
{
    struct weir__buf buf = {0};

    weir__resp_command(&buf, 1);
    weir__resp_begin(&buf, 12);
    weir__buf_append(&buf, "hello ", 6);
    weir__buf_append(&buf, "world!", 6);
    weir__resp_end(&buf);
    expect_bytes("*1\r\n$12\r\nhello world!\r\n", &buf);
}

TEST(numbers_of_every_length_read_back)
{
    static const int64_t numbers[] = {0,   9,    10,        -1,       -10,
                                      999, 1000, INT64_MAX, INT64_MIN};
    char wanted[64], digits[32];

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        struct weir__buf buf = {0};

        (void)snprintf(digits, sizeof(digits), "%lld", (long long)numbers[i]);
        (void)snprintf(wanted, sizeof(wanted), "$%zu\r\n%s\r\n", strlen(digits),
                       digits);
        weir__resp_int(&buf, numbers[i]);
        expect_bytes(wanted, &buf);
    }
}

TEST(long_arguments_are_what_hiredis_writes)
{
    static const size_t sizes[] = {9, 10, 99, 100, 65535, 1234567};
    static char bytes[1234567];

    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct weir__buf buf = {0};
        char *wanted;
        int len = redisFormatCommand(&wanted, "ECHO %b", bytes, sizes[i]);

        weir__resp_command(&buf, 2);
        weir__resp_str(&buf, "ECHO");
        weir__resp_bytes(&buf,
                         (struct weir_slice){(const uint8_t *)bytes, sizes[i]});
        EXPECT_MEM(wanted, (size_t)len, buf.ptr, buf.len);
        weir__buf_fini(&buf);
        redisFreeCommand(wanted);
    }
}

TEST(a_length_that_overflows_fails_and_stays_failed)
{
    struct weir__buf buf = {0};

    weir__resp_bytes(&buf, (struct weir_slice){NULL, SIZE_MAX - 4});
    weir__resp_int(&buf, 1);
    EXPECT_TRUE(buf.failed);
    EXPECT_INT(0, buf.len);
    weir__buf_fini(&buf);
}
