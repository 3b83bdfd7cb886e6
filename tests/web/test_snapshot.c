/* SPDX-License-Identifier: MIT */
#include "adapters/web/snapshot.h"

#include <weir/worker.h>

#include "tests/harness/oom.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

TEST_TOGETHER(10)

/* --- the reactor is played ------------------------------------------------ */

enum { TOPICS = 130 };

static struct question {
    weir_kind_fn kind; /* NULL: stats */
    weir_stats_fn stats;
    const char *topic;
    void *arg;
} asked[2 * TOPICS];
static size_t asked_count, asked_most;
static weir_topics_fn naming; /* NULL: names are not asked for */
static void *naming_arg;
static char names[TOPICS][24];
static size_t name_count;
static int names_code, stats_code;
static uint64_t done_total;
static uint64_t worker_topics = 2;
static int workers_code, worker_questions;

int weir_reactor_topics(struct weir_reactor *reactor, weir_topics_fn fn,
                        void *arg)
{
    (void)reactor;
    EXPECT_TRUE(naming == NULL);
    naming = fn;
    naming_arg = arg;
    return WEIR_OK;
}

static int keep(struct question question)
{
    asked[asked_count++] = question;
    asked_most = asked_count > asked_most ? asked_count : asked_most;
    return WEIR_OK;
}

int weir_reactor_kind(struct weir_reactor *reactor, const char *topic,
                      weir_kind_fn fn, void *arg)
{
    (void)reactor;
    return keep((struct question){.kind = fn, .topic = topic, .arg = arg});
}

int weir_reactor_declare(struct weir_reactor *reactor, const char *topic,
                         const char *kind, struct weir_error *err)
{
    (void)reactor;
    (void)topic;
    (void)err;
    return strcmp(kind, "turnstile") == 0 ? WEIR_EINVAL : WEIR_OK;
}

/* A worker of t000 and another topic, or of more than it tells. */
int weir_reactor_workers(struct weir_reactor *reactor, weir_workers_fn fn,
                         void *arg)
{
    static const struct weir_worker_topic topics[] = {{.name = "elsewhere"},
                                                      {.name = "t000"}};
    struct weir_worker worker = {
        .topics = topics, .topic_count = 2, .topics_total = worker_topics};

    (void)reactor;
    worker_questions++;
    if (workers_code != WEIR_OK)
        return workers_code;
    fn(WEIR_OK, &worker, arg);
    worker.is_stopping = true;
    fn(WEIR_OK, &worker, arg);
    fn(WEIR_OK, NULL, arg);
    return WEIR_OK;
}

int weir_reactor_stats(struct weir_reactor *reactor, const char *topic,
                       weir_stats_fn fn, void *arg)
{
    (void)reactor;
    return keep((struct question){.stats = fn, .topic = topic, .arg = arg});
}

static void answer_names(void)
{
    weir_topics_fn fn = naming;

    naming = NULL;
    for (size_t i = 0; names_code == WEIR_OK && i < name_count; i++)
        fn(WEIR_OK, names[i], naming_arg);
    fn(names_code, NULL, naming_arg);
}

static void answer_question(const char *kind)
{
    struct question question = asked[--asked_count];
    const struct weir_stats stats = {
        .topic = question.topic, .kind = kind, .done_total = done_total};

    if (question.kind != NULL)
        question.kind(WEIR_OK, kind, question.arg);
    else
        question.stats(stats_code, stats_code == WEIR_OK ? &stats : NULL,
                       question.arg);
}

/* --- a snapshot of it ----------------------------------------------------- */

static struct ev_loop *loop;
static struct weir__snapshot *snapshot;
static int times_over;
static const char *kind = "delay";

static void on_round(void *arg)
{
    (void)arg;
    times_over++;
}

static void name_topics(size_t count)
{
    name_count = count;
    for (size_t i = 0; i < count; i++)
        (void)snprintf(names[i], sizeof(names[i]), "t%03zu", i);
}

static void start(void)
{
    loop = ev_loop_new(0);
    EXPECT_INT(WEIR_OK, weir__snapshot_open(loop, (struct weir_reactor *)&loop,
                                            &snapshot)); /* never looked into */
    weir__snapshot_on_round(snapshot, on_round, NULL);
}

static void stop(void)
{
    weir__snapshot_close(snapshot);
    ev_loop_destroy(loop);
}

/* Answer whatever is asked until one more round is over. */
static void play_round(void)
{
    for (int before = times_over; times_over == before;) {
        (void)ev_run(loop, EVRUN_ONCE);
        if (naming != NULL)
            answer_names();
        while (asked_count > 0)
            answer_question(kind);
    }
}

static const struct weir__topic_view *topic(size_t i)
{
    size_t count;
    struct weir__topic_view *const *topics =
        weir__snapshot_topics(snapshot, &count);

    EXPECT_TRUE(i < count);
    return topics[i];
}

static size_t topic_count(void)
{
    size_t count;

    (void)weir__snapshot_topics(snapshot, &count);
    return count;
}

TEST(a_round_tells_of_every_topic)
{
    name_topics(TOPICS);
    done_total = 7;
    start();
    play_round();
    EXPECT_INT(TOPICS, topic_count());
    for (size_t i = 0; i < TOPICS; i++) {
        EXPECT_STR(names[i], topic(i)->row.topic);
        EXPECT_STR("delay", topic(i)->row.kind);
        EXPECT_INT(7, topic(i)->row.stats.done_total);
        EXPECT_TRUE(topic(i)->row.is_shown);
    }
    EXPECT_INT(1, weir__snapshot_rounds(snapshot));
    EXPECT_TRUE(weir__snapshot_taken_ms(snapshot) > 0);
    stop();
}

TEST(no_more_than_a_slice_is_asked_for_at_once)
{
    name_topics(TOPICS);
    start();
    play_round();
    EXPECT_INT(50, asked_most);
    stop();
}

TEST(a_slice_waits_for_the_answers_of_the_one_before)
{
    name_topics(TOPICS);
    start();
    while (asked_count == 0) {
        (void)ev_run(loop, EVRUN_ONCE);
        if (naming != NULL)
            answer_names();
    }
    for (int i = 0; i < 4; i++)
        (void)ev_run(loop, EVRUN_ONCE);
    EXPECT_INT(50, asked_count);
    stop();
}

TEST(topics_that_go_and_come_leave_the_others_as_they_are)
{
    const struct weir__topic_view *stays;
    uint64_t version;

    name_topics(10);
    start();
    play_round();
    version = weir__snapshot_version(snapshot);
    stays = weir__snapshot_find(snapshot, "t004");
    (void)snprintf(names[3], sizeof(names[3]), "t0031");
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_INT(10, topic_count());
    EXPECT_TRUE(weir__snapshot_find(snapshot, "t003") == NULL);
    EXPECT_TRUE(weir__snapshot_find(snapshot, "t0031") == topic(3));
    EXPECT_TRUE(weir__snapshot_find(snapshot, "t004") == stays);
    EXPECT_TRUE(weir__snapshot_version(snapshot) > version);
    name_topics(0);
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_INT(0, topic_count());
    stop();
}

TEST(the_version_stays_while_nothing_changes)
{
    uint64_t version;

    name_topics(60);
    start();
    play_round();
    weir__snapshot_look(snapshot);
    play_round(); /* which knows a rate for the first time */
    version = weir__snapshot_version(snapshot);
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_INT(version, weir__snapshot_version(snapshot));
    done_total++;
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_TRUE(weir__snapshot_version(snapshot) > version);
    EXPECT_TRUE(topic(0)->row.rate > 0.0);
    stop();
}

/* One that stops serves none. */
TEST(workers_are_asked_once_a_round_and_counted_by_topic)
{
    name_topics(3);
    start();
    play_round();
    EXPECT_INT(1, worker_questions);
    EXPECT_INT(1, topic(0)->row.workers);
    EXPECT_INT(0, topic(1)->row.workers);
    stop();
}

TEST(who_does_not_tell_all_topics_may_serve_any)
{
    worker_topics = 3;
    name_topics(2);
    start();
    play_round();
    EXPECT_INT(1, topic(0)->row.workers);
    EXPECT_INT(-1, topic(1)->row.workers);
    stop();
}

TEST(a_round_goes_on_where_workers_cannot_be_asked)
{
    workers_code = WEIR_ESERVER;
    name_topics(2);
    start();
    play_round();
    EXPECT_INT(WEIR_OK, weir__snapshot_code(snapshot));
    EXPECT_INT(-1, topic(0)->row.workers);
    stop();
}

TEST(nobody_who_looks_costs_one_round_in_half_a_minute)
{
    name_topics(1);
    start();
    play_round();
    for (int i = 0; i < 75; i++) {
        (void)ev_run(loop, EVRUN_NOWAIT);
        EXPECT_TRUE(naming == NULL);
        ev_sleep(0.02);
    }
    stop();
}

TEST(a_server_that_is_away_is_told_and_asked_again)
{
    name_topics(3);
    start();
    play_round();
    names_code = WEIR_ECONN;
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_INT(WEIR_ECONN, weir__snapshot_code(snapshot));
    EXPECT_INT(3, topic_count());
    names_code = WEIR_OK;
    stats_code = WEIR_ECONN;
    for (int i = 0; i < 2; i++) {
        weir__snapshot_look(snapshot);
        play_round();
    }
    EXPECT_INT(WEIR_OK, weir__snapshot_code(snapshot));
    EXPECT_TRUE(topic(1)->row.is_away);
    stats_code = WEIR_OK;
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_TRUE(!topic(1)->row.is_away);
    stop();
}

TEST(topics_stay_as_they_were_when_the_server_goes_in_the_middle_of_a_round)
{
    int64_t taken_ms;

    name_topics(3);
    done_total = 7;
    start();
    play_round();
    taken_ms = weir__snapshot_taken_ms(snapshot);
    stats_code = WEIR_ECONN;
    weir__snapshot_look(snapshot);
    play_round();
    names_code = WEIR_ECONN;
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_INT(WEIR_ECONN, weir__snapshot_code(snapshot));
    EXPECT_TRUE(topic(1)->row.is_shown && !topic(1)->row.is_away);
    EXPECT_INT(7, topic(1)->row.stats.done_total);
    EXPECT_INT(taken_ms, weir__snapshot_taken_ms(snapshot));
    stop();
}

TEST(a_topic_that_went_between_its_questions_is_not_shown)
{
    name_topics(1);
    stats_code = WEIR_ENOTFOUND;
    start();
    play_round();
    EXPECT_TRUE(!topic(0)->row.is_shown);
    stop();
}

TEST(a_topic_that_becomes_of_a_kind_that_is_not_known_is_away_until_it_is)
{
    name_topics(1);
    start();
    play_round();
    kind = "turnstile";
    for (int i = 0; i < 2; i++) {
        weir__snapshot_look(snapshot);
        play_round();
        EXPECT_STR("turnstile", topic(0)->row.kind);
        EXPECT_TRUE(topic(0)->row.is_away && topic(0)->is_of_new_kind);
    }
    kind = "list";
    weir__snapshot_look(snapshot);
    play_round();
    EXPECT_STR("list", topic(0)->row.kind);
    EXPECT_TRUE(!topic(0)->row.is_away && !topic(0)->is_of_new_kind);
    stop();
}

TEST(a_round_without_memory_keeps_what_is_known)
{
    name_topics(5);
    start();
    play_round();
    name_topics(7);
    for (int n = 0;; n++) {
        weir__snapshot_look(snapshot);
        oom_after(n);
        play_round();
        oom_off();
        if (weir__snapshot_code(snapshot) == WEIR_OK)
            break;
        EXPECT_INT(WEIR_ENOMEM, weir__snapshot_code(snapshot));
        EXPECT_INT(5, topic_count());
    }
    EXPECT_INT(7, topic_count());
    stop();
}
