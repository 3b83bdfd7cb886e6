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

/* A text or a whole number; empty: anything else is no key, nor is a text that
 * no caller could give. */
static struct weir_slice key_in(const struct weir_value *value,
                                char buf[NUMBER_CAP])
{
    struct weir_slice bytes = value->as.bytes;

    if (value->type == WEIR_TYPE_STR || value->type == WEIR_TYPE_BIN)
        return bytes.len > 0 && memchr(bytes.ptr, '\0', bytes.len) == NULL
                   ? bytes
                   : (struct weir_slice){0};
    if (value->type == WEIR_TYPE_INT)
        (void)snprintf(buf, NUMBER_CAP, "%" PRId64, value->as.i64); /* fits */
    else if (value->type == WEIR_TYPE_UINT)
        (void)snprintf(buf, NUMBER_CAP, "%" PRIu64, value->as.u64); /* fits */
    else
        return (struct weir_slice){0};
    return weir__slice_str(buf);
}

/* The key at a path of a body; empty: none. WEIR_EINVAL: it is too long. */
static int read_key(const struct weir__adds *adds, struct weir_slice body,
                    const char *path, char buf[NUMBER_CAP],
                    struct weir_slice *ret_key)
{
    const struct weir__store_topic *topic = &adds->topic->base;
    struct weir_value value;
    struct weir_slice key;

    weir__msgpack_find(body, path, &value);
    key = key_in(&value, buf);
    if (key.len <= WEIR__UNIQUE_MAX) {
        *ret_key = key;
        return WEIR_OK;
    }
    weir__log(topic->store->options.log, WEIR_LEVEL_WARN,
              "redis: %s: the key in a body has %zu bytes, it may have "
              "%d",
              topic->name, key.len, WEIR__UNIQUE_MAX);
    return WEIR_EINVAL;
}

/* The name of a lane begins with a digit. */
static bool has_own_key(const struct weir__item *item)
{
    return item->lane_len > 1;
}

/* Write the item's record anew, with the keys of `record`: who looks at the job
 * and who runs it again knows them. WEIR_ENOMEM. */
static int give_keys(struct weir__items *items, struct weir__item *item,
                     const struct weir__record *record,
                     const struct weir__key_rule *rule)
{
    if (!weir__items_rewrite(items, item, record))
        return WEIR_ENOMEM;
    if (item->key_len == 0 && record->unique.len > 0 &&
        !weir__item_set_key(items, item, record->unique, rule))
        return WEIR_ENOMEM;
    return WEIR_OK;
}

/* Keys that the topic says are in the body. WEIR_EINVAL, WEIR_ENOMEM. */
static int find_keys(struct weir__adds *adds, struct weir__item *item)
{
    const struct weir__limits *limits = &adds->topic->base.limits;
    bool wants_unique = limits->is_unique && item->key_len == 0;
    bool wants_key = limits->has_key && !has_own_key(item);
    struct weir__items *items = &adds->items;
    size_t before = items->bytes.len;
    struct weir__record record;
    struct weir__buf copy = {0};
    struct weir_slice stored;
    char bufs[2][NUMBER_CAP];
    int rc = WEIR_OK;

    if (item->is_restored || !(wants_unique || wants_key))
        return WEIR_OK;
    stored = weir__item_record(items, item);
    weir__buf_append(&copy, stored.ptr, stored.len); /* the bytes may move */
    if (copy.failed)
        return WEIR_ENOMEM;
    if (weir__record_read(weir__buf_slice(&copy), &record) == WEIR_OK) {
        if (wants_unique)
            rc = read_key(adds, record.body, limits->unique, bufs[0],
                          &record.unique);
        if (rc == WEIR_OK && wants_key)
            rc = read_key(adds, record.body, limits->key, bufs[1], &record.key);
        if (rc == WEIR_OK && ((wants_unique && record.unique.len > 0) ||
                              (wants_key && record.key.len > 0)))
            rc = give_keys(items, item, &record, &limits->rule);
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

        if (item->code == WEIR_OK)
            item->code = find_keys(adds, item);
        if (item->code != WEIR_OK)
            item->group = UINT32_MAX;
        else if (weir__item_is_alone(item))
            item->group |= WEIR__GROUP_UNIQUE;
        has_some = has_some || weir__item_is_alone(item) ||
                   item->lane_len > 0 || item->code != WEIR_OK;
    }
    return has_some;
}
