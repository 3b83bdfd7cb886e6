/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WORKER_H
#define WEIR_WORKER_H

/* Which workers there are, for programs that embed weir. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_WORKER_TOPICS 1000 /* most that one tells of */

/* A topic as a worker serves it. */
struct weir_worker_topic {
    const char *name;
    uint64_t concurrency; /* jobs that may run at once there; 0: not told */
    uint64_t held;        /* of its jobs, under leases of the worker */
    uint64_t running;     /* of those, that a handler finishes later */
    const char *groups;   /* of a bounded topic, that it serves; "": all */
};

/* A worker: a reactor that serves topics. Every 5 s it tells the server that it
 * is there; 15 s after it did so last, or when it is freed, it is forgotten. */
struct weir_worker {
    const char *name; /* as in struct weir_options */
    const char *host; /* on which it runs */
    int64_t pid;
    const char *version;   /* of weir */
    const char *transport; /* to the server: "unix", "tcp", "tls" */
    /* Topics that it serves, the first in byte order. */
    const struct weir_worker_topic *topics;
    size_t topic_count;    /* that are told there */
    uint64_t topics_total; /* and how many it serves */
    uint64_t held;         /* jobs under its leases */
    uint64_t running;      /* of those, that a handler has and finishes later */
    uint64_t connections;  /* times that its connection came up */
    int64_t lag_us;   /* how late its loop was at worst in the last 5 to 10 s */
    int64_t since_ms; /* server time when it was opened; 0: of itself */
    int64_t seen_ms;  /* server time when it told all this; 0: of itself */
    bool is_stopping; /* it finishes what runs and claims no more */
};

/* The workers that are there, one call of `fn` for each in byte order of their
 * names, everything borrowed for that; then one with `worker` NULL and the
 * final code. Two of one name are two. */
typedef void (*weir_workers_fn)(int code, const struct weir_worker *worker,
                                void *arg);
WEIR_API WEIR_MUST_CHECK int weir_reactor_workers(struct weir_reactor *reactor,
                                                  weir_workers_fn fn,
                                                  void *arg);

/* What this reactor tells of itself, served topics or not: no request. What is
 * pointed to is borrowed until the next such call or a turn of the loop. On the
 * loop thread only: the names are written into the reactor. */
WEIR_API void weir_reactor_worker(const struct weir_reactor *reactor,
                                  struct weir_worker *ret_worker);

#ifdef __cplusplus
}
#endif
#endif
