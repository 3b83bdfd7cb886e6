/* SPDX-License-Identifier: MIT */

/* weir-bench cluster: what a job costs where topics are spread over the nodes
 * of a cluster, as against the same topics on one server. A server that is not
 * kept busy finds fewer jobs each time and takes longer for each, so the nodes
 * are compared with one server that has as much to do as one of them, too. */

#include "bench/load.h"
#include "core/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const enum bench_figure columns[] = {
    BENCH_end_to_end_per_s, BENCH_server_us_per_job,
    BENCH_cost_ratio,       BENCH_load_ratio,
    BENCH_cpu_share,        BENCH_client_us_per_job,
    BENCH_worker_rss_mb,    BENCH_lost,
    BENCH_duplicated};

/* The rows: one server with all of it, and with what a node has; the cluster,
 * its nodes. */
enum { ONE, PART, CLUSTER, NODES, ROWS_MAX = NODES + BENCH_NODES_MAX };

struct sides {
    struct bench_server one; /* zeroed: the cluster is somebody else's */
    struct bench_spread spread,
        part; /* topics of all nodes, of the first one */
    int64_t jobs_of[BENCH_NODES_MAX];
    int nodes;
    size_t count; /* of the rounds */
    struct bench_row *rows[ROWS_MAX];
};

/* --- topics ----------------------------------------------------------- */

/* The next name that the node has. */
static void take_name(struct bench *bench, int node, char name[BENCH_TOPIC_CAP])
{
    do
        bench_topic_name(bench, name);
    while (bench_server_node_of(&bench->server, name) != node);
}

/* From node to node, so that each has as many as the others, or one less. */
static void spread_topics(struct bench *bench, struct sides *sides)
{
    struct bench_spread *spread = &sides->spread;
    int64_t jobs = bench->options.jobs;

    spread->batch = bench->options.batch;
    spread->count = (int)bench->options.topics;
    for (int i = 0; i < spread->count; i++)
        take_name(bench, i % sides->nodes, spread->topics[i]);
    for (int64_t at = 0; at < jobs; at += spread->batch)
        sides->jobs_of[bench_spread_of(spread, at) % sides->nodes] +=
            jobs - at < spread->batch ? jobs - at : spread->batch;
    sides->part.batch = spread->batch;
    for (int i = 0; i < spread->count; i += sides->nodes)
        memcpy(sides->part.topics[sides->part.count++], spread->topics[i],
               BENCH_TOPIC_CAP);
}

/* --- a round ---------------------------------------------------------- */

static struct bench_load load_of(const struct bench *bench,
                                 const struct bench_spread *spread)
{
    struct bench_load load = bench_load_of(bench);

    load.spread = spread;
    load.producers = bench->options.producers;
    return load;
}

static int flow(struct bench *bench, const struct bench_load *load,
                struct bench_row *row, struct weir_error *err)
{
    int rc = bench_server_clear(&bench->server, err);

    bench_progress_draw(&bench->progress, 0);
    return rc < 0 ? rc
                  : bench_load_flow(bench, load, load->spread->topics[0], row,
                                    err);
}

static void swap(struct bench_server *a, struct bench_server *b)
{
    struct bench_server kept = *a;

    *a = *b;
    *b = kept;
}

static int flow_one(struct bench *bench, struct sides *sides,
                    const struct bench_load *load, struct bench_row *row,
                    struct weir_error *err)
{
    int rc;

    if (!sides->one.is_own)
        return WEIR_OK;
    swap(&bench->server, &sides->one);
    rc = flow(bench, load, row, err);
    swap(&bench->server, &sides->one);
    return rc;
}

/* As many topics and jobs as one node has, and as many of them in a second. */
static int flow_part(struct bench *bench, struct sides *sides, size_t at,
                     struct weir_error *err)
{
    struct bench_load load = load_of(bench, &sides->part);
    double per_s = sides->rows[CLUSTER][at].figure[BENCH_end_to_end_per_s];

    load.jobs = sides->jobs_of[0];
    load.per_s = (int64_t)(per_s / sides->nodes / (double)load.producers) + 1;
    return flow_one(bench, sides, &load, &sides->rows[PART][at], err);
}

static double ratio(const struct bench_row *row, const struct bench_row *of)
{
    return row->figure[BENCH_server_us_per_job] /
           of->figure[BENCH_server_us_per_job];
}

static void share(const struct sides *sides, const double *node_us, size_t at)
{
    struct bench_row *all = &sides->rows[CLUSTER][at];
    double sum = 0, most = 0;

    for (int i = 0; i < sides->nodes; i++) {
        sum += node_us[i];
        most = node_us[i] > most ? node_us[i] : most;
    }
    all->figure[BENCH_cpu_share] = most / sum;
    all->figure[BENCH_cost_ratio] = ratio(all, &sides->rows[ONE][at]);
    all->figure[BENCH_load_ratio] = ratio(all, &sides->rows[PART][at]);
    for (int i = 0; i < sides->nodes; i++) {
        double *figure = sides->rows[NODES + i][at].figure;

        figure[BENCH_server_us_per_job] =
            node_us[i] / (double)sides->jobs_of[i];
        figure[BENCH_cpu_share] = node_us[i] / sum;
    }
}

/* One after the other: what changes on the machine from round to round changes
 * for all of them. */
static int go_round(struct bench *bench, struct sides *sides, size_t at,
                    struct weir_error *err)
{
    struct bench_load load = load_of(bench, &sides->spread);
    double node_us[BENCH_NODES_MAX];
    int rc;

    for (int i = 0; i < NODES + sides->nodes; i++)
        bench_row_init(&sides->rows[i][at], "cluster");
    rc = flow_one(bench, sides, &load, &sides->rows[ONE][at], err);
    load.node_us = node_us;
    if (rc == WEIR_OK)
        rc = flow(bench, &load, &sides->rows[CLUSTER][at], err);
    if (rc == WEIR_OK)
        rc = flow_part(bench, sides, at, err);
    if (rc == WEIR_OK)
        share(sides, node_us, at);
    return rc;
}

/* The first round does not count: it is measured again. */
static int measure(struct bench *bench, struct sides *sides,
                   struct weir_error *err)
{
    int rc = go_round(bench, sides, 0, err);

    for (size_t at = 0; at < sides->count && rc == WEIR_OK; at++) {
        rc = go_round(bench, sides, at, err);
        bench->progress.step++;
    }
    return rc;
}

/* --- rows ------------------------------------------------------------- */

static void label(const struct bench *bench, const struct sides *sides, int i,
                  struct bench_row *row)
{
    int topics = sides->spread.count;

    bench_row_label(bench, row, "cluster");
    row->nodes = i < CLUSTER ? 1 : sides->nodes;
    row->topics = i == PART ? sides->part.count : topics;
    if (i == ONE)
        (void)snprintf(row->label, sizeof(row->label), "one server, %d topics",
                       topics);
    if (i == PART)
        (void)snprintf(row->label, sizeof(row->label),
                       "a node's load, %d topics", sides->part.count);
    if (i == CLUSTER)
        (void)snprintf(row->label, sizeof(row->label),
                       "cluster of %d nodes, %d topics", sides->nodes, topics);
    if (i == PART)
        row->jobs = sides->jobs_of[0];
    if (i < NODES)
        return;
    row->node = i - NODES + 1;
    row->jobs = sides->jobs_of[i - NODES];
    row->topics = (topics - (i - NODES) + sides->nodes - 1) / sides->nodes;
    (void)snprintf(row->label, sizeof(row->label), "  node %d, %d topics",
                   (int)row->node, (int)row->topics);
}

static int print(struct bench *bench, const struct sides *sides,
                 struct weir_error *err)
{
    int rc = WEIR_OK;

    for (int i = sides->one.is_own ? ONE : CLUSTER;
         i < NODES + sides->nodes && rc == WEIR_OK; i++) {
        struct bench_row row;

        label(bench, sides, i, &row);
        rc = bench_row_put_together(bench, &row, sides->rows[i], err);
        if (rc == WEIR_OK)
            rc = bench_row_print(bench, &row, err);
    }
    return rc;
}

/* --- life ------------------------------------------------------------- */

/* The cluster stands. */
static int begin(struct bench *bench, struct sides *sides,
                 struct weir_error *err)
{
    struct bench_server_options alone = bench->options.server;

    if (bench->server.map == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "the address is of one server, which is no "
                               "cluster; see weir-bench throughput --help");
    sides->nodes = bench->server.node_count;
    for (int i = 0; i < NODES + sides->nodes; i++) {
        sides->rows[i] = calloc(sides->count, sizeof(struct bench_row));
        if (sides->rows[i] == NULL)
            return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    }
    if (bench->options.topics < sides->nodes)
        return weir__error_set(err, WEIR_EINVAL,
                               "--topics: %d nodes want a topic each at least",
                               sides->nodes);
    spread_topics(bench, sides);
    alone.nodes = 0;
    return bench->server.is_own ? bench_server_start(&sides->one, &alone, err)
                                : WEIR_OK;
}

static int run(struct bench *bench, struct weir_error *err)
{
    struct sides *sides = calloc(1, sizeof(*sides));
    int rc;

    if (sides == NULL)
        return weir__error_set(err, WEIR_ENOMEM, "out of memory");
    sides->count = (size_t)bench->options.repeat;
    bench->progress.steps = (int)bench->options.repeat;
    bench->options.server.nodes = (int)bench->options.nodes;
    rc = bench_row_open(bench, err);
    if (rc == WEIR_OK)
        rc = begin(bench, sides, err);
    if (rc == WEIR_OK)
        rc = measure(bench, sides, err);
    if (rc == WEIR_OK)
        rc = print(bench, sides, err);
    bench_server_stop(&sides->one); /* the last one first */
    bench_row_close(bench);
    for (int i = 0; i < ROWS_MAX; i++)
        free(sides->rows[i]);
    free(sides);
    return rc;
}

const struct bench_case bench_case_cluster = {
    .name = "cluster",
    .summary = "topics on the nodes of a cluster",
    .details =
        "Starts --nodes primaries and one server beside them, spreads --topics "
        "evenly over the nodes, and has --producers and --consumers (processes "
        "each) add and handle jobs of all topics, a batch for one topic after "
        "the other; the same on the one server in each repeat. Server us is "
        "the CPU time of all servers for each job, of a node for each of its "
        "jobs; x one server compares with the one server in the same repeat, x "
        "its load with that server when it has the topics of one node and gets "
        "as many jobs a second as a node got. Cpu share is what part of that "
        "time a node has, and in the row of the "
        "cluster that of the busiest one. With --redis the primaries of that "
        "cluster are measured, and no other server beside them.",
    .example = "weir-bench cluster --nodes 3 --topics 12 --repeat 3",
    .flags = BENCH_FLAG_TOPICS | BENCH_FLAG_NODES | BENCH_FLAG_CONSUMERS,
    .fallback = {.jobs = 500000,
                 .payload_bytes = 100,
                 .batch = 256,
                 .consumers = 1,
                 .producers = 1,
                 .nodes = 3,
                 .topics = 12,
                 .repeat = 5,
                 .server = {.tcp = true}},
    .columns = columns,
    .column_count = sizeof(columns) / sizeof(columns[0]),
    .run = run,
};
