/* SPDX-License-Identifier: MIT */
#include "bench/figure.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const struct bench_figure_words bench_figures[BENCH_FIGURE_COUNT] = {
#define FIGURE(name, heading, digits, merge) \
    {#name, heading, digits, BENCH_##merge},
    BENCH_FIGURES(FIGURE)
#undef FIGURE
};

const struct bench_figure_sense bench_senses[BENCH_FIGURE_COUNT] = {
    [BENCH_enqueue_per_s] = {BENCH_PER_S, BENCH_HIGHER,
                             "Added, nobody handling"},
    [BENCH_drain_per_s] = {BENCH_PER_S, BENCH_HIGHER,
                           "Handled, all added before"},
    [BENCH_end_to_end_per_s] = {BENCH_PER_S, BENCH_HIGHER,
                                "Added and handled at once"},
    [BENCH_elapsed_ms] = {BENCH_MS, BENCH_LOWER,
                          "From the first add to the last settle"},
    [BENCH_server_us_per_job] = {BENCH_US, BENCH_LOWER,
                                 "Server's CPU time for each"},
    [BENCH_client_us_per_job] = {BENCH_US, BENCH_LOWER,
                                 "Clients' CPU time for each"},
    [BENCH_lost] = {BENCH_COUNT, BENCH_LOWER, "Never handled"},
    [BENCH_duplicated] = {BENCH_COUNT, BENCH_LOWER, "Handled more than once"},
    [BENCH_p50_ms] = {BENCH_MS, BENCH_LOWER, "Half were not later than"},
    [BENCH_p90_ms] = {BENCH_MS, BENCH_LOWER, "90 % were not later than"},
    [BENCH_p99_ms] = {BENCH_MS, BENCH_LOWER, "99 % were not later than"},
    [BENCH_max_ms] = {BENCH_MS, BENCH_LOWER, "The latest"},
    [BENCH_early] = {BENCH_COUNT, BENCH_LOWER, "Started before the due time"},
    [BENCH_ops_per_s] = {BENCH_PER_S, BENCH_HIGHER, "Elements"},
    [BENCH_enqueue_server_us] = {BENCH_US, BENCH_LOWER,
                                 "Server's CPU time to add one"},
    [BENCH_drain_server_us] = {BENCH_US, BENCH_LOWER,
                               "Server's CPU time to handle one"},
    [BENCH_enqueue_client_us] = {BENCH_US, BENCH_LOWER,
                                 "Clients' CPU time to add one"},
    [BENCH_drain_client_us] = {BENCH_US, BENCH_LOWER,
                               "Clients' CPU time to handle one"},
    [BENCH_floor_share] = {BENCH_RATIO, BENCH_HIGHER,
                           "Share of the raw server's rate"},
    [BENCH_floor_ratio] = {BENCH_RATIO, BENCH_LOWER,
                           "Server's CPU time, times that of the raw server"},
    [BENCH_ratio] = {BENCH_RATIO, BENCH_HIGHER,
                     "Drain, times the slowest that loses and repeats nothing"},
    [BENCH_measured] = {BENCH_COUNT, BENCH_NEITHER, "Jobs that were timed"},
    [BENCH_commands_per_s] = {BENCH_PER_S, BENCH_LOWER,
                              "Commands of an idle worker"},
    [BENCH_server_cpu_percent] = {BENCH_PERCENT, BENCH_LOWER,
                                  "Server's core in use"},
    [BENCH_worker_cpu_percent] = {BENCH_PERCENT, BENCH_LOWER,
                                  "Worker's core in use"},
    [BENCH_server_bytes_per_job] = {BENCH_BYTES, BENCH_LOWER,
                                    "Server's memory for a job that waits"},
    [BENCH_slow_commands] = {BENCH_COUNT, BENCH_LOWER,
                             "Commands of the server over 5 ms"},
    [BENCH_slowest_ms] = {BENCH_MS, BENCH_LOWER,
                          "Longest command of the server"},
    [BENCH_worker_rss_mb] = {BENCH_MB, BENCH_LOWER, "Memory of a worker"},
    [BENCH_producer_rss_mb] = {BENCH_MB, BENCH_LOWER, "Memory of a producer"},
    [BENCH_turn_ms] = {BENCH_MS, BENCH_LOWER, "Longest turn of a loop"},
    [BENCH_killed_at] = {BENCH_COUNT, BENCH_NEITHER,
                         "Jobs that had run when the worker was killed"},
    [BENCH_recovered_ms] = {BENCH_MS, BENCH_LOWER,
                            "From the kill until all is settled"},
    [BENCH_dropped_overflow] = {BENCH_COUNT, BENCH_LOWER,
                                "Dropped: the group was full"},
    [BENCH_dropped_age] = {BENCH_COUNT, BENCH_LOWER, "Dropped: too old"},
    [BENCH_dropped_ttl] = {BENCH_COUNT, BENCH_LOWER,
                           "Dropped: the group was idle"},
    [BENCH_added] = {BENCH_COUNT, BENCH_NEITHER, "Events added"},
    [BENCH_handled] = {BENCH_COUNT, BENCH_NEITHER, "Events handled"},
    [BENCH_misordered] = {BENCH_COUNT, BENCH_LOWER,
                          "Began before an earlier one of their group"},
    [BENCH_killed] = {BENCH_COUNT, BENCH_NEITHER, "Workers killed"},
    [BENCH_ran_dropped] = {BENCH_COUNT, BENCH_LOWER,
                           "Ran, then dropped unsettled"},
    [BENCH_drain_of_sync] = {BENCH_RATIO, BENCH_HIGHER,
                             "Drain, as a share of sync"},
    [BENCH_drain_of_limit] = {BENCH_RATIO, BENCH_HIGHER,
                              "Drain, as a share of what --concurrency allows"},
    [BENCH_end_to_end_of_sync] = {BENCH_RATIO, BENCH_HIGHER,
                                  "End to end, as a share of sync"},
    [BENCH_cost_ratio] = {BENCH_RATIO, BENCH_LOWER,
                          "Servers' CPU time, times that of one server"},
    [BENCH_load_ratio] =
        {BENCH_RATIO, BENCH_LOWER,
         "Servers' CPU time, times that of one with a node's load"},
    [BENCH_cpu_share] = {BENCH_RATIO, BENCH_NEITHER,
                         "Part of the servers' CPU time"},
};

const char *const bench_unit_names[BENCH_UNITS] = {
    [BENCH_PER_S] = "per second",
    [BENCH_US] = "us",
    [BENCH_MS] = "ms",
    [BENCH_MB] = "MB",
    [BENCH_BYTES] = "bytes",
    [BENCH_PERCENT] = "%",
    [BENCH_RATIO] = "ratio",
    [BENCH_COUNT] = "how many",
};

/* Digits of a whole number in groups of three. */
static void group(double value, char *buf, size_t cap)
{
    char digits[40];
    size_t len, at = 0;

    (void)snprintf(digits, sizeof(digits), "%.0f", value);
    len = strlen(digits);
    for (size_t i = 0; i < len && at + 2 < cap; i++) {
        if (i > 0 && (len - i) % 3 == 0 && digits[i - 1] != '-')
            buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
}

void bench_figure_text(enum bench_figure figure, double value, char *buf,
                       size_t cap)
{
    if (isnan(value))
        (void)snprintf(buf, cap, "-");
    else if (bench_figures[figure].digits == 0)
        group(value, buf, cap);
    else
        (void)snprintf(buf, cap, "%.*f", bench_figures[figure].digits, value);
}
