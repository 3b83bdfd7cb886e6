/* SPDX-License-Identifier: MIT */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/harness/test.h"

/* The program runs itself. With WEIR_TEST_HANGS one test hangs, and the others
 * do nothing. */

static bool hangs(void)
{
    return getenv("WEIR_TEST_HANGS") != NULL;
}

TEST_DEADLINE(hangs() ? .1 : 120)

static char output[4096];

/* The status with which the program ends. */
static int run(const char *environment, const char *tests)
{
    char command[256];
    FILE *program;

    if (hangs())
        exit(0);
    (void)snprintf(command, sizeof(command), "%s /proc/$PPID/exe %s",
                   environment, tests); /* fits */
    program = popen(command, "r");
    EXPECT_TRUE(program != NULL);
    output[fread(output, 1, sizeof(output) - 1, program)] = '\0';
    return WEXITSTATUS(pclose(program));
}

TEST(a_test_that_takes_too_long_fails_by_its_name)
{
    if (hangs())
        (void)poll(NULL, 0, -1);
    EXPECT_INT(1, run("WEIR_TEST_HANGS=1", ""));
    EXPECT_CONTAINS("  took more than 0.1 s\n", output);
    EXPECT_CONTAINS("FAILED a_test_that_takes_too_long_fails_by_its_name\n",
                    output);
    EXPECT_CONTAINS("3 passed, 1 failed\n", output); /* none of time */
}

TIME_TEST(time_is_the_subject)
{
}

TEST(a_test_of_time_runs_when_it_is_named)
{
    EXPECT_INT(0, run("", "time_is_the_subject"));
    EXPECT_STR("1 passed, 0 failed\n", output);
}

TEST(tests_of_time_run_alone_when_asked_for)
{
    EXPECT_INT(0, run("WEIR_TEST_TIME=only", ""));
    EXPECT_STR("1 passed, 0 failed\n", output);
}

TEST(a_name_without_a_test_fails)
{
    EXPECT_INT(1, run("", "no_such_test"));
}
