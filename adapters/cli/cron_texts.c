/* SPDX-License-Identifier: MIT */
#include "adapters/cli/cron_texts.h"

#include "adapters/cli/options.h"
#include "core/error.h"
#include "core/schedule.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>

#define DAY_MS (INT64_C(24) * 3600 * 1000)

static const char *const names[] = {
    [WEIR__CRON_AT] = "at",         [WEIR__CRON_EVERY] = "every",
    [WEIR__CRON_ZONE] = "zone",     [WEIR__CRON_BODY] = "body",
    [WEIR__CRON_MISSED] = "missed", [WEIR__CRON_OVERLAP] = "overlap",
    [WEIR__CRON_JITTER] = "jitter", [WEIR__CRON_RETRY] = "retry",
    [WEIR__CRON_TTL] = "ttl",       [WEIR__CRON_URL] = "url",
};

/* "--at" or "at", as sentences name it. */
struct shown {
    char name[16];
};

static struct shown show(const struct weir__cron_texts *texts,
                         enum weir__cron_field field)
{
    struct shown shown;

    (void)snprintf(shown.name, sizeof(shown.name), "%s%s", texts->dashes,
                   names[field]); /* fits */
    return shown;
}

static int read_span(const struct weir__cron_texts *texts,
                     enum weir__cron_field field, struct weir__bounds bounds,
                     int64_t *ret_ms, struct weir_error *err)
{
    return weir__value_duration(show(texts, field).name, texts->value[field],
                                bounds, ret_ms, err);
}

static int read_words(const struct weir__cron_texts *texts,
                      enum weir__cron_field field, struct weir_cron *cron,
                      struct weir_error *err)
{
    const char *text = texts->value[field];
    int missed = text == NULL ? WEIR_CRON_ONCE
                              : weir__missed_find(weir__slice_str(text));

    if (field == WEIR__CRON_MISSED) {
        cron->missed = (enum weir_cron_missed)missed;
        return missed >= 0 ? WEIR_OK
                           : weir__error_set(err, WEIR_EINVAL,
                                             "%s: \"%.60s\" is not once, skip "
                                             "or all",
                                             show(texts, field).name, text);
    }
    cron->skips_overlap = text != NULL && strcmp(text, "skip") == 0;
    if (text == NULL || cron->skips_overlap || strcmp(text, "allow") == 0)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "%s: \"%.60s\" is not allow or skip",
                           show(texts, field).name, text);
}

static int read_body(const struct weir__cron_texts *texts,
                     struct weir_cron *cron, struct weir_error *err)
{
    const char *text = texts->value[WEIR__CRON_BODY];
    struct weir_error why = {0};
    int rc;

    if (text == NULL)
        return WEIR_OK;
    rc = weir_body_from_json(text, strlen(text), &cron->body, &why);
    if (rc < 0)
        return weir__error_set(err, rc, "%s: %s",
                               show(texts, WEIR__CRON_BODY).name,
                               weir__text_behind(why.text, "json: "));
    return WEIR_OK;
}

/* Those that are more than a text. */
static int read_field(const struct weir__cron_texts *texts,
                      enum weir__cron_field field, struct weir_cron *cron,
                      struct weir_error *err)
{
    static const struct weir__bounds intervals = {1000, 365 * DAY_MS,
                                                  "1s to 365d"};
    static const struct weir__bounds jitters = {0, DAY_MS, "0ms to 1d"};
    static const struct weir__bounds ttls = {1, 3650 * DAY_MS, "1ms to 3650d"};

    switch (field) {
    case WEIR__CRON_EVERY:
        return read_span(texts, field, intervals, &cron->every_ms, err);
    case WEIR__CRON_JITTER:
        return read_span(texts, field, jitters, &cron->jitter_ms, err);
    case WEIR__CRON_TTL:
        return read_span(texts, field, ttls, &cron->ttl_ms, err);
    case WEIR__CRON_MISSED:
    case WEIR__CRON_OVERLAP:
        return read_words(texts, field, cron, err);
    case WEIR__CRON_RETRY:
        return weir__value_ladder(show(texts, field).name, cron->retry, err);
    case WEIR__CRON_BODY:
        return read_body(texts, cron, err);
    case WEIR__CRON_AT:
    case WEIR__CRON_ZONE:
    case WEIR__CRON_URL:
    case WEIR__CRON_FIELDS:
        break;
    }
    return WEIR_OK;
}

/* Which of them weir_cron_check means. */
static enum weir__cron_field field_of(const struct weir_cron *cron)
{
    struct weir_cron other = *cron;

    other.zone = NULL;
    if (cron->zone != NULL && weir_cron_check(&other, NULL) == WEIR_OK)
        return WEIR__CRON_ZONE;
    other.at = "@daily";
    if (cron->at != NULL && weir_cron_check(&other, NULL) == WEIR_OK)
        return WEIR__CRON_AT;
    return WEIR__CRON_FIELDS;
}

int weir__cron_texts_read(const struct weir__cron_texts *texts,
                          struct weir_cron *ret_cron,
                          enum weir__cron_field *ret_field,
                          struct weir_error *err)
{
    struct weir_error why = {0};
    int rc = WEIR_OK;

    *ret_cron = (struct weir_cron){
        .name = texts->name,
        .at = texts->value[WEIR__CRON_AT],
        .zone = texts->value[WEIR__CRON_ZONE],
        .retry = texts->value[WEIR__CRON_RETRY],
        .url = texts->value[WEIR__CRON_URL],
    };
    for (int i = 0; i < WEIR__CRON_FIELDS; i++) {
        *ret_field = (enum weir__cron_field)i;
        rc = read_field(texts, *ret_field, ret_cron, err);
        if (rc < 0)
            return rc;
    }
    rc = weir_cron_check(ret_cron, &why);
    if (rc == WEIR_OK)
        return rc;
    *ret_field = field_of(ret_cron);
    if (*ret_field == WEIR__CRON_FIELDS)
        return weir__error_set(err, rc, "%s", why.text);
    return weir__error_set(err, rc, "%s: %s", show(texts, *ret_field).name,
                           why.text);
}
