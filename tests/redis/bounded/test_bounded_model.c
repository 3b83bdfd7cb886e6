/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"

/* Random operations of three workers on a few groups. After each of them the
 * server's state is walked; in the end every event was handled or dropped, and
 * the events of each group were handled in their order. WEIR_SEED and WEIR_OPS
 * say which operations and how many. */

enum { HOSTS = 3, GROUPS = 6, NUMBERS = 60000 };

struct model {
    uint64_t random;
    struct host *hosts[HOSTS];
    struct weir__options options;
    int next;               /* number of the next event */
    int last_first[GROUPS]; /* of those that ran for the first time */
    bool has_run[NUMBERS];
};

static unsigned pick(struct model *model, unsigned count)
{
    return (unsigned)(weir__random_next(&model->random) % count);
}

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text == NULL ? fallback : strtoull(text, NULL, 10);
}

static void serve_all(struct model *model)
{
    for (int i = 0; i < HOSTS; i++) {
        host_serve_with(model->hosts[i], &model->options);
        (void)host_claim(model->hosts[i], 0, 300); /* tells the bounds */
    }
}

static void change_bounds(struct model *model)
{
    static const uint32_t modes[] = {WEIR__DROP_OLDEST, WEIR__DROP_OLDEST,
                                     WEIR__DROP_NEW, WEIR__REJECT};

    model->options.length = 1 + pick(model, 30);
    model->options.overflow = modes[pick(model, 4)];
    model->options.batch = 1 + pick(model, 8);
    model->options.linger = pick(model, 2) * pick(model, 20);
    model->options.group_ttl = pick(model, 3) == 0 ? 1000 : 0;
    (void)snprintf(model->options.hot, sizeof(model->options.hot), "%s",
                   pick(model, 2) == 0 ? "" : "g1:2 g2");
    serve_all(model);
}

static void add(struct model *model)
{
    unsigned count = 1 + pick(model, 12);
    char group[8];

    if (model->next + (int)count >= NUMBERS)
        return;
    (void)snprintf(group, sizeof(group), "g%u", pick(model, GROUPS));
    events_add(model->hosts[pick(model, HOSTS)], group, model->next,
               model->next + (int)count - 1);
    model->next += (int)count;
}

/* The first run of an event comes after those of all before it. */
static void note_run(struct model *model, const struct weir__run *run)
{
    int number = event_number(run), group = run->group.ptr[1] - '0';

    if (model->has_run[number])
        return;
    model->has_run[number] = true;
    EXPECT_TRUE(number > model->last_first[group]);
    model->last_first[group] = number;
}

static void claim(struct model *model)
{
    struct host *host = model->hosts[pick(model, HOSTS)];

    if (host->runs != NULL)
        return;
    (void)host_claim(host, 1 + pick(model, 40), 300);
    for (struct weir__run *run = host->runs; run != NULL; run = run->next)
        note_run(model, run);
}

static void settle_one(struct model *model, struct host *host)
{
    struct weir__run *run = host_take(host);

    switch (pick(model, 12)) {
    case 0:
        run->delay_ms = pick(model, 30);
        run->record.counters.attempt++;
        host_settle(host, run, WEIR__OUTCOME_RETRY);
        return;
    case 1:
        run->delay_ms = pick(model, 30);
        host_settle(host, run, WEIR__OUTCOME_SNOOZE);
        return;
    case 2:
        host_settle(host, run, WEIR__OUTCOME_RETURN);
        return;
    case 3:
        run->record.reason = weir__slice_str("failed");
        host_settle(host, run, WEIR__OUTCOME_DEAD);
        return;
    case 4:
        run->record.reason = weir__slice_str("expired");
        host_settle(host, run, WEIR__OUTCOME_DEAD);
        return;
    default:
        host_settle(host, run, WEIR__OUTCOME_DONE);
    }
}

static void settle(struct model *model)
{
    struct host *host = model->hosts[pick(model, HOSTS)];

    if (pick(model, 2) == 0)
        host->store->ops->renew(host->topic, 300);
    while (host->runs != NULL)
        settle_one(model, host);
    host_await_settled(host);
}

/* A worker dies and another one takes its name. */
static void kill_host(struct model *model, unsigned at)
{
    static const char *const names[HOSTS] = {"one", "two", "three"};

    host_close(model->hosts[at]);
    model->hosts[at] = bounded_open(names[at], &model->options);
}

static void step(struct model *model)
{
    unsigned what = pick(model, 100);

    if (what < 40)
        add(model);
    else if (what < 70)
        claim(model);
    else if (what < 95)
        settle(model);
    else if (what < 98)
        change_bounds(model);
    else
        kill_host(model, pick(model, HOSTS));
    bounded_walk();
}

/* On a fast machine all of it takes less than a lease: none has ended yet. */
static void kill_one_that_has_runs(struct model *model)
{
    unsigned at = 0;

    for (; model->hosts[at]->runs == NULL; at = (at + 1) % HOSTS) {
        add(model);
        claim(model);
    }
    kill_host(model, at);
}

static void drain(struct model *model)
{
    double until = ev_time() + 30.;

    while (bounded_count("waiting") > 0 || bounded_count("running") > 0) {
        EXPECT_TRUE(ev_time() < until);
        for (int i = 0; i < HOSTS; i++) {
            struct host *host = model->hosts[i];

            (void)host_claim(host, 1000, 300);
            for (struct weir__run *run = host->runs; run != NULL;
                 run = run->next)
                note_run(model, run);
            host_settle_all(host, WEIR__OUTCOME_DONE);
            host_await_settled(host);
        }
    }
    bounded_walk();
}

TEST(every_event_is_accounted_for_and_each_group_is_in_order)
{
    struct model *model = weir__mem_new(sizeof(*model));
    uint64_t ops = number_of("WEIR_OPS", 1500);
    static const char *const names[HOSTS] = {"one", "two", "three"};

    EXPECT_TRUE(model != NULL);
    model->random = number_of("WEIR_SEED", 7);
    printf("  seed %llu\n", (unsigned long long)model->random);
    (void)world_open(NULL);
    model->options = weir__options_default;
    for (int i = 0; i < GROUPS; i++)
        model->last_first[i] = -1;
    for (int i = 0; i < HOSTS; i++)
        model->hosts[i] = bounded_open(names[i], &model->options);
    for (uint64_t i = 0; i < ops; i++)
        step(model);
    kill_one_that_has_runs(model);
    drain(model);
    EXPECT_TRUE(bounded_count("added") > 0);
    EXPECT_TRUE(bounded_count("crashed") > 0);
    EXPECT_TRUE(bounded_count("overflow") > 0);
    EXPECT_INT(
        0, redis_int(proc, "EXISTS weir:{t}:rot weir:{t}:hot weir:{t}:lease"));
    world_close();
    weir__mem_free(model);
}
