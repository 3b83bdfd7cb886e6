/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "tests/redis/store/store_fixture.h"

/* Requests of a host, and their answers. */

static struct weir_slice keep(struct host *host, size_t index,
                              struct weir_slice slice)
{
    char *to = host->text[index];
    size_t len = slice.len < 255 ? slice.len : 255;

    if (len > 0)
        memcpy(to, slice.ptr, len);
    to[len] = '\0';
    return weir__slice_of(to, len);
}

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    struct host *host = arg;

    host->show_code = code;
    if (job == NULL) {
        host->is_listed = true;
        return;
    }
    host->shown++;
    host->info = *job;
    host->info.id = keep(host, 0, job->id);
    host->info.error = keep(host, 1, job->error);
    host->info.reason = keep(host, 2, job->reason);
    host->info.body = keep(host, 3, job->body);
    host->info.url = keep(host, 4, job->url);
    host->info.worker = keep(host, 5, job->worker);
}

int host_show(struct host *host, const char *id)
{
    int before = host->shown;

    host->is_listed = false;
    EXPECT_INT(WEIR_OK, host->store->ops->show(host->topic, weir__slice_str(id),
                                               on_shown, host));
    AWAIT(host->shown > before || host->is_listed);
    return host->show_code;
}

static void on_removed(int code, enum weir_job_state was, void *arg)
{
    struct host *host = arg;

    host->show_code = code;
    host->was = was;
    host->is_listed = true;
}

int host_remove(struct host *host, const char *id)
{
    host->is_listed = false;
    EXPECT_INT(WEIR_OK,
               host->store->ops->remove(host->topic, weir__slice_str(id),
                                        on_removed, host));
    AWAIT(host->is_listed);
    return host->show_code;
}

int host_dead(struct host *host, size_t limit)
{
    return host_list(host, WEIR_JOB_DEAD, limit);
}

static void on_count(int code, uint64_t count, void *arg)
{
    struct host *host = arg;

    host->show_code = code;
    host->count = count;
    host->is_listed = true;
}

void host_ask_requeue(struct host *host, const char *id)
{
    host->is_listed = false;
    EXPECT_INT(WEIR_OK, host->store->ops->requeue(
                            host->topic, weir__slice_str(id), on_count, host));
}

int host_requeue(struct host *host, const char *id)
{
    host_ask_requeue(host, id);
    AWAIT(host->is_listed);
    return host->show_code;
}

int host_forget(struct host *host, const char *id)
{
    host->is_listed = false;
    EXPECT_INT(WEIR_OK, host->store->ops->forget(
                            host->topic, weir__slice_str(id), on_count, host));
    AWAIT(host->is_listed);
    return host->show_code;
}

void host_ask_purge(struct host *host, enum weir__purge what)
{
    host->is_listed = false;
    EXPECT_INT(WEIR_OK,
               host->store->ops->purge(host->topic, what, on_count, host));
}

int host_purge(struct host *host, enum weir__purge what)
{
    host_ask_purge(host, what);
    AWAIT(host->is_listed);
    return host->show_code;
}

static void on_rescheduled(int code, enum weir_job_state was, int64_t due_ms,
                           void *arg)
{
    struct host *host = arg;

    host->show_code = code;
    host->was = was;
    host->due_ms = due_ms;
    host->is_listed = true;
}

int host_reschedule(struct host *host, const char *id, int64_t delay_ms,
                    int64_t at_ms)
{
    struct weir__reschedule what = {weir__slice_str(id), delay_ms, at_ms};

    host->is_listed = false;
    EXPECT_INT(WEIR_OK, host->store->ops->reschedule(host->topic, &what,
                                                     on_rescheduled, host));
    AWAIT(host->is_listed);
    return host->show_code;
}

int host_list(struct host *host, enum weir_job_state state, size_t limit)
{
    const struct weir__list what = {.state = state, .limit = limit};
    int before = host->shown;

    host->is_listed = false;
    EXPECT_INT(WEIR_OK,
               host->store->ops->list(host->topic, &what, on_shown, host));
    AWAIT(host->is_listed);
    return host->show_code == WEIR_OK ? host->shown - before : host->show_code;
}

static void on_code(int code, const char *text, void *arg)
{
    struct host *host = arg;

    EXPECT_TRUE(text != NULL);
    host->show_code = code;
    host->is_listed = true;
}

int host_pause(struct host *host, bool is_paused)
{
    host->is_listed = false;
    EXPECT_INT(WEIR_OK,
               host->store->ops->pause(host->topic, is_paused, on_code, host));
    AWAIT(host->is_listed);
    return host->show_code;
}

int host_set(struct host *host, const char *name, const char *value)
{
    struct weir__setting setting = {weir__slice_str(name),
                                    weir__slice_str(value)};

    host->is_listed = false;
    EXPECT_INT(WEIR_OK,
               host->store->ops->set(host->topic, &setting, 1, on_code, host));
    AWAIT(host->is_listed);
    return host->show_code;
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct host *host = arg;

    host->stats_code = code;
    host->stats_count++;
    if (stats == NULL)
        return;
    host->stats = *stats;
    (void)snprintf(host->kind, sizeof(host->kind), "%s", stats->kind);
    (void)snprintf(host->unserved, sizeof(host->unserved), "%s",
                   stats->unserved_groups); /* fits */
}

int host_stats(struct host *host)
{
    int before = host->stats_count;

    EXPECT_INT(WEIR_OK, host->store->ops->stats(host->topic, on_stats, host));
    AWAIT(host->stats_count > before);
    return host->stats_code;
}
