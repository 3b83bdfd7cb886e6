/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_JQ_PROCESS_H
#define WEIR_CLI_JQ_PROCESS_H

/* A jq program, run over jobs in a child process: a program that never ends,
 * takes all memory or crashes libjq ends the child alone. The child is a copy
 * of this process. The child has no files, can open none, gains no rights, and
 * has WEIR__JQ_MIB more memory than this process. If the kernel can refuse
 * system calls, the child makes only those that jq needs. Jobs are JSON texts
 * with a NUL after each. One thread uses a child. */

#include "core/buf.h"

#include <weir/base.h>

#include <sys/types.h>

enum { WEIR__JQ_MIB = 256, WEIR__JQ_JOBS = 256, WEIR__JQ_WHY_CAP = 256 };

struct weir__jq_answers {
    /* A letter for each job: 'y' if the program gives anything but null and
     * false, 'f' if the program fails, else 'n'. */
    char taken[WEIR__JQ_JOBS];
    char why[WEIR__JQ_WHY_CAP]; /* jq's sentence of the first 'f' of all */
};

/* Zeroed: there is none. */
struct weir__jq {
    pid_t pid;
    int fd;                           /* owned */
    struct weir__jq_answers *answers; /* of weir__jq_open; owned, shared */
};

/* Start a child that looks at `count` jobs and writes a byte for each to `fd`,
 * as in weir__jq_answers. If jq refuses the program, the child writes '!' and a
 * sentence instead. Then the child ends. All jobs together have 2 s of CPU. The
 * environment is empty, as the program is a reader's. The strings are borrowed
 * for the call. WEIR_ESYSTEM. */
int weir__jq_start(struct weir__jq *jq, const char *program,
                   const struct weir__buf *jobs, size_t count);

/* Start a child for weir__jq_ask, with the environment of this process. Each
 * job has 10 s of CPU. WEIR_EINVAL with jq's sentence if jq refuses the
 * program; WEIR_ESYSTEM. BLOCKS. */
int weir__jq_open(struct weir__jq *jq, const char *program,
                  struct weir_error *err);

/* Look at `count` jobs, at most WEIR__JQ_JOBS; the answers are in `answers`.
 * Returns how many jobs have one: if less than `count`, the next job ended the
 * child. BLOCKS. */
size_t weir__jq_ask(struct weir__jq *jq, const struct weir__buf *jobs,
                    size_t count);

/* End the child. If the child ended early, why: "crashed jq ..." after "the
 * program". Static. None started: fine. */
const char *weir__jq_end(struct weir__jq *jq);

#endif
