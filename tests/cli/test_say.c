/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "adapters/cli/cli.h"
#include "tests/harness/test.h"

/* Log lines to a standard error that is not read. The test ends only if no line
 * waits without an end. */

static char text[1 << 20];

static void say(const char *words)
{
    const struct weir_log_line line = {.level = WEIR_LEVEL_WARN, .text = words};

    weir__log_line(&line, NULL);
}

static void take_error(int fd)
{
    EXPECT_TRUE(dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    weir__log_bound();
}

/* All that is there now. */
static const char *read_now(int fd)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};
    size_t len = 0;

    while (poll(&in, 1, 0) == 1 && (in.revents & POLLIN) != 0) {
        ssize_t count = read(fd, text + len, sizeof(text) - 1 - len);

        EXPECT_TRUE(count > 0);
        len += (size_t)count;
    }
    text[len] = '\0';
    return text;
}

static void fill(int count, size_t len)
{
    char words[5000];

    memset(words, 'x', sizeof(words));
    words[len] = '\0';
    for (int i = 0; i < count; i++)
        say(words);
}

TEST(lines_that_a_pipe_does_not_take_are_dropped_and_counted)
{
    char wanted[100];
    int ends[2], lines = 0;

    EXPECT_INT(0, pipe(ends));
    take_error(ends[1]);
    fill(2000, 100);
    for (const char *at = read_now(ends[0]); *at != '\0'; at++)
        lines += *at == '\n';
    EXPECT_TRUE(lines > 100 && lines < 2000);
    say("read again");
    (void)snprintf(wanted, sizeof(wanted),
                   "warn %d lines were dropped, nobody read standard error\n",
                   2000 - lines);
    EXPECT_CONTAINS(wanted, read_now(ends[0]));
    EXPECT_CONTAINS("warn read again\n", text);
    say("as before");
    EXPECT_TRUE(strstr(read_now(ends[0]), "dropped") == NULL);
}

/* A pipe takes such a line in parts. */
TEST(a_line_of_which_a_part_was_written_is_ended)
{
    int ends[2];

    EXPECT_INT(0, pipe(ends));
    take_error(ends[1]);
    fill(100, 4900);
    (void)read_now(ends[0]);
    say("read again");
    EXPECT_CONTAINS("warn read again\n", read_now(ends[0]));
    EXPECT_CONTAINS("\n", text);
    EXPECT_TRUE(text[0] == '\n' || strstr(text, "xx") == NULL);
}

TEST(a_socket_that_is_not_read_holds_nothing_up_either)
{
    int ends[2];

    EXPECT_INT(0, socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
    take_error(ends[1]);
    fill(5000, 500);
    (void)read_now(ends[0]);
    say("read again");
    EXPECT_CONTAINS("lines were dropped, nobody read standard error\n",
                    read_now(ends[0]));
}

/* Other processes have the same one. */
TEST(the_flags_of_standard_error_stay_as_they_are)
{
    int ends[2];

    EXPECT_INT(0, pipe(ends));
    take_error(ends[1]);
    say("one");
    EXPECT_INT(0, fcntl(ends[1], F_GETFL) & O_NONBLOCK);
    EXPECT_CONTAINS("warn one\n", read_now(ends[0]));
}

TEST(a_reader_that_is_gone_costs_no_wait)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    int ends[2];

    EXPECT_INT(0, sigaction(SIGPIPE, &ignore, NULL)); /* as the command does */
    EXPECT_INT(0, pipe(ends));
    take_error(ends[1]);
    (void)close(ends[0]);
    fill(100, 100);
    EXPECT_TRUE(weir__write_error("x", 1));
}
