/* SPDX-License-Identifier: MIT */

/* weir-bench: its cases. */

#include "bench/options.h"
#include "bench/report.h"
#include "bench/small.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

const struct bench_case *const bench_cases[] = {
    &bench_case_compare,   &bench_case_throughput, &bench_case_floor,
    &bench_case_lateness,  &bench_case_wake,       &bench_case_idle,
    &bench_case_scattered, &bench_case_scale,      &bench_case_crash,
    &bench_case_groups,    &bench_case_handlers,   &bench_case_follow,
    &bench_case_limits,    &bench_case_cluster,
};
const size_t bench_case_count = sizeof(bench_cases) / sizeof(bench_cases[0]);

/* Nobody is there, as against: something went wrong. */
static int exit_code(int code)
{
    switch (code) {
    case WEIR_OK:
        return BENCH_DONE_CODE;
    case WEIR_EINVAL:
        return BENCH_USAGE_CODE;
    case WEIR_ECONN:
    case WEIR_ENOTFOUND:
        return BENCH_SERVER_CODE;
    default:
        return BENCH_FAILED_CODE;
    }
}

static int run(const struct bench_case *which,
               const struct bench_options *options, char *const *argv)
{
    struct bench bench = {
        .which = which,
        .options = *options,
        .output = {.json = options->json,
                   .columns = which->columns,
                   .column_count = which->column_count},
    };
    char small[BENCH_SMALL_CAP];
    struct weir_error err = {0};
    int rc = WEIR_OK;

    bench_progress_init(&bench.progress, which->name, 1);
    if (options->report != NULL)
        rc = bench_report_check(options->report, &err);
    if (rc == WEIR_OK)
        rc = which->run(&bench, &err);
    if (rc == WEIR_OK && options->report != NULL)
        rc = bench_report_write(&bench, options, argv, &err);
    bench_progress_clear(&bench.progress);
    bench_small_text(&bench, small);
    if (rc == WEIR_OK && small[0] != '\0')
        bench_complain("%s: too small to mean much: %s", which->name, small);
    if (rc < 0)
        bench_complain("%s: %s", which->name, err.text);
    bench_output_fini(&bench.output);
    return exit_code(rc);
}

int main(int argc, char **argv)
{
    const struct bench_case *which = NULL;
    struct bench_options options = {0};
    struct sigaction ignore;
    int rc;

    memset(&ignore, 0, sizeof(ignore));
    ignore.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &ignore, NULL); /* cannot fail for SIGPIPE */
    rc = bench_options_read(argc, argv, &which, &options);
    if (rc == BENCH_NO_CODE)
        rc = run(which, &options, argv);
    free(options.own_redis);
    return rc;
}
