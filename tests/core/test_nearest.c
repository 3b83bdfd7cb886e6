/* SPDX-License-Identifier: MIT */
#include "core/nearest.h"

#include "tests/harness/test.h"

static const char *const names[] = {
    "add",    "delay", "retry",
    "list",   "last",  "order.of.forty.letters.as.a.topic.has.it",
    "on_dead"};

static const char *name_at(const void *list, size_t i)
{
    return ((const char *const *)list)[i];
}

static const char *nearest(const char *text)
{
    const char *name = weir__nearest(text, names, 7, name_at);

    return name != NULL ? name : "none";
}

TEST(a_letter_of_three_may_be_wrong)
{
    EXPECT_STR("add", nearest("ad"));
    EXPECT_STR("list", nearest("lsit"));
    EXPECT_STR("delay", nearest("dealy"));
    EXPECT_STR("retry", nearest("retries"));
    EXPECT_STR("none", nearest("rtr"));
    EXPECT_STR("none", nearest("xylophone"));
    EXPECT_STR("none", nearest(""));
}

TEST(the_opposite_is_no_slip)
{
    EXPECT_STR("none", nearest("on_done"));
    EXPECT_STR("on_dead", nearest("on_deda"));
}

TEST(a_name_as_long_as_a_topic_may_have_a_slip)
{
    EXPECT_STR("order.of.forty.letters.as.a.topic.has.it",
               nearest("order.of.fourty.letters.as.a.topic.has.i"));
}

TEST(of_equally_near_names_the_first_is_taken)
{
    EXPECT_STR("list", nearest("lst"));
}

TEST(a_name_that_is_too_long_to_be_a_slip_is_none)
{
    EXPECT_STR("none", nearest("listlistlistlistlistlistlistlistlist"));
}
