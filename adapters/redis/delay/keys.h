/* SPDX-License-Identifier: MIT */
#ifndef WEIR_DELAY_KEYS_H
#define WEIR_DELAY_KEYS_H

/* Keys of jobs that are added, unique ones (scripts/lib/unique.lua) and those
 * of lanes (lanes.lua): what a job was given, or what the topic's options say
 * of its body. */

#include "adapters/redis/delay/private.h"
#include "core/keys.h"

/* False when out of memory: the item has none then. */
bool weir__item_set_key(struct weir__items *items, struct weir__item *item,
                        struct weir_slice key,
                        const struct weir__key_rule *rule);

/* Append the last two arguments of a job: its key and its rule, empty where it
 * has none. */
void weir__item_write_key(struct weir__buf *buf,
                          const struct weir__items *items,
                          const struct weir__item *item);

/* The id of who holds the key of an item, as the server said; NUL-terminated.
 * NULL: nobody is known to. */
const char *weir__item_holder(const struct weir__items *items,
                              const struct weir__item *item);
bool weir__adds_set_holder(struct weir__adds *adds, struct weir__item *item,
                           struct weir_slice id);

/* Give keys to those that have none by now, as the topic says. What has one
 * leaves by itself, in the order in which it came. Returns whether some have.
 */
bool weir__adds_find_keys(struct weir__adds *adds);

#endif
