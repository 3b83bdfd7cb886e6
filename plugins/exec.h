/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGINS_EXEC_H
#define WEIR_PLUGINS_EXEC_H

/* The parts of exec: exec.c reads the options, exec_child.c runs a command for
 * each job, exec_stream.h is about those that stay, exec_process.c starts one
 * and sees it end, exec_output.c logs what it prints, exec_text.c splits the
 * option and makes output fit for a log, exec_json.c writes the job. */

#include <sys/types.h>
#include <weir/plugin.h>

enum { LINE_CAP = 500 }; /* longer lines of output are logged in parts */

/* --- exec_text.c ---------------------------------------------------------- */

/* The words of a command line, by the quoting rules of the shell; nothing is
 * expanded. A list ended by NULL, in one piece of memory that is released with
 * free. NULL: `*ret_fault` is the end of a sentence. */
char **exec_split(const char *text, const char **ret_fault);

/* Make a blank of each ASCII control character, and '?' of each other byte that
 * the log would write as an escape: of what is no UTF-8, C1 controls, U+2028,
 * U+2029 and marks of direction. */
void exec_clean(char *text, size_t len);

/* `len`, or what is left without a character that is not there to its end. */
size_t exec_whole(const char *text, size_t len);

/* --- exec_json.c ---------------------------------------------------------- */

/* Bytes that grow; zeroed at first, `bytes` is released with free. */
struct text {
    char *bytes;
    size_t len, cap;
    bool has_failed; /* within the functions of exec_json.c */
};

/* Append the job as one line of JSON, with the number of its run unless that is
 * 0. False: out of memory, nothing is appended. */
bool exec_put_job(struct text *text, const struct weir_job *job, uint64_t run);

/* The same with a line that says that a run is given up. */
bool exec_put_cancel(struct text *text, uint64_t run);

/* --- exec.c --------------------------------------------------------------- */

/* An instance: what its commands have in common. */
struct exec {
    struct weir_loop *loop;
    char **argv;
    char **envp;
    size_t max_output;
    int64_t grace_ms;
    struct child *first;   /* of those that run */
    struct stream *stream; /* NULL: mode=once */
    size_t log_before;     /* bytes of names in the lines that `loop` logs */
    bool fails[256];       /* exit statuses after which a job is not retried */
    int fds_most;          /* of descriptors; those above are the worker's */
    int64_t rest_until_ms; /* no command starts before, by the loop's clock */
};

/* Does the errno say that this worker lacks something, for now? */
bool exec_lacks(int code);

/* --- exec_output.c -------------------------------------------------------- */

/* What a command prints, on its way into the log. Zeroed at first, but for
 * `max` and `loop`. */
struct output {
    size_t max;                 /* bytes of log until output_end */
    struct weir_loop *loop;     /* logs what is of no job; NULL: nobody does */
    size_t loop_before;         /* bytes of names in a line that it logs */
    const struct weir_job *job; /* it is of this one; borrowed */
    size_t log_before;          /* bytes of names in a line of the log */
    size_t logged;              /* bytes, these included */
    size_t dropped, dropped_lines;
    size_t line_len;
    char line[LINE_CAP + 1];
    char last[LINE_CAP + 1]; /* line that was not empty */
};

/* What comes now is of this job; NULL: of none. */
void output_about(struct output *output, const struct weir_job *job);

/* Log the lines in it, each cleaned: control characters could forge lines of
 * the log, escapes would take more of it than was counted. */
void output_take(struct output *output, const char *bytes, size_t len);

/* Log a line that was not expected, behind a word about it. */
void output_say(struct output *output, const char *what, const char *bytes,
                size_t len);

/* What was taken and is no whole line is one. */
void output_end_line(struct output *output);

/* Say how much was not shown; then `max` counts anew. */
void output_end(struct output *output);

/* --- exec_process.c ------------------------------------------------------- */

/* A command that runs, the leader of a process group of its own. Its exit is
 * noticed through a descriptor of the process (Linux 5.3), else by looking
 * every now and then: the host's SIGCHLD is its own. Zeroed at first, but for
 * `ended` and `arg`. */
struct process {
    void (*ended)(void *arg); /* it has; its zombie is there until reaped */
    void *arg;
    pid_t pid;
    int pidfd; /* -1: there is none, `look` looks */
    struct weir_watch *watch;
    struct weir_timer *look, *kill;
};

struct process_end {
    bool is_known; /* false: somebody else took its exit status */
    int signal;    /* that killed it; 0: none */
    int status;    /* else */
};

/* Start the command with these as its standard streams; they stay the
 * caller's. 0, or an errno: then there is nothing to free. */
int process_start(struct process *process, const struct exec *exec,
                  const int streams[3]);

/* To its whole group. */
void process_signal(const struct process *process, int signal_number);
void process_kill_after(const struct process *process, int64_t ms);

/* Its zombie stays, so that nobody else can have its number. */
bool process_has_ended(const struct process *process);

/* Take its exit status, once it has ended. */
struct process_end process_reap(const struct process *process);

/* Write a sentence about it; returns its length. 60 bytes suffice. */
size_t process_describe(const struct process_end *end, char *text, size_t cap);

void process_free(struct process *process);

/* --- exec_child.c --------------------------------------------------------- */

struct child;

/* How a command ended. */
struct child_end {
    const struct exec *of;
    struct weir_job *job; /* its run is still pending */
    struct process_end process;
    const char *output; /* its last line; may be empty */
};

/* The command ended; the job's run is still pending. */
typedef void (*child_done_fn)(const struct child_end *end,
                              struct weir_handle handle);

/* Start the command for a job, with `input` as its standard input; `done` is
 * called later. NULL with errno set: it could not be started. */
struct child *child_start(struct exec *exec, struct weir_job *job,
                          struct weir_slice input, child_done_fn done);

/* End it with all that it started; `done` is not called. */
void child_cancel(struct child *child);

/* Kill those that are left, at once. */
void children_end(struct exec *exec);

#endif
