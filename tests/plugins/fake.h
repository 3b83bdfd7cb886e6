/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FAKE_H
#define WEIR_TEST_FAKE_H

/* A host that knows one job and nothing else, to drive bundled plugins through
 * the loader without a reactor. */

#include <weir/plugin.h>

#include "adapters/dl/loader.h"

struct fake_job {
    struct weir_job job; /* first: what handlers hold */
    const char *id;
    const char *body;  /* JSON */
    const char *group; /* NULL: none */
    bool is_out_of_memory;
    struct weir_counters counters;
    int64_t late_us;
    int64_t delay_ms; /* set by the handler; -1: not set */
    char reason[201]; /* set by the handler */
};

/* The first attempt of a job of the topic "mail". */
struct fake_job job_of(const char *id, const char *body);

/* A bundled plugin and an instance of it; stays where it is. */
struct bound {
    struct weir__plugin_file file;
    struct weir__instance instance;
    struct weir_error err; /* of opening the instance */
    int rc;
};

/* Load plugins/NAME.so and open an instance with up to three options, the rest
 * NULL. */
void bind_plugin(struct bound *bound, const char *name,
                 const char *const options[3]);

enum weir_verdict run(struct bound *bound, struct fake_job *fake);
int flush(struct bound *bound);

/* The line a plugin logged last; "" before the first. */
const char *last_logged(void);

#endif
