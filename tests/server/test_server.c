/* SPDX-License-Identifier: MIT */

/* The private server, with real processes. */

#include "adapters/server/ask.h"
#include "adapters/server/server.h"
#include "adapters/server/spawn.h"
#include "tests/harness/memory.h"
#include "tests/harness/resp_peer.h"
#include "tests/harness/test.h"
#include "tests/server/scratch.h"

#include <errno.h>
#include <hiredis.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct weir__server located(const char *dir)
{
    struct weir__server server;
    struct weir_error err = {0};

    if (weir__server_locate(dir, true, &server, &err) < 0)
        EXPECT_STR("", err.text);
    return server;
}

/* Start it; returns whether this call did. */
static bool start(const struct weir__server *server,
                  struct weir__server_info *ret_info)
{
    struct weir_error err = {0};
    bool started = false;

    if (weir__server_start(server, &started, ret_info, &err) < 0)
        EXPECT_STR("", err.text);
    return started;
}

static void wait_gone(pid_t pid)
{
    struct timespec pause = {.tv_nsec = 5000000};

    for (int i = 0; i < 2000 && weir__process_is_alive(pid); i++)
        (void)nanosleep(&pause, NULL);
    EXPECT_TRUE(!weir__process_is_alive(pid));
}

static redisReply *command(const struct weir__server *server, const char *text)
{
    redisContext *context = redisConnectUnix(server->socket);
    redisReply *reply;

    EXPECT_TRUE(context != NULL && context->err == 0);
    reply = redisCommand(context, text);
    EXPECT_TRUE(reply != NULL);
    redisFree(context);
    return reply;
}

TEST(a_server_is_started_once_and_found_the_next_time)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info first, second;

    EXPECT_TRUE(start(&server, &first));
    EXPECT_TRUE(!start(&server, &second));
    EXPECT_TRUE(first.pid > 0);
    EXPECT_INT(first.pid, second.pid);
}

TEST(eight_processes_at_once_start_one_server)
{
    struct weir__server server = located(scratch_dir());
    int started = 0;

    for (int i = 0; i < 8; i++) {
        if (fork() == 0) {
            struct weir__server_info info;

            _exit(start(&server, &info) ? 10 : 20);
        }
    }
    for (int i = 0; i < 8;) {
        int status = 0;
        pid_t pid = wait(&status);

        EXPECT_TRUE(pid > 0 && WIFEXITED(status));
        started += WEXITSTATUS(status) == 10 ? 1 : 0;
        EXPECT_TRUE(WEXITSTATUS(status) == 10 || WEXITSTATUS(status) == 20);
        i++;
    }
    EXPECT_INT(1, started);
}

TEST(status_tells_pid_version_and_memory)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info started, info = {0};

    (void)start(&server, &started);
    EXPECT_INT(WEIR_OK, weir__server_status(&server, &info, NULL));
    EXPECT_INT(started.pid, info.pid);
    EXPECT_TRUE(info.memory_bytes > 0);
    EXPECT_CONTAINS(".", info.version);
}

TEST(status_of_no_server_says_not_found)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;
    struct weir_error err = {0};

    EXPECT_INT(WEIR_ENOTFOUND, weir__server_status(&server, &info, &err));
    EXPECT_CONTAINS(server.dir, err.text);
}

TEST(stop_waits_until_the_process_is_gone)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;

    (void)start(&server, &info);
    EXPECT_INT(WEIR_OK, weir__server_stop(&server, NULL));
    EXPECT_TRUE(!weir__process_is_alive(info.pid));
    EXPECT_INT(WEIR_ENOTFOUND, weir__server_stop(&server, NULL));
}

TEST(what_was_written_is_there_after_stop_and_start)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;
    redisReply *reply;

    (void)start(&server, &info);
    freeReplyObject(command(&server, "SET weir here"));
    EXPECT_INT(WEIR_OK, weir__server_stop(&server, NULL));
    EXPECT_TRUE(start(&server, &info));
    reply = command(&server, "GET weir");
    EXPECT_STR("here", reply->str);
    freeReplyObject(reply);
}

TEST(a_killed_server_is_started_again)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info first, second;

    (void)start(&server, &first);
    (void)kill(first.pid, SIGKILL);
    wait_gone(first.pid);
    EXPECT_TRUE(start(&server, &second));
    EXPECT_TRUE(first.pid != second.pid);
}

TEST(a_server_whose_socket_is_gone_is_not_doubled)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;
    struct weir_error err = {0};
    bool started;

    (void)start(&server, &info);
    EXPECT_INT(0, unlink(server.socket));
    EXPECT_INT(WEIR_ESYSTEM,
               weir__server_start(&server, &started, &info, &err));
    EXPECT_CONTAINS("without its socket", err.text);
}

TEST(the_server_evicts_nothing_and_keeps_an_append_only_file)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;
    redisReply *reply;

    (void)start(&server, &info);
    reply = command(&server, "CONFIG GET maxmemory-policy");
    EXPECT_STR("noeviction", reply->element[1]->str);
    freeReplyObject(reply);
    reply = command(&server, "CONFIG GET appendonly");
    EXPECT_STR("yes", reply->element[1]->str);
    freeReplyObject(reply);
}

TEST(the_server_inherits_no_descriptor)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;
    struct pollfd end;
    int ends[2];

    EXPECT_INT(0, pipe(ends));
    (void)start(&server, &info);
    (void)close(ends[1]);
    end = (struct pollfd){ends[0], POLLIN, 0};
    EXPECT_INT(1, poll(&end, 1, 5000));
    EXPECT_TRUE((end.revents & POLLHUP) != 0);
}

TEST(the_server_is_in_a_session_of_its_own)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;

    (void)start(&server, &info);
    EXPECT_TRUE(getsid(info.pid) != getsid(0));
    EXPECT_TRUE(getpgid(info.pid) != getpgid(0));
}

TEST(the_directory_is_made_for_its_owner_only)
{
    const char *dir = scratch_dir();
    struct weir__server server;
    struct stat found;
    char deep[128];

    (void)snprintf(deep, sizeof(deep), "%s/state/weir", dir);
    server = located(deep);
    EXPECT_STR(deep, server.dir);
    EXPECT_INT(0, stat(deep, &found));
    EXPECT_INT(0700, found.st_mode & 0777);
}

TEST(a_missing_directory_is_not_made_unasked)
{
    struct weir__server server;
    char missing[128];

    (void)snprintf(missing, sizeof(missing), "%s/none", scratch_dir());
    EXPECT_INT(WEIR_ENOTFOUND,
               weir__server_locate(missing, false, &server, NULL));
}

TEST(a_directory_with_too_long_a_name_is_refused)
{
    struct weir__server server;
    struct weir_error err = {0};
    char dir[160];

    (void)snprintf(dir, sizeof(dir), "%s/%0100d", scratch_dir(), 0);
    EXPECT_INT(WEIR_ETOOBIG, weir__server_locate(dir, true, &server, &err));
    EXPECT_CONTAINS("107", err.text);
}

TEST(a_missing_redis_server_is_named)
{
    struct weir__server server = located(scratch_dir());
    struct weir__server_info info;
    struct weir_error err = {0};
    bool started;

    EXPECT_INT(0, setenv("PATH", "/nowhere", 1));
    EXPECT_INT(WEIR_ENOTFOUND,
               weir__server_start(&server, &started, &info, &err));
    EXPECT_STR("redis-server is not in PATH; install it", err.text);
}

/* A program named redis-server that fails as a wrong build would. */
TEST(a_server_that_ends_at_once_is_told_with_its_last_words)
{
    const char *dir = scratch_dir();
    struct weir__server server = located(dir);
    struct weir__server_info info;
    struct weir_error err = {0};
    char path[128];
    bool started;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/redis-server", dir);
    file = fopen(path, "w");
    EXPECT_TRUE(file != NULL);
    (void)fprintf(file, "#!/bin/sh\necho no luck today > %s/redis.log\n", dir);
    EXPECT_INT(0, fchmod(fileno(file), 0755));
    EXPECT_INT(0, fclose(file));
    EXPECT_INT(0, setenv("PATH", dir, 1));
    EXPECT_INT(WEIR_ESERVER,
               weir__server_start(&server, &started, &info, &err));
    EXPECT_CONTAINS("no luck today", err.text);
}

static void expect_silent(const struct resp_rule *rule)
{
    struct resp_peer *peer = resp_peer_start(rule, 1);
    struct weir__server_info info;

    EXPECT_INT(WEIR__SERVER_SILENT,
               weir__server_ask(resp_peer_socket(peer), &info));
    resp_peer_stop(peer);
    expect_memory_below(200);
}

TEST(a_server_that_answers_without_measure_is_silent)
{
    struct resp_rule rule = {.bytes = "*2147483647\r\n"};

    expect_silent(&rule);
    rule.bytes = "$2000\r\n";
    rule.more = "x";
    rule.every_ms = 100;
    expect_silent(&rule);
}
