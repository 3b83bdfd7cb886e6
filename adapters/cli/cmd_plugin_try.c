/* SPDX-License-Identifier: MIT */

/* weir plugin try: one job through a plugin's handler, without a server. The
 * plugin runs in a process of its own, so that one that crashes or never
 * returns is told of like any other. */

#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/outcome.h"
#include "adapters/cli/plugin_path.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS_MAX = WEIR__TRY_JOBS_MAX, ID_CAP = WEIR__TRY_ID_CAP };
enum { OPTION, HEADER, BODY, TOPIC, GROUP, ATTEMPT, ID, URL, RETRY, TIMEOUT };

#define TIMEOUT_MS INT64_C(30000)
#define GRACE_MS   INT64_C(3000) /* a pending run is given up by then */

static const struct weir__flag flags[] = {
    [OPTION] = {"option", "K=V", "an option of the plugin; may be repeated"},
    [HEADER] = {"header", "K=V", "a header of the job; may be repeated"},
    [BODY] = {"body", "JSON",
              "body of the job (default: null); may be repeated:\n"
              "a job for each, at once"},
    [TOPIC] = {"topic", "T", "topic of the job (default: trial)"},
    [GROUP] = {"group", "G", "group of the jobs, as of a bounded topic"},
    [ATTEMPT] = {"attempt", "N",
                 "number of the run, 1 to 1000000 (default: 1)"},
    [ID] = {"id", "I",
            "id of the job (default: 1); further ones are\n"
            "I.2, I.3, ... (2, 3, ...)"},
    [URL] = {"url", "U", "address of the job (default: none)"},
    [RETRY] = {"retry", "LADDER",
               "delays between attempts\n"
               "(default: 15s 3m 10m 30m 30m 1h 2h 6h 15h)"},
    [TIMEOUT] = {"timeout", "D",
                 "how long the run may take, 10ms to 7d\n"
                 "(default: 30s)"},
};

struct
try {
    const struct weir__cli *cli;
    const struct weir__args *args;
    char path[PATH_MAX];
    const char **options; /* of the plugin; owned, not what it points at */
    size_t option_count;
    int64_t attempt;
    int64_t timeout_ms;
    struct weir_header headers[WEIR_MAX_HEADERS];
    int out; /* stdout, while the plugin's own output goes elsewhere; or -1 */
};

/* --- what came of it --------------------------------------------------- */

static const struct {
    const char *name;
    enum weir__exit exit;
} verdicts[] = {
    [WEIR_DONE] = {"DONE", WEIR__EXIT_DONE},
    [WEIR_RETRY] = {"RETRY", WEIR__EXIT_RETRY},
    [WEIR_RETRY_AFTER] = {"RETRY_AFTER", WEIR__EXIT_RETRY},
    [WEIR_SNOOZE] = {"SNOOZE", WEIR__EXIT_SNOOZE},
    [WEIR_FAIL] = {"FAIL", WEIR__EXIT_FAIL},
};

static double now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* --- the plugin's process ---------------------------------------------- */

static void on_line(enum weir_level level, const char *text, void *arg)
{
    const struct try *try = arg;

    if (!try->cli->json && level >= try->cli->log_level)
        weir__log_line(&(struct weir_log_line){.level = level, .text = text},
                       NULL);
}

/* Jobs are numbered from 0. */
static size_t job_count(const struct try *try)
{
    return try->args->all_count[BODY] > 0 ? try->args->all_count[BODY] : 1;
}

static void name_job(const struct try *try, size_t number, char ret_id[ID_CAP])
{
    const char *id = try->args->value[ID];

    if (number == 0)
        (void)snprintf(ret_id, ID_CAP, "%s", id == NULL ? "1" : id); /* fits */
    else
        (void)snprintf(ret_id, ID_CAP, "%s%s%zu", id == NULL ? "" : id,
                       id == NULL ? "" : ".", number + 1); /* fits */
}

/* The sentence was printed. */
static bool add_jobs(const struct try *try, struct weir_trial *trial)
{
    const char *const *value = try->args->value;
    struct weir_error err = {0};

    for (size_t i = 0; i < job_count(try); i++) {
        char id[ID_CAP];
        const struct weir_trial_job job = {
            .id = id,
            .json =
                try->args->all_count[BODY] > 0 ? try->args->all[BODY][i] : NULL,
            .url = value[URL],
            .counters = {.attempt = (uint32_t)try->attempt},
            .headers = try->headers,
            .header_count = try->args->all_count[HEADER],
            .group = value[GROUP],
        };

        name_job(try, i, id);
        if (weir_trial_add(trial, &job, &err) == WEIR_OK)
            continue;
        weir__complain("%s%s", value[BODY] != NULL ? "--body: " : "",
                       weir__text_behind(err.text, "json: "));
        return false;
    }
    return true;
}

static struct weir_trial *open_trial(struct try *try)
{
    const char *const *value = try->args->value;
    char timeout[40];
    struct weir_trial_options options = {
        .topic = value[TOPIC],
        .serve =
            {
                .plugin = try->path,
                .plugin_options = try->options,
                .plugin_option_count = try->option_count,
                .options = {timeout},
            },
        .log = on_line,
        .log_arg = try,
    };
    struct weir_trial *trial;
    struct weir_error err = {0};
    char *retry = NULL;
    int rc;

    (void)snprintf(timeout, sizeof(timeout), "timeout=%" PRId64 "ms",
                   try->timeout_ms); /* fits */
    if (value[RETRY] != NULL) {
        retry = weir__value_said("retry", value[RETRY]);
        if (retry == NULL)
            return NULL;
        options.serve.options[1] = retry;
    }
    rc = weir_trial_open(&options, &trial, &err);
    weir__mem_free(retry);
    if (rc < 0) {
        weir__complain("%s", err.text);
        return NULL;
    }
    if (add_jobs(try, trial))
        return trial;
    weir_trial_free(trial);
    return NULL;
}

/* With --json stdout holds one object and nothing else: what the plugin prints
 * goes to stderr. */
static bool divert_output(struct try *try)
{
    try->out = -1;
    if (!try->cli->json)
        return true;
    try->out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (try->out >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
        return true;
    weir__complain("cannot turn stdout away: %s", strerror(errno));
    return false;
}

static void restore_output(const struct try *try)
{
    if (try->out < 0)
        return;
    (void)fflush(stdout);
    (void)dup2(try->out, STDOUT_FILENO); /* it was open there before */
    (void)close(try->out);
}

/* The first run of this job: others are of retries, and of jobs that were
 * added. */
static const struct weir_trial_run *first_run(const struct weir_trial *trial,
                                              const char *id)
{
    for (size_t i = 0; i < weir_trial_run_count(trial); i++)
        if (strcmp(weir_trial_run_at(trial, i)->id, id) == 0)
            return weir_trial_run_at(trial, i);
    return NULL;
}

/* A verdict that comes too late is ignored. */
static void time_out(struct weir__job_outcome *job)
{
    job->verdict = "TIMEOUT";
    job->delay_ms = -1;
    job->reason = "timeout";
    job->dead = "";
}

static enum weir__exit take_run(const struct try *try,
                                const struct weir_trial_run *run,
                                struct weir__job_outcome *job)
{
    job->attempt = try->attempt;
    job->verdict = run->timed_out ? "TIMEOUT" : verdicts[run->verdict].name;
    job->delay_ms = run->delay_ms;
    job->reason = run->reason;
    job->dead = run->dead;
    if (!run->timed_out && run->held_ms > try->timeout_ms)
        time_out(job);
    else if (!run->timed_out)
        return verdicts[run->verdict].exit;
    return WEIR__EXIT_TIMED_OUT;
}

/* What to exit with: of the first job that is not done. WEIR__EXIT_NONE: one
 * did not run. */
static enum weir__exit take_runs(const struct try *try,
                                 struct weir__outcome *outcome,
                                 struct weir__job_outcome jobs[JOBS_MAX])
{
    enum weir__exit rc = WEIR__EXIT_DONE;

    for (; outcome->job_count < job_count(try); outcome->job_count++) {
        struct weir__job_outcome *job = &jobs[outcome->job_count];
        const struct weir_trial_run *run;
        enum weir__exit exit_code;

        name_job(try, outcome->job_count, job->id);
        run = first_run(outcome->trial, job->id);
        if (run == NULL)
            return WEIR__EXIT_NONE;
        exit_code = take_run(try, run, job);
        if (rc == WEIR__EXIT_DONE)
            rc = exit_code;
    }
    return rc;
}

static enum weir__exit run_plugin(struct try *try)
{
    struct weir_trial *trial;
    struct weir__job_outcome jobs[JOBS_MAX];
    struct weir__outcome outcome;
    enum weir__exit rc;
    double start_ms;

    if (!divert_output(try))
        return WEIR__EXIT_FAILED;
    trial = open_trial(try);
    if (trial == NULL)
        return WEIR__EXIT_USAGE;
    start_ms = now_ms();
    weir_trial_advance(trial, 0);
    if (!weir_trial_wait(trial, try->timeout_ms))
        weir_trial_advance(trial, 1); /* its timeout has passed by then */
    outcome =
        (struct weir__outcome){.trial = trial, .time_ms = now_ms() - start_ms};
    restore_output(try);
    outcome.jobs = jobs;
    rc = take_runs(try, &outcome, jobs);
    if (rc == WEIR__EXIT_NONE) {
        weir__complain("the job did not run: out of memory");
        weir_trial_free(trial);
        return WEIR__EXIT_FAILED;
    }
    if (weir__outcome_print(try->cli, &outcome) != WEIR__EXIT_DONE)
        rc = WEIR__EXIT_FAILED;
    weir_trial_free(trial);
    return rc;
}

/* --- waiting for it ---------------------------------------------------- */

/* Whether the process ended in time; a signal that it did is blocked, and so is
 * not lost between the two calls. What the process started itself may go on. */
static bool wait_ended(pid_t child, int64_t timeout_ms, int *ret_status)
{
    double until_ms = now_ms() + (double)timeout_ms;
    sigset_t ended;
    int64_t left_ms;

    (void)sigemptyset(&ended);
    (void)sigaddset(&ended, SIGCHLD);
    do {
        struct timespec left = {0};

        if (waitpid(child, ret_status, WNOHANG) == child)
            return true;
        left_ms = (int64_t)(until_ms - now_ms());
        if (left_ms > 0)
            left = (struct timespec){left_ms / 1000, left_ms % 1000 * 1000000};
        (void)sigtimedwait(&ended, NULL, &left); /* then it is looked again */
    } while (left_ms > 0);
    return false;
}

static int reap(pid_t child)
{
    int status = 0;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static enum weir__exit say_timeout(const struct try *try)
{
    struct weir__job_outcome job = {.attempt = try->attempt};
    const struct weir__outcome outcome = {
        .jobs = &job, .job_count = 1, .time_ms = (double)try->timeout_ms};

    time_out(&job);
    return weir__outcome_print(try->cli, &outcome) == WEIR__EXIT_DONE
               ? WEIR__EXIT_TIMED_OUT
               : WEIR__EXIT_FAILED;
}

/* A byte in `pipe` tells that the process came to the end of a command. */
static enum weir__exit wait_for(const struct try *try, pid_t child, int pipe)
{
    int status = 0;
    bool is_told;
    char byte;

    if (!wait_ended(child, try->timeout_ms + GRACE_MS, &status)) {
        (void)kill(child, SIGKILL);
        (void)reap(child);
        return say_timeout(try);
    }
    is_told = read(pipe, &byte, 1) == 1;
    if (WIFEXITED(status) && is_told)
        return (enum weir__exit)WEXITSTATUS(status);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE && is_told)
        weir__end_unread();
    if (WIFEXITED(status)) {
        weir__complain("plugin %s: it ended the program with exit code %d",
                       try->path, WEXITSTATUS(status));
        return WEIR__EXIT_FAILED;
    }
    weir__complain("plugin %s: it crashed: %s", try->path,
                   strsignal(WTERMSIG(status)));
    return WEIR__EXIT_FAILED;
}

/* Block SIGCHLD, which must not be ignored either: then nobody would hear how
 * the process ended. */
static void await_children(sigset_t *ret_before)
{
    struct sigaction act;
    sigset_t ended;

    memset(&act, 0, sizeof(act));
    act.sa_handler = SIG_DFL;
    (void)sigaction(SIGCHLD, &act, NULL); /* cannot fail for SIGCHLD */
    (void)sigemptyset(&ended);
    (void)sigaddset(&ended, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &ended, ret_before);
}

/* In the plugin's process. */
static enum weir__exit run_and_tell(struct try *try, int pipe)
{
    enum weir__exit rc = run_plugin(try);

    if (write(pipe, "", 1) != 1)
        weir__complain("cannot write to a pipe: %s", strerror(errno));
    return rc;
}

/* Both processes return from here and end as any command does. */
static enum weir__exit run_apart(struct try *try)
{
    enum weir__exit rc = WEIR__EXIT_FAILED;
    sigset_t before;
    int ends[2];
    pid_t child;

    if (pipe(ends) < 0) {
        weir__complain("cannot make a pipe: %s", strerror(errno));
        return rc;
    }
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[0], F_SETFL,
                O_NONBLOCK); /* others may have its other end */
    await_children(&before);
    child = fork();
    if (child == 0) {
        (void)sigprocmask(SIG_SETMASK, &before, NULL);
        return run_and_tell(try, ends[1]);
    }
    if (child > 0)
        rc = wait_for(try, child, ends[0]);
    else
        weir__complain("cannot start a process: %s", strerror(errno));
    (void)close(ends[0]);
    (void)close(ends[1]);
    return rc;
}

/* Its file, and its options: those behind it, then those of --option. True:
 * released by the caller. */
static bool take_plugin(struct try *try, struct weir__handle *ret_handle)
{
    static const struct weir__plugin_places places = {.who = ""};
    const struct weir__args *args = try->args;

    if (!weir__handle_parse_plugin(args->operand[0], ret_handle) ||
        !weir__plugin_find(ret_handle->plugin, &places, try->path))
        return false;
    try->options =
        weir__mem_new((ret_handle->option_count + args->all_count[OPTION] + 1) *
                      sizeof(*try->options));
    if (try->options == NULL) {
        weir__complain("out of memory");
        return false;
    }
    for (size_t i = 0; i < ret_handle->option_count; i++)
        try->options[try->option_count++] = ret_handle->options[i];
    for (size_t i = 0; i < args->all_count[OPTION]; i++)
        try->options[try->option_count++] = args->all[OPTION][i];
    return true;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    static const struct weir__bounds attempts = {1, 1000000, "1 to 1000000"};
    static const struct weir__bounds times = {10, INT64_C(7) * 24 * 3600 * 1000,
                                              "10ms to 7d"};
    struct try try = {
        .cli = cli, .args = args, .attempt = 1, .timeout_ms = TIMEOUT_MS};
    const char *const *value = args->value;
    struct weir__handle handle = {0};
    struct weir_error err = {0};
    enum weir__exit rc = WEIR__EXIT_USAGE;

    if (!weir__told(weir__value_number("--attempt", value[ATTEMPT], attempts,
                                       &try.attempt, &err),
                    &err) ||
        !weir__told(weir__value_duration("--timeout", value[TIMEOUT], times,
                                         &try.timeout_ms, &err),
                    &err) ||
        !weir__told(weir__value_ladder("--retry", value[RETRY], &err), &err) ||
        !weir__told(weir__job_headers_read(args->all[HEADER],
                                           args->all_count[HEADER], try.headers,
                                           &err),
                    &err) ||
        (value[TOPIC] != NULL && !weir__operand_topic(value[TOPIC])) ||
        (value[ID] != NULL && !weir__operand_id(value[ID], true)))
        return rc;
    if (args->all_count[BODY] > JOBS_MAX) {
        weir__complain("--body: %d at most", JOBS_MAX);
        return rc;
    }
    if (take_plugin(&try, &handle))
        rc = run_apart(&try);
    weir__mem_free(try.options);
    weir__handle_fini(&handle);
    return rc;
}

const struct weir__command weir__cmd_plugin_try = {
    .name = "plugin try",
    .operands = "F.so",
    WEIR__FLAGS(flags),
    .repeated_count = 3,
    .summary = "Run a job through a plugin, without a server",
    .details = "F.so is a path or a name, as weir run --handle takes it, and "
               "so are options\n"
               "behind it: F.so?k=v&k=v. Prints the verdict, the delay until "
               "the next attempt,\n"
               "the reason, how long it took, the jobs that it adds, and what "
               "the plugin\n"
               "counted; what it logs goes to stderr. With --json:\n"
               "{\"verdict\",\"attempt\",\"delay_ms\",\"reason\",\"dead\","
               "\"time_ms\",\"counters\":{},\n"
               "\"follows\":[{\"topic\",\"id\",\"delay_ms\",\"body\"}],\"log\":"
               "[{\"level\",\"text\"}]};\n"
               "what the plugin itself prints then goes to stderr.\n"
               "\n"
               "With several --body a handler of batches gets all of them at "
               "once, another one\n"
               "each in turn; then each job is told with its id, in JSON as\n"
               "{\"jobs\":[{\"id\",\"verdict\",\"attempt\",\"delay_ms\","
               "\"reason\",\"dead\"}],\"time_ms\",...},\n"
               "and the exit code is of the first that is not DONE.",
    .example = "weir plugin try ./close_order.so --topic order.close "
               "--body '{\"order\":42}'",
    .exits = "0 DONE, 1 the plugin crashed, 2 wrong usage, no such plugin, or\n"
             "  wrong options, 10 RETRY, 11 FAIL, 12 SNOOZE, 13 timed out",
    .run = run,
};
