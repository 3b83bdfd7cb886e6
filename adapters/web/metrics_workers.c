/* SPDX-License-Identifier: MIT */

/* The workers in /metrics: what each told the server of itself last. */

#include "adapters/web/metrics_workers.h"

#include "core/assert.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>
#include <weir/worker.h>

enum { MOST = 10000 }; /* the rest is left out */

struct row {
    char name[WEIR_MAX_TOPIC + 1];
    char host[65], version[33], pid[24];
    uint64_t held, running, connections, topics;
    int64_t lag_us;
    bool is_stopping;
};

struct weir__worker_rows {
    struct row *list;     /* owned */
    size_t count, coming; /* coming: of an answer that is not whole yet */
    size_t cap;
    struct row *next; /* owned; of that */
    bool is_asking;
};

static void keep(char *to, size_t cap, const char *text)
{
    size_t len = strlen(text);

    len = len < cap ? len : cap - 1;
    memcpy(to, text, len);
    to[len] = '\0';
}

static void take(struct weir__worker_rows *rows,
                 const struct weir_worker *worker)
{
    struct row *row;

    WEIR_ASSERT(rows->coming <= rows->cap);
    if (rows->coming == rows->cap) {
        size_t cap = rows->cap == 0 ? 16 : 2 * rows->cap;
        struct row *grown = weir__mem_grow(rows->next, cap, sizeof(*grown));

        if (grown == NULL)
            return; /* one less is shown */
        rows->next = grown;
        rows->cap = cap;
    }
    row = &rows->next[rows->coming++];
    *row = (struct row){
        .held = worker->held,
        .running = worker->running,
        .connections = worker->connections,
        .topics = worker->topics_total,
        .lag_us = worker->lag_us,
        .is_stopping = worker->is_stopping,
    };
    keep(row->name, sizeof(row->name), worker->name);
    keep(row->host, sizeof(row->host), worker->host);
    keep(row->version, sizeof(row->version), worker->version);
    (void)snprintf(row->pid, sizeof(row->pid), "%lld",
                   (long long)worker->pid); /* fits */
}

/* An answer that broke off changes nothing. */
static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    struct weir__worker_rows *rows = arg;

    WEIR_ASSERT(rows->is_asking);
    if (worker != NULL) {
        if (rows->coming < MOST)
            take(rows, worker);
        return;
    }
    rows->is_asking = false;
    if (code != WEIR_OK) {
        rows->coming = 0;
        return;
    }
    weir__mem_free(rows->list);
    rows->list = rows->next;
    rows->count = rows->coming;
    rows->next = NULL;
    rows->coming = rows->cap = 0;
}

struct weir__worker_rows *weir__worker_rows_new(void)
{
    return weir__mem_new(sizeof(struct weir__worker_rows));
}

void weir__worker_rows_free(struct weir__worker_rows *rows)
{
    if (rows == NULL)
        return;
    weir__mem_free(rows->list);
    weir__mem_free(rows->next);
    weir__mem_free(rows);
}

void weir__worker_rows_ask(struct weir__worker_rows *rows,
                           struct weir_reactor *reactor)
{
    if (rows->is_asking)
        return;
    rows->is_asking = true;
    rows->coming = 0;
    if (weir_reactor_workers(reactor, on_worker, rows) < 0)
        rows->is_asking = false;
}

/* --- families ----------------------------------------------------------- */

static void label(struct weir__exposition *text, const struct row *row)
{
    weir__label(text, 0, "worker", row->name);
    weir__label(text, 1, "host", row->host);
    weir__label(text, 2, "pid", row->pid);
}

static void each(struct weir__exposition *text,
                 const struct weir__worker_rows *rows,
                 uint64_t (*value)(const struct row *row))
{
    for (size_t i = 0; i < rows->count; i++) {
        label(text, &rows->list[i]);
        weir__sample(text, value(&rows->list[i]));
    }
}

static uint64_t held(const struct row *row)
{
    return row->held;
}

static uint64_t running(const struct row *row)
{
    return row->running;
}

static uint64_t topics(const struct row *row)
{
    return row->topics;
}

static uint64_t connections(const struct row *row)
{
    return row->connections;
}

static uint64_t stopping(const struct row *row)
{
    return row->is_stopping ? 1 : 0;
}

static const struct {
    const char *name, *type, *help;
    uint64_t (*value)(const struct row *row);
} families[] = {
    {"weir_workers_held", "gauge", "Jobs under leases of the worker.", held},
    {"weir_workers_running", "gauge",
     "Jobs of these that a handler finishes later.", running},
    {"weir_workers_topics", "gauge", "Topics that the worker serves.", topics},
    {"weir_workers_connections_total", "counter",
     "Times that its connection came up.", connections},
    {"weir_workers_stopping", "gauge",
     "Whether it finishes what runs and claims no more.", stopping},
};

void weir__worker_rows_put(struct weir__exposition *text,
                           const struct weir__worker_rows *rows)
{
    weir__family(text, "weir_workers", "gauge", "Workers that are there.");
    weir__sample(text, rows->count);
    weir__family(text, "weir_workers_info", "gauge",
                 "Which version of weir a worker is.");
    for (size_t i = 0; i < rows->count; i++) {
        label(text, &rows->list[i]);
        weir__label(text, 3, "version", rows->list[i].version);
        weir__sample(text, 1);
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        weir__family(text, families[i].name, families[i].type,
                     families[i].help);
        each(text, rows, families[i].value);
    }
    weir__family(text, "weir_workers_loop_lag_seconds", "gauge",
                 "How late its loop was at worst lately.");
    for (size_t i = 0; i < rows->count; i++) {
        label(text, &rows->list[i]);
        weir__sample_us(text, rows->list[i].lag_us);
    }
}
