/* SPDX-License-Identifier: MIT */
#include "tests/server/scratch.h"
#include "tests/harness/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void kill_server(const char *dir)
{
    char path[128], line[32] = "";
    FILE *file;
    long pid;

    (void)snprintf(path, sizeof(path), "%s/redis.pid", dir);
    file = fopen(path, "r");
    if (file == NULL)
        return;
    pid = fgets(line, sizeof(line), file) != NULL ? strtol(line, NULL, 10) : 0;
    (void)fclose(file);
    if (pid > 1)
        (void)kill((pid_t)pid, SIGKILL);
}

_Noreturn static void guard(const char *dir, int alive)
{
    char byte;

    while (read(alive, &byte, 1) > 0)
        continue;
    kill_server(dir);
    (void)execlp("rm", "rm", "-rf", dir, (char *)NULL);
    _exit(1);
}

const char *scratch_dir(void)
{
    static char dir[64];
    int ends[2];
    pid_t guardian;

    (void)snprintf(dir, sizeof(dir), "/tmp/weir-test-XXXXXX");
    EXPECT_TRUE(mkdtemp(dir) != NULL);
    EXPECT_INT(0, pipe(ends));
    guardian = fork();
    if (guardian == 0) {
        (void)close(ends[1]);
        guard(dir, ends[0]);
    }
    /* The harness kills the test's process group. */
    EXPECT_INT(0, setpgid(guardian, guardian));
    (void)close(ends[0]); /* the other end closes with this process */
    return dir;
}
