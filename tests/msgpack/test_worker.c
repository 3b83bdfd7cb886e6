/* SPDX-License-Identifier: MIT */
#include "adapters/msgpack/worker.h"

#include <string.h>

#include "adapters/msgpack/scan.h"
#include "tests/harness/test.h"
#include "tests/msgpack/bytes.h"

static const struct weir_worker_topic topics[] = {
    {.name = "a", .concurrency = 1, .held = 2, .running = 1},
    {.name = "order.close", .concurrency = 100000, .held = 128},
};

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
    weir__worker_fini(&got);
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
    EXPECT_STR("a", got.told.topics[0].name);
    EXPECT_INT(1, got.told.topics[0].concurrency);
    EXPECT_INT(2, got.told.topics[0].held);
    EXPECT_INT(1, got.told.topics[0].running);
    EXPECT_STR("order.close", got.told.topics[1].name);
    EXPECT_INT(100000, got.told.topics[1].concurrency);
    EXPECT_INT(128, got.told.topics[1].held);
    EXPECT_INT(0, got.told.topics[1].running);
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

TEST(a_worker_of_an_earlier_version_tells_names_alone)
{
    EXPECT_INT(WEIR_OK, weir__worker_read(BYTES("\x82\xa4name\xa1x"
                                                "\xa6topics\x92\xa1y\xa1z"),
                                          &got));
    EXPECT_INT(2, got.told.topic_count);
    EXPECT_INT(2, got.told.topics_total);
    EXPECT_STR("z", got.told.topics[1].name);
    EXPECT_INT(0, got.told.topics[1].concurrency);
}

/* As workers of before `serves` read it. */
TEST(the_first_topics_are_found_by_their_place)
{
    struct weir_value value;

    tell((struct weir_worker){.topics = topics, .topic_count = 2});
    weir__msgpack_find(weir__buf_slice(&told), "topics.1", &value);
    EXPECT_INT(WEIR_TYPE_STR, value.type);
    EXPECT_INT(11, value.as.bytes.len);
}

TEST(what_is_told_of_topics_that_are_not_named_is_left_out)
{
    EXPECT_INT(WEIR_OK,
               weir__worker_read(BYTES("\x83\xa4name\xa1x\xa6topics\x91\xa1y"
                                       "\xa6serves\x95\x01\xa1q\x03\x04\x05"),
                                 &got));
    EXPECT_INT(1, got.told.topic_count);
    EXPECT_INT(1, got.told.topics[0].concurrency);
    EXPECT_INT(0, got.told.topics[0].held);
    EXPECT_INT(3, got.told.topics[0].running);
}

TEST(as_many_topics_as_may_be_are_read_as_they_were)
{
    static struct weir_worker_topic many[WEIR_WORKER_TOPICS];
    static char names[WEIR_WORKER_TOPICS][WEIR_MAX_TOPIC + 1];

    for (size_t i = 0; i < WEIR_WORKER_TOPICS; i++) {
        memset(names[i], 'x', WEIR_MAX_TOPIC);
        many[i] = (struct weir_worker_topic){names[i], 100000, 4096, i, ""};
    }
    tell((struct weir_worker){.topics = many,
                              .topic_count = WEIR_WORKER_TOPICS,
                              .topics_total = 5000});
    EXPECT_TRUE(told.len < 60000);
    EXPECT_INT(WEIR_OK, read());
    EXPECT_INT(WEIR_WORKER_TOPICS, got.told.topic_count);
    EXPECT_INT(5000, got.told.topics_total);
    EXPECT_INT(WEIR_MAX_TOPIC, strlen(got.told.topics[999].name));
    EXPECT_INT(4096, got.told.topics[999].held);
    EXPECT_INT(999, got.told.topics[999].running);
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

TEST(groups_of_topics_are_read_as_they_were)
{
    static char longest[501];
    const struct weir_worker_topic some[] = {
        {.name = "a"},
        {.name = "b", .groups = "vip-* !vip-7"},
        {.name = "c", .groups = longest},
    };

    memset(longest, 'x', sizeof(longest) - 1);
    tell((struct weir_worker){.topics = some, .topic_count = 3});
    EXPECT_INT(WEIR_OK, weir__msgpack_check(weir__buf_slice(&told)));
    EXPECT_INT(WEIR_OK, read());
    EXPECT_STR("", got.topics[0].groups);
    EXPECT_STR("vip-* !vip-7", got.topics[1].groups);
    EXPECT_STR(longest, got.topics[2].groups);
    tell((struct weir_worker){.topics = topics, .topic_count = 2});
    EXPECT_INT(WEIR_OK, read());
    EXPECT_STR("", got.topics[1].groups);
}

TEST(groups_that_others_wrote_are_cut_where_they_are_none)
{
    EXPECT_INT(WEIR_OK,
               weir__worker_read(BYTES("\x83\xa4name\xa1x\xa6topics\x92\xa1y"
                                       "\xa1z\xa6groups\x93\xa3\x1b *\x07"
                                       "\xa1q"),
                                 &got));
    EXPECT_STR("? *", got.topics[0].groups);
    EXPECT_STR("", got.topics[1].groups);
}
