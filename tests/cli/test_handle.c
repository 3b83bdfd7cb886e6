/* SPDX-License-Identifier: MIT */
#include "adapters/cli/plugin_path.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* Sentences go to stderr; here only whether there is one matters. */
static bool parses(const char *text)
{
    struct weir__handle handle;
    int quiet = open("/dev/null", O_WRONLY);
    bool is_good;

    EXPECT_TRUE(quiet >= 0 && dup2(quiet, STDERR_FILENO) == STDERR_FILENO);
    is_good = weir__handle_parse(text, &handle);
    if (is_good)
        weir__handle_fini(&handle);
    (void)close(quiet);
    return is_good;
}

TEST(topic_and_plugin_are_split_at_the_first_equals_sign)
{
    struct weir__handle handle;

    EXPECT_TRUE(weir__handle_parse("order.close=./a=b.so", &handle));
    EXPECT_STR("order.close", handle.topic);
    EXPECT_STR("./a=b.so", handle.plugin);
    EXPECT_INT(0, handle.option_count);
    weir__handle_fini(&handle);
}

TEST(options_are_split_and_their_values_decoded)
{
    struct weir__handle handle;

    EXPECT_TRUE(
        weir__handle_parse("t=echo?file=/tmp/a%26b%3f&mode=a=b%25", &handle));
    EXPECT_STR("echo", handle.plugin);
    EXPECT_INT(2, handle.option_count);
    EXPECT_STR("file=/tmp/a&b?", handle.options[0]);
    EXPECT_STR("mode=a=b%", handle.options[1]);
    weir__handle_fini(&handle);
}

TEST(an_option_may_be_empty)
{
    struct weir__handle handle;

    EXPECT_TRUE(weir__handle_parse("t=echo?file=", &handle));
    EXPECT_STR("file=", handle.options[0]);
    weir__handle_fini(&handle);
}

TEST(what_is_no_handle_is_refused)
{
    EXPECT_TRUE(!parses("order.close"));
    EXPECT_TRUE(!parses("=echo"));
    EXPECT_TRUE(!parses("t="));
    EXPECT_TRUE(!parses("t=?a=b"));
    EXPECT_TRUE(!parses("two words=echo"));
    EXPECT_TRUE(!parses("t=echo?"));
    EXPECT_TRUE(!parses("t=echo?file"));
    EXPECT_TRUE(!parses("t=echo?=x"));
    EXPECT_TRUE(!parses("t=echo?a=b&"));
    EXPECT_TRUE(!parses("t=echo?a=%4"));
    EXPECT_TRUE(!parses("t=echo?a=%zz"));
    EXPECT_TRUE(!parses("t=echo?a=%00"));
    EXPECT_TRUE(parses("t=echo?a=%41"));
}

TEST(a_path_with_a_slash_is_taken_as_it_is)
{
    const struct weir__plugin_places places = {.who = ""};
    char path[PATH_MAX];

    EXPECT_TRUE(weir__plugin_find("./no/such.so", &places, path));
    EXPECT_STR("./no/such.so", path);
}

TEST(a_name_that_ends_in_so_is_a_file_in_this_directory)
{
    const struct weir__plugin_places places = {.who = ""};
    char path[PATH_MAX];

    EXPECT_TRUE(weir__plugin_find("such.so", &places, path));
    EXPECT_STR("./such.so", path);
}
