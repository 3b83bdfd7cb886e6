/* SPDX-License-Identifier: MIT */
#include "tests/harness/names.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/tempdir.h"
#include "tests/harness/test.h"

static struct tempdir dir;

const char *names_dir(void)
{
    if (dir.path[0] == '\0')
        EXPECT_TRUE(tempdir_make(&dir));
    return dir.path;
}

void names_set(const char *lines)
{
    char path[128], next[128];
    FILE *file;

    (void)names_asked(); /* links the getaddrinfo beside it */
    (void)snprintf(path, sizeof(path), "%s/names", names_dir());
    (void)snprintf(next, sizeof(next), "%s/next", names_dir());
    file = fopen(next, "w");
    EXPECT_TRUE(file != NULL && fputs(lines, file) >= 0);
    EXPECT_INT(0, fclose(file));
    EXPECT_INT(0, rename(next, path));
    EXPECT_INT(0, setenv("WEIR_TEST_NAMES", path, 1));
}
