/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_ROW_H
#define WEIR_BENCH_ROW_H

/* What a benchmark found: rows of labels and figures, printed as a table or as
 * JSON Lines, where NAN is null. */

#include "bench/figure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

struct bench_row {
    const char *case_name;
    const char *kind;     /* NULL: null, and so for the texts below */
    char label[80];       /* what tells it from its neighbours in the table */
    int64_t consumers;    /* -1: null, and so for the numbers below */
    const char *lock;     /* "yes", "no" */
    const char *parking;  /* "atomic", "two-step" */
    const char *auto_ack; /* "yes", "no" */
    const char *ids, *transport, *persistence;
    const char *handler; /* "sync", ...; NULL: left out */
    int64_t batch, jobs, payload_bytes, topics, backlog, concurrency, repeat;
    int64_t nodes, node; /* how many servers; which of them, from 1 on */
    double figure[BENCH_FIGURE_COUNT];
    /* `repeat` of them, which the output owns; NULL: there are none. */
    const struct bench_row *repeats;
};

/* Every figure NAN, every number -1. */
void bench_row_init(struct bench_row *row, const char *case_name);

/* Where rows go. */
struct bench_output {
    bool json;
    struct json_object *server, *host, *build; /* owned */
    const enum bench_figure *columns;          /* of the table; borrowed */
    size_t column_count;
    struct bench_row *rows; /* all that were printed; owned */
    size_t row_count;
    struct bench_row **repeats; /* of those rows and others; owned */
    size_t repeats_count;
};

/* Put the figures of `count` repeats together into `row`, and keep a copy of
 * them. False: out of memory. */
bool bench_row_merge(struct bench_output *output, struct bench_row *row,
                     const struct bench_row *repeats, size_t count);

/* Print a row, after the heading if it is the first of a table, and keep it.
 * False: out of memory. */
bool bench_output_row(struct bench_output *output, const struct bench_row *row);

void bench_output_fini(struct bench_output *output);

#endif
