/* SPDX-License-Identifier: MIT */

/* In LD_PRELOAD: fork fails from the call on that WEIR_TEST_FORKS says, 0 for
 * the first one. */

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pid_t fork(void)
{
    static int forks;
    const char *most = getenv("WEIR_TEST_FORKS");
    void *symbol = dlsym(RTLD_NEXT, "fork");
    pid_t (*fn)(void);

    if (most != NULL && forks++ >= strtol(most, NULL, 10)) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(&fn, &symbol, sizeof(fn));
    return fn();
}
