/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/harness/test.h"
#include "tests/plugins/fake.h"

/* A file without a name, and an echo instance that appends to it. */
struct echo {
    struct bound bound;
    FILE *file;
    char text[4096]; /* what was read from it last */
};

static void open_echo(struct echo *echo)
{
    char option[64];
    const char *const options[3] = {option};

    *echo = (struct echo){.file = tmpfile()};
    EXPECT_TRUE(echo->file != NULL);
    (void)snprintf(option, sizeof(option), "file=/proc/self/fd/%d",
                   fileno(echo->file));
    bind_plugin(&echo->bound, "echo", options);
    EXPECT_STR("", echo->bound.err.text);
}

static void close_echo(struct echo *echo)
{
    weir__instance_close(&echo->bound.instance);
    EXPECT_INT(0, fclose(echo->file));
}

static const char *written(struct echo *echo)
{
    ssize_t len =
        pread(fileno(echo->file), echo->text, sizeof(echo->text) - 1, 0);

    EXPECT_TRUE(len >= 0);
    echo->text[len] = '\0';
    return echo->text;
}

TEST(echo_tells_a_terminal_nothing_whatever_the_id)
{
    static char id[256], wanted[8 * 256];
    struct echo echo;
    struct fake_job job = job_of("a\033[2J\n\"\\\x7f\xc2\x9b", "1");
    size_t used;

    open_echo(&echo);
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_CONTAINS("\"id\":\"a\\u001b[2J\\u000a\\\"\\\\\\u007f\\u00c2"
                    "\\u009b\",",
                    written(&echo));
    memset(id, 1, 255);
    job.id = id;
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    used = (size_t)snprintf(wanted, sizeof(wanted), "\"id\":\"");
    for (int i = 0; i < 255; i++)
        used += (size_t)snprintf(wanted + used, 7, "\\u0001");
    EXPECT_CONTAINS(wanted, written(&echo));
    close_echo(&echo);
}

TEST(echo_prints_a_job_as_one_line_in_a_fixed_order)
{
    struct echo echo;
    struct fake_job job = job_of("order-17", "{\"n\":1}");

    open_echo(&echo);
    job.counters.attempt = 3;
    job.late_us = 12034;
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_STR("{\"topic\":\"mail\",\"id\":\"order-17\",\"attempt\":3,"
               "\"late_ms\":12.034,\"body\":{\"n\":1}}\n",
               written(&echo));
    close_echo(&echo);
}

TEST(echo_tells_the_group_of_a_job)
{
    struct echo echo;
    struct fake_job job = job_of("1", "7");

    open_echo(&echo);
    job.group = "g-1";
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_STR("{\"topic\":\"mail\",\"id\":\"1\",\"attempt\":1,"
               "\"late_ms\":0.000,\"group\":\"g-1\",\"body\":7}\n",
               written(&echo));
    close_echo(&echo);
}

TEST(echo_escapes_quotes_and_backslashes)
{
    struct echo echo;
    struct fake_job job = job_of("\\a\"b", "null");

    open_echo(&echo);
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_CONTAINS("\"id\":\"\\\\a\\\"b\",\"attempt\":1,\"late_ms\":0.000,"
                    "\"body\":null}\n",
                    written(&echo));
    close_echo(&echo);
}

TEST(echo_hands_lines_over_when_flushed_and_not_twice)
{
    struct echo echo;
    struct fake_job job = job_of("a", "1");
    size_t len;

    open_echo(&echo);
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_STR("", written(&echo));
    EXPECT_INT(0, flush(&echo.bound));
    len = strlen(written(&echo));
    EXPECT_TRUE(len > 0);
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_INT(len, strlen(written(&echo)));
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_INT(2 * len, strlen(written(&echo)));
    close_echo(&echo);
}

static off_t size_of(const struct echo *echo)
{
    struct stat stat;

    EXPECT_INT(0, fstat(fileno(echo->file), &stat));
    return stat.st_size;
}

TEST(echo_does_not_collect_without_bound)
{
    struct echo echo;
    struct fake_job job = job_of("a", "\"0123456789\"");

    open_echo(&echo);
    for (int i = 0; i < 10000; i++)
        EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_TRUE(size_of(&echo) >= 256 * 1024);
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_INT(0, size_of(&echo) % 10000);
    close_echo(&echo);
}

TEST(echo_prints_large_bodies_whole)
{
    struct echo echo;
    struct fake_job job;
    size_t len = 1 << 20;
    char *body = calloc(1, len + 1);

    open_echo(&echo);
    EXPECT_TRUE(body != NULL);
    memset(body, '7', len);
    job = job_of("a", body);
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_INT(len + strlen("{\"topic\":\"mail\",\"id\":\"a\",\"attempt\":1,"
                            "\"late_ms\":0.000,\"body\":}\n"),
               size_of(&echo));
    free(body);
    close_echo(&echo);
}

TEST(echo_snoozes_a_job_it_has_no_memory_for_and_leaves_no_half_line)
{
    struct echo echo;
    struct fake_job job = job_of("a", "1");

    open_echo(&echo);
    job.is_out_of_memory = true;
    EXPECT_INT(WEIR_SNOOZE, run(&echo.bound, &job));
    EXPECT_INT(1000, job.delay_ms);
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_STR("", written(&echo));
    close_echo(&echo);
}

TEST(echo_fails_the_turn_whose_lines_were_not_written)
{
    struct bound bound;
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {"file=/dev/full"};

    bind_plugin(&bound, "echo", options);
    EXPECT_INT(0, flush(&bound));
    EXPECT_INT(WEIR_DONE, run(&bound, &job));
    EXPECT_INT(WEIR_ESYSTEM, flush(&bound));
    EXPECT_INT(0, flush(&bound));
    weir__instance_close(&bound.instance);
}

TEST(echo_fails_the_turn_also_when_an_early_write_failed)
{
    struct bound bound;
    struct fake_job job = job_of("a", "\"0123456789\"");
    const char *const options[3] = {"file=/dev/full"};

    bind_plugin(&bound, "echo", options);
    for (int i = 0; i < 10000; i++)
        EXPECT_INT(WEIR_DONE, run(&bound, &job));
    EXPECT_INT(WEIR_ESYSTEM, flush(&bound));
    EXPECT_INT(0, flush(&bound));
    weir__instance_close(&bound.instance);
}

/* The largest file this process may write; beyond it writes fail. */
static void limit_files(rlim_t bytes)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct rlimit limit;

    EXPECT_INT(0, sigaction(SIGXFSZ, &ignore, NULL));
    EXPECT_INT(0, getrlimit(RLIMIT_FSIZE, &limit));
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    EXPECT_INT(0, setrlimit(RLIMIT_FSIZE, &limit));
}

TEST(echo_ends_a_line_that_a_failure_cut)
{
    struct echo echo;
    struct fake_job job = job_of("a", "1");

    open_echo(&echo);
    limit_files(20);
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(WEIR_ESYSTEM, flush(&echo.bound));
    EXPECT_STR("{\"topic\":\"mail\",\"id\"", written(&echo));
    limit_files(RLIM_INFINITY);
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    EXPECT_INT(0, flush(&echo.bound));
    EXPECT_STR("{\"topic\":\"mail\",\"id\"\n{\"topic\":\"mail\",\"id\":\"a\","
               "\"attempt\":1,\"late_ms\":0.000,\"body\":1}\n",
               written(&echo));
    close_echo(&echo);
}

/* Writes into `fd`, which does not block, until it takes no more. */
static void fill(int fd)
{
    char text[4096] = {0};

    while (write(fd, text, sizeof(text)) > 0)
        continue;
}

/* Once there is a byte in the pipe `go`, until all writers are gone. */
static _Noreturn void read_for_ever(const int ends[2], const int go[2])
{
    char text[4096];

    (void)close(ends[1]);
    (void)close(go[1]);
    if (read(go[0], text, 1) == 1)
        while (read(ends[0], text, sizeof(text)) > 0)
            continue;
    _exit(0);
}

TEST(echo_waits_for_a_reader_that_is_slow)
{
    struct bound bound;
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {NULL};
    int ends[2], go[2], old = dup(STDOUT_FILENO), rc;

    EXPECT_INT(0, pipe(ends));
    EXPECT_INT(0, pipe(go));
    if (fork() == 0)
        read_for_ever(ends, go);
    EXPECT_INT(0, fcntl(ends[1], F_SETFL, O_NONBLOCK));
    bind_plugin(&bound, "echo", options);
    (void)dup2(ends[1],
               STDOUT_FILENO); /* nothing is printed until it is back */
    fill(STDOUT_FILENO);
    (void)run(&bound, &job);
    EXPECT_INT(1, write(go[1], "x", 1));
    rc = flush(&bound);
    (void)dup2(old, STDOUT_FILENO);
    EXPECT_INT(0, rc);
    weir__instance_close(&bound.instance);
}

TEST(echo_makes_its_file_and_appends_to_what_is_there)
{
    char folder[] = "/tmp/weir-echo-XXXXXX", path[64], option[80];
    const char *const options[3] = {option};
    struct stat stat_once, stat_twice;

    EXPECT_TRUE(mkdtemp(folder) != NULL);
    (void)snprintf(path, sizeof(path), "%s/out", folder);
    (void)snprintf(option, sizeof(option), "file=%s", path);
    for (int i = 0; i < 2; i++) {
        struct bound bound;
        struct fake_job job = job_of("a", "1");

        bind_plugin(&bound, "echo", options);
        EXPECT_INT(WEIR_DONE, run(&bound, &job));
        EXPECT_INT(0, flush(&bound));
        weir__instance_close(&bound.instance);
        EXPECT_INT(0, stat(path, i == 0 ? &stat_once : &stat_twice));
    }
    EXPECT_INT(0, unlink(path));
    EXPECT_INT(0, rmdir(folder));
    EXPECT_TRUE(stat_once.st_size > 0);
    EXPECT_INT(2 * stat_once.st_size, stat_twice.st_size);
}

TEST(echo_says_which_file_it_cannot_open)
{
    struct bound bound;
    const char *const options[3] = {"file=/no/such/folder/x"};

    bind_plugin(&bound, "echo", options);
    EXPECT_INT(WEIR_ESYSTEM, bound.rc);
    EXPECT_STR("plugin echo: cannot open /no/such/folder/x: No such file or "
               "directory",
               bound.err.text);
}

TEST(echo_prints_to_stdout_when_no_file_is_named)
{
    struct echo echo = {.file = tmpfile()};
    struct fake_job job = job_of("a", "1");
    const char *const options[3] = {NULL};
    int old = dup(STDOUT_FILENO), rc;

    EXPECT_TRUE(echo.file != NULL);
    bind_plugin(&echo.bound, "echo", options);
    (void)dup2(fileno(echo.file), STDOUT_FILENO);
    EXPECT_INT(WEIR_DONE, run(&echo.bound, &job));
    rc = flush(&echo.bound);
    weir__instance_close(&echo.bound.instance);
    EXPECT_TRUE(fcntl(STDOUT_FILENO, F_GETFD) >= 0);
    (void)dup2(old, STDOUT_FILENO);
    EXPECT_INT(0, rc);
    EXPECT_STR("{\"topic\":\"mail\",\"id\":\"a\",\"attempt\":1,"
               "\"late_ms\":0.000,\"body\":1}\n",
               written(&echo));
    EXPECT_INT(0, close(old));
    EXPECT_INT(0, fclose(echo.file));
}
