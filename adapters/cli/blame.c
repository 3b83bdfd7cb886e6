/* SPDX-License-Identifier: MIT */
#include "adapters/cli/blame.h"

#include "adapters/cli/cli.h"
#include "adapters/ev/spare_stack.h"
#include "core/text.h"

#include <dlfcn.h>
#include <ev.h>
#include <execinfo.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <weir/weir.h>

enum {
    FRAMES_MAX = 64,
    END_S = 3 /* longer than the teller needs */
};

/* Where code is; how addr2line names it. */
struct spot {
    const char *file; /* NULL: none */
    size_t offset;    /* of the instruction */
};

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

/* The innermost place in the file whose code weir called last, be it in a
 * library that it uses, too. The innermost frames are those of who asks, the
 * outermost one is what called main. Frames are return addresses, but for that
 * which a signal interrupted. */
static struct spot called(bool is_signal)
{
    /* One that no sanitizer has a version of. */
    int (*const part_of_libc)(void) = getpagesize;
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX), i = 0, raised;
    const char *name = NULL;
    struct spot found = {NULL, 0};
    const void *weir = base_of(&here, &name);
    const void *libc = base_of(code_of(part_of_libc), &name);
    const void *libev = base_of(code_of(ev_version_major), &name);
    const void *loader = (const void *)getauxval(AT_BASE);

    while (i < count && base_of(frames[i], &name) != weir)
        i++;
    while (i < count && base_of(frames[i], &name) == weir)
        i++;
    raised = is_signal ? i + 1 : -1; /* behind the return from the handler */
    for (; i < count; i++) {
        const char *base = base_of(frames[i], &name);

        if (base == weir)
            return i < count - 1 ? found : (struct spot){NULL, 0};
        if (base == loader && found.file != NULL)
            return found; /* it was being loaded */
        if (base == NULL || base == libc || base == libev || base == loader ||
            name == found.file)
            continue;
        found.file = name;
        found.offset =
            (size_t)((const char *)frames[i] - base) - (size_t)(i != raised);
    }
    return found;
}

static const struct fatal {
    int number;
    const char *name, *text;
} fatals[] = {
    {SIGSEGV, "SIGSEGV", "Segmentation fault"},
    {SIGBUS, "SIGBUS", "Bus error"},
    {SIGFPE, "SIGFPE", "Floating point exception"},
    {SIGILL, "SIGILL", "Illegal instruction"},
    {SIGABRT, "SIGABRT", "Aborted"},
};

enum { FATALS = sizeof(fatals) / sizeof(fatals[0]) };

/* What is said of the end, in parts. */
struct end {
    struct spot at; /* no file: the stack names none */
    const char *did, *how;
    const char *cause; /* "SIGSEGV", "exit()" */
};

/* "TOPIC ID: " and `what`, as a line of the log. */
static void log_end(const struct weir_current *at, const struct end *end,
                    const char *what)
{
    const char *plugin = end->at.file == NULL ? at->handler : end->at.file;
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

/* With the jobs that the worker has. A child of a fork has not the thread that
 * does so. */
static void note(const struct end *end)
{
    static char text[128];
    static atomic_flag is_noted = ATOMIC_FLAG_INIT; /* an exit beside a crash */
    const char *file = end->at.file, *name;

    if (worker == NULL || getpid() != listener ||
        atomic_flag_test_and_set(&is_noted))
        return;
    name = file == NULL ? NULL : strrchr(file, '/');
    if (file == NULL)
        (void)snprintf(text, sizeof(text), "%s", end->cause); /* fits */
    else
        (void)snprintf(text, sizeof(text), "%s in %.70s+0x%zx", end->cause,
                       name == NULL ? file : name + 1, end->at.offset);
    weir_reactor_note_crash(worker, text);
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
    if (end->at.file == NULL && at.handler != NULL)
        (void)snprintf(what, sizeof(what),
                       "the program %s within plugin %s%s%s", end->did,
                       at.handler, separator, end->how); /* cut */
    else
        (void)snprintf(what, sizeof(what), "%s %s%s%s",
                       end->at.file == NULL ? "the program" : end->at.file,
                       end->did, separator, end->how); /* cut */
    if (worker == NULL)
        weir__complain("%s", what);
    else
        log_end(&at, end, what);
    note(end);
}

/* A thread that crashes while another one tells how it crashed waits for the
 * end that comes then; but not if the telling itself crashes. */
static void on_fatal(int number)
{
    static atomic_int first;
    const struct timespec wait = {.tv_sec = END_S};
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    const int self = (int)syscall(SYS_gettid);
    int teller = 0;
    size_t i = 0;

    while (i < FATALS - 1 && fatals[i].number != number)
        i++;
    if (atomic_compare_exchange_strong(&first, &teller, self))
        tell(&(struct end){called(true), crashed, fatals[i].text,
                           fatals[i].name});
    else if (teller != self)
        (void)nanosleep(&wait, NULL);
    (void)sigaction(number, &normal, NULL);
    (void)raise(number);
}

/* At an end of main nothing but weir is on the stack. */
static void on_exit_called(void)
{
    const struct spot at = called(false);

    if (at.file == NULL)
        return;
    tell(&(struct end){at, ended, "exit()", "exit()"});
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

    if (!is_own && getpid() == listener) {
        const struct spot at = called(false);

        if (at.file != NULL) {
            tell(&(struct end){at, ended, "_exit()", "_exit()"});
            code = WEIR__EXIT_FAILED;
        }
    }
    for (;;)
        (void)syscall(SYS_exit_group, code);
}

WEIR_API _Noreturn void _Exit(int code)
{
    _exit(code);
}

void weir__blame_worker(const struct weir_reactor *reactor)
{
    worker = reactor;
}

void weir__blame_listen(void)
{
    struct sigaction act, old;
    void *frame;

    listener = getpid();
    (void)backtrace(&frame, 1);    /* what it loads is there by then */
    (void)weir__spare_stack_new(); /* until the program ends */
    memset(&act, 0, sizeof(act));
    act.sa_handler = on_fatal;
    act.sa_flags = SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < FATALS; i++)
        if (sigaction(fatals[i].number, NULL, &old) == 0 &&
            old.sa_handler == SIG_DFL)
            (void)sigaction(fatals[i].number, &act, NULL);
    (void)atexit(on_exit_called);
}
