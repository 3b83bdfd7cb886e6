/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/chaos.h"

/* Dies at step number WEIR_CHAOS_STEP, after its name went to stderr. */
void weir__chaos_step(const char *name)
{
    static long count; /* of the process, whose loop has one thread */
    const char *wanted = getenv("WEIR_CHAOS_STEP");

    count++;
    if (wanted == NULL || count != strtol(wanted, NULL, 10))
        return;
    if (write(STDERR_FILENO, name, strlen(name)) < 0)
        abort();
    (void)kill(getpid(), SIGKILL);
    (void)pause();
}
