/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGINS_EXEC_H
#define WEIR_PLUGINS_EXEC_H

/* The parts of exec: exec.c makes a command of a job and a verdict of its exit
 * status, exec_child.c runs commands on the instance's share of the loop,
 * exec_text.c splits the option, writes the job as JSON and makes output fit
 * for a log. */

#include <sys/types.h>
#include <weir/plugin.h>

enum { LINE_CAP = 500 }; /* longer lines of output are logged in parts */

/* --- exec_text.c ---------------------------------------------------------- */

/* The words of a command line, by the quoting rules of the shell; nothing is
 * expanded. A list ended by NULL, in one piece of memory that is released with
 * free. NULL: `*ret_fault` is the end of a sentence. */
char **exec_split(const char *text, const char **ret_fault);

/* The job as one line of JSON, released with free; NULL when out of memory. */
char *exec_job_json(const struct weir_job *job, size_t *ret_len);

/* Make '?' of each byte that the log would write as an escape, but of ASCII: of
 * what is no UTF-8, C1 controls, U+2028, U+2029 and marks of direction. */
void exec_clean(char *text, size_t len);

/* `len`, or what is left without a character that is not there to its end. */
size_t exec_whole(const char *text, size_t len);

/* --- exec_child.c --------------------------------------------------------- */

struct child;

/* What all commands of an instance have in common; kept by its owner. */
struct children {
    struct weir_loop *loop;
    char **argv;
    char **envp;
    size_t max_output;
    int64_t grace_ms;
    struct child *first;
};

/* How a command ended. */
struct child_end {
    struct weir_job *job; /* its run is still pending */
    bool is_known;        /* false: somebody else took its exit status */
    int signal;           /* that killed it; 0: none */
    int status;           /* else */
    const char *output;   /* its last line; may be empty */
};

/* The command ended; the job's run is still pending. */
typedef void (*child_done_fn)(const struct child_end *end,
                              struct weir_handle handle);

/* Start the command for a job, with `input` as its standard input; `done` is
 * called later. NULL with errno set: it could not be started. */
struct child *child_start(struct children *children, struct weir_job *job,
                          struct weir_slice input, child_done_fn done);

/* End it with all that it started; `done` is not called. */
void child_cancel(struct child *child);

/* Kill those that are left, at once. */
void children_end(struct children *children);

#endif
