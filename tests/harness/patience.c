/* SPDX-License-Identifier: MIT */
#include "tests/harness/patience.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SLOWEST = 10 }; /* the wall is so many times faster at most */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

double patience_elapsed(const struct patience_reading *from,
                        const struct patience_reading *to)
{
    bool has_pressure = from->pressure >= 0 && to->pressure >= 0;
    double wall = to->wall - from->wall;
    double waited = has_pressure ? to->pressure - from->pressure
                                 : to->queued - from->queued;

    waited = larger(larger(waited, to->stolen - from->stolen), 0);
    return larger(wall - waited, wall / SLOWEST);
}

/* --- readings ------------------------------------------------------------ */

/* The beginning of a small file; empty without it. */
static const char *beginning(const char *path)
{
    static char text[512];
    FILE *file = fopen(path, "r");

    text[0] = '\0';
    if (file != NULL) {
        text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
        (void)fclose(file); /* nothing was written */
    }
    return text;
}

static double pressure(void)
{
    long long us;

    if (sscanf(beginning("/proc/pressure/cpu"), "some %*s %*s %*s total=%lld",
               &us) != 1)
        return -1;
    return (double)us / 1e6;
}

static double stolen(void)
{
    long long ticks;

    if (sscanf(beginning("/proc/stat"), "cpu %*s %*s %*s %*s %*s %*s %*s %lld",
               &ticks) != 1)
        return 0;
    return (double)ticks / (double)sysconf(_SC_CLK_TCK) /
           (double)sysconf(_SC_NPROCESSORS_ONLN);
}

static bool is_in(const char *process, pid_t group)
{
    char path[64];
    const char *behind_name;
    int its_group;

    (void)snprintf(path, sizeof(path), "/proc/%.20s/stat", process);
    behind_name = strrchr(beginning(path), ')');
    return behind_name != NULL &&
           sscanf(behind_name, ") %*c %*d %d", &its_group) == 1 &&
           its_group == group;
}

static double queued(pid_t group)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    long long sum_ns = 0, ns;
    char path[64];

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]) ||
            !is_in(entry->d_name, group))
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%.20s/schedstat",
                       entry->d_name);
        if (sscanf(beginning(path), "%*s %lld", &ns) == 1)
            sum_ns += ns;
    }
    if (processes != NULL)
        (void)closedir(processes); /* nothing was written */
    return (double)sum_ns / 1e9;
}

static double wall(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* always there */
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct patience_reading read_now(pid_t group)
{
    struct patience_reading now = {
        .wall = wall(), .pressure = pressure(), .stolen = stolen()};

    if (now.pressure < 0)
        now.queued = queued(group);
    return now;
}

/* --- waiting ------------------------------------------------------------- */

struct patience patience_start(double limit_s)
{
    return patience_start_for(getpgrp(), limit_s);
}

struct patience patience_start_for(pid_t group, double limit_s)
{
    return (struct patience){
        .limit_s = limit_s, .group = group, .from = read_now(group)};
}

bool patience_ended(const struct patience *patience)
{
    struct patience_reading now;

    if (wall() - patience->from.wall < patience->limit_s)
        return false; /* the usual case reads no file */
    now = read_now(patience->group);
    return patience_elapsed(&patience->from, &now) >= patience->limit_s;
}
