/* SPDX-License-Identifier: MIT */
#ifndef WEIR_WEB_EXPOSITION_H
#define WEIR_WEB_EXPOSITION_H

/* The text format of Prometheus, version 0.0.4: families of samples with
 * labels. The caller writes a family at once, sample by sample. Pure but for
 * its memory; lack of that shows in `buf.failed`. */

#include "core/buf.h"

#define WEIR__EXPOSITION_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum { WEIR__LABELS_MAX = 6 };

struct weir__exposition {
    struct weir__buf buf; /* owned by the caller */
    const char *family;   /* name of the samples that follow; borrowed */
    /* Labels of the next samples; the caller sets and counts them. Values are
     * escaped. */
    struct {
        const char *name, *value;
    } label[WEIR__LABELS_MAX];
    size_t label_count;
};

/* Begin a family: `type` is "gauge", "counter", "histogram" or "summary".
 * Strings are literals. */
void weir__family(struct weir__exposition *text, const char *name,
                  const char *type, const char *help);

/* Set label number `i`; those behind are gone. */
void weir__label(struct weir__exposition *text, size_t i, const char *name,
                 const char *value);

/* A sample of the family with the labels. */
void weir__sample(struct weir__exposition *text, uint64_t value);
void weir__sample_us(struct weir__exposition *text,
                     int64_t us); /* in seconds */

/* A histogram of the counts of core/histogram.h, with bounds from 256 us to
 * 1,074 s, each twice the one before. */
void weir__histogram(struct weir__exposition *text, const uint64_t *counts,
                     uint64_t sum_us);

#endif
