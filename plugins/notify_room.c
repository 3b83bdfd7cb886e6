/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <poll.h>
#include <sys/resource.h>

#include "notify.h"

enum {
    KEPT = 8,    /* descriptors that are left to the worker */
    RESOLVE = 6, /* a lookup: two of libcurl, files and sockets of libc */
    WINDOW = 64, /* descriptors that one poll checks */
    HALVE_MS = 1000
};

/* Are so many descriptors free? A poll takes none, so other threads miss none
 * meanwhile. Low numbers are given first: the highest tell soonest. */
static bool has_free(long need)
{
    struct pollfd fds[WINDOW];
    struct rlimit limit;
    int top;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return true;
    top = limit.rlim_cur > INT_MAX ? INT_MAX : (int)limit.rlim_cur;
    while (need > 0 && top > 0) {
        int count = top < WINDOW ? top : WINDOW;

        top -= count;
        for (int i = 0; i < count; i++)
            fds[i] = (struct pollfd){.fd = top + i};
        if (poll(fds, (nfds_t)count, 0) < 0)
            return true;
        for (int i = 0; i < count; i++)
            need -= (fds[i].revents & POLLNVAL) != 0 ? 1 : 0;
    }
    return need <= 0;
}

bool room_enter(struct room *room)
{
    if (room->most < room->total && room->running >= room->most)
        return false;
    room->running++;
    return true;
}

/* A request that is alone may try with less. */
static bool hold(struct room *room, struct room_share *share, long need)
{
    bool is_tight = !has_free(need + KEPT);

    share->was_tight = share->was_tight || is_tight;
    if (is_tight && room->holding > (share->holds ? 1 : 0))
        return false;
    room->holding += share->holds ? 0 : 1;
    share->holds = true;
    return true;
}

static void end_lookup(struct room *room, struct room_share *share)
{
    room->resolving -= share->resolves ? 1 : 0;
    share->resolves = false;
}

bool room_for_lookup(struct room *room, struct room_share *share)
{
    end_lookup(room, share);
    if (!hold(room, share, RESOLVE * (room->resolving + 1)))
        return false;
    room->resolving++;
    share->resolves = true;
    return true;
}

bool room_for_socket(struct room *room, struct room_share *share)
{
    end_lookup(room, share);
    return hold(room, share, RESOLVE * room->resolving + 1);
}

bool room_was_tight(const struct room_share *share)
{
    return share->was_tight || !has_free(RESOLVE + KEPT);
}

void room_leave(struct room *room, struct room_share *share)
{
    end_lookup(room, share);
    room->holding -= share->holds ? 1 : 0;
    room->running--;
}

bool room_halve(struct room *room, int64_t now_ms)
{
    if (now_ms < room->halve_ms)
        return false;
    room->halve_ms = now_ms + HALVE_MS;
    room->most =
        room->running / 2 < room->most ? room->running / 2 : room->most;
    room->most = room->most > 1 ? room->most : 1;
    return true;
}

bool room_grow(struct room *room)
{
    if (room->most >= room->total)
        return false;
    room->most++;
    return true;
}
