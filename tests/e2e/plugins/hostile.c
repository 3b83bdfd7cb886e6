/* SPDX-License-Identifier: MIT */

/* Does what a plugin must not do, where the option `how` says; at its loading
 * already, where the environment's HOSTILE does. */

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/plugin.h>

struct hostile {
    char how[32];
    struct weir_loop *loop;
};

static const struct weir_option options[] = {
    {
        .name = "how",
        .type = WEIR_OPTION_CHOICE,
        .fallback = "well",
        .choices = "well|open_crash|open_exit|open_bytes|open_quit|"
                   "run_crash|run_exit|run_quit|close_crash|close_timer|"
                   "verdict_77|verdict_minus|"
                   "verdict_each|log_bytes|watch_none|finish_early|spin|"
                   "leave_child",
    },
};

__attribute__((constructor)) static void be_loaded(void)
{
    const char *how = getenv("HOSTILE");

    if (how != NULL && strcmp(how, "load_crash") == 0)
        abort();
    if (how != NULL && strcmp(how, "load_exit") == 0)
        exit(0);
}

static bool is(const struct hostile *hostile, const char *how)
{
    return strcmp(hostile->how, how) == 0;
}

static int open_hostile(const struct weir_open *open, void **ret_self)
{
    struct hostile *hostile;
    const char *how = open->values[0].text;

    if (strcmp(how, "open_crash") == 0)
        abort();
    if (strcmp(how, "open_exit") == 0)
        exit(0);
    if (strcmp(how, "open_quit") == 0)
        _exit(0);
    if (strcmp(how, "open_bytes") == 0) {
        memset(open->error, '\033', open->error_cap);
        open->error[0] = '\n';
        return WEIR_EINVAL;
    }
    hostile = calloc(1, sizeof(*hostile));
    if (hostile == NULL)
        return WEIR_ENOMEM;
    memcpy(hostile->how, how, strlen(how)); /* one of the choices: fits */
    hostile->loop = weir_open_loop(open);
    *ret_self = hostile;
    return 0;
}

static void never(void *arg)
{
    (void)arg;
    abort();
}

static void never_ready(int fd, unsigned events, void *arg)
{
    (void)fd;
    (void)events;
    (void)arg;
    abort();
}

static enum weir_verdict run_log_bytes(struct weir_job *job)
{
    weir_job_log(job, WEIR_LEVEL_INFO, "one\nweir: forged\033[31m");
    weir_job_log(job, (enum weir_level)99, "no level");
    weir_job_log(job, (enum weir_level) - 1, NULL);
    return weir_fail(job, "two\nlines");
}

static enum weir_verdict run_watch_none(const struct hostile *hostile,
                                        struct weir_job *job)
{
    if (weir_watch_new(hostile->loop, -1, never_ready, NULL) != NULL ||
        weir_watch_new(hostile->loop, 1 << 30, never_ready, NULL) != NULL)
        return weir_fail(job, "there is a watch");
    return WEIR_DONE;
}

/* Finishes its run twice before it returns, and adds a job after that. */
static enum weir_verdict run_finish_early(struct weir_job *job)
{
    const struct weir_follow follow = {.id = "next", .delay_ms = 3600 * 1000};
    struct weir_handle handle = weir_job_handle(job);

    (void)weir_complete(handle, WEIR_DONE, 0, NULL);
    (void)weir_complete(handle, WEIR_FAIL, 0, "twice");
    if (weir_job_follow(job, &follow) != WEIR_OK)
        return weir_fail(job, "no job can be added");
    return WEIR_PENDING;
}

static enum weir_verdict run_spin(struct weir_job *job)
{
    weir_job_log(job, WEIR_LEVEL_INFO, "it spins");
    for (volatile int i = 0; i >= 0; i = 0)
        ;
    return WEIR_DONE;
}

/* It has all of the worker's descriptors for a while, but for those that
 * somebody reads to their end. */
static enum weir_verdict run_leave_child(struct weir_job *job)
{
    int child = fork();

    if (child < 0)
        return weir_fail(job, "no process can be started");
    if (child > 0)
        return WEIR_DONE;
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    (void)poll(NULL, 0, 10000); /* time is the subject */
    _exit(0);
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    const struct hostile *hostile = self;

    if (is(hostile, "run_crash"))
        abort();
    if (is(hostile, "run_quit"))
        _exit(0);
    if (is(hostile, "run_exit"))
        exit(0);
    if (is(hostile, "spin"))
        return run_spin(job);
    if (is(hostile, "leave_child"))
        return run_leave_child(job);
    if (is(hostile, "verdict_77"))
        return (enum weir_verdict)77;
    if (is(hostile, "verdict_minus"))
        return (enum weir_verdict) - 1;
    if (is(hostile, "verdict_each"))
        return WEIR_EACH;
    if (is(hostile, "log_bytes"))
        return run_log_bytes(job);
    if (is(hostile, "watch_none"))
        return run_watch_none(hostile, job);
    if (is(hostile, "finish_early"))
        return run_finish_early(job);
    return WEIR_DONE;
}

static void close_hostile(void *self)
{
    struct hostile *hostile = self;

    if (is(hostile, "close_crash"))
        abort();
    if (is(hostile, "close_timer"))
        weir_timer_start(weir_timer_new(hostile->loop, never, NULL), 0);
    free(hostile);
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "hostile",
    .options = options,
    .option_count = 1,
    .option_size = sizeof(struct weir_option),
    .open = open_hostile,
    .run = run,
    .close = close_hostile,
};
