/* SPDX-License-Identifier: MIT */
#include "bench/bench.h"

#include "bench/where.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct bench_kind bench_kinds[] = {
    {.name = "delay", .has_ids = true},
    {.name = "list", .delay = BENCH_DELAY_NONE},
    {.name = "stream", .delay = BENCH_DELAY_NONE},
    {.name = "bounded", .delay = BENCH_DELAY_NONE, .has_groups = true},
    {.name = "sync", .delay = BENCH_DELAY_OF_TOPIC, .has_consumers = true},
    {.name = "concurrent",
     .delay = BENCH_DELAY_OF_TOPIC,
     .has_consumers = true},
};
const size_t bench_kind_count = sizeof(bench_kinds) / sizeof(bench_kinds[0]);

const struct bench_variant bench_variants[] = {
    {.kind = "concurrent",
     .parking = "two-step",
     .auto_ack = "no",
     .words = "concurrent, two-step"},
    {.kind = "concurrent",
     .parking = "atomic",
     .auto_ack = "no",
     .words = "concurrent, atomic"},
    {.kind = "concurrent", .auto_ack = "yes", .words = "concurrent, auto-ack"},
    {.kind = "sync", .lock = "yes", .words = "sync, lock"},
    {.kind = "sync", .lock = "no", .words = "sync, no lock"},
    {.kind = "list", .auto_ack = "no", .words = "list"},
    {.kind = "list", .auto_ack = "yes", .words = "list, auto-ack"},
    {.kind = "stream", .words = "stream"},
    {.kind = "bounded", .words = "bounded"},
    {.kind = "delay", .words = "delay"},
};
const size_t bench_variant_count =
    sizeof(bench_variants) / sizeof(bench_variants[0]);

const char *const bench_handler_names[] = {
    [BENCH_HANDLER_SYNC] = "sync",     [BENCH_HANDLER_PENDING] = "pending",
    [BENCH_HANDLER_RANDOM] = "random", [BENCH_HANDLER_BLOCKING] = "blocking",
    [BENCH_HANDLER_TIMER] = "timer",   NULL,
};

const struct bench_kind *bench_kind_find(const char *name)
{
    for (size_t i = 0; i < bench_kind_count; i++)
        if (strcmp(bench_kinds[i].name, name) == 0)
            return &bench_kinds[i];
    return NULL;
}

void bench_row_label(const struct bench *bench, struct bench_row *row,
                     const char *case_name)
{
    const struct bench_options *options = &bench->options;

    bench_row_init(row, case_name);
    row->kind = options->kind->name;
    row->consumers = options->consumers;
    if (options->kind->has_ids)
        row->ids = options->makes_ids ? "made" : "caller";
    if (options->server.redis == NULL) {
        row->transport = options->server.tls   ? "tls"
                         : options->server.tcp ? "tcp"
                                               : "unix";
        row->persistence = options->server.persistence;
    } else {
        row->transport =
            strncmp(options->server.redis, "unix:", 5) == 0    ? "unix"
            : strncmp(options->server.redis, "rediss", 6) == 0 ? "tls"
                                                               : "tcp";
    }
    row->batch = options->batch;
    row->jobs = options->jobs;
    row->payload_bytes = options->payload_bytes;
}

/* --- a row ------------------------------------------------------------ */

int bench_row_open(struct bench *bench, struct weir_error *err)
{
    int rc = bench_server_start(&bench->server, &bench->options.server, err);

    if (rc < 0)
        return rc;
    if (bench->which->one_server && bench->server.node_count > 1)
        return weir__error_set(
            err, WEIR_EINVAL,
            "this is a cluster of %d primaries, and the case "
            "looks at one server; see weir-bench cluster "
            "--help",
            bench->server.node_count);
    return bench_where_describe(bench, err);
}

void bench_row_close(struct bench *bench)
{
    bench_server_stop(&bench->server);
}

static int repeat(struct bench *bench, struct bench_row *repeats,
                  const struct bench_plan *plan, struct weir_error *err)
{
    int64_t count = bench->options.repeat;
    struct bench_row blank = repeats[0];
    int rc = bench_server_clear(&bench->server, err);

    if (rc == WEIR_OK && plan->prepare != NULL)
        rc = plan->prepare(bench, plan->arg, &blank, err);
    for (int64_t i = -plan->warm_ups; i < count && rc == WEIR_OK; i++) {
        struct bench_row *mine = &repeats[i < 0 ? 0 : i];

        *mine = blank;
        bench_progress_draw(&bench->progress, 0);
        rc = plan->fn(bench, plan->arg, mine, err);
        if (rc == WEIR_OK && plan->prepare == NULL)
            rc = bench_server_clear(&bench->server, err);
        bench->progress.step += i >= 0;
    }
    return rc;
}

int bench_row_put_together(struct bench *bench, struct bench_row *row,
                           const struct bench_row *repeats,
                           struct weir_error *err)
{
    if (bench_row_merge(&bench->output, row, repeats,
                        (size_t)bench->options.repeat))
        return WEIR_OK;
    return weir__error_set(err, WEIR_ENOMEM, "out of memory");
}

int bench_row_measure(struct bench *bench, struct bench_row *row,
                      const struct bench_plan *plan, struct weir_error *err)
{
    size_t count = (size_t)bench->options.repeat;
    struct bench_row *repeats = calloc(count, sizeof(repeats[0]));
    int rc;

    if (repeats == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    repeats[0] = *row;
    rc = bench_row_open(bench, err);
    if (rc == WEIR_OK)
        rc = repeat(bench, repeats, plan, err);
    if (rc == WEIR_OK)
        rc = bench_row_put_together(bench, row, repeats, err);
    bench_row_close(bench);
    free(repeats);
    return rc;
}

int bench_row_print(struct bench *bench, const struct bench_row *row,
                    struct weir_error *err)
{
    bench_progress_clear(&bench->progress);
    if (bench_output_row(&bench->output, row))
        return WEIR_OK;
    return weir__error_set(err, WEIR_ENOMEM, "out of memory");
}

int bench_row_report(struct bench *bench, struct bench_row *row,
                     const struct bench_plan *plan, struct weir_error *err)
{
    int rc = bench_row_measure(bench, row, plan, err);

    return rc == WEIR_OK ? bench_row_print(bench, row, err) : rc;
}

void bench_topic_name(struct bench *bench, char name[BENCH_TOPIC_CAP])
{
    (void)snprintf(name, BENCH_TOPIC_CAP, "weir-bench.%ld.%d", (long)getpid(),
                   bench->topics_made++);
}
