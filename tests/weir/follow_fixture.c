/* SPDX-License-Identifier: MIT */
#include "tests/weir/follow_fixture.h"

#include <stdio.h>
#include <string.h>

char ran[400];
char logged[400];
int codes[80], code_count;

static void log_line(enum weir_level level, const char *text, void *arg)
{
    (void)arg;
    if (level >= WEIR_LEVEL_WARN && strstr(text, ": dead") == NULL)
        (void)snprintf(logged, sizeof(logged), "%s", text);
}

void open_as(const struct weir_topic_options *topic)
{
    host_open(
        &(struct weir_options){.log = log_line, .block_warn_ms = 3600000});
    EXPECT_INT(WEIR_OK, weir_reactor_serve(weir, "t", topic, NULL));
}

void open_host(weir_run_fn run, const char *timeout)
{
    open_as(&(struct weir_topic_options){.run = run,
                                         .options = {"retry=1h", timeout}});
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

void await_settled(uint64_t count)
{
    do
        look("t");
    while (settled() < count);
    look("t");
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
                   id.ptr[0] == '@' ? "@" : (const char *)id.ptr);
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
