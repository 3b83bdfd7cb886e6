/* SPDX-License-Identifier: MIT */
#include "adapters/cli/signals.h"

#include "adapters/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 3 };

static const int stopping[] = {SIGTERM, SIGINT};
static const int unused[] = {SIGUSR1, SIGUSR2};

/* A signal handler gets no argument. */
static struct {
    struct ev_loop *loop;
    struct ev_async told;
    weir__signal_fn fn;
    void *arg;
    unsigned heard; /* by the loop */
    bool had_terminal;

    _Atomic bool is_open;
    _Atomic bool is_hung_up;
    _Atomic int numbers[MOST];
    _Atomic unsigned count;
    _Atomic int64_t last_ms; /* when one was counted */
} here;

const char *weir__signal_name(int number)
{
    switch (number) {
    case SIGINT:
        return "SIGINT";
    case SIGHUP:
        return "SIGHUP";
    default:
        return "SIGTERM";
    }
}

/* --- in the signal handler: only what may be called there ---------------- */

static int64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* this clock is there */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void write_third(int number)
{
    static const char behind[] = " for the third time: ending at once\n";
    char text[64] = "weir: ";
    size_t len = strlen(text), name = strlen(weir__signal_name(number));

    memcpy(text + len, weir__signal_name(number), name);
    memcpy(text + len + name, behind, sizeof(behind) - 1); /* fits */
    (void)weir__write_error(text, len + name + sizeof(behind) - 1);
}

static void on_stopping(int number)
{
    int error = errno;
    int64_t at_ms = now_ms(), last_ms = atomic_load(&here.last_ms);
    unsigned index;

    if (at_ms - last_ms < WEIR__SIGNALS_SAME_MS ||
        !atomic_compare_exchange_strong(&here.last_ms, &last_ms, at_ms))
        return; /* also where another thread has one at this moment */
    index = atomic_fetch_add(&here.count, 1);
    if (index + 1 >= MOST) {
        write_third(number);
        _exit(WEIR__EXIT_FAILED);
    }
    atomic_store(&here.numbers[index], number);
    if (atomic_load(&here.is_open))
        ev_async_send(here.loop, &here.told); /* libev allows it here */
    errno = error;
}

static void on_hangup(int number)
{
    int error = errno;

    (void)number; /* SIGHUP */
    atomic_store(&here.is_hung_up, true);
    if (atomic_load(&here.is_open))
        ev_async_send(here.loop, &here.told);
    errno = error;
}

/* Unlike a signal that is ignored, one with a handler is at its default again
 * in programs that a plugin starts. */
static void on_unused(int number)
{
    (void)number; /* whichever */
}

/* --- on the loop ---------------------------------------------------------- */

static void on_told(struct ev_loop *loop, struct ev_async *watcher, int events)
{
    (void)loop;
    (void)watcher;
    (void)events;
    if (atomic_exchange(&here.is_hung_up, false))
        here.fn(SIGHUP, here.arg);
    while (here.heard < atomic_load(&here.count)) {
        int number = atomic_load(&here.numbers[here.heard]);

        if (number == 0)
            return; /* its handler is at work, and will tell */
        here.heard++;
        here.fn(number, here.arg);
    }
}

static void listen(int number, void (*fn)(int))
{
    struct sigaction act, before;

    memset(&act, 0, sizeof(act));
    act.sa_handler = fn;
    act.sa_flags = SA_RESTART;
    if (number == SIGHUP && sigaction(number, NULL, &before) == 0 &&
        before.sa_handler == SIG_IGN)
        return;                          /* nohup */
    (void)sigaction(number, &act, NULL); /* these signals exist */
}

/* A terminal that went away cannot be opened any more. */
static bool has_terminal(void)
{
    int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);

    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

bool weir__signals_lost_terminal(void)
{
    return here.had_terminal && !has_terminal();
}

void weir__signals_note_terminal(void)
{
    here.had_terminal = has_terminal();
}

/* What came before there was a handler, too. */
static void unblock_hangup(void)
{
    sigset_t mask;

    (void)sigemptyset(&mask);
    (void)sigaddset(&mask, SIGHUP);
    (void)sigprocmask(SIG_UNBLOCK, &mask, NULL);
}

void weir__signals_open(struct ev_loop *loop, weir__signal_fn fn, void *arg)
{
    here.loop = loop;
    here.fn = fn;
    here.arg = arg;
    atomic_store(&here.last_ms, -WEIR__SIGNALS_SAME_MS);
    weir__signals_note_terminal();
    ev_async_init(&here.told, on_told);
    ev_async_start(loop, &here.told);
    atomic_store(&here.is_open, true);
    for (size_t i = 0; i < sizeof(stopping) / sizeof(stopping[0]); i++)
        listen(stopping[i], on_stopping);
    listen(SIGHUP, on_hangup);
    for (size_t i = 0; i < sizeof(unused) / sizeof(unused[0]); i++)
        listen(unused[i], on_unused);
    unblock_hangup();
}

void weir__signals_close(void)
{
    atomic_store(&here.is_open, false);
    ev_async_stop(here.loop, &here.told);
}
