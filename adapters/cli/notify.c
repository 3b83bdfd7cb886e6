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
static void tell(const struct weir__notify *notify, const char *text)
{
    struct sockaddr_un address;
    socklen_t len;
    int fd;

    if (notify->socket == NULL || !address_of(notify->socket, &address, &len))
        return;
    fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    if (fd < 0)
        return;
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT,
                 (const struct sockaddr *)&address, len);
    (void)close(fd);
}

static void on_watchdog(struct ev_loop *loop, struct ev_timer *timer,
                        int events)
{
    (void)loop;
    (void)events;
    tell(timer->data, "WATCHDOG=1");
}

/* Seconds between two signs of life; 0: nobody asked for them. */
static double watchdog_s(void)
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

void weir__notify_ready(struct weir__notify *notify, struct ev_loop *loop)
{
    double each_s = watchdog_s();

    notify->socket = getenv("NOTIFY_SOCKET");
    if (notify->socket == NULL)
        return;
    notify->loop = loop;
    tell(notify, "READY=1");
    ev_timer_init(&notify->watchdog, on_watchdog, each_s, each_s);
    notify->watchdog.data = notify;
    if (each_s > 0.0)
        ev_timer_start(loop, &notify->watchdog);
}

void weir__notify_reloading(const struct weir__notify *notify)
{
    struct timespec now = {0};
    char text[64];

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* this clock is there */
    (void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
                   (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    tell(notify, text);
}

void weir__notify_reloaded(const struct weir__notify *notify)
{
    tell(notify, "READY=1");
}

void weir__notify_stopping(const struct weir__notify *notify)
{
    tell(notify, "STOPPING=1");
}

void weir__notify_close(struct weir__notify *notify)
{
    if (notify->loop != NULL)
        ev_timer_stop(notify->loop, &notify->watchdog);
}
