/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PLUGINS_EXEC_STREAM_H
#define WEIR_PLUGINS_EXEC_STREAM_H

/* mode=stream: children that stay, a line of JSON in for each job, a line out
 * for its verdict. exec_stream.c decides which child has a job and what becomes
 * of it, exec_stream_child.c is the pipes and the process of a child,
 * exec_answer.c reads its lines. */

#include "exec.h"

enum { ANSWER_CAP = 64 * 1024 }; /* bytes of a line that a child writes */

/* --- exec_answer.c -------------------------------------------------------- */

struct answer {
    uint64_t run; /* 0: it does not say */
    enum weir_verdict verdict;
    int64_t delay_ms;
    char reason[201]; /* NUL-terminated; may be empty */
};

/* Read a line without its end. What names no verdict is WEIR_RETRY with a
 * reason that says so. False: it is no answer at all. */
bool exec_read_answer(const char *line, size_t len, struct answer *ret_answer);

/* --- exec_stream.c -------------------------------------------------------- */

/* A job that a child has, or that waits for one. */
struct stream_run {
    struct stream_run *next, *previous;
    struct stream_child *child; /* NULL: it waits */
    struct weir_job *job;       /* NULL: given up, its answer is awaited */
    struct weir_handle handle;
    struct stream *of;
    uint64_t number;     /* what the child knows it by */
    uint64_t begin;      /* of its line, in bytes of the child's input */
    int64_t canceled_ms; /* when it was given up */
};

/* The oldest first. */
struct stream_runs {
    struct stream_run *first, *last;
    size_t count;
};

struct stream {
    struct exec *exec;
    size_t most;   /* children that jobs are given to */
    size_t window; /* jobs that one has at once */
    bool cancels;  /* a child is told by a line that a job is given up */
    struct stream_child *first;
    size_t live; /* of them, those that are not leaving */
    struct stream_runs waiting;
    uint64_t last_number;
    unsigned failures; /* children in a row that ended without an answer */
    int64_t start_ms;  /* no child starts before that; 0: at once */
    struct weir_timer *again; /* while jobs wait */
};

/* NULL: out of memory. */
struct stream *stream_new(struct exec *exec);

/* As the functions of the plugin's table. */
enum weir_verdict stream_job(struct stream *stream, struct weir_job *job);
void stream_flush(struct stream *stream);

/* BLOCKS until the children have ended, as long as `grace` at most. */
void stream_free(struct stream *stream);

/* --- exec_stream_child.c -------------------------------------------------- */

struct stream_child {
    struct stream_child *next;
    struct stream_child **link; /* what points here */
    struct stream *of;
    struct process process;
    int in, out, err; /* our ends; -1: closed */
    struct weir_watch *in_watch, *out_watch, *err_watch;
    struct weir_timer *overdue; /* canceled runs that are not answered */
    struct stream_runs runs;    /* that it has not answered */
    bool has_answered;
    bool is_leaving;  /* it is given no more jobs */
    bool is_ended;    /* by us */
    bool is_blocked;  /* it does not read for now */
    bool is_skipping; /* a line that is too long */
    struct text text; /* for its input; of that, `sent` bytes are */
    size_t sent;
    uint64_t written; /* bytes of input */
    uint64_t taken;   /* how many of them it read, once it is leaving */
    struct output output;
    size_t line_len;
    char line[ANSWER_CAP];
};

/* NULL with errno set. It is in the stream's list. */
struct stream_child *stream_child_start(struct stream *stream);

/* Append a line to its input: the job, or that it is given up. False: out of
 * memory. */
bool stream_child_give(struct stream_child *child, struct stream_run *run);
bool stream_child_cancel(struct stream_child *child,
                         const struct stream_run *run);

/* Write of its input what it takes now; the rest follows. */
void stream_child_send(struct stream_child *child);

/* Close its input: it answers what it has and ends, within `grace`. */
void stream_child_leave(struct stream_child *child);

/* End it with all that it started. */
void stream_child_end(struct stream_child *child);

/* Read what it wrote; false: nothing is there now. */
bool stream_child_read(struct stream_child *child);

/* It has ended. */
void stream_child_free(struct stream_child *child);

/* What exec_stream.c does when a line came, and when the child has ended. */
void stream_on_line(struct stream_child *child, const char *line, size_t len);
void stream_on_end(struct stream_child *child, const struct process_end *end);

#endif
