/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_NEW_JOB_H
#define WEIR_CLI_NEW_JOB_H

/* A job to add, from what people write: the options of weir add, or a line of
 * JSON with the same names. Pure functions. */

#include "core/buf.h"

#include <weir/past.h>

enum weir__job_field {
    WEIR__JOB_ID,
    WEIR__JOB_DELAY,
    WEIR__JOB_AT,
    WEIR__JOB_RETRY,
    WEIR__JOB_TTL,
    WEIR__JOB_URL,
    WEIR__JOB_GROUP,
    WEIR__JOB_DURABILITY,
    WEIR__JOB_UNIQUE,
    WEIR__JOB_FOR,
    WEIR__JOB_ELSE,
    WEIR__JOB_MAX_WAIT,
    WEIR__JOB_KEY,
    WEIR__JOB_PRIORITY,
    WEIR__JOB_FIELDS
};

/* Texts by field; NULL: not given. */
struct weir__job_texts {
    const char *dashes; /* what stands before a name in sentences: "--" or "" */
    const char *value[WEIR__JOB_FIELDS];
};

/* "id", "delay", ..., as JSON has it: an option has - for _. */
const char *weir__job_field_name(enum weir__job_field field);

/* Check them and fill all but the body of `job`, which borrows the texts.
 * WEIR_EINVAL with a sentence that names the field. */
int weir__job_texts_read(const struct weir__job_texts *texts,
                         struct weir_new_job *job, struct weir_error *err);

/* "name=value"s as checked headers, which borrow them; there is room for
 * WEIR_MAX_HEADERS. WEIR_EINVAL with a sentence. */
int weir__job_headers_read(const char *const *texts, size_t count,
                           struct weir_header *ret_headers,
                           struct weir_error *err);

/* WEIR_ETOOBIG with a sentence when the body is longer than any topic allows.
 */
int weir__job_body_check(struct weir_slice body, struct weir_error *err);

/* A line as a job. A zeroed struct is empty; read as often as needed, then
 * release with weir__job_line_fini. */
struct weir__job_line {
    struct weir_new_job job; /* borrows from what follows */
    struct weir_old_job old; /* the same, where it has a past */
    bool has_past;
    struct weir__buf text, body, map, past;
    struct weir_header headers[WEIR_MAX_HEADERS];
    struct weir_attempt attempts[WEIR_MAX_ATTEMPTS];
};

/* Read a JSON object with any of the fields, each a text, "headers", an object
 * of texts, "body", any value, or "msgpack", the same in base64, and "past"
 * (past.h); null is as good as not given. WEIR_EINVAL with a sentence: not
 * JSON, no object, an unknown name, a wrong value; WEIR_ETOOBIG; WEIR_ENOMEM.
 */
int weir__job_line_read(struct weir__job_line *line, struct weir_slice json,
                        struct weir_error *err);

void weir__job_line_fini(struct weir__job_line *line);

#endif
