/* SPDX-License-Identifier: MIT */
#include "adapters/cli/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A path, or with @ in front a name in the abstract space. */
static bool address_of(const char *path, struct sockaddr_un *ret_address,
                       socklen_t *ret_len)
{
    size_t len = strlen(path);

    memset(ret_address, 0, sizeof(*ret_address));
    ret_address->sun_family = AF_UNIX;
    if ((path[0] != '/' && path[0] != '@') ||
        len >= sizeof(ret_address->sun_path))
        return false;
    memcpy(ret_address->sun_path, path, len);
    if (path[0] == '@')
        ret_address->sun_path[0] = '\0';
    *ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    return true;
}

/* What cannot be sent is not sent: systemd then takes its own measures. */
void weir__notify_send(const char *text)
{
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address;
    socklen_t len;
    int fd;

    if (path == NULL || !address_of(path, &address, &len))
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&address, len);
    (void)close(fd);
}

void weir__notify_send_reloading(void)
{
    struct timespec now = {0};
    char text[64];

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* this clock is there */
    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    weir__notify_send(text);
}

double weir__notify_watchdog_s(void)
{
    const char *time = getenv("WATCHDOG_USEC");
    const char *pid = getenv("WATCHDOG_PID");
    double time_us;

    if (time == NULL ||
        (pid != NULL && strtol(pid, NULL, 10) != (long)getpid()))
        return 0.0;
    time_us = (double)strtoll(time, NULL, 10);
    return time_us > 0.0 ? time_us / 2e6 : 0.0;
}

/* A parent that does not read has its pipe full, and is as good as gone. */
static void tell_parent(const struct weir__notify *notify, char told)
{
    if (write(notify->parent, &told, 1) < 0)
        return;
}

static void on_watchdog(struct ev_loop *loop, struct ev_timer *timer,
                        int events)
{
    const struct weir__notify *notify = timer->data;

    (void)loop;
    (void)events;
    if (notify->parent > 0)
        tell_parent(notify, WEIR__TOLD_ALIVE);
    else
        weir__notify_send("WATCHDOG=1");
}

void weir__notify_ready(struct weir__notify *notify, struct ev_loop *loop)
{
    const double each_s =
        notify->parent > 0 ? notify->each_s : weir__notify_watchdog_s();

    notify->loop = loop;
    if (notify->parent > 0)
        tell_parent(notify, WEIR__TOLD_READY);
    else
        weir__notify_send("READY=1");
    ev_timer_init(&notify->watchdog, on_watchdog, each_s, each_s);
    notify->watchdog.data = notify;
    if (each_s > 0.0)
        ev_timer_start(loop, &notify->watchdog);
}

void weir__notify_reloading(const struct weir__notify *notify)
{
    if (notify->parent == 0)
        weir__notify_send_reloading();
}

void weir__notify_reloaded(const struct weir__notify *notify, bool is_changed)
{
    if (notify->parent == 0)
        weir__notify_send("READY=1");
    else
        tell_parent(notify,
                    is_changed ? WEIR__TOLD_RELOADED : WEIR__TOLD_REFUSED);
}

void weir__notify_not_reloading(const struct weir__notify *notify)
{
    if (notify->parent > 0)
        tell_parent(notify, WEIR__TOLD_REFUSED);
}

void weir__notify_stopping(const struct weir__notify *notify)
{
    if (notify->loop != NULL && notify->parent == 0)
        weir__notify_send("STOPPING=1");
}

void weir__notify_close(struct weir__notify *notify)
{
    if (notify->loop != NULL)
        ev_timer_stop(notify->loop, &notify->watchdog);
}
