/* SPDX-License-Identifier: MIT */
#include "adapters/cli/blame.h"

#include "adapters/cli/cli.h"
#include "core/text.h"

#include <dlfcn.h>
#include <ev.h>
#include <execinfo.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weir/weir.h>

enum { FRAMES_MAX = 64, STACK_SIZE = 64 * 1024 };

static const char here; /* in weir */
static const char crashed[] = "crashed", ended[] = "ended the program";
static pid_t listener; /* 0: none */
static const struct weir_reactor *volatile worker;

static void *base_of(const void *code, const char **ret_name)
{
    Dl_info info;

    if (dladdr(code, &info) == 0)
        return NULL;
    *ret_name = info.dli_fname;
    return info.dli_fbase;
}

/* Of a function where its code is, which C has no cast for. */
static const void *code_of(int (*fn)(void))
{
    const void *code;

    memcpy(&code, &fn, sizeof(code));
    return code;
}

/* The file whose code weir called last, be it in a library that it uses, too;
 * NULL: none but weir itself. The innermost frames are those of who asks, the
 * outermost one is what called main. */
static const char *called(void)
{
    /* One that no sanitizer has a version of. */
    int (*const part_of_libc)(void) = getpagesize;
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX), i = 0;
    const char *name = NULL, *found = NULL;
    const void *weir = base_of(&here, &name);
    const void *libc = base_of(code_of(part_of_libc), &name);
    const void *libev = base_of(code_of(ev_version_major), &name);
    const void *loader = (const void *)getauxval(AT_BASE);

    while (i < count && base_of(frames[i], &name) != weir)
        i++;
    while (i < count && base_of(frames[i], &name) == weir)
        i++;
    for (; i < count; i++) {
        const void *base = base_of(frames[i], &name);

        if (base == weir)
            return i < count - 1 ? found : NULL;
        if (base == loader && found != NULL)
            return found; /* it was being loaded */
        if (base != NULL && base != libc && base != libev && base != loader)
            found = name;
    }
    return found;
}

static const char *text_of(int number)
{
    switch (number) {
    case SIGSEGV:
        return "Segmentation fault";
    case SIGBUS:
        return "Bus error";
    case SIGFPE:
        return "Floating point exception";
    case SIGILL:
        return "Illegal instruction";
    default:
        return "Aborted";
    }
}

/* What is said of the end, in parts. */
struct end {
    const char *name; /* the file; NULL: the stack names none */
    const char *did, *how;
};

/* "TOPIC ID: " and `what`, as a line of the log. */
static void log_end(const struct weir_current *at, const struct end *end,
                    const char *what)
{
    const char *plugin = end->name == NULL ? at->handler : end->name;
    const struct weir_log_field fields[] = {
        {"cause", end->how, 0},
        {"others", NULL, (int64_t)at->others},
        {"plugin", plugin, 0},
    };
    char text[PATH_MAX + 512], others[48] = "";
    const struct weir_log_line line = {
        .level = WEIR_LEVEL_ERROR,
        .text = text,
        .topic = at->topic[0] == '\0' ? NULL : at->topic,
        .id = weir__slice_str(at->id),
        .event = "crash",
        .fields = fields,
        .field_count = plugin == NULL ? 2 : 3,
    };

    if (at->others > 0)
        (void)snprintf(others, sizeof(others), " and %zu more",
                       at->others); /* fits */
    (void)snprintf(text, sizeof(text), "%s%s%s%s%s%s", at->topic,
                   at->id[0] == '\0' ? "" : " ", at->id, others,
                   at->topic[0] == '\0' ? "" : ": ", what); /* fits */
    weir__log_line(&line, NULL);
}

/* Who did it, and what. Where the stack names nobody but weir, or nothing, what
 * runs did it. */
static void tell(const struct end *end)
{
    const char *separator = end->did == crashed ? ": " : " by ";
    struct weir_current at = {.handler = NULL};
    char what[PATH_MAX + 128];

    if (worker != NULL)
        (void)weir_reactor_current(worker, &at); /* or it stays empty */
    if (end->name == NULL && at.handler != NULL)
        (void)snprintf(what, sizeof(what),
                       "the program %s within plugin %s%s%s", end->did,
                       at.handler, separator, end->how); /* cut */
    else
        (void)snprintf(what, sizeof(what), "%s %s%s%s",
                       end->name == NULL ? "the program" : end->name, end->did,
                       separator, end->how); /* cut */
    if (worker == NULL)
        weir__complain("%s", what);
    else
        log_end(&at, end, what);
}

/* The signal's own effect comes when this returns. */
static void on_fatal(int number)
{
    tell(&(struct end){called(), crashed, text_of(number)});
    (void)raise(number);
}

/* At an end of main nothing but weir is on the stack. */
static void on_exit_called(void)
{
    const char *name = called();

    if (name == NULL)
        return;
    tell(&(struct end){name, ended, "exit()"});
    (void)fflush(NULL); /* what cannot be written is lost */
    _exit(WEIR__EXIT_FAILED);
}

/* Plugins find this one before the C library's, which no hook of its own tells
 * of. Weir itself may end at any place, and children of a fork as they like. */
WEIR_API _Noreturn void _exit(int code)
{
    const char *file = NULL;
    const bool is_own =
        base_of(__builtin_return_address(0), &file) == base_of(&here, &file);
    const char *name = is_own || getpid() != listener ? NULL : called();

    if (name != NULL) {
        tell(&(struct end){name, ended, "_exit()"});
        code = WEIR__EXIT_FAILED;
    }
    for (;;)
        (void)syscall(SYS_exit_group, code);
}

WEIR_API _Noreturn void _Exit(int code)
{
    _exit(code);
}

/* A handler without an end leaves no room on the stack to say so. */
static void make_room(void)
{
    stack_t stack = {.ss_size = STACK_SIZE};

    stack.ss_sp = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp != MAP_FAILED)
        (void)sigaltstack(&stack, NULL); /* then it has none */
}

void weir__blame_worker(const struct weir_reactor *reactor)
{
    worker = reactor;
}

void weir__blame_listen(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction act, old;
    void *frame;

    listener = getpid();
    (void)backtrace(&frame, 1); /* what it loads is there by then */
    make_room();
    memset(&act, 0, sizeof(act));
    act.sa_handler = on_fatal;
    act.sa_flags = (int)(SA_ONSTACK | SA_RESETHAND | SA_NODEFER);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(numbers[i], &act, NULL);
    (void)atexit(on_exit_called);
}
