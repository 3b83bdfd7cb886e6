/* SPDX-License-Identifier: MIT */

/* Talk: sentences and log lines, all of it to stderr. */

#include "adapters/cli/cli.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

WEIR_PRINTF(1, 0)
static void say(const char *format, va_list args)
{
    char text[1024];

    (void)vsnprintf(text, sizeof(text), format, args); /* cut */
    (void)fprintf(stderr, "weir: %s\n", text);
}

void weir__complain(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
}

void weir__note(const struct weir__cli *cli, const char *format, ...)
{
    va_list args;

    if (cli->log_level > WEIR_LEVEL_INFO)
        return;
    va_start(args, format);
    say(format, args);
    va_end(args);
}

void weir__log_line(enum weir_level level, const char *text, void *arg)
{
    static const struct {
        const char *name, *colour;
    } levels[] = {
        [WEIR_LEVEL_DEBUG] = {"debug", "\033[2m"},
        [WEIR_LEVEL_INFO] = {"info", "\033[36m"},
        [WEIR_LEVEL_WARN] = {"warn", "\033[33m"},
        [WEIR_LEVEL_ERROR] = {"error", "\033[31m"},
    };
    bool is_terminal = isatty(STDERR_FILENO) == 1;
    struct timespec now = {0};
    struct tm local = {0};
    char clock[16] = "";

    (void)arg;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)localtime_r(&now.tv_sec, &local);
    (void)strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    (void)fprintf(stderr, "%s.%03ld %s%s%s %s\n", clock, now.tv_nsec / 1000000,
                  is_terminal ? levels[level].colour : "", levels[level].name,
                  is_terminal ? "\033[0m" : "", text);
}
