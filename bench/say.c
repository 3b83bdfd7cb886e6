/* SPDX-License-Identifier: MIT */
#include "bench/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

enum { BAR = 30, DRAW_AGAIN_NS = 100000000 };

void bench_complain(const char *format, ...)
{
    char text[1024];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args); /* cut */
    va_end(args);
    (void)fprintf(stderr, "weir-bench: %s\n", text);
}

void bench_progress_init(struct bench_progress *progress, const char *label,
                         int steps)
{
    *progress = (struct bench_progress){
        .is_shown = isatty(STDERR_FILENO) == 1,
        .steps = steps,
        .label = label,
    };
}

void bench_progress_draw(struct bench_progress *progress, double part)
{
    static const char full[] = "##############################";
    static const char empty[] = "------------------------------";
    int64_t now = bench_now_ns();
    double done;
    int filled;

    _Static_assert(sizeof(full) == BAR + 1 && sizeof(empty) == BAR + 1,
                   "as wide as the bar");
    if (!progress->is_shown || now - progress->drawn_ns < DRAW_AGAIN_NS)
        return;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    done = ((double)progress->step + part) / (double)progress->steps;
    done = done > 1 ? 1 : done;
    filled = (int)(done * BAR);
    (void)fprintf(stderr, "\r\033[K[%.*s%.*s] %3.0f %%  %s", filled, full,
                  BAR - filled, empty, done * 100.0, progress->label);
    (void)fflush(stderr);
    progress->is_drawn = true;
    progress->drawn_ns = now;
}

void bench_progress_clear(struct bench_progress *progress)
{
    if (progress->is_drawn)
        (void)fprintf(stderr, "\r\033[K");
    progress->is_drawn = false;
    progress->drawn_ns = 0;
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};

    (void)clock_gettime(clock, &now); /* cannot fail for these clocks */
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

int64_t bench_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t bench_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

void bench_rest_ns(int64_t ns)
{
    struct timespec rest = {.tv_sec = (time_t)(ns / NS_PER_S),
                            .tv_nsec = (long)(ns % NS_PER_S)};

    if (ns > 0)
        (void)nanosleep(&rest, NULL); /* a signal only shortens it */
}
