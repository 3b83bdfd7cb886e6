/* SPDX-License-Identifier: MIT */

/* Talk: sentences and log lines, all of it to stderr. */

#include "adapters/cli/cli.h"
#include "core/text.h"
#include "core/visible.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* Foreign text behind a head of ours: one line in one write, as threads may log
 * at once. */
static void write_line(const char *head, struct weir_slice text)
{
    char line[1280];
    size_t used = 0;

    for (; *head != '\0' && used < sizeof(line) / 2; head++)
        line[used++] = *head;
    used += weir__visible_take(&text, line + used, sizeof(line) - used - 1);
    line[used++] = '\n';
    (void)fwrite(line, 1, used, stderr);
}

WEIR_PRINTF(1, 0)
static void say(const char *format, va_list args)
{
    char raw[1024];
    int wanted = vsnprintf(raw, sizeof(raw), format, args);

    write_line("weir: ", weir__visible_formatted(raw, sizeof(raw), wanted));
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
    char clock[16] = "", head[64];

    (void)arg;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)localtime_r(&now.tv_sec, &local);
    (void)strftime(clock, sizeof(clock), "%H:%M:%S", &local);
    (void)snprintf(head, sizeof(head), "%s.%03ld %s%s%s ", clock,
                   now.tv_nsec / 1000000,
                   is_terminal ? levels[level].colour : "", levels[level].name,
                   is_terminal ? "\033[0m" : ""); /* fits */
    write_line(head, weir__slice_str(text));
}
