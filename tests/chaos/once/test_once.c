/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/chaos/once/once.h"
#include "tests/harness/test.h"

/* WEIR_TEST_SEED, WEIR_TEST_ADDS and WEIR_TEST_FAULT choose, as in the other
 * model. */
enum { KEYS = 1000, FAULT_KEYS = 25, FAULT_ADDS = 20000, FAULT_SEEDS = 10 };

static long number_from(const char *variable, long otherwise)
{
    const char *text = getenv(variable);

    return text == NULL || *text == '\0' ? otherwise : strtol(text, NULL, 10);
}

TEST(jobs_with_unique_keys_run_as_the_model_says)
{
    struct once_options options = {
        .seed = (uint64_t)number_from("WEIR_TEST_SEED", 1),
        .adds = number_from("WEIR_TEST_ADDS", 20000),
        .keys = KEYS};

    (void)alarm(120 + (unsigned)(options.adds / 500));
    once_run(&options, redis_start(NULL));
}

TEST(few_keys_are_fought_for_as_the_model_says)
{
    struct once_options options = {
        .seed = 2, .adds = 20000, .keys = FAULT_KEYS};

    once_run(&options, redis_start(NULL));
}

/* The exit code of a run in a child, whose words nobody needs. */
static int run_apart(const struct once_options *options,
                     const struct redis_proc *proc)
{
    int status = -1;
    pid_t pid;

    (void)fflush(stdout); /* or the child prints it again */
    pid = fork();
    EXPECT_TRUE(pid >= 0);
    if (pid == 0) {
        if (freopen("/dev/null", "w", stdout) == NULL)
            _exit(2);
        once_run(options, proc);
        _exit(0);
    }
    EXPECT_TRUE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool is_found(const struct fault *fault, const struct redis_proc *proc)
{
    struct once_options options = {
        .adds = FAULT_ADDS, .keys = FAULT_KEYS, .fault = fault};

    for (options.seed = 1; options.seed <= FAULT_SEEDS; options.seed++) {
        int status = run_apart(&options, proc);

        if (status == 1)
            return true;
        EXPECT_INT(0, status); /* else the fault is in no script */
    }
    return false;
}

TEST(the_model_of_unique_keys_finds_every_planted_fault)
{
    struct redis_proc *proc = redis_start(NULL);
    const char *wanted = getenv("WEIR_TEST_FAULT");
    size_t missed = 0;

    (void)alarm(600);
    for (size_t i = 0; i < once_fault_count; i++) {
        if (wanted != NULL && strstr(once_faults[i].name, wanted) == NULL)
            continue;
        if (is_found(&once_faults[i], proc))
            continue;
        printf("  %s: not found\n", once_faults[i].name);
        missed++;
    }
    EXPECT_INT(0, missed);
}
