/* SPDX-License-Identifier: MIT */

/* Clock, descriptors, epoll, eventfd and timerfd of the world, defined under
 * the names of the system: the dynamic linker prefers them, so libev and
 * hiredis get them, too. */

#include "tests/sim/file.h" /* first */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/fibre.h"

enum { BASE = 1000, MOST = 4096 };
/* The clock of the day begins at 15 January 2027. */
#define EPOCH INT64_C(1800000000000000000)

static struct sim_file *files[MOST];

/* --- descriptors --------------------------------------------------------- */

int sim_file_add(struct sim_file *file, const struct sim_file_type *type)
{
    for (int i = 0; i < MOST; i++)
        if (files[i] == NULL) {
            *file = (struct sim_file){.type = type,
                                      .fd = BASE + i,
                                      .pid = sim_pid(),
                                      .blocks = true,
                                      .ready_ns = INT64_MAX};
            files[i] = file;
            return file->fd;
        }
    errno = EMFILE;
    return -1;
}

struct sim_file *sim_file_of(int fd)
{
    return fd >= BASE && fd < BASE + MOST ? files[fd - BASE] : NULL;
}

struct sim_file *sim_file_as(int fd, const struct sim_file_type *type)
{
    struct sim_file *file = sim_file_of(fd);

    if (file != NULL && file->type == type)
        return file;
    errno = file == NULL ? EBADF : EINVAL;
    return NULL;
}

/* Defined below: a closed descriptor leaves the sets of epoll. */
static void forget_everywhere(int fd);

static int close_file(struct sim_file *file)
{
    files[file->fd - BASE] = NULL;
    forget_everywhere(file->fd);
    file->type->close(file);
    return 0;
}

void sim_files_close(int pid)
{
    for (int i = 0; i < MOST; i++)
        if (files[i] != NULL && files[i]->pid == pid)
            (void)close_file(files[i]); /* 0 */
}

static uint32_t events_of(const struct sim_file *file)
{
    return file->type->events(file) |
           (file->ready_ns <= sim_now() ? EPOLLIN : 0u);
}

int close(int fd)
{
    struct sim_file *file = sim_file_of(fd);

    return file == NULL ? (int)syscall(SYS_close, fd) : close_file(file);
}

ssize_t read(int fd, void *buf, size_t len)
{
    struct sim_file *file = sim_file_of(fd);

    if (file == NULL)
        return syscall(SYS_read, fd, buf, len);
    if (file->type->read != NULL)
        return file->type->read(file, buf, len);
    errno = EINVAL;
    return -1;
}

ssize_t write(int fd, const void *buf, size_t len)
{
    struct sim_file *file = sim_file_of(fd);

    if (file == NULL)
        return syscall(SYS_write, fd, buf, len);
    if (file->type->write != NULL)
        return file->type->write(file, buf, len);
    errno = EINVAL;
    return -1;
}

/* A fortified build calls these. */
ssize_t __read_chk(int fd, void *buf, size_t len, size_t size);
ssize_t __read_chk(int fd, void *buf, size_t len, size_t size)
{
    if (len > size)
        sim_fail("read of %zu bytes into %zu", len, size);
    return read(fd, buf, len);
}

static int control(int fd, int command, long arg)
{
    struct sim_file *file = sim_file_of(fd);

    if (file == NULL)
        return (int)syscall(SYS_fcntl, fd, command, arg);
    if (command == F_GETFL)
        return file->blocks ? O_RDWR : O_RDWR | O_NONBLOCK;
    if (command == F_SETFL)
        file->blocks = (arg & O_NONBLOCK) == 0;
    return 0; /* FD_CLOEXEC: nothing is executed here */
}

int fcntl(int fd, int command, ...)
{
    va_list args;
    long arg;

    va_start(args, command);
    arg = va_arg(args, long);
    va_end(args);
    return control(fd, command, arg);
}

int fcntl64(int fd, int command, ...);
int fcntl64(int fd, int command, ...)
{
    va_list args;
    long arg;

    va_start(args, command);
    arg = va_arg(args, long);
    va_end(args);
    return control(fd, command, arg);
}

/* --- time ---------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int64_t ns = sim_now();

    if (!sim_is_open() || (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC))
        return (int)syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME)
        ns += EPOCH;
    now->tv_sec = ns / SIM_S;
    now->tv_nsec = ns % SIM_S;
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!sim_is_inside())
        return (int)syscall(SYS_nanosleep, time, left);
    sim_sleep(time->tv_sec * SIM_S + time->tv_nsec);
    return 0;
}

static uint32_t no_events(const struct sim_file *file)
{
    (void)file;
    return 0;
}

static void free_file(struct sim_file *file)
{
    free(file);
}

static ssize_t read_timer(struct sim_file *file, void *buf, size_t len)
{
    uint64_t count = 1;

    if (len < sizeof(count) || file->ready_ns > sim_now()) {
        errno = len < sizeof(count) ? EINVAL : EAGAIN;
        return -1;
    }
    file->ready_ns = INT64_MAX; /* weir's do not repeat */
    memcpy(buf, &count, sizeof(count));
    return sizeof(count);
}

static const struct sim_file_type timer_type = {
    .events = no_events, .read = read_timer, .close = free_file};

int timerfd_create(int clock, int flags)
{
    struct sim_file *file;

    if (!sim_is_inside())
        return (int)syscall(SYS_timerfd_create, clock, flags);
    file = malloc(sizeof(*file));
    return file == NULL ? -1 : sim_file_add(file, &timer_type);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *time,
                    struct itimerspec *old)
{
    struct sim_file *file = sim_file_of(fd);
    int64_t ns = time->it_value.tv_sec * SIM_S + time->it_value.tv_nsec;

    if (file == NULL)
        return (int)syscall(SYS_timerfd_settime, fd, flags, time, old);
    if (time->it_interval.tv_sec != 0 || time->it_interval.tv_nsec != 0)
        sim_fail("a timerfd repeats: that is not simulated");
    if ((flags & TFD_TIMER_ABSTIME) == 0)
        ns += sim_now();
    file->ready_ns = time->it_value.tv_sec == 0 && time->it_value.tv_nsec == 0
                         ? INT64_MAX
                         : ns;
    return 0;
}

/* --- eventfd ------------------------------------------------------------- */

struct event_file {
    struct sim_file file; /* first */
    uint64_t count;
};

static uint32_t event_events(const struct sim_file *file)
{
    return ((const struct event_file *)file)->count > 0 ? EPOLLIN | EPOLLOUT
                                                        : EPOLLOUT;
}

static ssize_t read_event(struct sim_file *file, void *buf, size_t len)
{
    struct event_file *event = (struct event_file *)file;

    if (len < sizeof(event->count) || event->count == 0) {
        errno = len < sizeof(event->count) ? EINVAL : EAGAIN;
        return -1;
    }
    memcpy(buf, &event->count, sizeof(event->count));
    event->count = 0;
    return sizeof(event->count);
}

static ssize_t write_event(struct sim_file *file, const void *buf, size_t len)
{
    uint64_t count;

    if (len < sizeof(count)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&count, buf, sizeof(count));
    ((struct event_file *)file)->count += count;
    return sizeof(count);
}

static const struct sim_file_type event_type = {.events = event_events,
                                                .read = read_event,
                                                .write = write_event,
                                                .close = free_file};

int eventfd(unsigned count, int flags)
{
    struct event_file *event;

    if (!sim_is_inside())
        return (int)syscall(SYS_eventfd2, count, flags);
    event = malloc(sizeof(*event));
    if (event == NULL)
        return -1;
    event->count = count;
    return sim_file_add(&event->file, &event_type);
}

/* --- epoll --------------------------------------------------------------- */

struct interest {
    int fd;
    struct epoll_event event;
};

struct epoll_file {
    struct sim_file file; /* first */
    struct interest *list;
    size_t count, cap;
};

static void free_epoll(struct sim_file *file)
{
    free(((struct epoll_file *)file)->list);
    free(file);
}

static const struct sim_file_type epoll_type = {.events = no_events,
                                                .close = free_epoll};

int epoll_create1(int flags)
{
    struct epoll_file *epoll;

    if (!sim_is_inside())
        return (int)syscall(SYS_epoll_create1, flags);
    epoll = calloc(1, sizeof(*epoll));
    return epoll == NULL ? -1 : sim_file_add(&epoll->file, &epoll_type);
}

static size_t find_interest(const struct epoll_file *epoll, int fd)
{
    size_t i = 0;

    while (i < epoll->count && epoll->list[i].fd != fd)
        i++;
    return i;
}

static void forget(struct epoll_file *epoll, size_t i)
{
    epoll->list[i] = epoll->list[--epoll->count];
}

static void forget_everywhere(int fd)
{
    for (int i = 0; i < MOST; i++) {
        struct epoll_file *epoll = (struct epoll_file *)files[i];
        size_t at;

        if (epoll == NULL || epoll->file.type != &epoll_type)
            continue;
        at = find_interest(epoll, fd);
        if (at < epoll->count)
            forget(epoll, at);
    }
}

static int change(struct epoll_file *epoll, int operation, int fd,
                  const struct epoll_event *event)
{
    size_t i = find_interest(epoll, fd);

    if ((operation == EPOLL_CTL_ADD) == (i < epoll->count)) {
        errno = operation == EPOLL_CTL_ADD ? EEXIST : ENOENT;
        return -1;
    }
    if (operation == EPOLL_CTL_DEL) {
        forget(epoll, i);
        return 0;
    }
    if (epoll->count == epoll->cap) {
        epoll->cap = epoll->cap * 2 + 16;
        epoll->list = realloc(epoll->list, epoll->cap * sizeof(*epoll->list));
        if (epoll->list == NULL)
            sim_fail("no memory for %zu descriptors", epoll->cap);
    }
    if (i == epoll->count)
        epoll->count++;
    epoll->list[i] = (struct interest){fd, *event};
    return 0;
}

int epoll_ctl(int epfd, int operation, int fd, struct epoll_event *event)
{
    struct sim_file *file = sim_file_of(epfd);

    if (file == NULL)
        return (int)syscall(SYS_epoll_ctl, epfd, operation, fd, event);
    if (sim_file_as(epfd, &epoll_type) == NULL)
        return -1;
    if (sim_file_of(fd) == NULL) {
        errno = EBADF;
        return -1;
    }
    return change((struct epoll_file *)file, operation, fd, event);
}

/* What the loop is to hear of it now. */
static uint32_t wanted(const struct interest *interest)
{
    return events_of(sim_file_of(interest->fd)) &
           (interest->event.events | EPOLLERR | EPOLLHUP);
}

static bool is_epoll_ready(void *arg)
{
    const struct epoll_file *epoll = arg;

    for (size_t i = 0; i < epoll->count; i++)
        if (wanted(&epoll->list[i]) != 0)
            return true;
    return false;
}

/* Until something is ready: not later than `until_ns`, or a timerfd. */
static void wait_ready(struct epoll_file *epoll, int64_t until_ns)
{
    while (!is_epoll_ready(epoll) && sim_now() < until_ns) {
        int64_t next_ns = until_ns;

        for (size_t i = 0; i < epoll->count; i++) {
            int64_t at_ns = sim_file_of(epoll->list[i].fd)->ready_ns;

            if (at_ns < next_ns)
                next_ns = at_ns;
        }
        (void)sim_block(is_epoll_ready, epoll, next_ns); /* the loop asks */
    }
}

/* In random order, as the kernel promises none. */
static void shuffle(struct epoll_file *epoll)
{
    for (size_t i = epoll->count; i > 1; i--) {
        size_t other = sim_below(i);
        struct interest interest = epoll->list[i - 1];

        epoll->list[i - 1] = epoll->list[other];
        epoll->list[other] = interest;
    }
}

static int collect(struct epoll_file *epoll, struct epoll_event *events,
                   int most)
{
    int count = 0;

    shuffle(epoll);
    for (size_t i = 0; i < epoll->count && count < most; i++) {
        uint32_t now = wanted(&epoll->list[i]);

        if (now == 0)
            continue;
        events[count] = epoll->list[i].event;
        events[count++].events = now;
    }
    return count;
}

int epoll_wait(int epfd, struct epoll_event *events, int most, int wait_ms)
{
    struct sim_file *file = sim_file_of(epfd);

    if (file == NULL)
        return (int)syscall(SYS_epoll_wait, epfd, events, most, wait_ms);
    if (sim_file_as(epfd, &epoll_type) == NULL)
        return -1;
    if (wait_ms != 0)
        wait_ready((struct epoll_file *)file,
                   wait_ms < 0 ? INT64_MAX : sim_now() + wait_ms * SIM_MS);
    sim_turn();
    return collect((struct epoll_file *)file, events, most);
}

/* --- poll ---------------------------------------------------------------- */

struct poll_call {
    struct pollfd *list;
    nfds_t count;
    int ready;
};

static bool is_poll_ready(void *arg)
{
    struct poll_call *call = arg;

    call->ready = 0;
    for (nfds_t i = 0; i < call->count; i++) {
        struct pollfd *one = &call->list[i];
        const struct sim_file *file = sim_file_of(one->fd);
        /* POLLIN, ... have the values of EPOLLIN, ... */
        uint32_t now = file == NULL ? 0 : events_of(file);

        now &= (unsigned short)one->events | EPOLLERR | EPOLLHUP;
        one->revents = (short)now;
        call->ready += one->revents != 0;
    }
    return call->ready > 0;
}

int poll(struct pollfd *list, nfds_t count, int wait_ms)
{
    struct poll_call call = {list, count, 0};

    if (!sim_is_inside())
        return (int)syscall(SYS_poll, list, count, wait_ms);
    if (!is_poll_ready(&call) && wait_ms != 0)
        (void)sim_block(is_poll_ready, &call,
                        wait_ms < 0 ? INT64_MAX : sim_now() + wait_ms * SIM_MS);
    return call.ready;
}

int __poll_chk(struct pollfd *list, nfds_t count, int wait_ms, size_t size);
int __poll_chk(struct pollfd *list, nfds_t count, int wait_ms, size_t size)
{
    if (count > size / sizeof(*list))
        sim_fail("poll of more descriptors than there are");
    return poll(list, count, wait_ms);
}

void sim_files_end(void)
{
    for (int i = 0; i < MOST; i++)
        if (files[i] != NULL)
            (void)close_file(files[i]); /* 0 */
}
