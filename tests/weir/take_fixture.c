/* SPDX-License-Identifier: MIT */
#include "tests/weir/take_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

struct weir_take *takes[WEIR_MAX_TAKE];
size_t take_count, answer_count;
int answers, answer_code, settled_count;
char ids[800], lost[200], settled[400];
const char *const *take_with;
/* time is the subject */
const char *const brief_lease[] = {"lease=300ms", NULL};

/* Behind what is there, as far as there is room. */
static void append(char *text, size_t cap, const char *what, int number)
{
    size_t len = strlen(text);

    (void)snprintf(text + len, cap - len, number < 0 ? "%s " : "%s:%d ", what,
                   number);
}

static const char *id_of(const struct weir_take *taken)
{
    static char id[WEIR_MAX_ID + 1];
    struct weir_slice from = weir_job_id(weir_take_job(taken));

    (void)snprintf(id, sizeof(id), "%.*s", (int)from.len,
                   (const char *)from.ptr);
    return id;
}

void on_taken(int code, struct weir_take *const *taken, size_t count, void *arg)
{
    (void)arg;
    answers++;
    answer_code = code;
    answer_count = count;
    for (size_t i = 0; i < count; i++) {
        EXPECT_TRUE(take_count < WEIR_MAX_TAKE);
        append(ids, sizeof(ids), id_of(taken[i]), -1);
        takes[take_count++] = taken[i];
    }
}

void on_lost(struct weir_take *take, enum weir_cancel why, void *arg)
{
    (void)arg;
    append(lost, sizeof(lost), id_of(take), (int)why);
}

void on_settled(int code, void *arg)
{
    (void)arg;
    settled_count++;
    append(settled, sizeof(settled),
           code == WEIR_OK ? "OK" : weir_error_name(code), -1);
}

int call_take(struct weir_reactor *from, const char *topic, size_t limit,
              int64_t wait_ms)
{
    const struct weir_take_options options = {
        .limit = limit,
        .wait_ms = wait_ms,
        .options = take_with,
        .fn = on_taken,
        .lost = on_lost,
    };

    return weir_reactor_take(from, topic, &options, NULL);
}

void take(size_t limit, size_t count)
{
    int before = answers;

    EXPECT_INT(WEIR_OK, call_take(weir, "orders", limit, 0));
    AWAIT(answers > before);
    EXPECT_INT(WEIR_OK, answer_code);
    EXPECT_INT(count, answer_count);
}

static void on_added(int code, const char *id, void *arg)
{
    (void)id;
    EXPECT_INT(WEIR_OK, code);
    *(bool *)arg = true;
}

void add_to(const char *topic, const char *id)
{
    const struct weir_new_job job = {
        .id = id, .group = strcmp(topic, "events") == 0 ? "g" : NULL};
    bool is_added = false;

    EXPECT_INT(WEIR_OK,
               weir_reactor_add(weir, topic, &job, on_added, &is_added, NULL));
    AWAIT(is_added);
}

void add(const char *id)
{
    add_to("orders", id);
}

void settle(size_t at, enum weir_verdict verdict)
{
    const struct weir_settlement how = {
        .verdict = verdict,
        .delay_ms = 3600000,
        .why = "why",
        .fn = on_settled,
    };

    EXPECT_INT(WEIR_OK, weir_take_settle(takes[at], &how));
}

void give_back(size_t at)
{
    EXPECT_INT(WEIR_OK, weir_take_give_back(takes[at], on_settled, NULL));
}

void expect_settled(const char *codes)
{
    int count = 0;

    for (const char *c = codes; *c != '\0'; c++)
        count += *c == ' ';
    AWAIT(settled_count >= count);
    EXPECT_STR(codes, settled);
}

static const char *state;
struct weir_counters counters;

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    (void)arg;
    state = code == WEIR_OK ? weir_job_state_name(job->state) : "none";
    if (code == WEIR_OK)
        counters = job->counters;
}

const char *state_of(const char *id)
{
    state = NULL;
    EXPECT_INT(WEIR_OK, weir_reactor_show(weir, "orders", id, on_shown, NULL));
    AWAIT(state != NULL);
    return state;
}

void stand_still(void)
{
    redis_kill(server, SIGSTOP);
    EXPECT_INT(redis_pid(server), waitpid(redis_pid(server), NULL, WUNTRACED));
}

void go_on(void)
{
    redis_kill(server, SIGCONT);
}

void send_all(void)
{
    host_turns(5);
}

static struct weir_stats stats;
static bool is_asking;

static void on_stats(int code, const struct weir_stats *from, void *arg)
{
    (void)arg;
    is_asking = false;
    stats = (struct weir_stats){0}; /* there is no such topic */
    if (code == WEIR_OK)
        stats = *from;
}

const struct weir_stats *look(void)
{
    is_asking = true;
    EXPECT_INT(WEIR_OK, weir_reactor_stats(weir, "orders", on_stats, NULL));
    AWAIT(!is_asking);
    return &stats;
}
