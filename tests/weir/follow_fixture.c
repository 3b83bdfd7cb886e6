/* SPDX-License-Identifier: MIT */
#include "tests/weir/follow_fixture.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct redis_proc *server;
struct ev_loop *loop;
struct weir_reactor *weir;
char ran[400];
char logged[400];
int codes[80], code_count;

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    if (level >= WEIR_LEVEL_WARN)
        (void)snprintf(logged, sizeof(logged), "%s", text);
}

void open_as(const struct weir_topic_options *topic)
{
    struct weir_options options = {.log = log_line, .block_warn_ms = 3600000};

    server = redis_start(NULL);
    loop = ev_loop_new(0);
    options.loop = loop;
    options.redis_url = redis_url(server);
    EXPECT_INT(WEIR_OK, weir_reactor_open(&options, &weir, NULL));
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", topic, NULL));
}

void open_host(weir_run_fn run, const char *timeout)
{
    open_as(&(struct weir_topic_options){.run = run,
                                         .options = {"retry=1h", timeout}});
}

void close_host(void)
{
    weir_reactor_free(weir);
    ev_loop_destroy(loop);
    redis_stop(server);
}

void add_to(const char *topic, const char *id)
{
    struct weir_new_job job = {.id = id};

    EXPECT_INT(WEIR_OK, weir_reactor_add(weir, topic, &job, NULL, NULL, NULL));
}

void add(const char *id)
{
    add_to("t", id);
}

static int64_t now_s(void)
{
    struct timespec now = {0};

    EXPECT_INT(0, clock_gettime(CLOCK_MONOTONIC, &now));
    return now.tv_sec;
}

struct weir_stats last;
static bool is_asking;

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    (void)arg;
    is_asking = false;
    if (code == WEIR_OK)
        last = *stats;
}

void look(const char *topic)
{
    is_asking = true;
    EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, topic, on_stats, NULL));
    while (is_asking)
        ev_run(loop, EVRUN_ONCE);
}

static uint64_t settled(void)
{
    return last.done_total + last.retried_total + last.failed_total;
}

/* Run the loop until so many verdicts are settled, and a look after that. */
void await_settled(uint64_t count)
{
    int64_t until = now_s() + 30;
    int looks = 0;

    while ((looks < 2 || is_asking) && now_s() < until) {
        if (!is_asking) {
            looks += settled() >= count;
            EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "t", on_stats, NULL));
            is_asking = true;
        }
        ev_run(loop, EVRUN_ONCE);
    }
    EXPECT_INT(count, settled());
}

bool is_id(const struct weir_job *job, const char *id)
{
    struct weir_slice own = weir_job_id(job);

    return own.len == strlen(id) && memcmp(own.ptr, id, own.len) == 0;
}

void note(const struct weir_job *job)
{
    struct weir_slice id = weir_job_id(job);
    size_t len = strlen(ran);

    (void)snprintf(ran + len, sizeof(ran) - len, "%.*s ", (int)id.len,
                   id.ptr[0] == '~' ? "~" : (const char *)id.ptr);
}

void follow(struct weir_job *job, const char *id, int64_t delay_ms)
{
    const uint8_t body[] = {0x81, 0xa1, 'n', 7};
    struct weir_follow next = {.id = id,
                               .body = {body, sizeof(body)},
                               .delay_ms = delay_ms,
                               .url = "http://h/",
                               .retry = "5s"};

    codes[code_count++] = weir_job_follow(job, &next);
}
