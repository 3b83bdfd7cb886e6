/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/msgpack/scan.h"
#include "core/assert.h"
#include "core/options.h"
#include "core/text.h"

enum { NUMBER_CAP = 24, RULE_CAP = 64 };

/* --- of an item ----------------------------------------------------------- */

bool weir__item_set_key(struct weir__items *items, struct weir__item *item,
                        struct weir_slice key,
                        const struct weir__key_rule *rule)
{
    struct weir__buf *bytes = &items->bytes;
    size_t at = bytes->len;

    WEIR_ASSERT(key.len > 0 && key.len <= WEIR__UNIQUE_MAX);
    if (weir__buf_reserve(bytes, sizeof(*rule) + key.len) == NULL) {
        bytes->failed = false;
        return false;
    }
    weir__buf_append(bytes, rule, sizeof(*rule));
    weir__buf_append(bytes, key.ptr, key.len);
    item->key_at = (uint32_t)at;
    item->key_len = (uint32_t)key.len;
    return true;
}

static const char *mode_of(uint32_t otherwise)
{
    static const char *const modes[] = {
        [WEIR__KEY_REJECT] = "reject",
        [WEIR__KEY_REPLACE] = "replace",
        [WEIR__KEY_DEBOUNCE] = "debounce",
        [WEIR__KEY_THROTTLE] = "throttle",
    };

    WEIR_ASSERT(otherwise <= WEIR__KEY_THROTTLE);
    return modes[otherwise];
}

static void write_rule(struct weir__buf *buf, const struct weir__key_rule *rule)
{
    char hold[NUMBER_CAP], text[RULE_CAP];
    int len;

    (void)snprintf(hold, sizeof(hold), "%" PRId64, rule->hold); /* fits */
    len = snprintf(text, sizeof(text), "%s %s", mode_of(rule->otherwise),
                   rule->hold == WEIR__UNTIL_DONE    ? "until-done"
                   : rule->hold == WEIR__UNTIL_START ? "until-start"
                                                     : hold);
    if (rule->max_wait != WEIR__OPTION_NONE)
        (void)snprintf(text + len, sizeof(text) - (size_t)len, " %" PRId64,
                       rule->max_wait); /* fits */
    weir__resp_str(buf, text);
}

void weir__item_write_key(struct weir__buf *buf,
                          const struct weir__items *items,
                          const struct weir__item *item)
{
    const uint8_t *at = items->bytes.ptr + item->key_at;
    struct weir__key_rule rule;

    if (item->key_len == 0) {
        weir__resp_str(buf, "");
        weir__resp_str(buf, "");
        return;
    }
    memcpy(&rule, at, sizeof(rule));
    weir__resp_bytes(buf, weir__slice_of(at + sizeof(rule), item->key_len));
    write_rule(buf, &rule);
}

const char *weir__item_holder(const struct weir__items *items,
                              const struct weir__item *item)
{
    return item->holder_at == 0
               ? NULL
               : (const char *)items->bytes.ptr + item->holder_at;
}

bool weir__adds_set_holder(struct weir__adds *adds, struct weir__item *item,
                           struct weir_slice id)
{
    struct weir__buf *bytes = &adds->items.bytes;
    size_t at = bytes->len;

    if (weir__buf_reserve(bytes, id.len + 1) == NULL) {
        bytes->failed = false;
        return false;
    }
    weir__buf_append(bytes, id.ptr, id.len);
    weir__buf_append(bytes, "", 1);
    adds->topic->shared->collected += id.len + 1;
    item->holder_at = (uint32_t)at; /* an id and a record are before it */
    return true;
}

/* --- what the topic says -------------------------------------------------- */

/* A text or a whole number; empty: anything else is no key. */
static struct weir_slice key_in(const struct weir_value *value,
                                char buf[NUMBER_CAP])
{
    if (value->type == WEIR_TYPE_STR || value->type == WEIR_TYPE_BIN)
        return value->as.bytes;
    if (value->type == WEIR_TYPE_INT)
        (void)snprintf(buf, NUMBER_CAP, "%" PRId64, value->as.i64); /* fits */
    else if (value->type == WEIR_TYPE_UINT)
        (void)snprintf(buf, NUMBER_CAP, "%" PRIu64, value->as.u64); /* fits */
    else
        return (struct weir_slice){0};
    return weir__slice_str(buf);
}

static int refuse_key(const struct weir__adds *adds, size_t len)
{
    const struct weir__store_topic *topic = &adds->topic->base;

    weir__log(topic->store->options.log, WEIR_LEVEL_WARN,
              "redis: %s: the key in a body has %zu bytes, it may have "
              "%d",
              topic->name, len, WEIR__UNIQUE_MAX);
    return WEIR_EINVAL;
}

/* WEIR_EINVAL: what is there is too long. WEIR_ENOMEM. */
static int find_key(struct weir__adds *adds, struct weir__item *item)
{
    const struct weir__limits *limits = &adds->topic->base.limits;
    struct weir__items *items = &adds->items;
    size_t before = items->bytes.len;
    struct weir__record record;
    struct weir_value value;
    struct weir_slice key;
    char buf[NUMBER_CAP], copy[WEIR__UNIQUE_MAX];

    if (weir__record_read(weir__item_record(items, item), &record) < 0)
        return WEIR_OK; /* its handler will not see it */
    weir__msgpack_find(record.body, limits->unique, &value);
    key = key_in(&value, buf);
    if (key.len == 0)
        return WEIR_OK;
    if (key.len > WEIR__UNIQUE_MAX)
        return refuse_key(adds, key.len);
    memcpy(copy, key.ptr, key.len); /* it lies where memory is to grow */
    if (!weir__item_set_key(items, item, weir__slice_of(copy, key.len),
                            &limits->rule))
        return WEIR_ENOMEM;
    adds->topic->shared->collected += items->bytes.len - before;
    return WEIR_OK;
}

/* The name of a lane begins with a digit. */
static bool has_own_key(const struct weir__item *item)
{
    return item->lane_len > 1;
}

/* The record is written anew with the key, for when it runs again. WEIR_EINVAL,
 * WEIR_ENOMEM. */
static int find_lane(struct weir__adds *adds, struct weir__item *item)
{
    struct weir__items *items = &adds->items;
    size_t before = items->bytes.len;
    struct weir_slice stored = weir__item_record(items, item);
    struct weir__record record;
    struct weir__buf copy = {0};
    struct weir_value value;
    char buf[NUMBER_CAP];
    int rc = WEIR_OK;

    weir__buf_append(&copy, stored.ptr, stored.len); /* the bytes may move */
    if (copy.failed)
        return WEIR_ENOMEM;
    if (weir__record_read(weir__buf_slice(&copy), &record) == WEIR_OK) {
        weir__msgpack_find(record.body, adds->topic->base.limits.key, &value);
        record.key = key_in(&value, buf);
        if (record.key.len > WEIR__UNIQUE_MAX)
            rc = refuse_key(adds, record.key.len);
        else if (record.key.len > 0 &&
                 !weir__items_rewrite(items, item, &record))
            rc = WEIR_ENOMEM;
    }
    weir__buf_fini(&copy);
    adds->topic->shared->collected += items->bytes.len - before;
    return rc;
}

bool weir__adds_find_keys(struct weir__adds *adds)
{
    const struct weir__limits *limits = &adds->topic->base.limits;
    struct weir__items *items = &adds->items;
    bool has_some = false;

    if (!adds->has_keys && !limits->is_unique && !limits->has_key)
        return false;
    for (size_t i = 0; i < items->count; i++) {
        struct weir__item *item = &items->list[i];

        if (limits->is_unique && item->code == WEIR_OK && item->key_len == 0 &&
            !item->is_restored)
            item->code = find_key(adds, item);
        if (limits->has_key && item->code == WEIR_OK && !has_own_key(item) &&
            !item->is_restored)
            item->code = find_lane(adds, item);
        if (item->code != WEIR_OK)
            item->group = UINT32_MAX;
        else if (weir__item_is_alone(item))
            item->group |= WEIR__GROUP_UNIQUE;
        has_some =
            has_some || weir__item_is_alone(item) || item->code != WEIR_OK;
    }
    return has_some;
}
