/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_LOAD_H
#define WEIR_BENCH_LOAD_H

/* The runs that most cases are made of: fill a topic, drain it, or both at
 * once. Each uses processes of its own and writes figures into a row. */

#include "bench/bench.h"
#include "bench/team.h"

struct bench_load {
    const struct bench_kind *kind;
    const char *lock, *parking, *auto_ack; /* as in struct bench_row */
    int64_t jobs, payload_bytes, batch, consumers, concurrency;
    int64_t delay_ms, from_ms, spread_ms, lease_ms, idle_topics, id_base;
    /* Of a flow. */
    int64_t per_s; /* > 0: so many are added in a second, not as many as go */
    int64_t in_flight;                 /* as in struct bench_role */
    int64_t producers;                 /* 0: one */
    const struct bench_spread *spread; /* in place of the topic; or NULL */
    double *node_us; /* gets the CPU time of each node; or NULL */
    const char *by; /* another topic they go by: its handler adds each to theirs
                       with its verdict. NULL: they do not */
    int64_t keys;   /* as in struct bench_role, and so are these */
    bool has_priorities, is_unique;
    bool makes_ids;
    bool one_process; /* that adds and handles; else a producer and workers */
    enum bench_handler handler;
};

/* The load that the options describe. */
struct bench_load bench_load_of(const struct bench *bench);

/* The same of one variant; `row` gets its labels. */
struct bench_load bench_load_variant(const struct bench *bench,
                                     const struct bench_variant *variant,
                                     int64_t consumers, struct bench_row *row);

/* Make the topic what the load says. */
int bench_load_prepare(struct bench *bench, const struct bench_load *load,
                       char topic[BENCH_TOPIC_CAP], struct weir_error *err);

/* Add all of it, with nobody handling: enqueue_per_s, enqueue_server_us.
 * `*ret_due_ns`: when the last one is due, at the latest. */
int bench_load_fill(struct bench *bench, const struct bench_load *load,
                    const char *topic, struct bench_row *row,
                    int64_t *ret_due_ns, struct weir_error *err);

/* Handle all of it, from when it is due: drain_per_s, drain_server_us, lost,
 * duplicated. */
int bench_load_drain(struct bench *bench, const struct bench_load *load,
                     const char *topic, int64_t due_ns, struct bench_row *row,
                     struct weir_error *err);

/* Add and handle at once, the workers running throughout: end_to_end_per_s,
 * elapsed_ms, server_us_per_job, client_us_per_job, worker_rss_mb,
 * producer_rss_mb, turn_ms, lost, duplicated, and p50_ms to max_ms from that
 * verdict on. */
int bench_load_flow(struct bench *bench, const struct bench_load *load,
                    const char *topic, struct bench_row *row,
                    struct weir_error *err);

/* All three: fill and drain a topic, then both at once with another one. */
int bench_load_run(struct bench *bench, const struct bench_load *load,
                   struct bench_row *row, struct weir_error *err);

/* The parts, for cases that put them together in another way. */
struct bench_role bench_load_role(const struct bench *bench,
                                  const struct bench_load *load,
                                  const char *topic);
int bench_load_workers(struct bench *bench, struct bench_team *team,
                       const struct bench_load *load, struct bench_role *role,
                       struct weir_error *err);

/* Wait until member `who` has added everything. */
int bench_load_await_added(struct bench *bench, struct bench_team *team,
                           int who, struct weir_error *err);

/* Wait until all jobs ran, at least once, and are settled, or until nothing is
 * left of them. They are due at `due_ns`. `*ret_ns`: the last settle. */
struct bench_wait {
    const char *topic, *kind;
    int64_t jobs, due_ns;
    const struct bench_spread *spread; /* in place of the topic; or NULL */
};
int bench_load_await_settled(struct bench *bench, struct bench_team *team,
                             const struct bench_wait *wait, int64_t *ret_ns,
                             struct weir_error *err);

/* Count what was lost and what came twice, beside what the row has of it. */
void bench_load_count(const struct bench_team *team, struct bench_row *row);

/* The same after the wait; what the topic counts as dropped is not lost. */
int bench_load_balance(struct bench *bench, const struct bench_team *team,
                       const struct bench_wait *wait, struct bench_row *row,
                       struct weir_error *err);

#endif
