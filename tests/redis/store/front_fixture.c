/* SPDX-License-Identifier: MIT */
#include "tests/redis/store/front_fixture.h"

#include <stdio.h>
#include <string.h>

#include "adapters/redis/cluster/slot.h"
#include "core/text.h"

enum { RULES_MAX = 16, TEXT_MAX = 160 };

struct resp_peer *fronts[FRONTS];
struct redis_proc *behind;

void fronts_prepare(const struct redis_options *options)
{
    behind = redis_start(options);
    for (int i = 0; i < FRONTS; i++) {
        fronts[i] = resp_peer_prepare();
        resp_peer_stand_before(fronts[i], redis_socket(behind));
    }
}

const char *front_moved(void)
{
    static char text[TEXT_MAX];

    (void)snprintf(text, sizeof(text), "-MOVED %u 127.0.0.1:%d\r\n",
                   weir__cluster_slot_of_topic(weir__slice_str("t")),
                   resp_peer_port(fronts[1])); /* fits */
    return text;
}

static void run(int front, const struct resp_rule *rules, size_t count)
{
    static char slots[FRONTS][TEXT_MAX];
    static struct resp_rule all[FRONTS][RULES_MAX];
    const struct resp_range range = {0, 16383, "127.0.0.1",
                                     resp_peer_port(fronts[front])};

    EXPECT_TRUE(count + 2 <= RULES_MAX);
    resp_slots(&range, 1, slots[front], TEXT_MAX);
    all[front][0] = (struct resp_rule){
        .words = "CLUSTER SLOTS", .times = 1 - front, .bytes = slots[front]};
    all[front][1] =
        (struct resp_rule){.words = "CLUSTER SLOTS", .bytes = slots[1]};
    if (count > 0)
        memcpy(&all[front][2], rules, count * sizeof(rules[0]));
    resp_peer_run(fronts[front], all[front], count + 2);
}

void fronts_run(const struct resp_rule *rules, size_t count,
                const struct resp_rule *others, size_t other_count)
{
    static char url[64];

    run(1, others, other_count); /* the first one tells its slots */
    run(0, rules, count);
    (void)snprintf(url, sizeof(url), "redis://127.0.0.1:%d",
                   resp_peer_port(fronts[0])); /* fits */
    world_open_at(url);
}

void fronts_run_moved(const char *words)
{
    const struct resp_rule rule = {.words = words, .bytes = front_moved()};

    fronts_run(&rule, 1, NULL, 0);
}

int front_heard(int front, const char *words)
{
    const char *line = resp_peer_heard(fronts[front]);
    int count = 0;

    for (; (line = strstr(line, words)) != NULL; line++)
        count++;
    return count;
}
