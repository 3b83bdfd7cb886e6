/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_CRON_TEXTS_H
#define WEIR_CLI_CRON_TEXTS_H

/* A schedule from what people write: the options of weir cron add, or a section
 * of a configuration file with the same names. */

#include <weir/cron.h>

enum weir__cron_field {
    WEIR__CRON_AT,
    WEIR__CRON_EVERY,
    WEIR__CRON_ZONE,
    WEIR__CRON_BODY,
    WEIR__CRON_MISSED,
    WEIR__CRON_OVERLAP,
    WEIR__CRON_JITTER,
    WEIR__CRON_RETRY,
    WEIR__CRON_TTL,
    WEIR__CRON_URL,
    WEIR__CRON_FIELDS
};

/* Texts by field; NULL: not given. */
struct weir__cron_texts {
    const char *dashes; /* what stands before a name in sentences: "--" or "" */
    const char *name;   /* of the schedule */
    const char *value[WEIR__CRON_FIELDS];
};

/* Fill in a schedule that borrows the texts, and check it; its body is to be
 * released with weir_body_free, also of one that is refused. `*ret_field` is
 * the field that is wrong, WEIR__CRON_FIELDS where it is none in particular.
 * WEIR_EINVAL with a sentence. BLOCKS on the file of the zone. */
int weir__cron_texts_read(const struct weir__cron_texts *texts,
                          struct weir_cron *ret_cron,
                          enum weir__cron_field *ret_field,
                          struct weir_error *err);

#endif
