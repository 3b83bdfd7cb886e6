/* SPDX-License-Identifier: MIT */
#ifndef WEIR_ERROR_H
#define WEIR_ERROR_H

/* Filling a struct weir_error, and logging: the two ways out for text. */

#include <weir/base.h>

/* Write code and text, cut to fit, and return `code`. `err` may be NULL.
 * Control bytes become '?', here and in lines that are logged. */
WEIR_PRINTF(3, 4)
int weir__error_set(struct weir_error *err, int code, const char *format, ...);

/* The same with what the code says by itself; nothing for WEIR_OK. */
int weir__error_code(struct weir_error *err, int code);

/* Where log lines go: to `line_fn`, else to `fn`; both may be NULL. Borrowed by
 * all that log. */
struct weir__log {
    weir_log_fn fn;
    void *arg;
    _Atomic enum weir_level level; /* the least that is passed on */
    weir_log_line_fn line_fn;
};

/* Is a line of this level passed on? `log` may be NULL. */
bool weir__log_wants(const struct weir__log *log, enum weir_level level);

/* Log one line: lower case, subsystem first, what happens next. Lines are cut
 * at 511 bytes. */
WEIR_PRINTF(3, 4)
void weir__log(const struct weir__log *log, enum weir_level level,
               const char *format, ...);

/* The same about what `about` says: its topic and id come first. Its text is
 * not used. */
WEIR_PRINTF(3, 4)
void weir__log_about(const struct weir__log *log,
                     const struct weir_log_line *about, const char *format,
                     ...);

/* The same about a job, and no event. */
WEIR_PRINTF(5, 6)
void weir__log_job(const struct weir__log *log, enum weir_level level,
                   const char *topic, struct weir_slice id, const char *format,
                   ...);

#endif
