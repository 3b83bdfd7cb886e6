/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_TIME_H
#define WEIR_CLI_TIME_H

/* Points in time as people write them, RFC 3339, and spans. Pure functions. */

#include <weir/base.h>

/* Parse "2026-01-31T08:30:00.250+01:00" or "...Z": date, 'T', time, optional
 * fraction, offset, nothing else. `*ret_ms` is milliseconds since 1970 in UTC,
 * a fraction of one rounded up. WEIR_EINVAL with a sentence that quotes the
 * text. */
int weir__time_parse(const char *text, int64_t *ret_ms, struct weir_error *err);

/* "2026-01-31T07:30:00.250Z"; "?" when the year has no four digits. */
void weir__time_print(int64_t ms, char buf[32]);

/* A span as "7m24s": of days, hours, minutes, seconds and milliseconds those
 * that it has, of `most` from the largest of them on. */
void weir__span_print(int64_t ms, size_t most, char buf[64]);

#endif
