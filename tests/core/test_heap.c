/* SPDX-License-Identifier: MIT */
#include "core/heap.h"

#include <stdio.h>
#include <stdlib.h>
#include <weir/base.h>

#include "tests/harness/oom.h"
#include "tests/harness/test.h"

struct timer {
    struct weir__heap_node node; /* first, so that a node is its timer */
    int name;
};

static void push(struct weir__heap *heap, struct timer *timer, int64_t at_ns)
{
    EXPECT_INT(WEIR_OK, weir__heap_push(heap, &timer->node, at_ns));
    weir__heap_check(heap);
}

static int pop(struct weir__heap *heap)
{
    struct weir__heap_node *node = weir__heap_pop(heap);

    weir__heap_check(heap);
    return node == NULL ? -1 : ((struct timer *)(void *)node)->name;
}

TEST(deadlines_leave_in_order)
{
    struct weir__heap heap = {0};
    struct timer a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};

    push(&heap, &b, 20);
    push(&heap, &c, 30);
    push(&heap, &a, -10);
    EXPECT_INT(-10, weir__heap_first(&heap)->at_ns);
    EXPECT_INT('a', pop(&heap));
    EXPECT_INT('b', pop(&heap));
    EXPECT_INT('c', pop(&heap));
    EXPECT_INT(-1, pop(&heap));
    EXPECT_TRUE(weir__heap_first(&heap) == NULL);
    EXPECT_TRUE(!weir__heap_has(&a.node));
    weir__heap_fini(&heap);
}

TEST(equal_deadlines_leave_in_insertion_order)
{
    struct weir__heap heap = {0};
    struct timer timers[100];

    for (int i = 0; i < 100; i++) {
        timers[i] = (struct timer){.name = i};
        push(&heap, &timers[i], 50);
    }
    for (int i = 0; i < 100; i++)
        EXPECT_INT(i, pop(&heap));
    weir__heap_fini(&heap);
}

TEST(an_updated_node_goes_behind_its_equals)
{
    struct weir__heap heap = {0};
    struct timer a = {.name = 'a'}, b = {.name = 'b'};

    push(&heap, &a, 50);
    push(&heap, &b, 50);
    weir__heap_update(&heap, &a.node, 50);
    weir__heap_check(&heap);
    EXPECT_INT('b', pop(&heap));
    EXPECT_INT('a', pop(&heap));
    weir__heap_fini(&heap);
}

TEST(a_removed_node_may_be_pushed_again)
{
    struct weir__heap heap = {0};
    struct timer a = {.name = 'a'}, b = {.name = 'b'};

    push(&heap, &a, 1);
    push(&heap, &b, 2);
    weir__heap_remove(&heap, &a.node);
    weir__heap_check(&heap);
    EXPECT_TRUE(!weir__heap_has(&a.node));
    push(&heap, &a, 3);
    EXPECT_TRUE(weir__heap_has(&a.node));
    EXPECT_INT('b', pop(&heap));
    EXPECT_INT('a', pop(&heap));
    weir__heap_fini(&heap);
}

TEST(nodes_of_a_finished_heap_are_in_none)
{
    struct weir__heap heap = {0};
    struct timer a = {.name = 'a'};

    push(&heap, &a, 1);
    weir__heap_fini(&heap);
    EXPECT_TRUE(!weir__heap_has(&a.node));
    EXPECT_INT(-1, pop(&heap));
}

TEST(a_heap_that_cannot_grow_stays_as_it_was)
{
    struct weir__heap heap = {0};
    struct timer timers[200] = {0};
    int refusals = 0;

    for (size_t i = 0; i < 200; i++) {
        int rc;

        oom_after(0);
        rc = weir__heap_push(&heap, &timers[i].node, (int64_t)(200 - i));
        oom_off();
        weir__heap_check(&heap);
        if (rc == WEIR_OK)
            continue;
        EXPECT_INT(WEIR_ENOMEM, rc);
        EXPECT_INT(i, heap.len);
        EXPECT_TRUE(!weir__heap_has(&timers[i].node));
        refusals++;
        push(&heap, &timers[i], (int64_t)(200 - i));
    }
    EXPECT_TRUE(refusals > 2);
    weir__heap_fini(&heap);
}

enum { MODEL_TIMERS = 64, MODEL_STEPS = 20000 };

/* What the heap should hold: timers with deadline and age, unsorted. */
struct model {
    struct timer timers[MODEL_TIMERS];
    int64_t at_ns[MODEL_TIMERS]; /* -1: not in */
    uint64_t order[MODEL_TIMERS];
    uint64_t next_order;
};

static int model_first(const struct model *model)
{
    int first = -1;

    for (int i = 0; i < MODEL_TIMERS; i++) {
        if (model->at_ns[i] < 0)
            continue;
        if (first < 0 || model->at_ns[i] < model->at_ns[first] ||
            (model->at_ns[i] == model->at_ns[first] &&
             model->order[i] < model->order[first]))
            first = i;
    }
    return first;
}

/* xorshift64 */
static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void model_step(struct model *model, struct weir__heap *heap,
                       uint64_t random)
{
    int i = (int)(random % MODEL_TIMERS);
    struct weir__heap_node *node = &model->timers[i].node;
    int64_t at_ns = (int64_t)(random >> 8) % 32; /* few values: many ties */

    if (random >> 32 & 1) {
        int first = model_first(model);

        EXPECT_INT(first, pop(heap));
        if (first >= 0)
            model->at_ns[first] = -1;
        return;
    }
    if (weir__heap_has(node) && (random >> 33 & 1)) {
        weir__heap_remove(heap, node);
        model->at_ns[i] = -1;
        return;
    }
    if (weir__heap_has(node))
        weir__heap_update(heap, node, at_ns);
    else
        EXPECT_INT(WEIR_OK, weir__heap_push(heap, node, at_ns));
    model->at_ns[i] = at_ns;
    model->order[i] = model->next_order++;
}

TEST(random_steps_agree_with_a_model)
{
    const char *given = getenv("WEIR_TEST_SEED");
    uint64_t seed = given == NULL ? 20 : strtoull(given, NULL, 10);
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    struct weir__heap heap = {0};
    struct model model = {.next_order = 0};

    printf("  seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < MODEL_TIMERS; i++) {
        model.timers[i].name = i;
        model.at_ns[i] = -1;
    }
    for (int i = 0; i < MODEL_STEPS; i++) {
        /* runs of pushes and runs of pops, so that it grows and empties */
        uint64_t random = next_random(&state);

        if (i / 256 % 2 == 0)
            random &= ~(UINT64_C(7) << 32);
        model_step(&model, &heap, random);
        weir__heap_check(&heap);
    }
    for (int first = 0; first >= 0;) {
        first = model_first(&model);
        EXPECT_INT(first, pop(&heap));
        if (first >= 0)
            model.at_ns[first] = -1;
    }
    weir__heap_fini(&heap);
}
