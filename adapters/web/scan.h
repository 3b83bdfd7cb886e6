/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_SCAN_H
#define WEIR_WEB_SCAN_H

/* Jobs of a topic in one state that a jq program takes, from a place on: up to
 * 1,000 are read, the program looks at them, and so on until the caller has
 * enough. */

#include "adapters/web/groups.h"
#include "adapters/web/web.h"

#include <json-c/json.h>

struct weir__scanned {
    struct json_object *row; /* NULL unless rows are wanted; borrowed */
    char id[WEIR_MAX_ID + 1];
    char place[WEIR_MAX_PLACE + 1];
    char key[WEIR__KEY_CAP]; /* of its group */
};

struct weir__scan_options {
    const char *topic, *program; /* copied */
    int state;
    const char *after; /* NULL: from the beginning; copied */
    size_t most;       /* jobs to look at */
    size_t wanted;     /* jobs that match; 0: all */
    bool wants_rows;
    /* Whether the program is to look at this one; NULL: at all. */
    bool (*precondition)(const struct weir_job_info *job, void *arg);
    /* One that matches; false: no more is wanted. */
    bool (*found)(const struct weir__scanned *job, void *arg);
    /* Runs once, as the last. `next` is where to go on, "" at the end; `failed`
     * counts jobs on which the program failed. Of WEIR_EINVAL `text` is the
     * sentence. */
    void (*end)(int code, const char *text, const char *next, uint64_t failed,
                void *arg);
    void *arg;
};

/* It may take 120 s. Where so many are at work already `end` is called from
 * inside with WEIR_EFULL. WEIR_ENOMEM, or what the first request came to:
 * then nothing is called. */
int weir__scan(struct weir__web *web, const struct weir__scan_options *options);

/* A job as a list has it: without its body, but with body_bytes. NULL: no
 * memory. */
struct json_object *weir__scan_row(const char *topic,
                                   const struct weir_job_info *job);

#endif
