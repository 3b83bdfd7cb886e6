/* SPDX-License-Identifier: MIT */
#include "adapters/cli/fleet.h"

#include "adapters/cli/notify.h"
#include "adapters/cli/signals.h"
#include "core/assert.h"
#include "core/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    BACKOFF_MS = 100,
    BACKOFF_MAX_MS = 30000,
    STEADY_MS = 30000, /* who ran for so long is started at once again */
    STOPS = 3
};

/* A worker's place, which outlives it. */
struct slot {
    pid_t pid;          /* 0: none runs */
    int told;           /* what it tells comes here; -1: none */
    bool is_ready;      /* it serves */
    bool was_ready;     /* it, or one before it, did */
    bool is_over;       /* it is not started again */
    bool is_suspicious; /* it gave no sign of life and was told to abort */
    int64_t ready_ms;   /* since when */
    int64_t sign_ms;    /* its last sign of life */
    int64_t backoff_ms; /* before the next start */
    int64_t start_ms;   /* when that is, while none runs */
};

struct state {
    const struct weir__fleet *fleet;
    struct slot *slots;   /* owned, `fleet->count` */
    struct pollfd *polls; /* owned, one more */
    int signals;
    sigset_t before; /* the mask of who called */
    pid_t parent;
    int64_t watchdog_ms; /* between two signs of life; 0: not wanted */
    int64_t fed_ms;
    bool is_ready; /* all of them were */
    bool is_stopping;
    unsigned stops;      /* signals to stop that counted */
    int64_t stop_ms;     /* when the last one did */
    struct slot *reader; /* reads the file first; NULL: nobody does */
    enum weir__exit worst;
};

static int64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* this clock is there */
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static void send_to(const struct slot *slot, int number)
{
    if (slot->pid > 0)
        (void)kill(slot->pid, number); /* a child of ours, not waited for */
}

static void send_to_all(const struct state *state, int number)
{
    for (size_t i = 0; i < state->fleet->count; i++)
        send_to(&state->slots[i], number);
}

static void worsen(struct state *state, enum weir__exit code)
{
    if (code > state->worst)
        state->worst = code;
}

/* No worker is started any more. */
static void stop(struct state *state)
{
    if (!state->is_stopping)
        weir__notify_send("STOPPING=1");
    state->is_stopping = true;
}

/* --- starting ------------------------------------------------------------- */

/* The rest of what a child has from its parent. */
static void leave(struct state *state)
{
    sigset_t mask = state->before;

    for (size_t i = 0; i < state->fleet->count; i++)
        close_fd(&state->slots[i].told);
    close_fd(&state->signals);
    weir__mem_free(state->slots);
    weir__mem_free(state->polls);
    (void)sigaddset(&mask, SIGHUP);
    (void)sigprocmask(SIG_SETMASK, &mask, NULL);
}

/* The child of a parent that ended meanwhile hears of that no more. */
static void tie_to(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* known since Linux 2.1 */
    if (getppid() != parent)
        _exit(WEIR__EXIT_FAILED);
}

static void fail_start(struct state *state, struct slot *slot, int error)
{
    slot->start_ms = now_ms() + slot->backoff_ms;
    weir__complain("worker %u cannot be started: %s",
                   (unsigned)(slot - state->slots) + 1, strerror(error));
    if (slot->was_ready)
        return;
    worsen(state, WEIR__EXIT_FAILED);
    stop(state);
    send_to_all(state, SIGTERM);
}

/* Whether this is the child. */
static bool start(struct state *state, struct slot *slot,
                  struct weir__berth *ret_berth)
{
    int ends[2];
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
        fail_start(state, slot, errno);
        return false;
    }
    pid = fork();
    if (pid == 0) {
        tie_to(state->parent);
        (void)close(ends[0]);
        *ret_berth = (struct weir__berth){
            .number = (uint32_t)(slot - state->slots) + 1,
            .parent = ends[1],
            .watchdog_s = (double)state->watchdog_ms / 1000.0,
        };
        leave(state);
        return true;
    }
    if (pid < 0)
        fail_start(state, slot, errno);
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return false;
    }
    slot->pid = pid;
    slot->told = ends[0];
    slot->is_ready = slot->is_suspicious = false;
    return false;
}

/* Those that are to run and do not; the first one alone until it is ready. */
static bool start_due(struct state *state, struct weir__berth *ret_berth)
{
    const int64_t at_ms = now_ms();

    for (size_t i = 0; i < state->fleet->count && !state->is_stopping; i++) {
        struct slot *slot = &state->slots[i];

        if (i > 0 && !state->slots[0].was_ready)
            return false;
        if (slot->pid == 0 && !slot->is_over && slot->start_ms <= at_ms &&
            start(state, slot, ret_berth))
            return true;
    }
    return false;
}

/* --- what workers tell ---------------------------------------------------- */

static void on_ready(struct state *state, struct slot *slot)
{
    bool are_ready = true;

    slot->is_ready = slot->was_ready = true;
    slot->ready_ms = slot->sign_ms = now_ms();
    for (size_t i = 0; i < state->fleet->count; i++)
        are_ready = are_ready && state->slots[i].was_ready;
    if (!are_ready || state->is_ready || state->is_stopping)
        return;
    state->is_ready = true;
    weir__log(state->fleet->log, WEIR_LEVEL_INFO, "all %u workers serve",
              (unsigned)state->fleet->count);
    weir__notify_send("READY=1");
}

/* What starts at this moment may have read the former file. */
static void on_reloaded(struct state *state, const struct slot *slot,
                        bool is_changed)
{
    if (slot != state->reader)
        return;
    state->reader = NULL;
    for (size_t i = 0; i < state->fleet->count && is_changed; i++)
        if (&state->slots[i] != slot)
            send_to(&state->slots[i], SIGHUP);
    weir__notify_send("READY=1");
}

static void hear(struct state *state, struct slot *slot)
{
    char told[64];
    ssize_t len = read(slot->told, told, sizeof(told));

    if (len == 0)
        close_fd(&slot->told); /* nobody is left to tell */
    for (ssize_t i = 0; i < len; i++) {
        slot->sign_ms = now_ms();
        slot->is_suspicious = false;
        switch (told[i]) {
        case WEIR__TOLD_READY:
            on_ready(state, slot);
            break;
        case WEIR__TOLD_RELOADED:
        case WEIR__TOLD_REFUSED:
            on_reloaded(state, slot, told[i] == WEIR__TOLD_RELOADED);
            break;
        default:
            break; /* WEIR__TOLD_ALIVE, which all of them are signs of */
        }
    }
}

/* --- SIGHUP --------------------------------------------------------------- */

/* Ask a worker that serves to read the file, before all others; where none
 * does, those that are about to. */
static void have_read(struct state *state)
{
    state->reader = NULL;
    for (size_t i = 0; i < state->fleet->count; i++)
        if (state->slots[i].pid > 0 && state->slots[i].is_ready) {
            state->reader = &state->slots[i];
            send_to(state->reader, SIGHUP);
            return;
        }
    send_to_all(state, SIGHUP);
}

static void on_hangup(struct state *state)
{
    if (state->is_ready)
        weir__notify_send_reloading();
    have_read(state);
}

/* --- their ends ----------------------------------------------------------- */

static const char *signal_name(int number, char buf[16])
{
    static const struct {
        int number;
        const char *name;
    } names[] = {
        {SIGSEGV, "SIGSEGV"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},
        {SIGFPE, "SIGFPE"},   {SIGILL, "SIGILL"},   {SIGKILL, "SIGKILL"},
        {SIGTERM, "SIGTERM"}, {SIGINT, "SIGINT"},   {SIGHUP, "SIGHUP"},
        {SIGPIPE, "SIGPIPE"}, {SIGSYS, "SIGSYS"},   {SIGXCPU, "SIGXCPU"},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].number == number)
            return names[i].name;
    (void)snprintf(buf, 16, "signal %d", number); /* fits */
    return buf;
}

/* "was killed by SIGSEGV", and "SIGSEGV" alone. */
struct end {
    char what[48], cause[24];
};

static struct end end_of(int status)
{
    struct end end;
    char buf[16];

    if (WIFSIGNALED(status)) {
        const char *name = signal_name(WTERMSIG(status), buf);

        (void)snprintf(end.cause, sizeof(end.cause), "%s", name); /* fits */
        (void)snprintf(end.what, sizeof(end.what), "was killed by %s",
                       name); /* likewise */
    } else {
        (void)snprintf(end.cause, sizeof(end.cause), "exit %d",
                       WEXITSTATUS(status)); /* likewise */
        (void)snprintf(end.what, sizeof(end.what), "ended with exit code %d",
                       WEXITSTATUS(status)); /* likewise */
    }
    return end;
}

/* `delay_ms` below 0: it is not started again. */
static void tell_end(const struct state *state, const struct slot *slot,
                     int status, int64_t delay_ms)
{
    const struct end end = end_of(status);
    const unsigned number = (unsigned)(slot - state->slots) + 1;
    const struct weir_log_field fields[] = {
        {"number", NULL, (int64_t)number},
        {"pid", NULL, (int64_t)slot->pid},
        {"cause", end.cause, 0},
        {"delay_ms", NULL, delay_ms},
    };
    const struct weir_log_line about = {
        .level = WEIR_LEVEL_WARN,
        .event = "worker_ended",
        .fields = fields,
        .field_count = delay_ms < 0 ? 3 : 4,
    };
    char then[48] = "";

    if (delay_ms >= 1000)
        (void)snprintf(then, sizeof(then), "; started again in %.3gs",
                       (double)delay_ms / 1000.0); /* fits */
    else if (delay_ms >= 0)
        (void)snprintf(then, sizeof(then), "; started again in %dms",
                       (int)delay_ms); /* likewise */
    weir__log_about(state->fleet->log, &about, "worker %u of %u (pid %ld) %s%s",
                    number, (unsigned)state->fleet->count, (long)slot->pid,
                    end.what, then);
}

static int64_t back_off(struct slot *slot)
{
    const int64_t at_ms = now_ms();
    int64_t delay_ms;

    if (slot->is_ready && at_ms - slot->ready_ms >= STEADY_MS)
        slot->backoff_ms = BACKOFF_MS;
    delay_ms = slot->backoff_ms;
    slot->start_ms = at_ms + delay_ms;
    slot->backoff_ms =
        delay_ms * 2 < BACKOFF_MAX_MS ? delay_ms * 2 : BACKOFF_MAX_MS;
    return delay_ms;
}

/* It is not to be started again: with which code? A worker that had nothing yet
 * may be killed by the signal that stops it. */
static void end_slot(struct state *state, struct slot *slot, int status)
{
    const bool is_killed = WIFSIGNALED(status);
    const bool was_told =
        state->is_stopping && !slot->is_ready &&
        (WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT);

    slot->is_over = true;
    if (!is_killed)
        worsen(state, (enum weir__exit)WEXITSTATUS(status));
    else if (!was_told)
        worsen(state, WEIR__EXIT_FAILED);
    if (is_killed && !was_told && state->stops < STOPS)
        tell_end(state, slot, status, -1);
}

static void on_end(struct state *state, struct slot *slot, int status)
{
    const bool is_ended = !WIFSIGNALED(status) && state->fleet->may_end;

    if (state->is_stopping || (is_ended && slot->was_ready)) {
        end_slot(state, slot, status);
    } else if (!slot->was_ready) {
        end_slot(state, slot, status); /* it has said why */
        stop(state);
        send_to_all(state, SIGTERM);
    } else {
        tell_end(state, slot, status, back_off(slot));
    }
    close_fd(&slot->told);
    slot->pid = 0;
    slot->is_ready = false;
    if (slot == state->reader && !state->is_stopping)
        have_read(state);
}

static void reap(struct state *state)
{
    for (size_t i = 0; i < state->fleet->count; i++) {
        struct slot *slot = &state->slots[i];
        int status;

        if (slot->pid == 0 || waitpid(slot->pid, &status, WNOHANG) <= 0)
            continue;
        hear(state, slot); /* what it said before */
        on_end(state, slot, status);
    }
}

/* --- signals -------------------------------------------------------------- */

static void on_stop(struct state *state, const struct signalfd_siginfo *info)
{
    const int number = (int)info->ssi_signo;
    const int64_t at_ms = now_ms();

    if (state->stops == STOPS)
        return; /* they are killed already */
    if (state->stops > 0 && at_ms - state->stop_ms < WEIR__SIGNALS_SAME_MS)
        return;
    state->stop_ms = at_ms;
    state->stops++;
    stop(state);
    if (state->stops == STOPS) {
        weir__complain("%s for the third time: ending at once",
                       weir__signal_name(number));
        worsen(state, WEIR__EXIT_FAILED);
        send_to_all(state, SIGKILL);
    } else if (info->ssi_code != SI_KERNEL) {
        send_to_all(state, number); /* a terminal tells them itself */
    }
}

static void on_signals(struct state *state)
{
    struct signalfd_siginfo info;

    while (read(state->signals, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT)
            on_stop(state, &info);
        else if (info.ssi_signo == SIGHUP && weir__signals_lost_terminal()) {
            stop(state);
            send_to_all(state, SIGHUP);
        } else if (info.ssi_signo == SIGHUP) {
            on_hangup(state);
        }
    }
}

/* Where SIGHUP is ignored it stays so: nohup(1). */
static int open_signals(struct state *state)
{
    static const int numbers[] = {SIGTERM, SIGINT,  SIGCHLD,
                                  SIGHUP,  SIGUSR1, SIGUSR2};
    struct sigaction before;
    sigset_t mask;

    (void)sigemptyset(&mask);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (numbers[i] != SIGHUP || (sigaction(SIGHUP, NULL, &before) == 0 &&
                                     before.sa_handler != SIG_IGN))
            (void)sigaddset(&mask, numbers[i]);
    (void)sigprocmask(SIG_BLOCK, &mask, &state->before);
    state->signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
    return state->signals < 0 ? WEIR_ESYSTEM : WEIR_OK;
}

/* --- watchdog ------------------------------------------------------------- */

/* One worker that hangs costs itself, not the fleet. */
static void watch(struct state *state, int64_t at_ms)
{
    if (state->watchdog_ms == 0)
        return;
    if (state->is_ready && at_ms - state->fed_ms >= state->watchdog_ms) {
        weir__notify_send("WATCHDOG=1");
        state->fed_ms = at_ms;
    }
    for (size_t i = 0; i < state->fleet->count; i++) {
        struct slot *slot = &state->slots[i];

        if (slot->pid == 0 || !slot->is_ready ||
            at_ms - slot->sign_ms < state->watchdog_ms * 2)
            continue;
        weir__log(state->fleet->log, WEIR_LEVEL_ERROR,
                  "worker %zu of %u (pid %ld) gave no sign of life for %.3gs: "
                  "it is %s",
                  i + 1, (unsigned)state->fleet->count, (long)slot->pid,
                  (double)state->watchdog_ms * 2.0 / 1000.0,
                  slot->is_suspicious ? "killed" : "aborted");
        send_to(slot, slot->is_suspicious ? SIGKILL : SIGABRT);
        slot->is_suspicious = true;
        slot->sign_ms = at_ms;
    }
}

/* --- the parent's loop ---------------------------------------------------- */

static bool is_done(const struct state *state)
{
    for (size_t i = 0; i < state->fleet->count; i++)
        if (state->slots[i].pid > 0 ||
            (!state->is_stopping && !state->slots[i].is_over))
            return false;
    return true;
}

/* Until a worker is to be started, or signs of life are looked at. */
static int wait_ms(const struct state *state, int64_t at_ms)
{
    int64_t until_ms = INT64_MAX;

    if (state->watchdog_ms > 0)
        until_ms = at_ms + state->watchdog_ms / 2;
    for (size_t i = 0; i < state->fleet->count && !state->is_stopping; i++) {
        const struct slot *slot = &state->slots[i];

        if (slot->pid == 0 && !slot->is_over && slot->start_ms < until_ms &&
            (i == 0 || state->slots[0].was_ready))
            until_ms = slot->start_ms;
    }
    if (until_ms == INT64_MAX)
        return -1;
    return until_ms <= at_ms ? 0 : (int)(until_ms - at_ms);
}

static void wait_for_events(struct state *state)
{
    const size_t count = state->fleet->count;

    for (size_t i = 0; i < count; i++)
        state->polls[i] = (struct pollfd){state->slots[i].told, POLLIN, 0};
    state->polls[count] = (struct pollfd){state->signals, POLLIN, 0};
    (void)poll(state->polls, count + 1, wait_ms(state, now_ms()));
    for (size_t i = 0; i < count; i++)
        if (state->polls[i].revents != 0)
            hear(state, &state->slots[i]);
    on_signals(state);
    reap(state);
    watch(state, now_ms());
}

static int state_init(struct state *state, const struct weir__fleet *fleet)
{
    *state = (struct state){.fleet = fleet, .signals = -1};
    state->slots = weir__mem_new(fleet->count * sizeof(*state->slots));
    state->polls = weir__mem_new((fleet->count + 1) * sizeof(*state->polls));
    if (state->slots == NULL || state->polls == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < fleet->count; i++) {
        state->slots[i].told = -1;
        state->slots[i].backoff_ms = BACKOFF_MS;
    }
    state->parent = getpid();
    state->watchdog_ms = (int64_t)(weir__notify_watchdog_s() * 1000.0);
    return open_signals(state);
}

enum weir__exit weir__fleet_run(const struct weir__fleet *fleet,
                                struct weir__berth *ret_berth)
{
    struct state state;
    int rc = state_init(&state, fleet);

    WEIR_ASSERT(fleet->count > 1 && fleet->count <= WEIR__FLEET_MAX);
    if (rc < 0) {
        weir__complain("%s", weir_error_text(rc));
        state.is_stopping = true;
        state.worst = WEIR__EXIT_FAILED;
    }
    weir__signals_note_terminal();
    while (rc == WEIR_OK && !is_done(&state)) {
        if (start_due(&state, ret_berth))
            return WEIR__EXIT_NONE;
        if (!is_done(&state)) /* the first worker could not be started */
            wait_for_events(&state);
    }
    close_fd(&state.signals);
    weir__mem_free(state.slots);
    weir__mem_free(state.polls);
    return state.worst;
}
