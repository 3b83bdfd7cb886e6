/* SPDX-License-Identifier: MIT */

/* Runs a command for each job, with the job on its standard input, as JSON on
 * one line:
 *
 *     {"topic":"t","id":"1","attempt":1,...,"url":null,"body":{"n":1}}
 *
 * Its exit status is the verdict: 0 is done, what `fail_codes` names fails,
 * and any other, or death by a signal, is retried by the ladder. What it
 * prints goes to the log, line by line, and its last line into the reason of a
 * failure. A job whose command cannot start because this worker lacks
 * descriptors, memory or processes comes back later and loses no attempt.
 *
 * With mode=stream the command stays and gets such a line for each job, which
 * has the number of the run in front; it answers with one of its own:
 *
 *     {"run":17,"topic":"t","id":"1",...}
 *     {"run":17,"verdict":"retry","delay_ms":5000,"reason":"busy"}
 *
 * No shell is started and nothing expanded: `command` is split into words as a
 * shell would. The command gets of the environment what `env` names, default
 * signals, a process group of its own, and no descriptors but the three. When
 * its run is given up (timeout, stop, lost lease) the whole group is ended.
 *
 * In a program whose loop is libev's default one, libev takes the exit status
 * of every child: such a run is retried. The weir command is none. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exec_stream.h"

enum {
    PATH_CAP = 4096,
    FDS_KEPT = 8,  /* descriptors that commands leave to the worker */
    REST_MS = 1000 /* no command starts after one lacked something */
};

enum {
    OPTION_COMMAND,
    OPTION_ENV,
    OPTION_MAX_OUTPUT,
    OPTION_GRACE,
    OPTION_MODE,
    OPTION_CHILDREN,
    OPTION_WINDOW,
    OPTION_CANCEL,
    OPTION_FAIL_CODES
};

static const struct weir_option options[] = {
    [OPTION_COMMAND] = {.name = "command",
                        .type = WEIR_OPTION_TEXT,
                        .help = "Command with its arguments, quoted as for a "
                                "shell; none is started."},
    [OPTION_ENV] = {.name = "env",
                    .type = WEIR_OPTION_TEXT,
                    .fallback = "PATH HOME LANG TZ",
                    .help = "Names of environment variables that it gets."},
    [OPTION_MAX_OUTPUT] = {.name = "max_output",
                           .type = WEIR_OPTION_SIZE,
                           .fallback = "64KiB",
                           .min = 0,
                           .max = 16 * 1024 * 1024,
                           .help =
                               "Most that a run's output takes in the log."},
    [OPTION_GRACE] = {.name = "grace",
                      .type = WEIR_OPTION_DURATION,
                      .fallback = "2s",
                      .min = 0,
                      .max = 3600000,
                      .help = "How long a command that is to end may take, "
                              "before it is killed."},
    [OPTION_MODE] = {.name = "mode",
                     .type = WEIR_OPTION_CHOICE,
                     .fallback = "once",
                     .choices = "once|stream",
                     .help = "A command for each job, or children that stay "
                             "and get a line for each."},
    [OPTION_CHILDREN] = {.name = "children",
                         .type = WEIR_OPTION_INT,
                         .fallback = "1",
                         .min = 1,
                         .max = 256,
                         .help = "How many children there are at most, with "
                                 "mode=stream."},
    [OPTION_WINDOW] = {.name = "window",
                       .type = WEIR_OPTION_INT,
                       .fallback = "1",
                       .min = 1,
                       .max = 1024,
                       .help = "How many jobs a child has at once, with "
                               "mode=stream."},
    [OPTION_CANCEL] = {.name = "cancel",
                       .type = WEIR_OPTION_BOOL,
                       .fallback = "no",
                       .help = "With mode=stream: tell a child which run is "
                               "given up, instead of ending it."},
    [OPTION_FAIL_CODES] = {.name = "fail_codes",
                           .type = WEIR_OPTION_TEXT,
                           .fallback = "",
                           .help = "Exit statuses after which a job is not "
                                   "retried, such as \"64 65 78\"."},
};

/* --- one run -------------------------------------------------------------- */

/* What the counters call such a run. */
static const char *counter_of(enum weir_verdict verdict)
{
    if (verdict == WEIR_DONE)
        return "done";
    return verdict == WEIR_RETRY ? "retried" : "failed";
}

static enum weir_verdict verdict_of(const struct exec *exec,
                                    const struct process_end *end)
{
    if (!end->is_known || end->signal != 0)
        return WEIR_RETRY;
    if (end->status == 0)
        return WEIR_DONE;
    return exec->fails[end->status] ? WEIR_FAIL : WEIR_RETRY;
}

static void on_done(const struct child_end *end, struct weir_handle handle)
{
    enum weir_verdict verdict = verdict_of(end->of, &end->process);
    char why[200] = "exec: ";
    size_t len = strlen(why);

    len += process_describe(&end->process, why + len, sizeof(why) - len);
    if (*end->output != '\0')
        (void)snprintf(why + len, sizeof(why) - len, ": %.*s",
                       (int)exec_whole(end->output, strnlen(end->output, 140)),
                       end->output); /* fits */
    weir_job_count(end->job, counter_of(verdict), 1);
    /* It cannot fail on the loop's thread. */
    (void)weir_complete(handle, verdict, 0, verdict == WEIR_DONE ? NULL : why);
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    (void)job;
    (void)why;
    child_cancel(arg);
}

bool exec_lacks(int code)
{
    return code == EMFILE || code == ENFILE || code == EAGAIN || code == ENOMEM;
}

/* How long no command may start; 0: one may now. */
static int64_t rest_of(const struct exec *exec)
{
    int64_t ms = exec->rest_until_ms - weir_loop_now_ms(exec->loop);

    return ms > 0 ? ms : 0;
}

/* Whatever keeps a command from starting may pass. What this worker lacks is
 * not the job's fault. */
static enum weir_verdict put_off(struct exec *exec, struct weir_job *job,
                                 int code)
{
    char text[200];

    if (!exec_lacks(code)) {
        (void)snprintf(text, sizeof(text), "exec: cannot start the command: %s",
                       strerror(code)); /* cut */
        return weir_retry(job, text);
    }
    (void)snprintf(text, sizeof(text),
                   "cannot start the command: %s; jobs wait for %d ms and lose "
                   "no attempt",
                   strerror(code), REST_MS); /* cut */
    weir_loop_log(exec->loop, WEIR_LEVEL_WARN, text);
    exec->rest_until_ms = weir_loop_now_ms(exec->loop) + REST_MS;
    return weir_snooze(job, REST_MS);
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    struct exec *exec = self;
    struct text input = {0};
    struct child *child = NULL;
    int code = ENOMEM;

    if (exec->stream != NULL)
        return stream_job(exec->stream, job);
    if (rest_of(exec) > 0)
        return weir_snooze(job, rest_of(exec));
    if (exec_put_job(&input, job, 0)) {
        child = child_start(
            exec, job,
            (struct weir_slice){(const uint8_t *)input.bytes, input.len},
            on_done);
        code = errno;
    }
    free(input.bytes);
    if (child == NULL)
        return put_off(exec, job, code);
    weir_job_count(job, "started", 1);
    weir_job_on_cancel(job, on_cancel, child);
    return WEIR_PENDING;
}

/* Lines for children leave together, once a turn. */
static int flush(void *self)
{
    struct exec *exec = self;

    if (exec->stream != NULL)
        stream_flush(exec->stream);
    return 0;
}

/* --- the instance --------------------------------------------------------- */

/* Is it a program, in PATH unless it has a slash? */
static bool is_found(const char *command)
{
    const char *path = getenv("PATH");
    char file[PATH_CAP];

    if (strchr(command, '/') != NULL)
        return access(command, X_OK) == 0;
    while (path != NULL && *path != '\0') {
        size_t len = strcspn(path, ":");

        if (snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, command) <
                (int)sizeof(file) &&
            access(file, X_OK) == 0)
            return true;
        path += len + (path[len] == ':' ? 1 : 0);
    }
    return false;
}

static char *variable(const char *name)
{
    const char *value = getenv(name);
    size_t size = value == NULL ? 0 : strlen(name) + strlen(value) + 2;
    char *text = malloc(size == 0 ? 1 : size);

    if (text != NULL && value != NULL)
        (void)snprintf(text, size, "%s=%s", name, value); /* fits */
    else if (text != NULL)
        *text = '\0';
    return text;
}

static void free_list(char **list)
{
    for (size_t i = 0; list != NULL && list[i] != NULL; i++)
        free(list[i]);
    free(list);
}

/* The environment: what is set of the named variables. */
static char **environment(char *const *names)
{
    size_t count = 0, kept = 0;
    char **list;

    while (names[count] != NULL)
        count++;
    list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; list != NULL && i < count; i++) {
        char *text = variable(names[i]);

        if (text == NULL) {
            free_list(list);
            return NULL;
        }
        if (*text == '\0')
            free(text);
        else
            list[kept++] = text;
    }
    return list;
}

static int refuse(const struct weir_open *open, int code, const char *option,
                  const char *fault)
{
    (void)snprintf(open->error, open->error_cap, "%s %s", option,
                   fault); /* cut */
    return code;
}

static void close_exec(void *self)
{
    struct exec *exec = self;

    children_end(exec);
    stream_free(exec->stream);
    free(exec->argv);
    free_list(exec->envp);
    free(exec);
}

static int fill_environment(struct exec *exec, const struct weir_open *open)
{
    const char *fault, *text = open->values[OPTION_ENV].text;
    char **names;

    if (text[strspn(text, " \t\n")] == '\0') {
        exec->envp = calloc(1, sizeof(*exec->envp));
    } else {
        names = exec_split(text, &fault);
        if (names == NULL)
            return refuse(open, WEIR_EINVAL, "option \"env\"", fault);
        exec->envp = environment(names);
        free(names);
    }
    if (exec->envp == NULL)
        return refuse(open, WEIR_ENOMEM, "out of", "memory");
    return WEIR_OK;
}

static int fill_fail_codes(struct exec *exec, const struct weir_open *open)
{
    const char *at = open->values[OPTION_FAIL_CODES].text;

    for (;;) {
        char *end;
        long code;

        at += strspn(at, " ,");
        if (*at == '\0')
            return WEIR_OK;
        code = strtol(at, &end, 10);
        if (end == at || code < 1 || code > 255 ||
            (*end != '\0' && strchr(" ,", *end) == NULL))
            return refuse(open, WEIR_EINVAL, "option \"fail_codes\"",
                          "has exit statuses from 1 to 255, with blanks "
                          "between");
        exec->fails[code] = true;
        at = end;
    }
}

static int fill_stream(struct exec *exec, const struct weir_open *open)
{
    const struct weir_option_value *values = open->values;
    size_t children = (size_t)values[OPTION_CHILDREN].number;
    size_t window = (size_t)values[OPTION_WINDOW].number;
    bool cancels = values[OPTION_CANCEL].number != 0;

    if (strcmp(values[OPTION_MODE].text, "stream") != 0) {
        if (children > 1 || window > 1 || cancels)
            return refuse(open, WEIR_EINVAL,
                          "options \"children\", \"window\", \"cancel\"",
                          "need mode=stream");
        return WEIR_OK;
    }
    if (*values[OPTION_FAIL_CODES].text != '\0')
        return refuse(
            open, WEIR_EINVAL, "option \"fail_codes\"",
            "needs mode=once: children of mode=stream answer \"fail\"");
    exec->stream = stream_new(exec);
    if (exec->stream == NULL)
        return refuse(open, WEIR_ENOMEM, "out of", "memory");
    exec->stream->most = children;
    exec->stream->window = window;
    exec->stream->cancels = cancels;
    weir_open_limit(open, (uint32_t)(children * window));
    return WEIR_OK;
}

/* Descriptors from this number on are left to the worker. */
static int fds_most(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX)
        return INT_MAX;
    return (int)limit.rlim_cur - FDS_KEPT;
}

static int fill(struct exec *exec, const struct weir_open *open)
{
    const struct weir_option_value *values = open->values;
    const char *fault = NULL;
    int rc;

    exec->loop = weir_open_loop(open);
    if (exec->loop == NULL)
        return refuse(open, WEIR_EABI, "this host has no loop for plugins;",
                      "it is too old");
    exec->max_output = (size_t)values[OPTION_MAX_OUTPUT].number;
    exec->grace_ms = values[OPTION_GRACE].number;
    exec->argv = exec_split(values[OPTION_COMMAND].text, &fault);
    if (exec->argv == NULL)
        return refuse(open, WEIR_EINVAL, "option \"command\"", fault);
    if (!is_found(exec->argv[0]))
        return refuse(open, WEIR_EINVAL,
                      "option \"command\": there is no program", exec->argv[0]);
    exec->log_before = strlen(open->topic) + strlen(": exec: ");
    exec->fds_most = fds_most();
    rc = fill_environment(exec, open);
    if (rc == WEIR_OK)
        rc = fill_fail_codes(exec, open);
    return rc < 0 ? rc : fill_stream(exec, open);
}

static int open_exec(const struct weir_open *open, void **ret_self)
{
    struct exec *exec = calloc(1, sizeof(*exec));
    int rc;

    if (exec == NULL)
        return WEIR_ENOMEM;
    rc = fill(exec, open);
    if (rc < 0) {
        close_exec(exec);
        return rc;
    }
    *ret_self = exec;
    return WEIR_OK;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "exec",
    .version = WEIR_VERSION,
    .summary = "Runs a command for each job, the job on its input.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_exec,
    .run = run,
    .flush = flush,
    .close = close_exec,
};
