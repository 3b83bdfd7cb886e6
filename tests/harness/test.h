/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HARNESS_TEST_H
#define WEIR_HARNESS_TEST_H

/* The test harness. Each TEST runs in a process of its own with a deadline;
 * its name is the sentence that it proves. A program runs its tests, or those
 * named on its command line, and ends with "N passed, N failed".
 *
 * A TIME_TEST has time as its subject: the verdict depends on how fast the
 * machine is. The program runs these alone if WEIR_TEST_TIME is "only", and the
 * others if it is not.
 *
 * Every EXPECT prints what was wanted and what came, and ends the test. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/harness/patience.h"

struct test {
    const char *name;
    void (*fn)(void);
    bool is_of_time;
    struct test *next;
    pid_t pid; /* 0: it does not run */
    struct patience patience;
};

void test_register(struct test *test);

#define TEST(test_name)      TEST_AS(test_name, false)
#define TIME_TEST(test_name) TEST_AS(test_name, true)
#define TEST_AS(test_name, of_time)                                     \
    static void test_name(void);                                        \
    static struct test test_name##_test = {                             \
        .name = #test_name, .fn = test_name, .is_of_time = of_time};    \
    __attribute__((constructor)) static void test_name##_register(void) \
    {                                                                   \
        test_register(&test_name##_test);                               \
    }                                                                   \
    static void test_name(void)

/* `fn` runs first in each test of the program that has it in one of its files
 * or in a fixture of these. */
#define TEST_SETUP(fn)                                   \
    __attribute__((constructor)) static void setup(void) \
    {                                                    \
        test_setup(fn);                                  \
    }
void test_setup(void (*fn)(void));

/* So many tests of the program run at once, for tests that wait more than they
 * work. */
#define TEST_TOGETHER(count)                                \
    __attribute__((constructor)) static void together(void) \
    {                                                       \
        test_together(count);                               \
    }
void test_together(int count);

/* Each test of the program may take so many seconds of patience, 120 without
 * it. */
#define TEST_DEADLINE(seconds)                              \
    __attribute__((constructor)) static void deadline(void) \
    {                                                       \
        test_deadline((double)(seconds));                   \
    }
void test_deadline(double seconds);

/* What a fixture opened and the test left open: `fn` closes it, unless it is
 * closed. The last one first; a test that failed is just over. */
void test_at_end(void (*fn)(void));

void expect_int(const char *file, int line, long long wanted, long long got);
void expect_str(const char *file, int line, const char *wanted,
                const char *got);
void expect_contains(const char *file, int line, const char *wanted,
                     const char *got);
void expect_mem(const char *file, int line, const void *wanted,
                size_t wanted_len, const void *got, size_t got_len);
void expect_true(const char *file, int line, const char *text, bool got);

#define EXPECT_INT(wanted, got) \
    expect_int(__FILE__, __LINE__, (long long)(wanted), (long long)(got))
#define EXPECT_STR(wanted, got) expect_str(__FILE__, __LINE__, wanted, got)
#define EXPECT_CONTAINS(wanted, got) \
    expect_contains(__FILE__, __LINE__, wanted, got)
#define EXPECT_MEM(wanted, wanted_len, got, got_len) \
    expect_mem(__FILE__, __LINE__, wanted, wanted_len, got, got_len)
#define EXPECT_TRUE(condition) \
    expect_true(__FILE__, __LINE__, #condition, (condition))

#endif
