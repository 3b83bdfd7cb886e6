/* SPDX-License-Identifier: MIT */
#include "tests/harness/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/test.h"

#ifdef WEIR_SANITIZED
void expect_memory_below(long mib)
{
    (void)mib;
}
#else
static long peak_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    long kib = -1;

    EXPECT_TRUE(file != NULL);
    while (fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    (void)fclose(file); /* only read */
    return kib;
}

void expect_memory_below(long mib)
{
    long kib = peak_kib();

    EXPECT_TRUE(kib > 0);
    EXPECT_TRUE(kib / 1024 < mib);
}
#endif
