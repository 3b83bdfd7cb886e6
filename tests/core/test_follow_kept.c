/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "core/follow.h"
#include "core/keys.h"
#include "core/text.h"
#include "tests/harness/test.h"

/* Jobs that a handler adds with its verdict, while they wait in their run. */

static const struct weir_slice none;

static void expect_slice(const char *wanted, struct weir_slice got)
{
    EXPECT_MEM(wanted, strlen(wanted), got.ptr, got.len);
}

TEST(a_job_is_kept_as_it_was_added)
{
    struct weir__follows follows = {0};
    char topic[] = "topic", headers[] = "headers", id[] = "id", retry[] = "1s",
         key[] = "k", url[] = "http://a/b", body[] = "body";
    struct weir_follow job = {.id = id,
                              .retry = retry,
                              .key = key,
                              .url = url,
                              .priority = "high",
                              .body = weir__slice_str(body),
                              .ttl_ms = 5,
                              .delay_ms = 6,
                              .at_ms = 7};
    char *const given[] = {topic, headers, id, retry, key, url, body};
    const struct weir__follow *kept;

    EXPECT_INT(WEIR_OK, weir__follow_add(&follows, weir__slice_str(topic), &job,
                                         weir__slice_str(headers)));
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
        memset(given[i], '-', strlen(given[i]));
    kept = follows.first;
    expect_slice("topic", kept->topic);
    expect_slice("id", kept->id);
    expect_slice("1s", kept->record.retry);
    expect_slice("k", kept->record.key);
    expect_slice("http://a/b", kept->record.url);
    expect_slice("headers", kept->record.headers);
    expect_slice("body", kept->record.body);
    EXPECT_STR("high", weir__priority_name(kept->record.priority));
    EXPECT_INT(5, kept->record.ttl_ms);
    EXPECT_INT(6, kept->delay_ms);
    EXPECT_INT(7, kept->at_ms);
    weir__follows_fini(&follows);
}

TEST(a_run_keeps_64_jobs_in_order)
{
    struct weir__follows follows = {0};
    struct weir_follow job = {0};
    int at = 0;

    for (; at < WEIR__FOLLOWS_MAX; at++) {
        job.delay_ms = at;
        EXPECT_INT(WEIR_OK, weir__follow_add(&follows, none, &job, none));
    }
    EXPECT_INT(WEIR_EFULL, weir__follow_add(&follows, none, &job, none));
    for (const struct weir__follow *kept = follows.first; kept != NULL;
         kept = kept->next)
        EXPECT_INT(WEIR__FOLLOWS_MAX - at--, kept->delay_ms);
    EXPECT_INT(0, at);
    EXPECT_INT(WEIR__FOLLOWS_MAX, follows.count);
    weir__follows_fini(&follows);
    EXPECT_INT(0, follows.count);
    EXPECT_INT(WEIR_OK, weir__follow_add(&follows, none, &job, none));
    weir__follows_fini(&follows);
}

TEST(a_run_keeps_16_mib_of_jobs_with_all_their_parts)
{
    struct weir__follows follows = {0};
    uint8_t *body = calloc(1, WEIR__FOLLOW_BYTES_MAX);
    struct weir_follow job = {.id = "1",
                              .retry = "1s",
                              .key = "123",
                              .url = "http",
                              .body = {body, WEIR__FOLLOW_BYTES_MAX - 20}};
    const struct weir_slice five = weir__slice_str("12345");

    EXPECT_INT(WEIR_OK, weir__follow_add(&follows, five, &job, five));
    EXPECT_INT(WEIR_OK, weir__follow_add(&follows, none,
                                         &(struct weir_follow){0}, none));
    job = (struct weir_follow){.body = {body, 1}};
    EXPECT_INT(WEIR_EFULL, weir__follow_add(&follows, none, &job, none));
    weir__follows_fini(&follows);
    free(body);
}
