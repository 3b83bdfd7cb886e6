/* SPDX-License-Identifier: MIT */
#include "adapters/redis/cluster/slot.h"

#include <stdio.h>
#include <string.h>

#include "core/random.h"
#include "core/text.h"
#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-";

static int slot_of(const char *key)
{
    return weir__cluster_slot(weir__slice_str(key));
}

static struct redis_proc *start_node(void)
{
    static const char *const args[] = {"--cluster-enabled", "yes", NULL};

    return redis_start(&(struct redis_options){.args = args, .tcp = true});
}

static long long told_slot(struct redis_proc *proc, struct weir_slice key)
{
    return redis_int(proc, "CLUSTER KEYSLOT %b", key.ptr, key.len);
}

TEST(known_keys_are_in_known_slots)
{
    EXPECT_INT(0x31C3, slot_of("123456789")); /* the CRC's own example */
    EXPECT_INT(12182, slot_of("foo"));
    EXPECT_INT(5061, slot_of("bar"));
    EXPECT_INT(15891, slot_of("t"));
    EXPECT_INT(0, slot_of(""));
}

TEST(only_what_stands_in_the_first_braces_counts)
{
    EXPECT_INT(slot_of("foo"), slot_of("weir:{foo}:wait"));
    EXPECT_INT(slot_of("foo"), slot_of("{foo}"));
    EXPECT_INT(slot_of("foo"), slot_of("{foo}{bar}"));
    EXPECT_INT(slot_of("foo"), slot_of("a}{foo}"));
    EXPECT_INT(slot_of("{bar"), slot_of("foo{{bar}}zap"));
}

TEST(braces_with_nothing_in_them_or_open_ones_are_part_of_the_key)
{
    EXPECT_TRUE(slot_of("foo{}{bar}") != slot_of("bar"));
    EXPECT_TRUE(slot_of("foo{}{bar}") != slot_of(""));
    EXPECT_TRUE(slot_of("foo{bar") != slot_of("bar"));
    EXPECT_TRUE(slot_of("foo}bar{") != slot_of("foo"));
}

TEST(a_server_has_these_keys_in_the_same_slots)
{
    static const char *const keys[] = {
        "",       "{",     "}",         "{}",      "}{",    "{a",
        "a}",     "{a}",   "{}{a}",     "{{a}}",   "a{b}c", "a{b}{c}",
        "{a}{b}", "a}b{c", "weir:{t}:", "x{}y{z}", "\xff",  "\x80{\xfe}",
    };
    struct redis_proc *proc = start_node();

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        EXPECT_INT(told_slot(proc, weir__slice_str(keys[i])), slot_of(keys[i]));
}

/* A random name of a topic. */
static struct weir_slice next_name(uint64_t *random, char name[40])
{
    size_t len = 1 + weir__random_next(random) % 40;

    for (size_t i = 0; i < len; i++)
        name[i] =
            name_bytes[weir__random_next(random) % (sizeof(name_bytes) - 1)];
    return weir__slice_of(name, len);
}

TEST(a_server_has_all_keys_of_a_topic_in_the_slot_of_its_name)
{
    struct redis_proc *proc = start_node();
    uint64_t random = 1;
    char name[40], key[64];

    for (int i = 0; i < 2000; i++) {
        struct weir_slice topic = next_name(&random, name);
        int len = snprintf(key, sizeof(key), "weir:{%.*s}:p:x", (int)topic.len,
                           (const char *)topic.ptr);

        EXPECT_INT(told_slot(proc, weir__slice_of(key, (size_t)len)),
                   weir__cluster_slot_of_topic(topic));
    }
}

TEST(a_server_has_any_bytes_in_the_same_slot)
{
    struct redis_proc *proc = start_node();
    uint64_t random = 2;
    uint8_t key[24];

    for (int i = 0; i < 2000; i++) {
        size_t len = weir__random_next(&random) % sizeof(key);

        for (size_t at = 0; at < len; at++) /* many braces */
            key[at] = weir__random_next(&random) % 3 == 0
                          ? (uint8_t) "{}"[weir__random_next(&random) % 2]
                          : (uint8_t)weir__random_next(&random);
        EXPECT_INT(told_slot(proc, weir__slice_of(key, len)),
                   weir__cluster_slot(weir__slice_of(key, len)));
    }
}
