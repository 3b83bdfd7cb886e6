/* SPDX-License-Identifier: MIT */
#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/redis/store/store_fixture.h"

/* Managing jobs and topics when memory runs out, at each allocation in turn:
 * a request is refused or answered once. */

static int answers, last_code;

static void on_count(int code, uint64_t count, void *arg)
{
    (void)count;
    (void)arg;
    answers++;
    last_code = code;
}

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    answers += job == NULL;
    last_code = code;
}

static void on_code(int code, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    answers++;
    last_code = code;
}

static void on_setting(int code, const char *key, const char *value, void *arg)
{
    (void)value;
    (void)arg;
    answers += key == NULL;
    last_code = code;
}

static void on_rescheduled(int code, enum weir_job_state was, int64_t due_ms,
                           void *arg)
{
    (void)was;
    (void)due_ms;
    (void)arg;
    answers++;
    last_code = code;
}

static void on_one(int code, const struct weir_job_info *job, void *arg)
{
    (void)job;
    (void)arg;
    answers++;
    last_code = code;
}

static void on_deleted(int code, enum weir_job_state was, void *arg)
{
    (void)was;
    (void)arg;
    answers++;
    last_code = code;
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)stats;
    (void)arg;
    answers++;
    last_code = code;
}

enum request {
    REQUEUE,
    PURGE,
    FORGET,
    LIST,
    PAUSE,
    SET,
    SETTINGS,
    PUT_OFF,
    SHOW,
    SHOW_DEAD,
    LIST_DEAD,
    STATS,
    DELETE
};

static int ask(struct host *host, enum request request)
{
    const struct weir__store_ops *ops = host->store->ops;
    struct weir__store_topic *topic = host->topic;
    struct weir_slice id = weir__slice_str("waits");
    struct weir__setting setting = {weir__slice_str("weight"),
                                    weir__slice_str("2")};
    struct weir__reschedule what = {id, 60000, 0};

    switch (request) {
    case REQUEUE:
        return ops->requeue(topic, weir__slice_str(NULL), on_count, NULL);
    case PURGE:
        return ops->purge(topic, WEIR__PURGE_ALL, on_count, NULL);
    case FORGET:
        return ops->forget(topic, weir__slice_str("dead"), on_count, NULL);
    case LIST:
        return ops->list(topic,
                         &(const struct weir__list){.state = WEIR_JOB_SCHEDULED,
                                                    .limit = 10},
                         on_shown, NULL);
    case PAUSE:
        return ops->pause(topic, false, on_code, NULL);
    case SET:
        return ops->set(topic, &setting, 1, on_code, NULL);
    case SETTINGS:
        return ops->settings(topic, on_setting, NULL);
    case SHOW:
        return ops->show(topic, id, on_one, NULL);
    case SHOW_DEAD:
        return ops->show(topic, weir__slice_str("dead"), on_one, NULL);
    case LIST_DEAD:
        return ops->list(
            topic,
            &(const struct weir__list){.state = WEIR_JOB_DEAD, .limit = 10},
            on_shown, NULL);
    case STATS:
        return ops->stats(topic, on_stats, NULL);
    case DELETE:
        return ops->remove(topic, id, on_deleted, NULL);
    case PUT_OFF:
        break;
    }
    return ops->reschedule(topic, &what, on_rescheduled, NULL);
}

/* With memory for 0, 1, 2 ... allocations until it is answered well. */
static void sweep(struct host *host, enum request request)
{
    int code = WEIR_ENOMEM, asked = answers;

    for (int n = 0; code != WEIR_OK; n++) {
        EXPECT_TRUE(n < 1000);
        oom_after(n);
        code = ask(host, request);
        if (code == WEIR_OK) {
            asked++;
            AWAIT(answers == asked);
            code = last_code;
        }
        oom_off();
    }
    EXPECT_INT(asked, answers);
}

TEST(a_delete_is_refused_or_answered_whatever_fails)
{
    struct host *host = host_open("w1");

    host_add(host, "waits", 60000);
    AWAIT(host->added == 1);
    sweep(host, DELETE);
    EXPECT_INT(WEIR_ENOTFOUND, host_show(host, "waits"));
}

TEST(every_request_is_refused_or_answered_whatever_fails)
{
    struct host *host = host_open("w1");

    host_add(host, "dead", 0);
    host_add(host, "waits", 60000);
    AWAIT(host->added == 2);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    host->runs->record.reason = weir__slice_str("failed");
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    sweep(host, PUT_OFF);
    sweep(host, LIST);
    sweep(host, SHOW);
    sweep(host, SHOW_DEAD);
    sweep(host, LIST_DEAD);
    sweep(host, STATS);
    sweep(host, PAUSE);
    sweep(host, SET);
    sweep(host, SETTINGS);
    sweep(host, REQUEUE);
    EXPECT_INT(1, host_claim(host, 10, 60000));
    host->runs->record.reason = weir__slice_str("failed");
    host_settle_all(host, WEIR__OUTCOME_DEAD);
    host_await_settled(host);
    sweep(host, FORGET);
    sweep(host, PURGE);
    EXPECT_INT(WEIR_ENOTFOUND, host_show(host, "waits"));
}
