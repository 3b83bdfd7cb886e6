/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_PAST_H
#define WEIR_CLI_PAST_H

/* What weir export writes of a job, and what of it a new job does not have: its
 * past, and a body that JSON cannot carry. */

#include "core/buf.h"

#include <weir/past.h>

struct json_object;

/* Take the past from msgpack, which is borrowed: a map with any of attempt,
 * failures, timeouts, crashes, snoozes (numbers), reason, error (texts), added
 * and died (times as texts), attempts (an array of maps of at, outcome, error
 * and worker), which are kept in `attempts`. WEIR_EINVAL with a sentence. */
int weir__past_read(struct weir_slice map,
                    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS],
                    struct weir_old_job *old, struct weir_error *err);

/* Append what base64 text stands for; false: it is none, or no memory. */
bool weir__base64_read(const char *text, struct weir__buf *buf);

/* A job as weir__job_line_read takes it; released with json_object_put. NULL:
 * out of memory. */
struct json_object *weir__export_json(const char *topic,
                                      const struct weir_job_info *job);

#endif
