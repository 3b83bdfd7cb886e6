/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/msgpack/worker.h"
#include "core/text.h"
#include "tests/redis/bounded/bounded_fixture.h"
#include "tests/redis/store/lease_fixture.h"

/* Workers that serve only some groups of a bounded topic. */

static struct host *open_with(const char *worker, const char *groups)
{
    struct weir__options options = weir__options_default;

    (void)snprintf(options.groups, sizeof(options.groups), "%s", groups);
    return bounded_open(worker, &options);
}

static struct host *vip, *rest;

static void open_both(void)
{
    (void)world_open(NULL);
    vip = open_with("vip", "vip-* game-7");
    rest = open_with("rest", "!vip-* !game-7");
}

static void settle_all(struct host *host)
{
    host_settle_all(host, WEIR__OUTCOME_DONE);
    host_await_settled(host);
}

/* Until a claim brings something, of the offers of others as well. */
static size_t claim_some(struct host *host)
{
    size_t count = 0;

    AWAIT((count = host_claim(host, 300, 60000)) > 0);
    return count;
}

/* Until nothing is to be done at once. */
static void claim_none(struct host *host)
{
    do
        EXPECT_INT(0, host_claim(host, 300, 60000));
    while (host->claimed.next_due_us == 0);
}

static void expect_gone(struct host *host, const char *events)
{
    (void)claim_some(host);
    EXPECT_STR(events, events_text(host));
    settle_all(host);
    bounded_walk();
}

TEST(each_worker_gets_the_groups_that_it_serves_and_no_others)
{
    open_both();
    events_add(vip, "vip-1", 1, 2);
    events_add(vip, "game-7", 1, 1);
    events_add(vip, "game-77", 1, 3);
    events_add(vip, "vi", 1, 1);
    expect_gone(vip, "vip-1:1-2 game-7:1 ");
    claim_none(vip);
    EXPECT_INT(-1, vip->claimed.next_due_us);
    expect_gone(rest, "game-77:1-3 vi:1 ");
    claim_none(rest);
    events_add(vip, "vip-2", 1, 1); /* the parts are known now */
    events_add(vip, "game-1", 1, 1);
    claim_none(open_with("other", "other"));
    expect_gone(vip, "vip-2:1 ");
    expect_gone(rest, "game-1:1 ");
    EXPECT_INT(0, bounded_count("waiting"));
}

TEST(a_worker_without_groups_serves_all_of_them)
{
    struct host *all;

    open_both();
    claim_none(vip);
    all = open_with("all", "");
    event_add(all, "vip-1", 1);
    event_add(all, "game-1", 1);
    EXPECT_INT(2, claim_some(all));
    settle_all(all);
    bounded_walk();
}

TEST(of_patterns_that_overlap_each_counts)
{
    struct host *wide, *narrow, *holey;

    (void)world_open(NULL);
    wide = open_with("wide", "game-*");
    narrow = open_with("narrow", "game-1*");
    holey = open_with("holey", "game-* !game-1*");
    event_add(wide, "game-10", 1);
    event_add(wide, "game-20", 1);
    event_add(wide, "chess", 1);
    expect_gone(narrow, "game-10:1 ");
    claim_none(narrow);
    expect_gone(holey, "game-20:1 ");
    claim_none(holey);
    event_add(wide, "game-11", 2);
    claim_none(holey);
    expect_gone(wide, "game-11:2 ");
    claim_none(wide);
    EXPECT_INT(1, bounded_count("waiting"));
}

/* Groups of others wait in front, more than a claim looks at. */
TEST(groups_of_others_in_front_are_passed_over)
{
    enum { FOREIGN = 2000 };
    struct host *host;
    char group[16];
    int claims;

    (void)world_open(NULL);
    host = open_with("vip", "vip-*");
    for (int i = 0; i < FOREIGN; i++) {
        (void)snprintf(group, sizeof(group), "g%d", i);
        events_send(host, group, 1, 1);
    }
    AWAIT(host->added == FOREIGN);
    event_add(host, "vip-1", 1);
    claims = host->claims;
    (void)claim_some(host);
    EXPECT_TRUE(host->claims - claims <= FOREIGN / 256 + 2);
    EXPECT_STR("vip-1:1 ", events_text(host));
    settle_all(host);
    bounded_walk();
    event_add(host, "vip-2", 1);
    EXPECT_INT(1, host_claim(host, 300, 60000)); /* at once from then on */
    EXPECT_INT(FOREIGN, bounded_count("waiting"));
    bounded_walk();
}

static void fall_asleep(struct host *host)
{
    claim_none(host);
    host->wakes = 0;
}

TEST(an_event_wakes_a_worker_that_serves_its_group_and_no_other)
{
    open_both();
    AWAIT(vip->wakes > 0 && rest->wakes > 0); /* they listen */
    fall_asleep(vip);
    fall_asleep(rest);
    for (int i = 1; i <= 3; i++) {
        int wakes = vip->wakes;

        event_add(rest, "vip-1", i);
        AWAIT(vip->wakes > wakes);
        EXPECT_INT(0, rest->wakes);
        EXPECT_INT(1, claim_some(vip));
        settle_all(vip);
        claim_none(vip);
    }
    vip->wakes = 0;
    event_add(vip, "game-1", 1);
    AWAIT(rest->wakes > 0);
    EXPECT_INT(0, vip->wakes);
}

TEST(one_add_wakes_a_worker_for_each_part_of_its_groups)
{
    open_both();
    AWAIT(vip->wakes > 0 && rest->wakes > 0);
    fall_asleep(vip);
    fall_asleep(rest);
    events_send(rest, "game-1", 1, 1);
    events_send(rest, "vip-1", 1, 1);
    AWAIT(vip->wakes > 0 && rest->wakes > 0);
}

TEST(a_claim_that_fills_its_room_wakes_the_next_of_its_groups)
{
    struct host *hosts[2];
    int first;

    open_both();
    hosts[0] = open_with("a", "vip-*");
    hosts[1] = open_with("b", "vip-*");
    host_close(vip);
    AWAIT(hosts[0]->wakes > 0 && hosts[1]->wakes > 0 && rest->wakes > 0);
    fall_asleep(rest);
    fall_asleep(hosts[0]);
    fall_asleep(hosts[1]);
    events_send(rest, "vip-1", 1, 1);
    events_send(rest, "vip-2", 1, 1);
    AWAIT(hosts[0]->wakes + hosts[1]->wakes == 1);
    first = hosts[0]->wakes > 0 ? 0 : 1;
    AWAIT(host_claim(hosts[first], 1, 60000) > 0);
    AWAIT(hosts[1 - first]->wakes > 0);
    EXPECT_INT(0, rest->wakes);
}

TEST(a_worker_whose_groups_change_is_not_woken_for_those_before)
{
    struct weir__options options = weir__options_default;

    open_both();
    AWAIT(vip->wakes > 0);
    fall_asleep(vip);
    fall_asleep(rest);
    (void)snprintf(options.groups, sizeof(options.groups), "chess");
    host_serve_with(vip, &options);
    AWAIT(vip->wakes > 0); /* it is to claim with them */
    fall_asleep(vip);
    EXPECT_INT(2, redis_int(proc, "ZCARD weir:{t}:idle"));
    event_add(rest, "vip-1", 1);
    event_add(rest, "chess", 1);
    AWAIT(vip->wakes > 0);
    expect_gone(vip, "chess:1 ");
    claim_none(vip);
    claim_none(rest);
    EXPECT_INT(1, bounded_count("waiting")); /* nobody serves it */
    EXPECT_INT(WEIR_OK, host_stats(rest));
    EXPECT_INT(1, rest->stats.ready);
    EXPECT_TRUE(rest->stats.is_elsewhere);
}

/* It was woken, and serves them no more when it claims. */
TEST(a_wake_up_for_groups_that_are_others_now_is_passed_on)
{
    struct weir__options options = weir__options_default;
    struct host *next;

    open_both();
    next = open_with("next", "vip-*");
    AWAIT(vip->wakes > 0 && next->wakes > 0);
    fall_asleep(next);
    fall_asleep(vip);
    event_add(rest, "vip-1", 1);
    AWAIT(vip->wakes + next->wakes == 1);
    if (next->wakes > 0) { /* as they sleep for ever, it is one of both */
        struct host *other = next;

        next = vip;
        vip = other;
    }
    (void)snprintf(options.groups, sizeof(options.groups), "chess");
    host_serve_with(vip, &options);
    claim_none(vip);
    AWAIT(next->wakes > 0);
    expect_gone(next, "vip-1:1 ");
}

TEST(without_leases_groups_keep_their_parts)
{
    struct weir__options options = weir__options_default;
    struct host *host;

    open_both();
    options.lease = WEIR__OPTION_NONE;
    options.batch = 2;
    (void)snprintf(options.groups, sizeof(options.groups), "vip-*");
    host = bounded_open("host", &options);
    events_add(host, "vip-1", 1, 3);
    event_add(host, "game-1", 1);
    AWAIT(host_claim(host, 2, 3600000) > 0);
    EXPECT_INT(1, claim_some(host));
    EXPECT_STR("vip-1:1-3 ", events_text(host));
    settle_all(host);
    bounded_walk();
    expect_gone(rest, "game-1:1 ");
}

TEST(without_leases_a_group_that_became_hot_has_one_turn)
{
    struct weir__options options = weir__options_default;
    struct host *host;

    (void)world_open(NULL);
    options.lease = WEIR__OPTION_NONE;
    options.batch = 2;
    host = bounded_open("one", &options);
    events_add(host, "a", 1, 5);
    EXPECT_INT(2, host_claim(host, 2, 3600000)); /* the rest has its turn */
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:rot"));
    EXPECT_INT(1, redis_int(proc, "HSET weir:{t}:options hot a"));
    host_settle_all(host, WEIR__OUTCOME_RETURN);
    host_await_settled(host);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:hot"));
    bounded_walk();
}

TEST(a_dead_workers_batch_comes_back_to_whoever_serves_its_group)
{
    struct host *next;

    open_both();
    next = open_with("next", "vip-*");
    AWAIT(next->wakes > 0);
    events_add(vip, "vip-1", 1, 2);
    EXPECT_INT(2, claim_some(vip));
    host_close(vip);
    claim_none(next);
    next->wakes = 0;
    leases_pass();
    claim_none(rest); /* it notices, takes nothing, and passes that on */
    EXPECT_INT(2, bounded_count("crashed"));
    bounded_walk();
    AWAIT(next->wakes > 0);
    expect_gone(next, "vip-1:1 ");
    expect_gone(next, "vip-1:2 ");
}

TEST(hot_groups_retries_and_linger_go_by_parts)
{
    struct weir__options options = weir__options_default;
    struct host *host;
    struct weir__run *run;

    open_both();
    options.batch = 2;
    (void)snprintf(options.hot, sizeof(options.hot), "vip-hot:2");
    (void)snprintf(options.groups, sizeof(options.groups), "vip-*");
    host = bounded_open("host", &options);
    claim_none(host);
    events_add(host, "vip-hot", 1, 6);
    event_add(host, "vip-a", 1);
    event_add(host, "vip-b", 1);
    event_add(host, "game-1", 1);
    EXPECT_INT(1, redis_int(proc, "ZCARD weir:{t}:hot"));
    AWAIT(host_claim(host, 300, 60000) > 0);
    EXPECT_STR("vip-a:1 vip-hot:1-4 vip-b:1 ", events_text(host));
    while ((run = host->runs) != NULL) {
        run = host_take(host);
        run->delay_ms = 60000;
        run->record.counters.attempt = 1;
        host_settle(host, run, WEIR__OUTCOME_RETRY);
    }
    host_await_settled(host);
    bounded_walk();
    claim_none(host);
    EXPECT_TRUE(host->claimed.next_due_us > 0 &&
                host->claimed.next_due_us <= 60000000);
    expect_gone(rest, "game-1:1 ");
}

/* Whoever meets it: neither needs its events. */
TEST(a_full_group_and_an_idle_one_drop_whoever_serves_them)
{
    struct weir__options options = weir__options_default;
    struct host *host;

    (void)world_open(NULL);
    options.length = 2;
    options.group_ttl = 3600000;
    (void)snprintf(options.groups, sizeof(options.groups), "!vip-*");
    host = bounded_open("host", &options);
    claim_none(host);
    events_add(host, "vip-1", 1, 5);
    EXPECT_INT(3, bounded_count("overflow"));
    (void)redis_int(proc, "ZADD weir:{t}:ttl XX CH 1 vip-1");
    claim_none(host); /* not too old */
    EXPECT_INT(2, bounded_count("waiting"));
    EXPECT_INT(0, redis_int(proc, "ZCOUNT weir:{t}:ttl 0 9"));
    bounded_walk();
    (void)redis_int(proc, "HSET weir:{t}:options group_ttl 1s");
    (void)redis_int(proc, "ZADD weir:{t}:ttl XX CH 1 vip-1");
    AWAIT(host_claim(host, 300, 60000) == 0 && bounded_count("ttl") == 2);
    bounded_walk();
}

TEST(pause_purge_and_list_are_for_all_groups)
{
    struct host *host;

    open_both();
    claim_none(vip);
    claim_none(rest);
    event_add(vip, "vip-1", 1);
    event_add(vip, "game-1", 1);
    EXPECT_INT(WEIR_OK, host_pause(vip, true));
    claim_none(vip);
    EXPECT_TRUE(vip->claimed.is_paused);
    EXPECT_INT(WEIR_OK, host_pause(vip, false));
    AWAIT(vip->wakes > 0);
    EXPECT_INT(2, host_list(vip, WEIR_JOB_READY, 10));
    expect_gone(vip, "vip-1:1 ");
    event_add(vip, "vip-1", 2);
    host = open_with("other", "chess");
    EXPECT_INT(WEIR_OK, host_purge(host, WEIR__PURGE_ALL));
    EXPECT_INT(2, (int)host->count);
    EXPECT_INT(0, redis_int(proc, "EXISTS weir:{t}:rot weir:{t}:lease"));
}

TEST(a_pattern_that_nobody_names_any_more_is_forgotten)
{
    struct host *all;

    open_both();
    claim_none(vip);
    event_add(vip, "vip-1", 1);
    host_close(vip);
    host_close(rest);
    (void)redis_int(proc, "EVAL %s 1 weir:{t}:meta",
                    "local was = redis.call('HGET', KEYS[1], 'parts') "
                    "was = string.gsub(was, '@%d+', '@1') "
                    "return redis.call('HSET', KEYS[1], 'parts', was)");
    all = open_with("all", "");
    expect_gone(all, "vip-1:1 ");
    EXPECT_INT(0, redis_int(proc, "EVAL %s 1 weir:{t}:meta",
                            "return string.find(redis.call('HGET', KEYS[1], "
                            "'parts'), 'vip', 1, true) and 1 or 0"));
}

TEST(what_is_no_list_of_parts_stops_nobody)
{
    static const char *const bad[] = {
        "x", "@ @ @1", "vip-*@1 vip-*@2", "- - *", "*@999999999999999999999",
        ""};
    int number = 0;

    open_both();
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        event_add(vip, "vip-1", ++number);
        (void)redis_int(proc, "HSET weir:{t}:meta parts %s", bad[i]);
        event_add(vip, "game-1", number);
        (void)redis_int(proc, "ZADD weir:{t}:rot XX CH %s game-1",
                        i % 2 ? "inf" : "-5");
        (void)claim_some(vip);
        EXPECT_INT(0, strncmp(events_text(vip), "vip-1:", 6));
        settle_all(vip);
        (void)claim_some(rest);
        settle_all(rest);
        bounded_walk();
    }
    EXPECT_INT(0, bounded_count("waiting"));
}

/* --- who serves what waits ------------------------------------------------ */

/* Writes the beat of a worker; `groups` NULL: it serves another topic. */
static void beat(const char *name, const char *groups, uint64_t unnamed,
                 bool is_stopping)
{
    const struct weir_worker_topic topic = {
        .name = groups == NULL ? "other" : "t", .groups = groups};
    const struct weir_worker worker = {
        .name = name,
        .host = "h",
        .version = "1",
        .transport = "unix",
        .topics = &topic,
        .topic_count = 1,
        .topics_total = 1 + unnamed,
        .is_stopping = is_stopping,
    };
    struct weir__buf told = {0};

    weir__worker_write(&told, &worker);
    (void)redis_text(
        proc, "EVAL %s 1 weir:{weir:topics}:workers %s %b",
        "local time = redis.call('TIME') "
        "return redis.call('HSET', KEYS[1], ARGV[1], string.format('%013d ', "
        "time[1] * 1000) .. ARGV[2])",
        name, told.ptr, told.len);
    weir__buf_fini(&told);
}

static int64_t unserved(struct host *host)
{
    EXPECT_INT(WEIR_OK, host_stats(host));
    return host->stats.unserved;
}

TEST(groups_that_no_worker_serves_are_counted)
{
    open_both();
    claim_none(vip);
    event_add(vip, "vip-1", 1);
    event_add(vip, "game-7", 1);
    event_add(vip, "chess", 1);
    events_add(vip, "go", 1, 5);
    EXPECT_INT(4, unserved(vip));
    beat("one", "vip-*", 0, false);
    EXPECT_INT(3, unserved(vip));
    beat("one", "vip-* game-7", 0, false);
    EXPECT_INT(2, unserved(vip));
    EXPECT_STR("chess, go", vip->unserved);
    beat("two", "!vip-* !go", 0, false); /* it has not claimed yet */
    EXPECT_INT(0, unserved(vip));
    beat("two", "!vip-* !game-7", 0, true);
    EXPECT_INT(2, unserved(vip));
    beat("three", NULL, 0, false);
    EXPECT_INT(2, unserved(vip));
    beat("three", NULL, 1, false);
    EXPECT_INT(-1, unserved(vip)); /* it may serve them */
    beat("two", "", 0, false);
    EXPECT_INT(0, unserved(vip));
    EXPECT_STR("", vip->unserved);
}

TEST(a_topic_without_groups_of_workers_has_none_that_is_unserved)
{
    struct host *all;

    (void)world_open(NULL);
    all = open_with("all", "");
    claim_none(all);
    event_add(all, "a", 1);
    EXPECT_INT(0, unserved(all));
}

/* Whether a worker with these patterns serves a group, said plainly. */
static bool is_served(const char *patterns, const char *group)
{
    bool has_some = false, is_some = false, is_out = false;

    for (const char *word = patterns; *word != '\0';
         word += strcspn(word, " "), word += strspn(word, " ")) {
        bool is_no = word[0] == '!';
        const char *pattern = word + is_no;
        size_t len = strcspn(pattern, " ");
        bool fits =
            pattern[len - 1] == '*'
                ? strncmp(pattern, group, len - 1) == 0
                : strlen(group) == len && memcmp(pattern, group, len) == 0;

        is_out = is_out || (is_no && fits);
        has_some = has_some || !is_no;
        is_some = is_some || (!is_no && fits);
    }
    return !is_out && (is_some || !has_some);
}

TEST(the_count_of_unserved_groups_is_that_of_a_plain_model)
{
    static const char *const groups[] = {"a", "ab", "abc", "abx", "b", "ba"};
    static const char *const told[] = {
        "a*", "ab* !abc", "ab", "b",  "!a*",   "!ab !b", "abc",
        "*",  "ba* abx",  "z",  "!*", "a* !a", "!z",     "b* !b*",
    };
    enum {
        GROUPS = sizeof(groups) / sizeof(groups[0]),
        TOLD = sizeof(told) / sizeof(told[0])
    };
    struct host *host;

    (void)world_open(NULL);
    host = open_with("w", "a*");
    for (size_t i = 0; i < TOLD; i++) { /* each names its parts */
        struct weir__options options = weir__options_default;

        (void)snprintf(options.groups, sizeof(options.groups), "%s", told[i]);
        host_serve_with(host, &options);
        claim_none(host);
    }
    for (size_t i = 0; i < GROUPS; i++)
        event_add(host, groups[i], 1);
    for (size_t one = 0; one < TOLD; one++)
        for (size_t other = one; other < TOLD; other++) {
            int64_t wanted = 0;

            beat("one", told[one], 0, false);
            beat("other", told[other], 0, false);
            for (size_t i = 0; i < GROUPS; i++)
                wanted += !is_served(told[one], groups[i]) &&
                          !is_served(told[other], groups[i]);
            EXPECT_INT(wanted, unserved(host));
        }
}
