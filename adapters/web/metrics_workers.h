/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_METRICS_WORKERS_H
#define WEIR_WEB_METRICS_WORKERS_H

/* The workers in /metrics: what each told the server of itself last. */

#include "adapters/web/exposition.h"

struct weir_reactor;
struct weir__worker_rows;

/* NULL: out of memory. */
struct weir__worker_rows *weir__worker_rows_new(void);

/* After the reactor was freed. NULL is fine. */
void weir__worker_rows_free(struct weir__worker_rows *rows);

/* Have them asked for; what is known stays until the answer is whole. */
void weir__worker_rows_ask(struct weir__worker_rows *rows,
                           struct weir_reactor *reactor);

/* Their families. */
void weir__worker_rows_put(struct weir__exposition *text,
                           const struct weir__worker_rows *rows);

#endif
