/* SPDX-License-Identifier: MIT */

/* What a client asks for, in parts. */

#include "adapters/http/target.h"
#include "tests/harness/oom.h"
#include "tests/harness/test.h"

#include <stdio.h>

static struct weir__target parsed(const char *text)
{
    struct weir__target target;

    EXPECT_INT(WEIR_OK, weir__target_parse(text, &target));
    return target;
}

TEST(a_path_is_split_before_it_is_decoded)
{
    struct weir__target target = parsed("/api/topics/a%2Fb/jobs/%7e1/");

    EXPECT_INT(5, target.part_count);
    EXPECT_STR("a/b", target.part[2]);
    EXPECT_STR("jobs", target.part[3]);
    EXPECT_STR("~1", target.part[4]);
    weir__target_fini(&target);
}

TEST(the_root_has_no_parts)
{
    struct weir__target target = parsed("/");

    EXPECT_INT(0, target.part_count);
    EXPECT_INT(0, target.field_count);
    EXPECT_INT(0, weir__target_fits(&target, "/"));
    EXPECT_INT(-1, weir__target_fits(&target, "/a"));
    weir__target_fini(&target);
}

TEST(a_query_has_names_and_values)
{
    struct weir__target target = parsed("/x?a=1+2&b&c=%26%3D%2b&a=9&=7&");

    EXPECT_STR("1 2", weir__target_field(&target, "a"));
    EXPECT_STR("", weir__target_field(&target, "b"));
    EXPECT_STR("&=+", weir__target_field(&target, "c"));
    EXPECT_STR("7", weir__target_field(&target, ""));
    EXPECT_TRUE(weir__target_field(&target, "d") == NULL);
    EXPECT_STR("x", target.part[0]);
    weir__target_fini(&target);
}

TEST(a_plus_in_a_path_is_a_plus)
{
    struct weir__target target = parsed("/a+b");

    EXPECT_STR("a+b", target.part[0]);
    weir__target_fini(&target);
}

TEST(what_cannot_be_read_is_refused)
{
    static const char *const bad[] = {
        "",
        "x",
        "http://h/x",
        "*",
        "/%",
        "/%4",
        "/%zz",
        "/%00",
        "/a%0",
        "/?a=%",
        "/?%=1",
        "/?a=%00",
        "/a/%4g",
        "/%%41",
        "/1/2/3/4/5/6/7/8/9/10/11/12/13",
        "/?a&b&c&d&e&f&g&h&i&j&k&l&m&n&o&p&q&r&s&t&u&v&w&x&y"};
    struct weir__target target;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        EXPECT_INT(WEIR_EINVAL, weir__target_parse(bad[i], &target));
}

TEST(a_route_is_a_path_or_all_below_it)
{
    struct weir__target target = parsed("/api/topics/t");

    EXPECT_INT(-1, weir__target_fits(&target, "/api/topics"));
    EXPECT_INT(2, weir__target_fits(&target, "/api/topics/"));
    EXPECT_INT(3, weir__target_fits(&target, "/api/topics/t"));
    EXPECT_INT(-1, weir__target_fits(&target, "/api/top"));
    EXPECT_INT(-1, weir__target_fits(&target, "/api/topics/t/u"));
    EXPECT_INT(0, weir__target_fits(&target, "/"));
    weir__target_fini(&target);
}

TEST(no_memory_is_told)
{
    struct weir__target target;

    oom_after(0);
    EXPECT_INT(WEIR_ENOMEM, weir__target_parse("/a", &target));
}
