/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/lease_fixture.h"

/* What somebody else may have written into the fields and sets of a topic, one
 * poison after the other: numbers that are none, members that name nothing of
 * weir's. Three good jobs run beside each, and what looks at the topic gets an
 * answer. */

static const char *const numbers[] = {"garbage",
                                      "",
                                      "0.5",
                                      "-1",
                                      "inf",
                                      "nan",
                                      "0x10",
                                      "1e300",
                                      "9223372036854775807",
                                      "-9223372036854775808",
                                      "9007199254740993",
                                      "99999999999999999999"};

static const char *const scores[] = {"5", "-inf", "+inf", "-5", "0.3", "1e300"};

#define LONG_NAME                                              \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" \
    "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"

/* No node is too short, too long, reversed, of other characters, or across the
 * tree; no token, no id and no group of a good job is among them. */
static const char *const members[] = {"",
                                      "garbage",
                                      "5.5",
                                      "nan",
                                      "abcdefghijkl9030",
                                      "abcdefghijklzzzz",
                                      "abcdefghijkl0102",
                                      "abcdefghijkl00000",
                                      LONG_NAME};

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

static struct host *host;

/* How the kind at hand gets jobs, and what of it holds what. */
struct kind {
    const char *fields;    /* of meta, separated by blanks */
    const char *sets;      /* sorted sets */
    void (*add)(void);     /* three jobs */
    bool is_fetched_ahead; /* something is always on its way */
};

static const struct kind *kind;

static void add_jobs(void)
{
    int before = host->added;

    host_add(host, "a", 0);
    host_add(host, "b", 0);
    host_add(host, "c", 0);
    AWAIT(host->added == before + 3);
}

static void add_events(void)
{
    events_add(host, "g", 1, 3);
}

static void add_to_list(void)
{
    EXPECT_INT(3, redis_int(proc, "RPUSH t 1 2 3"));
}

static void add_to_stream(void)
{
    for (int i = 0; i < 3; i++)
        EXPECT_TRUE(redis_text(proc, "XADD t * body 7") != NULL);
}

/* Work off what is there, whatever it is, until three good jobs ran. */
static void expect_three_run(const char *poison)
{
    int good = 0;

    for (int tries = 0; good < 3 && tries < 500; tries++) {
        (void)host_claim(host, 10, 60000);
        while (host->runs != NULL) {
            struct weir__run *run = host_take(host);

            good += !run->is_malformed;
            run->record.reason = weir__slice_str("malformed");
            host_settle(host, run,
                        run->is_malformed ? WEIR__OUTCOME_DEAD
                                          : WEIR__OUTCOME_DONE);
        }
        if (!kind->is_fetched_ahead)
            host_await_settled(host);
    }
    if (good != 3)
        printf("  %s: %d good jobs ran\n  log: %s\n", poison, good, world_log);
    EXPECT_INT(3, good);
}

static void expect_answers(const char *poison)
{
    int rcs[] = {host_stats(host), host_list(host, WEIR_JOB_READY, 10),
                 host_list(host, WEIR_JOB_RUNNING, 10),
                 host_list(host, WEIR_JOB_SCHEDULED, 10),
                 host_purge(host, WEIR__PURGE_ALL)};

    for (size_t i = 0; i < COUNT_OF(rcs); i++)
        if (rcs[i] < 0)
            printf("  %s: request %zu gave %d\n  log: %s\n", poison, i, rcs[i],
                   world_log);
    for (size_t i = 0; i < COUNT_OF(rcs); i++)
        EXPECT_TRUE(rcs[i] >= 0);
}

/* One after the other: the poison comes between the jobs and the worker. */
static void expect_immune(const char *format, const char *one, const char *two,
                          const char *three)
{
    char poison[400];

    (void)snprintf(poison, sizeof(poison), "%s %s %s %s", format, one, two,
                   three);
    world_log[0] = '\0';
    (void)redis_text(proc, "FLUSHALL");
    kind->add();
    (void)redis_text(proc, format, one, two, three);
    expect_three_run(poison);
    kind->add();
    (void)redis_text(proc, format, one, two, three);
    expect_answers(poison);
}

/* The words of `list` in turn. */
static const char *next_word(const char **list)
{
    static char word[32];
    size_t len = strcspn(*list, " ");

    if (len == 0)
        return NULL;
    (void)snprintf(word, sizeof(word), "%.*s", (int)len, *list);
    *list += len + ((*list)[len] == ' ');
    return word;
}

static void poison_fields(void)
{
    const char *fields = kind->fields, *field;

    while ((field = next_word(&fields)) != NULL)
        for (size_t i = 0; i < COUNT_OF(numbers); i++)
            expect_immune("HSET weir:{t}:meta %s %s%s", field, numbers[i], "");
}

static void poison_sets(void)
{
    const char *sets = kind->sets, *set;

    while ((set = next_word(&sets)) != NULL)
        for (size_t i = 0; i < COUNT_OF(members); i++)
            for (size_t k = 0; k < COUNT_OF(scores); k++)
                expect_immune("ZADD weir:{t}:%s %s %s", set, scores[k],
                              members[i]);
}

static void begin(const struct kind *of)
{
    kind = of;
    EXPECT_TRUE(strlen(kind->fields) > 0);
}

static const struct kind delay_kind = {
    .fields = "added claimed settled retried snoozed failed expired returned "
              "crashed dropped delwait delrun ready mark requeued revision "
              "server met",
    .sets = "wait run lease idle dead",
    .add = add_jobs,
};

TEST(numbers_that_are_none_do_not_stop_a_delay_topic)
{
    host = host_open("w1");
    begin(&delay_kind);
    poison_fields();
    expect_immune("HSET weir:{t}:meta max_pending %s%s%s", "garbage", "", "");
    expect_immune("HSET weir:{t}:seen %s %s%s", "x", "garbage", "");
    expect_immune("HSET weir:{t}:late %s %s%s", "0", "garbage", "");
    expect_immune("HSET weir:{t}:started %s %s%s", "w1", "garbage", "");
}

TEST(members_that_are_no_nodes_do_not_stop_a_delay_topic)
{
    host = host_open("w1");
    begin(&delay_kind);
    poison_sets();
}

TEST(what_is_no_node_is_removed_counted_and_logged_once)
{
    host = host_open("w1");
    begin(&delay_kind);
    add_jobs();
    (void)redis_int(proc, "ZADD weir:{t}:wait 5 abcdefghijkl9030 6 garbage");
    expect_three_run("wait");
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:wait"));
    EXPECT_STR("2", redis_text(proc, "HGET weir:{t}:meta dropped"));
    EXPECT_CONTAINS("redis: t: 2 members or counters of its keys were not "
                    "written by weir",
                    world_log);
    EXPECT_INT(WEIR_OK, host_stats(host));
    EXPECT_INT(2, host->stats.dropped_total);
}

/* A node of which the first lease ended comes back slot by slot; what lay under
 * its lease and is none does not. */
TEST(a_lease_that_ends_over_what_is_no_node_gives_back_the_nodes)
{
    host = host_open("w1");
    begin(&delay_kind);
    add_jobs();
    EXPECT_INT(3, host_claim(host, 10, 3600000));
    (void)redis_int(proc, "ZADD weir:{t}:run %s garbage %s abcdefghijkl9030",
                    lease_name(host->runs), lease_name(host->runs));
    leases_pass();
    host_close(host);
    host = host_open("w2");
    AWAIT(host_claim(host, 0, 60000) == 0 &&
          redis_int(proc, "ZCARD weir:{t}:wait") > 0);
    expect_three_run("run");
    EXPECT_INT(0, redis_int(proc, "ZCARD weir:{t}:run"));
}

TEST(a_token_does_not_come_twice_where_its_counter_was_overwritten)
{
    uint64_t token;

    host = host_open("w1");
    begin(&delay_kind);
    add_jobs();
    EXPECT_INT(1, host_claim(host, 1, 60000));
    token = host->runs->token;
    (void)redis_int(proc, "HSET weir:{t}:meta claimed garbage");
    EXPECT_INT(2, host_claim(host, 10, 60000));
    EXPECT_TRUE(host->runs->next->token > token + 1000000);
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
    EXPECT_INT(0, host->refused);
}

static const struct kind bounded_kind = {
    .fields = "added waiting running done retried failed crashed overflow age "
              "ttl claimed revision bounds server met",
    .sets = "rot hot lease ttl idle",
    .add = add_events,
};

static void open_bounded(void)
{
    struct weir__options options = weir__options_default;

    options.group_ttl = 3600000;
    (void)world_open(NULL);
    host = bounded_open("w1", &options);
    begin(&bounded_kind);
}

TEST(numbers_that_are_none_do_not_stop_a_bounded_topic)
{
    static const char *const options[] = {"length",    "batch", "linger",
                                          "group_ttl", "hot",   "overflow"};
    static const char *const states[] = {
        "garbage", "",       "5 1 1 0", "~ 99999999999999999999 5 0",
        "5 1",     "~ x y z"};

    open_bounded();
    poison_fields();
    for (size_t i = 0; i < COUNT_OF(options); i++)
        for (size_t k = 0; k < COUNT_OF(numbers); k++)
            expect_immune("HSET weir:{t}:options %s %s%s", options[i],
                          numbers[k], "");
    for (size_t i = 0; i < COUNT_OF(states); i++)
        expect_immune("HSET weir:{t}:out %s %s%s", "g", states[i], "");
    expect_immune("HSET weir:{t}:options %s %s%s", "hot", "g:0", "");
}

TEST(members_that_are_no_groups_do_not_stop_a_bounded_topic)
{
    open_bounded();
    poison_sets();
}

static const struct kind list_kind = {
    .fields = "taken token claimed done retried failed expired crashed dropped "
              "lost purged revision server met",
    .sets = "wait run lease dead",
    .add = add_to_list,
};

TEST(numbers_and_members_that_are_none_do_not_stop_a_list_topic)
{
    host = host_open_kind("w1", "list");
    begin(&list_kind);
    poison_fields();
    poison_sets();
    expect_immune("HSET weir:{t}:auto %s %s%s", "5", "garbage", "");
}

static const struct kind stream_kind = {
    .fields = "taken token claimed done retried failed expired crashed dropped "
              "lost purged revision swept cursor server met",
    .sets = "wait run lease dead",
    .add = add_to_stream,
};

TEST(numbers_and_members_that_are_none_do_not_stop_a_stream_topic)
{
    host = host_open_kind("w1", "stream");
    begin(&stream_kind);
    poison_fields();
    poison_sets();
}

/* The counters of an entry are msgpack; these are not, or not nine. */
TEST(counters_of_entries_that_are_none_count_as_nothing)
{
    static const char *const pasts[] = {"",
                                        "garbage",
                                        "\x93\x01\x02\x03",
                                        "\x81\xa1\x61\x01",
                                        "\xdd\xff\xff\xff\xff",
                                        "\xc1"};

    for (size_t i = 0; i < COUNT_OF(pasts); i++) {
        (void)world_open(NULL);
        host = host_open_kind("w1", "list");
        begin(&list_kind);
        add_to_list();
        lease_outlive(host, 3);
        host_close(host);
        host = host_open_kind("w2", "list");
        (void)redis_int(proc, "HSET weir:{t}:past @0000000000000002 %s",
                        pasts[i]);
        AWAIT(host_claim(host, 0, 60000) == 0 &&
              redis_int(proc, "ZCARD weir:{t}:wait") == 3);
        expect_three_run(pasts[i]);
    }
}

static const struct kind fifo_kind = {
    .fields =
        "claimed added done retried failed expired crashed revision delay "
        "server met",
    .sets = "alive idle lockers",
    .add = add_jobs,
    .is_fetched_ahead = true,
};

static void poison_fifo(const char *name)
{
    /* time is the subject */
    static const char *const options[] = {"delay=0ms", "lease=300ms",
                                          "consumers=2", NULL};

    (void)world_open(NULL);
    host = host_open_as("w1", name, options);
    begin(&fifo_kind);
    (void)redis_text(proc, "HSET weir:{t}:meta claimed garbage done 0.5 added "
                           "x retried inf revision 1.5 crashed nan");
    (void)redis_text(proc, "RPUSH weir:{t}:fifo garbage %b", "\x93\xc1", 2);
    (void)redis_text(proc, "HSET weir:{t}:parked nobody garbage");
    (void)redis_text(proc, "ZADD weir:{t}:alive -inf nobody 5 %s", "");
    if (strcmp(name, "sync") == 0)
        (void)redis_text(proc, "SET weir:{t}:lock somebody");
    add_jobs();
    expect_three_run("fifo");
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        (void)redis_text(proc, "HSET weir:{t}:meta claimed %s delay 5 done %s",
                         numbers[i], numbers[i]);
    expect_answers("fifo");
}

TEST(what_is_none_of_its_messages_does_not_stop_a_concurrent_topic)
{
    poison_fifo("concurrent");
}

TEST(what_is_none_of_its_messages_does_not_stop_a_sync_topic)
{
    poison_fifo("sync");
}
