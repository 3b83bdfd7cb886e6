/* SPDX-License-Identifier: MIT */
#include "adapters/cli/until_empty.h"

#include "tests/harness/test.h"

/* The reactor is played here: what is asked of it waits for an answer. */
enum { TOPICS = 2 };

static struct {
    weir_stats_fn fn; /* NULL: nothing is asked */
    void *arg;
} asked[TOPICS];
static int code_at_once; /* of the next question of the first topic */
static int times_done;

int weir_reactor_stats(struct weir_reactor *reactor, const char *topic,
                       weir_stats_fn fn, void *arg)
{
    int i = topic[0] - 'a', code = i == 0 ? code_at_once : WEIR_OK;

    (void)reactor;
    code_at_once = WEIR_OK;
    if (code != WEIR_OK)
        return code;
    EXPECT_TRUE(asked[i].fn == NULL);
    asked[i].fn = fn;
    asked[i].arg = arg;
    return WEIR_OK;
}

void weir_reactor_on_idle(struct weir_reactor *reactor, weir_idle_fn fn,
                          void *arg)
{
    (void)reactor;
    (void)fn;
    (void)arg;
}

static void answer(int i, struct weir_stats stats)
{
    weir_stats_fn fn = asked[i].fn;

    EXPECT_TRUE(fn != NULL);
    asked[i].fn = NULL;
    fn(WEIR_OK, &stats, asked[i].arg);
}

static void on_done(const struct weir__watched *left, void *arg)
{
    (void)left;
    (void)arg;
    times_done++;
}

static void start(struct weir__watch *watch)
{
    static const char *const names[TOPICS] = {"a", "b"};

    EXPECT_INT(WEIR_OK, weir__watch_init(watch, TOPICS));
    watch->loop = ev_loop_new(0);
    watch->reactor = (struct weir_reactor *)watch; /* never looked into */
    watch->done = on_done;
    for (int i = 0; i < TOPICS; i++)
        watch->topics[i].topic = names[i];
    weir__watch_start(watch);
}

static void stop(struct weir__watch *watch)
{
    weir__watch_fini(watch);
    ev_loop_destroy(watch->loop);
}

TEST(all_are_empty_when_each_said_so_twice)
{
    struct weir__watch watch;

    start(&watch);
    for (int i = 0; i < 2 * TOPICS; i++) {
        EXPECT_INT(0, times_done);
        answer(i % TOPICS, (struct weir_stats){0});
    }
    EXPECT_INT(1, times_done);
    stop(&watch);
}

TEST(a_topic_that_cannot_be_asked_again_is_not_taken_for_empty)
{
    struct weir__watch watch;

    start(&watch);
    answer(0, (struct weir_stats){0});
    code_at_once = WEIR_ENOMEM;
    answer(1, (struct weir_stats){0}); /* both are asked once more */
    answer(1, (struct weir_stats){0});
    EXPECT_INT(0, times_done);
    stop(&watch);
}
