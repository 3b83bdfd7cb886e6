/* SPDX-License-Identifier: MIT */

/* The child process in which jq runs. */

#include "adapters/cli/jq_process.h"
#include "core/text.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The answers for up to three jobs, as text. */
static const char *ask(struct weir__jq *jq, const char *one, const char *two,
                       const char *three)
{
    static char told[8];
    const char *jobs[] = {one, two, three};
    struct weir__buf buf = {0};
    size_t count = 0, answered;

    for (; count < 3 && jobs[count] != NULL; count++)
        weir__buf_append(&buf, jobs[count], strlen(jobs[count]) + 1);
    answered = weir__jq_ask(jq, &buf, count);
    memcpy(told, jq->answers->taken, answered);
    told[answered] = '\0';
    weir__buf_fini(&buf);
    return told;
}

TEST(a_job_is_taken_left_or_failed_on)
{
    struct weir__jq jq = {0};

    EXPECT_INT(WEIR_OK, weir__jq_open(&jq, "false, .a + 1 > 2", NULL));
    EXPECT_STR("yn", ask(&jq, "{\"a\":2}", "{\"a\":1}", NULL));
    EXPECT_STR("", jq.answers->why);
    EXPECT_STR("nfy", ask(&jq, "{\"a\":1}", "{\"a\":[]}", "{\"a\":3}"));
    EXPECT_STR("array ([]) and number (1) cannot be added", jq.answers->why);
    EXPECT_STR("fy", ask(&jq, "{", "{\"a\":3}", NULL));
    EXPECT_STR("array ([]) and number (1) cannot be added", jq.answers->why);
    (void)weir__jq_end(&jq);
    (void)weir__jq_end(&jq);
}

TEST(a_program_that_jq_refuses_has_a_sentence)
{
    struct weir__jq jq = {0};
    struct weir_error err = {0};

    EXPECT_INT(WEIR_EINVAL, weir__jq_open(&jq, "foo", &err));
    EXPECT_CONTAINS("foo/0 is not defined", err.text);
    (void)weir__jq_end(&jq);
    EXPECT_INT(WEIR_EINVAL, weir__jq_open(&jq, "import \"x\" as x; .", &err));
    (void)weir__jq_end(&jq);
}

TEST(a_crash_ends_the_child_at_its_job)
{
    static const char *const programs[] = {
        "if . < 3 then . == 1 else 1.8e308 | todate end",
        "def f(x): f(x | x); if . < 3 then . == 1 else f(.) end"};

    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        struct weir__jq jq = {0};

        EXPECT_INT(WEIR_OK, weir__jq_open(&jq, programs[i], NULL));
        EXPECT_STR("yn", ask(&jq, "1", "2", "3"));
        EXPECT_STR("", ask(&jq, "1", NULL, NULL));
        EXPECT_CONTAINS("crashed jq", weir__jq_end(&jq));
    }
}

TEST(a_large_job_goes_through)
{
    const size_t len = (size_t)2 << 20;
    struct weir__jq jq = {0};
    char *job = malloc(len + 1);

    EXPECT_TRUE(job != NULL);
    memset(job, 'x', len);
    job[0] = job[len - 1] = '"';
    job[len] = '\0';
    EXPECT_INT(WEIR_OK, weir__jq_open(&jq, "length == 2097150", NULL));
    EXPECT_STR("yy", ask(&jq, job, job, NULL));
    (void)weir__jq_end(&jq);
    free(job);
}

/* The value of a line of /proc/PID/status. */
static long status_of(pid_t pid, const char *name)
{
    char path[64], line[256];
    long value = -1;
    FILE *file;

    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, name, strlen(name)) == 0)
            value = strtol(line + strlen(name), NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return value;
}

TEST(the_child_is_shut_in)
{
    struct weir__jq jq = {0};
    char path[64], target[64];
    int fds = 0;

    EXPECT_INT(WEIR_OK, weir__jq_open(&jq, ".", NULL));
    for (int fd = 0; fd < 100; fd++) {
        ssize_t len;

        (void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)jq.pid, fd);
        len = readlink(path, target, sizeof(target) - 1);
        if (len < 0)
            continue;
        target[len] = '\0';
        fds++;
        EXPECT_TRUE(fd == 3 ? strncmp(target, "socket:", 7) == 0
                            : strcmp(target, "/dev/null") == 0);
    }
    EXPECT_INT(4, fds);
    EXPECT_INT(1, (int)status_of(jq.pid, "NoNewPrivs:"));
    EXPECT_TRUE(status_of(jq.pid, "Seccomp:") != 0); /* -1: not in the kernel */
    (void)weir__jq_end(&jq);
}

TEST(many_jobs_are_looked_at_at_once)
{
    static const char jobs[] = "{\"a\":1}\0{\"a\":2}\0{\"a\":\"x\"}";
    struct weir__buf buf = {0};
    struct weir__jq jq = {0};
    char told[16] = "";
    ssize_t got;
    size_t len = 0;

    weir__buf_append(&buf, jobs, sizeof(jobs));
    EXPECT_INT(WEIR_OK, weir__jq_start(&jq, ".a - 1 > 0", &buf, 3));
    while ((got = read(jq.fd, told + len, sizeof(told) - 1 - len)) > 0)
        len += (size_t)got;
    EXPECT_STR("nyf", told);
    (void)weir__jq_end(&jq);
    EXPECT_INT(WEIR_OK, weir__jq_start(&jq, "env | length > 0", &buf, 1));
    EXPECT_INT(1, (int)read(jq.fd, told, sizeof(told)));
    EXPECT_INT('n', told[0]);
    (void)weir__jq_end(&jq);
    weir__buf_fini(&buf);
}
