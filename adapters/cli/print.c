/* SPDX-License-Identifier: MIT */

/* What goes to stdout: all of it that is not a literal goes through here, so
 * that no foreign byte reaches a terminal. */

#include "adapters/cli/output.h"

#include "adapters/json/json.h"
#include "core/buf.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/visible.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

void weir__print_text(struct weir_slice text)
{
    while (text.len > 0) {
        size_t len = weir__visible_length(text);
        char escape[WEIR__ESCAPE_CAP];

        (void)fwrite(text.ptr, 1, len, stdout);
        text = weir__slice_of(text.ptr + len, text.len - len);
        if (text.len > 0)
            (void)fputs(weir__escape_take(&text, escape), stdout);
    }
}

static bool ends_line(const char *format)
{
    size_t len = strlen(format);

    return len > 0 && format[len - 1] == '\n';
}

void weir__print(const char *format, ...)
{
    char few[512], *text = few;
    struct weir_slice shown;
    va_list args, again;
    int wanted;

    va_start(args, format);
    va_copy(again, args);
    wanted = vsnprintf(few, sizeof(few), format, args);
    shown = weir__visible_formatted(few, sizeof(few), wanted);
    if (wanted >= (int)sizeof(few))
        text = weir__mem_new((size_t)wanted + 1);
    if (text != few && text != NULL)
        shown = weir__slice_of(
            text, (size_t)vsnprintf(text, (size_t)wanted + 1, format, again));
    va_end(again);
    va_end(args);
    if (ends_line(format) && shown.len > 0 && shown.ptr[shown.len - 1] == '\n')
        shown.len--;
    weir__print_text(shown);
    if (ends_line(format))
        (void)putchar('\n');
    if (text != few)
        weir__mem_free(text);
}

bool weir__print_json(const char *before, struct json_object *object)
{
    struct weir__buf escaped = {0};
    struct weir_slice line;
    bool is_good = weir__json_line(object, &escaped, &line);

    if (is_good) {
        (void)fputs(before, stdout);
        (void)fwrite(line.ptr, 1, line.len, stdout);
    }
    weir__buf_fini(&escaped);
    return is_good;
}

bool weir__is_unread(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};

    return poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

_Noreturn void weir__end_unread(void)
{
    struct sigaction act;
    sigset_t pipe_only;

    memset(&act, 0, sizeof(act));
    act.sa_handler = SIG_DFL;
    (void)sigaction(SIGPIPE, &act, NULL); /* cannot fail for SIGPIPE */
    (void)sigemptyset(&pipe_only);
    (void)sigaddset(&pipe_only, SIGPIPE);
    (void)sigprocmask(SIG_UNBLOCK, &pipe_only, NULL);
    (void)raise(SIGPIPE);
    _exit(WEIR__EXIT_FAILED); /* not reached */
}
