/* SPDX-License-Identifier: MIT */
#include "adapters/web/exposition.h"

#include "core/assert.h"
#include "core/histogram.h"

#include <string.h>

static void put(struct weir__exposition *text, const char *word)
{
    weir__buf_append(&text->buf, word, strlen(word));
}

/* Ten thousand topics have 200,000 numbers: no printf. */
static void put_number(struct weir__exposition *text, uint64_t value,
                       size_t digits)
{
    char out[20];
    size_t at = sizeof(out);

    do {
        out[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0 || sizeof(out) - at < digits);
    weir__buf_append(&text->buf, out + at, sizeof(out) - at);
}

/* Microseconds as seconds. */
static void put_us(struct weir__exposition *text, uint64_t us)
{
    put_number(text, us / 1000000, 1);
    put(text, ".");
    put_number(text, us % 1000000, 6);
}

static void put_escaped(struct weir__exposition *text, const char *value)
{
    while (*value != '\0') {
        size_t plain = strcspn(value, "\"\\\n");

        weir__buf_append(&text->buf, value, plain);
        value += plain;
        if (*value == '\0')
            return;
        put(text, *value == '"' ? "\\\"" : *value == '\\' ? "\\\\" : "\\n");
        value++;
    }
}

void weir__family(struct weir__exposition *text, const char *name,
                  const char *type, const char *help)
{
    WEIR_ASSERT(name[0] != '\0' && help[0] != '\0');
    put(text, "# HELP ");
    put(text, name);
    put(text, " ");
    put(text, help);
    put(text, "\n# TYPE ");
    put(text, name);
    put(text, " ");
    put(text, type);
    put(text, "\n");
    text->family = name;
    text->label_count = 0;
}

void weir__label(struct weir__exposition *text, size_t i, const char *name,
                 const char *value)
{
    WEIR_ASSERT(i < WEIR__LABELS_MAX && i <= text->label_count);
    text->label[i].name = name;
    text->label[i].value = value;
    text->label_count = i + 1;
}

static void begin_sample(struct weir__exposition *text, const char *suffix)
{
    WEIR_ASSERT(text->family != NULL);
    put(text, text->family);
    put(text, suffix);
    for (size_t i = 0; i < text->label_count; i++) {
        put(text, i == 0 ? "{" : ",");
        put(text, text->label[i].name);
        put(text, "=\"");
        put_escaped(text, text->label[i].value);
        put(text, "\"");
    }
    put(text, text->label_count > 0 ? "} " : " ");
}

void weir__sample(struct weir__exposition *text, uint64_t value)
{
    begin_sample(text, "");
    put_number(text, value, 1);
    put(text, "\n");
}

void weir__sample_us(struct weir__exposition *text, int64_t us)
{
    begin_sample(text, "");
    put_us(text, us < 0 ? 0 : (uint64_t)us);
    put(text, "\n");
}

/* "_bucket" with one label more: 2^bit us; `bit` 0: no bound. */
static void put_bucket(struct weir__exposition *text, unsigned int bit,
                       uint64_t count)
{
    begin_sample(text, "_bucket");
    text->buf.len -= text->buf.failed ? 0 : text->label_count > 0 ? 2 : 1;
    put(text, text->label_count > 0 ? ",le=\"" : "{le=\"");
    if (bit > 0)
        put_us(text, UINT64_C(1) << bit);
    else
        put(text, "+Inf");
    put(text, "\"} ");
    put_number(text, count, 1);
    put(text, "\n");
}

void weir__histogram(struct weir__exposition *text, const uint64_t *counts,
                     uint64_t sum_us)
{
    enum { FIRST = 8, LAST = 30 };
    uint64_t total = 0;
    size_t bucket = 0;

    for (unsigned int bit = FIRST; bit <= LAST; bit++) {
        for (; weir__bucket_top_us(bucket) < INT64_C(1) << bit; bucket++)
            total += counts[bucket];
        put_bucket(text, bit, total);
    }
    for (; bucket < WEIR__BUCKETS; bucket++)
        total += counts[bucket];
    put_bucket(text, 0, total);
    begin_sample(text, "_sum");
    put_us(text, sum_us);
    put(text, "\n");
    begin_sample(text, "_count");
    put_number(text, total, 1);
    put(text, "\n");
}
