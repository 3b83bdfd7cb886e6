/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/chaos/model/faults.h"
#include "tests/chaos/model/run.h"
#include "tests/harness/test.h"

/* Within which each planted fault shows. */
enum { FAULT_OPERATIONS = 4000, FAULT_SEEDS = 150 };

/* WEIR_TEST_SEED and WEIR_TEST_OPERATIONS choose another run, WEIR_TEST_FAULT
 * the faults whose names have it, WEIR_TEST_PART=1/4 the second quarter of
 * them. */

static long number_from(const char *variable, long otherwise)
{
    const char *text = getenv(variable);

    return text == NULL || *text == '\0' ? otherwise : strtol(text, NULL, 10);
}

static struct run_options options_of(long operations)
{
    struct run_options options = {
        .seed = (uint64_t)number_from("WEIR_TEST_SEED", 1),
        .operations = number_from("WEIR_TEST_OPERATIONS", operations),
        .walk_every = 500};

#ifdef WEIR_SANITIZED
    options.walk_every = 2000;
#endif
    return options;
}

/* A minute each for so many operations, instead of the harness's deadline. */
static void allow_time(long operations)
{
    (void)alarm(120 + (unsigned)(operations / 1000) * 3);
}

TEST(random_operations_answer_as_the_plain_model)
{
    struct run_options options = options_of(50000);

    allow_time(options.operations);
    run_all(&options, redis_start(NULL));
}

TEST(a_clock_that_goes_back_leaves_only_the_number_of_ready_jobs_wrong)
{
    struct run_options options = options_of(10000);

    options.clock_goes_back = true;
    allow_time(options.operations);
    run_all(&options, redis_start(NULL));
}

/* --- planted faults ----------------------------------------------------- */

/* The run of a child, which ends with 1 at the first difference. Returns the
 * child's status and what it printed. */
static int run_apart(const struct run_options *options,
                     const struct redis_proc *proc, char *ret_text, size_t cap)
{
    int ends[2], status = -1;
    size_t len = 0;
    ssize_t got;
    pid_t pid;

    (void)fflush(stdout); /* or the child prints it again */
    EXPECT_INT(0, pipe(ends));
    pid = fork();
    EXPECT_TRUE(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO); /* what it prints is read here */
        run_all(options, proc);
        (void)fflush(stdout);
        _exit(0);
    }
    (void)close(ends[1]); /* the child has it */
    while ((got = read(ends[0], ret_text + len, cap - 1 - len)) > 0)
        len += (size_t)got;
    ret_text[len] = '\0';
    (void)close(ends[0]); /* only read from */
    EXPECT_TRUE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* "seed 1, step 17, add: the answer differs" */
static void say_found(const struct fault *fault, char *text)
{
    text[strcspn(text, "\n")] = '\0';
    printf("  %-48s %s\n", fault->name, text);
}

/* Not every seed comes by every place. */
static bool is_found(const struct fault *fault, const struct redis_proc *proc,
                     char *ret_text, size_t cap)
{
    struct run_options options = {
        .operations = FAULT_OPERATIONS, .walk_every = 250, .fault = fault};

    for (options.seed = 1; options.seed <= FAULT_SEEDS; options.seed++)
        if (run_apart(&options, proc, ret_text, cap) == 1)
            return true;
    return false;
}

static bool is_wanted(const struct fault *fault, size_t index)
{
    const char *name = getenv("WEIR_TEST_FAULT"),
               *part = getenv("WEIR_TEST_PART");
    unsigned which = 0, parts = 1;

    if (part != NULL)
        EXPECT_TRUE(sscanf(part, "%u/%u", &which, &parts) == 2 &&
                    which < parts);
    return index % parts == which &&
           (name == NULL || strstr(fault->name, name) != NULL);
}

/* The same of all of them; returns how many were not found. */
static size_t find_all(const struct fault *list, size_t count,
                       const struct redis_proc *proc)
{
    size_t missed = 0;
    char text[4096];

    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&list[i], i))
            continue;
        if (is_found(&list[i], proc, text, sizeof(text))) {
            say_found(&list[i], text);
            continue;
        }
        printf("  %s: not found\n%s", list[i].name, text);
        missed++;
    }
    return missed;
}

TEST(the_model_finds_every_planted_fault)
{
    struct redis_proc *proc = redis_start(NULL);
    char text[4096];

    allow_time(FAULT_OPERATIONS *
               (long)(fault_count + mixed_fault_count + limit_fault_count));
    if (getenv("WEIR_TEST_FAULT") == NULL)
        EXPECT_TRUE(!is_found(NULL, proc, text, sizeof(text)));
    EXPECT_INT(0, find_all(faults, fault_count, proc));
    EXPECT_INT(0, find_all(mixed_faults, mixed_fault_count, proc));
    EXPECT_INT(0, find_all(limit_faults, limit_fault_count, proc));
}
