/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/weir/facade.h"
#include "core/option.h"

/* Options of list and stream topics, as a host gives them. */

/* NULL: the default, which is none. */
static int read_text(enum weir__topic_option option, const char *text, char *to,
                     struct weir_error *err)
{
    const struct weir__option *row = &weir__topic_options[option];
    int64_t ignored;
    int rc = WEIR_OK;

    to[0] = '\0';
    if (text == NULL)
        return WEIR_OK;
    rc = weir__option_read(row, text, &ignored, err);
    if (rc == WEIR_OK && (row->word == NULL || strcmp(text, row->word) != 0))
        memcpy(to, text, strlen(text) + 1);
    return rc;
}

static int read_word(enum weir__topic_option option, const char *text,
                     bool *ret_is, struct weir_error *err)
{
    int64_t value = 0;
    int rc = WEIR_OK;

    if (text != NULL)
        rc = weir__option_read(&weir__topic_options[option], text, &value, err);
    *ret_is = value != 0;
    return rc;
}

int weir__facade_feed(const char *topic,
                      const struct weir_topic_options *options,
                      struct weir__feed_options *ret_feed,
                      struct weir_error *err)
{
    int rc = read_text(WEIR__TOPIC_key, options->key, ret_feed->key, err);

    ret_feed->claim_idle_ms = options->claim_idle_ms;
    if (rc == WEIR_OK)
        rc = read_text(WEIR__TOPIC_group, options->group, ret_feed->group, err);
    if (rc == WEIR_OK)
        rc = read_text(WEIR__TOPIC_on_retry, options->on_retry,
                       ret_feed->on_retry, err);
    if (rc == WEIR_OK && strcmp(ret_feed->on_retry, topic) == 0)
        rc = weir__error_set(err, WEIR_EINVAL,
                             "on_retry: \"%s\" is this topic itself", topic);
    if (rc == WEIR_OK)
        rc = read_word(WEIR__TOPIC_auto_ack, options->auto_ack,
                       &ret_feed->is_auto_ack, err);
    if (rc == WEIR_OK)
        rc = read_word(WEIR__TOPIC_start, options->start,
                       &ret_feed->starts_at_end, err);
    if (rc == WEIR_OK)
        rc = read_word(WEIR__TOPIC_after, options->after,
                       &ret_feed->is_deleting, err);
    return rc;
}
