/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/worker.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

static const char *const topics[] = {"a", "order.close"};

static struct weir__buf told;
static struct weir__worker got;

static void tell(struct weir_worker worker)
{
    worker.name = worker.name == NULL ? "w1" : worker.name;
    worker.host = worker.host == NULL ? "" : worker.host;
    worker.version = "0.1.0";
    worker.transport = "unix";
    weir__buf_reset(&told);
    weir__worker_write(&told, &worker);
    EXPECT_TRUE(!told.failed);
}

static int read(void)
{
    return weir__worker_read(weir__buf_slice(&told), &got);
}

static void forget(void)
{
    weir__buf_fini(&told);
}

static void begin(void)
{
    test_at_end(forget);
}
TEST_SETUP(begin)

TEST(what_a_worker_tells_is_read_as_it_was)
{
    tell((struct weir_worker){.host = "box",
                              .pid = 4711,
                              .topics = topics,
                              .topic_count = 2,
                              .topics_total = 1000,
                              .held = 300,
                              .running = 200,
                              .connections = 3,
                              .lag_us = 70000,
                              .since_ms = 1700000000000,
                              .is_stopping = true});
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&told)));
    EXPECT_INT(WEIR_OK, read());
    EXPECT_STR("w1", got.told.name);
    EXPECT_STR("box", got.told.host);
    EXPECT_STR("0.1.0", got.told.version);
    EXPECT_STR("unix", got.told.transport);
    EXPECT_INT(4711, got.told.pid);
    EXPECT_INT(2, got.told.topic_count);
    EXPECT_STR("a", got.told.topics[0]);
    EXPECT_STR("order.close", got.told.topics[1]);
    EXPECT_INT(1000, got.told.topics_total);
    EXPECT_INT(300, got.told.held);
    EXPECT_INT(200, got.told.running);
    EXPECT_INT(3, got.told.connections);
    EXPECT_INT(70000, got.told.lag_us);
    EXPECT_INT(1700000000000, got.told.since_ms);
    EXPECT_TRUE(got.told.is_stopping);
}

TEST(bytes_that_end_early_are_no_worker)
{
    tell((struct weir_worker){.topics = topics, .topic_count = 2});
    for (told.len--; told.len > 0; told.len--)
        EXPECT_INT(WEIR_EMALFORMED, read());
    EXPECT_INT(WEIR_EMALFORMED, read());
}

TEST(what_is_missing_or_of_another_type_is_nothing)
{
    EXPECT_INT(WEIR_OK, weir__worker_read(BYTES("\x83\xa4name\xa1x\xa3pid\xa1y"
                                                "\xa6topics\x92\x01\xa1z"),
                                          &got));
    EXPECT_STR("x", got.told.name);
    EXPECT_STR("", got.told.host);
    EXPECT_INT(0, got.told.pid);
    EXPECT_INT(0, got.told.topic_count);
    EXPECT_INT(WEIR_EMALFORMED, weir__worker_read(BYTES("\x80"), &got));
    EXPECT_INT(WEIR_EMALFORMED, weir__worker_read(BYTES("\xa1x"), &got));
}

TEST(texts_of_foreign_origin_are_cut_and_have_no_controls)
{
    char host[300];

    for (size_t i = 0; i + 1 < sizeof(host); i++)
        host[i] = 'h';
    host[sizeof(host) - 1] = '\0';
    tell((struct weir_worker){.name = "a\x1b[31m b", .host = host});
    EXPECT_INT(WEIR_OK, read());
    EXPECT_STR("a?[31m?b", got.told.name);
    EXPECT_INT(sizeof(got.host) - 1, strlen(got.told.host));
}
