/* SPDX-License-Identifier: MIT */
#include "tests/harness/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { AT_END_MAX = 8, LOOK_NS = 100000000 };

static struct test *first, **last = &first;

void test_register(struct test *test)
{
    *last = test;
    last = &test->next;
}

static int at_once = 1, running, passed, failures;
static double deadline_s = 120;
static void (*set_up)(void);
static void (*at_end[AT_END_MAX])(void);
static size_t at_end_count;

void test_setup(void (*fn)(void))
{
    set_up = fn;
}

void test_together(int count)
{
    at_once = count;
}

void test_deadline(double seconds)
{
    deadline_s = seconds;
}

static void failed(const char *file, int line)
{
    printf("  %s:%d: ", file, line);
}

static _Noreturn void give_up(void)
{
    printf("\n");
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

void expect_int(const char *file, int line, long long wanted, long long got)
{
    if (wanted == got)
        return;
    failed(file, line);
    printf("wanted %lld, got %lld", wanted, got);
    give_up();
}

void expect_str(const char *file, int line, const char *wanted, const char *got)
{
    if (got != NULL && strcmp(wanted, got) == 0)
        return;
    failed(file, line);
    printf("wanted \"%s\", got \"%s\"", wanted, got == NULL ? "(null)" : got);
    give_up();
}

void expect_contains(const char *file, int line, const char *wanted,
                     const char *got)
{
    if (got != NULL && strstr(got, wanted) != NULL)
        return;
    failed(file, line);
    printf("wanted something with \"%s\", got \"%s\"", wanted,
           got == NULL ? "(null)" : got);
    give_up();
}

static void print_bytes(const uint8_t *ptr, size_t len)
{
    for (size_t i = 0; i < len && i < 64; i++)
        printf("%02x ", ptr[i]);
    printf("(%zu bytes)", len);
}

void expect_mem(const char *file, int line, const void *wanted,
                size_t wanted_len, const void *got, size_t got_len)
{
    if (wanted_len == got_len &&
        (got_len == 0 || memcmp(wanted, got, got_len) == 0))
        return;
    failed(file, line);
    printf("wanted ");
    print_bytes(wanted, wanted_len);
    printf(", got ");
    print_bytes(got, got_len);
    give_up();
}

void expect_true(const char *file, int line, const char *text, bool got)
{
    if (got)
        return;
    failed(file, line);
    printf("not true: %s", text);
    give_up();
}

void test_at_end(void (*fn)(void))
{
    for (size_t i = 0; i < at_end_count; i++)
        if (at_end[i] == fn)
            return;
    EXPECT_TRUE(at_end_count < AT_END_MAX);
    at_end[at_end_count] = fn;
    at_end_count++;
}

/* The set with SIGCHLD alone, which main blocks. */
static const sigset_t *child_ended(void)
{
    static sigset_t set;

    (void)sigemptyset(&set); /* cannot fail, nor can the next one */
    (void)sigaddset(&set, SIGCHLD);
    return &set;
}

/* The test gets a process group of its own, so that all processes that it
 * starts end with it. */
static void start(struct test *test)
{
    (void)fflush(stdout); /* or the child would print it again */
    test->pid = fork();
    if (test->pid != 0) {
        test->patience = patience_start_for(test->pid, deadline_s);
        return;
    }
    (void)setpgid(0, 0); /* cannot fail for a fresh child */
    (void)sigprocmask(SIG_UNBLOCK, child_ended(), NULL);
    if (set_up != NULL)
        set_up();
    test->fn();
    while (at_end_count > 0)
        at_end[--at_end_count]();
    exit(0);
}

static struct test *test_of(pid_t pid)
{
    struct test *test = first;

    while (test != NULL && test->pid != pid)
        test = test->next;
    return test;
}

static void end_late_ones(void)
{
    for (struct test *test = first; test != NULL; test = test->next) {
        if (test->pid > 0 && patience_ended(&test->patience) &&
            kill(-test->pid, SIGKILL) == 0)
            printf("  took more than %g s\n", test->patience.limit_s);
    }
}

/* Waits until a test ends, and counts it. */
static void finish_one(void)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};
    struct test *test = NULL;
    int status = 0;

    while (test == NULL) {
        pid_t pid = waitpid(-1, &status, WNOHANG);

        test = pid > 0 ? test_of(pid) : NULL;
        if (pid == 0 && sigtimedwait(child_ended(), NULL, &look) < 0)
            end_late_ones();
    }
    (void)kill(-test->pid, SIGKILL); /* stragglers; usually there are none */
    test->pid = 0;
    running--;
    if (WIFSIGNALED(status))
        printf("  ended by signal %d\n", WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        passed++;
        return;
    }
    failures++;
    printf("FAILED %s\n", test->name);
}

static bool is_time_wanted(void)
{
    const char *text = getenv("WEIR_TEST_TIME");

    return text != NULL && strcmp(text, "only") == 0;
}

static bool wanted(const struct test *test, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], test->name) == 0)
            return true;
    return argc == 1 && test->is_of_time == is_time_wanted();
}

int main(int argc, char **argv)
{
    (void)sigprocmask(SIG_BLOCK, child_ended(), NULL);
    for (struct test *test = first; test != NULL; test = test->next) {
        if (!wanted(test, argc, argv))
            continue;
        start(test);
        if (test->pid < 0) {
            failures++;
            printf("FAILED %s: no process\n", test->name);
            continue;
        }
        running++;
        if (running == at_once)
            finish_one();
    }
    while (running > 0)
        finish_one();
    printf("%d passed, %d failed\n", passed, failures);
    if (passed == 0 && (first == NULL || argc > 1))
        return 1; /* no test where there should be one */
    return failures > 0 ? 1 : 0;
}
