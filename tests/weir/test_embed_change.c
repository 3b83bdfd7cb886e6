/* SPDX-License-Identifier: MIT */
#include <weir/change.h>

#include <stdio.h>
#include <string.h>

#include "tests/weir/host.h"

/* A host that changes what it serves while jobs run, on a real server. */

struct handler {
    int runs, closes, ended;
    bool pends, fails;
    struct weir_handle handle;
};

static struct handler first, second;
static int added, ended;
static char ended_topic[WEIR_MAX_TOPIC + 1];

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct handler *handler = self;

    handler->runs++;
    handler->handle = weir_job_handle(job);
    if (handler->pends)
        return WEIR_PENDING;
    return handler->fails ? WEIR_FAIL : WEIR_DONE;
}

static int open_table(const struct weir_open *open, void **ret_self)
{
    *ret_self = weir_open_self(open);
    return WEIR_OK;
}

static void close_table(void *self)
{
    ((struct handler *)self)->closes++;
}

static int refuse(const struct weir_open *open, void **ret_self)
{
    (void)ret_self;
    (void)snprintf(open->error, open->error_cap, "not today");
    return WEIR_EINVAL;
}

static const struct weir_plugin table = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "table",
    .open = open_table,
    .close = close_table,
    .run = run,
};
static const struct weir_plugin refusing = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "refusing",
    .open = refuse,
    .run = run,
};

static void on_ended(const char *topic, void *self, void *arg)
{
    EXPECT_TRUE(arg == &ended);
    (void)snprintf(ended_topic, sizeof(ended_topic), "%s", topic);
    if (self != NULL)
        ((struct handler *)self)->ended++;
    ended++;
}

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    if (code != WEIR_ECANCELED) /* it ran before this came, and all is over */
        EXPECT_INT(WEIR_OK, code);
    added += code == WEIR_OK;
}

static void add(const char *topic)
{
    struct weir_new_job job = {0};

    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, topic, &job, on_added, NULL, NULL));
}

static void open_weir(void)
{
    host_open(NULL);
    host_patience = patience_start(60.);
    weir_reactor_on_ended(weir, on_ended, &ended);
}

static void serve(const char *topic, struct handler *handler)
{
    struct weir_topic_options options = {.run = run, .self = handler};

    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, topic, &options, NULL));
}

static int change(const char *topic, const struct weir_topic_options *options,
                  struct weir_error *err)
{
    const struct weir_change one = {topic, options};
    size_t at;
    int rc = weir_reactor_change(weir, &one, 1, &at, err);

    EXPECT_INT(rc == WEIR_OK ? 1 : 0, at);
    return rc;
}

TEST(a_function_is_replaced_while_its_job_runs)
{
    struct weir_topic_options options = {.run = run, .self = &second};

    open_weir();
    first.pends = true;
    serve("orders", &first);
    add("orders");
    AWAIT(first.runs == 1);
    EXPECT_INT(WEIR_OK, change("orders", &options, NULL));
    add("orders");
    AWAIT(second.runs == 1);
    EXPECT_INT(0, ended);
    EXPECT_INT(WEIR_OK, weir_complete(first.handle, WEIR_DONE, 0, NULL));
    AWAIT(ended == 1);
    EXPECT_INT(1, first.ended);
    EXPECT_INT(1, first.runs);
}

TEST(a_table_is_closed_when_its_topic_has_ended)
{
    struct weir_topic_options options = {.table = &table, .self = &first};

    open_weir();
    first.pends = true;
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "orders", &options, NULL));
    add("orders");
    AWAIT(first.runs == 1);
    EXPECT_INT(WEIR_OK, change("orders", NULL, NULL));
    host_turn();
    EXPECT_INT(0, first.closes);
    EXPECT_INT(WEIR_OK, weir_complete(first.handle, WEIR_DONE, 0, NULL));
    AWAIT(ended == 1);
    EXPECT_INT(1, first.closes);
    EXPECT_INT(0, first.ended);
    EXPECT_STR("orders", ended_topic);
    host_close();
    EXPECT_INT(1, first.closes);
}

TEST(an_instance_stays_where_only_options_change)
{
    struct weir_topic_options options = {.table = &table, .self = &first};
    struct weir_topic_options only = {.options = {"concurrency=7"}};

    open_weir();
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "orders", &options, NULL));
    EXPECT_INT(WEIR_OK, change("orders", &only, NULL));
    add("orders");
    AWAIT(first.runs == 1);
    EXPECT_INT(0, first.closes);
    EXPECT_INT(0, ended);
}

TEST(one_wrong_change_of_several_changes_nothing)
{
    struct weir_topic_options good = {.table = &table, .self = &second};
    struct weir_topic_options wrong = {.table = &refusing};
    const struct weir_change changes[] = {
        {"orders", &good}, {"old", NULL}, {"new", &wrong}};
    struct weir_error err = {0};
    size_t at;

    open_weir();
    serve("orders", &first);
    serve("old", &first);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_change(weir, changes, 3, &at, &err));
    EXPECT_INT(2, at);
    EXPECT_TRUE(strstr(err.text, "not today") != NULL);
    EXPECT_INT(1, second.closes); /* it was open already */
    add("orders");
    add("old");
    AWAIT(first.runs == 2);
    EXPECT_INT(0, second.runs);
    EXPECT_INT(0, ended);
}

TEST(a_change_that_is_refused_declares_no_kind)
{
    struct weir_topic_options bounded = {.table = &refusing,
                                         .options = {"kind=bounded"}};
    struct weir_topic_options good = {
        .run = run, .self = &first, .options = {"kind=delay"}};
    const struct weir_change changes[] = {{"new", &bounded}, {"old", NULL}};
    struct weir_error err = {0};
    size_t at;

    open_weir();
    EXPECT_INT(WEIR_EINVAL, change("new", &bounded, &err));
    EXPECT_CONTAINS("not today", err.text);
    EXPECT_INT(WEIR_OK, change("new", &good, NULL));
    EXPECT_INT(WEIR_OK, change("new", NULL, NULL));
    AWAIT(ended == 1);
    bounded = good;
    bounded.options[0] = "kind=bounded";
    EXPECT_INT(WEIR_ENOTFOUND,
               weir_reactor_change(weir, changes, 2, &at, &err));
    EXPECT_INT(1, at);
    EXPECT_INT(WEIR_OK, change("new", &good, NULL));
    add("new");
    AWAIT(first.runs == 1);
}

TEST(changes_that_make_no_sense_are_refused)
{
    struct weir_topic_options function = {.run = run, .self = &first};
    struct weir_topic_options none = {0};
    struct weir_topic_options bounded = {.options = {"kind=bounded"}};
    const struct weir_change twice[] = {{"a", &function}, {"a", &function}};
    struct weir_error err = {0};
    size_t at;

    open_weir();
    serve("orders", &first);
    EXPECT_INT(WEIR_ENOTFOUND, change("gone", NULL, &err));
    EXPECT_STR("topic gone is not served", err.text);
    EXPECT_INT(WEIR_ENOTFOUND, change("gone", &none, &err));
    EXPECT_INT(WEIR_EINVAL, change("a b", NULL, &err));
    EXPECT_INT(WEIR_EINVAL, change("orders", &bounded, &err));
    EXPECT_STR("kind: topic orders is served as one of kind delay, which "
               "cannot change meanwhile",
               err.text);
    EXPECT_INT(WEIR_EINVAL, weir_reactor_change(weir, twice, 2, &at, &err));
    EXPECT_INT(1, at);
    add("orders");
    AWAIT(first.runs == 1);
}

static struct weir_topic_options with_on_dead(const char *on_dead)
{
    return (struct weir_topic_options){
        .run = run, .self = &first, .options = {on_dead}};
}

static int change_both(const struct weir_topic_options *a,
                       const struct weir_topic_options *b,
                       struct weir_error *err)
{
    const struct weir_change both[] = {{"a", a}, {"b", b}};
    size_t at;
    int rc = weir_reactor_change(weir, both, 2, &at, err);

    EXPECT_INT(rc == WEIR_OK ? 2 : 0, at);
    return rc;
}

/* What is served before does not count, what is served then does. */
TEST(where_dead_jobs_go_turns_round_in_one_change)
{
    struct weir_topic_options to_a = with_on_dead("on_dead=a");
    struct weir_topic_options to_b = with_on_dead("on_dead=b");
    struct weir_topic_options none = {0};

    open_weir();
    serve("b", &first);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "a", &to_b, NULL));
    EXPECT_INT(WEIR_OK, change_both(&none, &to_a, NULL));
    EXPECT_INT(WEIR_OK, change_both(&to_b, &none, NULL));
    EXPECT_INT(WEIR_OK, change_both(NULL, &to_a, NULL));
    EXPECT_INT(WEIR_EINVAL, change("a", &to_b, NULL));
}

TEST(one_change_lets_no_dead_jobs_go_round)
{
    struct weir_topic_options to_a = with_on_dead("on_dead=a");
    struct weir_topic_options to_b = with_on_dead("on_dead=b");
    struct weir_error err = {0};

    open_weir();
    EXPECT_INT(WEIR_EINVAL, change_both(&to_b, &to_a, &err));
    EXPECT_STR("on_dead: dead jobs would go round for ever, a -> b -> a: write "
               "none in one of these topics",
               err.text);
    EXPECT_INT(WEIR_OK, change("a", &to_b, NULL)); /* nothing came of it */
    EXPECT_INT(WEIR_EINVAL, change("b", &to_a, NULL));
    EXPECT_INT(WEIR_EINVAL, weir_reactor_serve(weir, "b", &to_a, NULL));
}

static void count_ignored(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    *(int *)arg += strstr(text, "a: a stored option is ignored") != NULL;
}

static void on_set(int code, const char *text, void *arg)
{
    (void)text;
    *(bool *)arg = true;
    EXPECT_INT(WEIR_OK, code);
}

TEST(what_is_stored_is_judged_by_what_all_topics_have_after_a_change)
{
    static const char *const stored[] = {"on_dead=b", NULL};
    struct weir_topic_options to_a = with_on_dead("on_dead=a");
    struct weir_topic_options none = {0};
    struct {
        int ignored;
        bool is_set;
    } told = {0};

    host_open(
        &(struct weir_options){.log = count_ignored, .log_arg = &told.ignored});
    first.fails = true;
    to_a.self = &second;
    serve("a", &first);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "b", &to_a, NULL));
    EXPECT_INT(WEIR_OK,
               weir_reactor_set(weir, "a", stored, on_set, &told.is_set, NULL));
    AWAIT(told.is_set && told.ignored == 1);
    EXPECT_INT(WEIR_OK, change_both(&none, &none, NULL));
    add("a");
    AWAIT(second.runs == 1);
    EXPECT_INT(1, told.ignored);
}

/* Of a worker that left a topic nobody is woken, and nothing is handed over
 * for good. */
TEST(a_topic_that_was_left_is_for_other_workers)
{
    struct weir_reactor *one, *other;
    const struct weir_change leave = {"orders", NULL};
    struct weir_topic_options options = {.run = run, .self = &second};
    size_t at;

    open_weir();
    serve("orders", &first);
    add("orders");
    AWAIT(first.runs == 1);
    one = weir;
    other = host_reactor(NULL);
    EXPECT_INT(WEIR_OK, weir_reactor_serve(other, "orders", &options, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_change(one, &leave, 1, &at, NULL));
    for (int i = 0; i < 20; i++) {
        add("orders");
        AWAIT(first.runs + second.runs == i + 2);
    }
    AWAIT(ended == 1);
    EXPECT_INT(1, first.runs);
    weir_reactor_free(other);
}

TEST(a_topic_comes_and_goes_a_hundred_times_and_no_job_is_lost)
{
    struct weir_topic_options options = {.run = run, .self = &first};

    open_weir();
    serve("orders", &first);
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < 5; j++)
            add("orders");
        host_turn();
        EXPECT_INT(WEIR_OK, change("orders", NULL, NULL));
        if (i % 3 > 0)
            host_turn();
        EXPECT_INT(WEIR_OK, change("orders", &options, NULL));
    }
    AWAIT(added == 500 && first.runs >= 500);
    EXPECT_INT(500, first.runs);
    AWAIT(ended == 100);
}
