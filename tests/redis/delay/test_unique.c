/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/redis/store/store_fixture.h"

/* Jobs with unique keys on their way to the server. */

static int answers, fine, held;
static char last_id[WEIR_MAX_ID + 1];

static void on_added(int code, const char *id, void *arg)
{
    (void)arg;
    answers++;
    fine += code == WEIR_OK;
    held += code == WEIR_EEXISTS;
    (void)snprintf(last_id, sizeof(last_id), "%s", id);
}

/* What add returned. */
static int add(struct host *host, const char *id, const char *key,
               const struct weir__key_rule *rule, struct weir_slice body)
{
    struct weir__record record = {.body = body};
    struct weir__new_job job = {.record = &record};

    if (id != NULL)
        job.id = weir__slice_str(id);
    if (key != NULL)
        record.unique = weir__slice_str(key);
    if (rule != NULL)
        job.rule = *rule;
    return host->store->ops->add(host->topic, &job, on_added, NULL);
}

static const struct weir__key_rule reject = {.hold = WEIR__UNTIL_DONE,
                                             .max_wait = WEIR__OPTION_NONE};
static const struct weir__key_rule replace = {.hold = WEIR__UNTIL_START,
                                              .max_wait = WEIR__OPTION_NONE,
                                              .otherwise = WEIR__KEY_REPLACE};

static int64_t waiting(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_stats(host));
    return (int64_t)(host->stats.scheduled + host->stats.ready);
}

TEST(who_has_the_key_is_told)
{
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_OK,
               add(host, "first", "k", &reject, (struct weir_slice){0}));
    AWAIT(answers == 1);
    EXPECT_STR("first", last_id);
    EXPECT_INT(WEIR_OK,
               add(host, "second", "k", &reject, (struct weir_slice){0}));
    AWAIT(answers == 2);
    EXPECT_INT(1, held);
    EXPECT_STR("first", last_id);
    EXPECT_INT(WEIR_OK, add(host, NULL, "k", &reject, (struct weir_slice){0}));
    AWAIT(answers == 3);
    EXPECT_STR("first", last_id);
    EXPECT_INT(1, waiting(host));
}

TEST(jobs_of_one_turn_keep_their_order_also_beside_others)
{
    struct host *host = host_open("w1");
    char id[16];

    for (int i = 0; i < 300; i++) {
        (void)snprintf(id, sizeof(id), "j%d", i);
        EXPECT_INT(WEIR_OK,
                   add(host, i % 3 == 0 ? NULL : id, i % 2 == 0 ? NULL : "k",
                       &replace, (struct weir_slice){0}));
    }
    EXPECT_INT(WEIR_OK,
               add(host, "last", "k", &replace, (struct weir_slice){0}));
    AWAIT(answers == 301);
    EXPECT_INT(301, fine);
    EXPECT_INT(151, waiting(host));
    EXPECT_INT(WEIR_OK, host_show(host, "last"));
    EXPECT_INT(WEIR_ENOTFOUND, host_show(host, "j299"));
}

TEST(equal_ids_are_the_servers_to_judge)
{
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_OK, add(host, "a", "k", &reject, (struct weir_slice){0}));
    EXPECT_INT(WEIR_OK, add(host, "b", "k", &reject, (struct weir_slice){0}));
    EXPECT_INT(WEIR_OK, add(host, "b", "l", &reject, (struct weir_slice){0}));
    AWAIT(answers == 3);
    EXPECT_INT(2, fine);
    EXPECT_INT(WEIR_OK, host_show(host, "b"));
}

TEST(a_large_body_has_a_key_too)
{
    static uint8_t large[100000] = {0xc6, 0, 1, 0x86, 0x9b};
    const struct weir_slice body = {large, sizeof(large)};
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_OK, add(host, NULL, "k", &replace, body));
    EXPECT_INT(WEIR_OK, add(host, "x", "k", &replace, body));
    EXPECT_INT(WEIR_OK, add(host, "y", "k", &reject, body));
    AWAIT(answers == 3);
    EXPECT_INT(2, fine);
    EXPECT_STR("x", last_id);
    EXPECT_INT(1, (int)host_claim(host, 10, 60000));
    EXPECT_STR("x", run_id(host->runs));
    EXPECT_INT(sizeof(large), (long long)host->runs->record.body.len);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(1, redis_int(proc, "EVAL %s 0",
                            "return #redis.call('KEYS', 'weir:{t}:p:*') == 0 "
                            "and 1 or 0"));
}

TEST(a_retried_job_without_an_id_of_its_own_holds_its_key)
{
    struct host *host = host_open("w1");
    char id[WEIR_MAX_ID + 1];

    EXPECT_INT(WEIR_OK, add(host, NULL, "k", &reject, (struct weir_slice){0}));
    AWAIT(answers == 1);
    memcpy(id, last_id, sizeof(id));
    EXPECT_INT(1, (int)host_claim(host, 10, 60000));
    EXPECT_STR(id, run_id(host->runs));
    host_settle_all(host, WEIR__OUTCOME_RETRY);
    host_await_settled(host);
    EXPECT_INT(WEIR_OK, add(host, NULL, "k", &reject, (struct weir_slice){0}));
    AWAIT(answers == 2);
    EXPECT_STR(id, last_id);
    EXPECT_INT(WEIR_OK, add(host, NULL, "k", &replace, (struct weir_slice){0}));
    AWAIT(answers == 3);
    EXPECT_INT(WEIR_ENOTFOUND, host_show(host, id));
    EXPECT_INT(1, waiting(host));
}

TEST(a_rule_that_is_stored_and_cannot_be_is_told_and_gives_no_keys)
{
    static const uint8_t one[] = {1};
    const struct weir_slice body = {one, 1};
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_OK, host_set(host, "unique", "body"));
    EXPECT_INT(WEIR_OK, host_set(host, "unique_else", "throttle"));
    EXPECT_INT(WEIR_OK, add(host, NULL, NULL, NULL, body));
    EXPECT_INT(WEIR_OK, add(host, NULL, NULL, NULL, body));
    AWAIT(answers == 2);
    EXPECT_INT(2, waiting(host));
    EXPECT_CONTAINS("the stored option is ignored: unique_else: throttle needs "
                    "a duration",
                    world_log);
    EXPECT_INT(WEIR_OK, host_set(host, "unique_for", "1h"));
    EXPECT_INT(WEIR_OK, add(host, NULL, NULL, NULL,
                            body)); /* tells of it at the latest */
    AWAIT(answers == 3);
    EXPECT_INT(WEIR_OK, add(host, NULL, NULL, NULL, body));
    EXPECT_INT(WEIR_OK, add(host, NULL, NULL, NULL, body));
    EXPECT_INT(WEIR_OK, add(host, NULL, NULL, NULL, body));
    AWAIT(answers == 6);
    EXPECT_TRUE(waiting(host) <= 5); /* of a window the first and the last */
}

TEST(a_key_in_the_body_that_is_too_long_is_refused)
{
    static uint8_t text[2052] = {0xda, 0x08, 0x01};
    struct host *host = host_open("w1");

    memset(text + 3, 'k', 2049);
    EXPECT_INT(WEIR_OK, host_set(host, "unique", "body"));
    EXPECT_INT(WEIR_OK,
               add(host, NULL, NULL, NULL, (struct weir_slice){text, 2052}));
    AWAIT(answers == 1);
    EXPECT_INT(0, fine);
    EXPECT_CONTAINS("the key in a body has 2049 bytes", world_log);
    text[2] = 0;
    EXPECT_INT(WEIR_OK,
               add(host, NULL, NULL, NULL, (struct weir_slice){text, 2051}));
    AWAIT(answers == 2);
    EXPECT_INT(1, fine);
}

/* --- memory --------------------------------------------------------------- */

static int add_some(struct host *host, int n)
{
    static const uint8_t one[] = {1};
    int taken = 0;

    oom_after(n);
    for (int i = 0; i < 20; i++)
        taken += add(host, NULL, i % 2 == 0 ? "k" : NULL, &replace,
                     (struct weir_slice){one, 1}) == WEIR_OK;
    host->store->ops->flush(host->store);
    oom_off();
    return taken;
}

TEST(every_job_with_a_key_that_was_taken_is_answered_whatever_fails)
{
    int taken = 1;
    struct host *host = host_open("w1");

    EXPECT_INT(WEIR_OK, host_set(host, "unique", "body"));
    EXPECT_INT(WEIR_OK, add(host, "first", "f", &reject,
                            (struct weir_slice){0})); /* names can be made */
    AWAIT(answers == 1);
    for (int n = 0; n < 60; n++) {
        taken += add_some(host, n);
        AWAIT(answers == taken);
    }
    EXPECT_TRUE(fine > 0 && fine + held < taken);
}
