/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_ASK_H
#define WEIR_CLI_ASK_H

/* The frame of commands that ask a server something, print and exit. A row of
 * the table (struct weir__command) has
 *
 *     check   the options, before a server is looked for
 *     ask     issues the request
 *     print   the answer
 *     refuse  errors for which the command has a sentence of its own
 *
 * and the frame checks topic and id, connects, asks of which kind the topic
 * is, waits, says what went wrong, and chooses the exit code. Where `print_job`
 * is set the answer is a list of jobs, printed as they come: all of them at
 * once may be gigabytes. */

#include "adapters/cli/client.h"
#include "adapters/cli/topics.h"

struct weir__ask {
    struct weir__client client;
    const struct weir__command *command;
    const struct weir__args *args;
    const char *topic, *id; /* operands; NULL: not given */

    /* What a command keeps from one step to the next. */
    struct weir_new_job job; /* its body is freed at the end */
    struct weir_header headers[WEIR_MAX_HEADERS]; /* of the job */
    int state;                                    /* of jobs; -1: any */
    enum weir_job_state was;                      /* of the job, before */
    int64_t due_ms;
    char kind[32];
    bool is_paused;
    struct json_object *options;   /* put at the end */
    struct weir__topics topics;    /* likewise */
    uint64_t count;                /* in the answer; of a list: printed */
    char text[480];                /* an id, or why it was refused */
    char holder[WEIR_MAX_ID + 1];  /* of the id or the key of a new job */
    char own_id[WEIR_MAX_ID + 1];  /* that the command made for a new job */
    char near[WEIR_MAX_TOPIC + 1]; /* to the name of a topic that is new */

    /* Of a list. */
    size_t limit; /* more are not printed */
    bool is_more; /* than `limit` */
    bool is_short_of_memory;
};

/* What to exit with. BLOCKS. */
enum weir__exit weir__ask(const struct weir__command *command,
                          const struct weir__cli *cli,
                          const struct weir__args *args);

/* Answers, for requests with the weir__ask as `arg`; each ends the wait. */
void weir__ask_on_code(int code, const char *text, void *arg);
void weir__ask_on_count(int code, uint64_t count, void *arg);
void weir__ask_on_job(int code, const struct weir_job_info *job, void *arg);

/* Issue the request to add a job to the topic: for `ask` of a command, whose
 * `refuse` is the one below, which says why it was not added and BLOCKS. */
int weir__ask_add(struct weir__ask *ask, const struct weir_new_job *job);
enum weir__exit weir__ask_refuse_added(struct weir__ask *ask, int code);

/* Remember which name is near where the topic does not exist yet, and tell it
 * when the topic was made. The former BLOCKS. */
void weir__ask_new_topic(struct weir__ask *ask);
void weir__ask_note_new(const struct weir__ask *ask);

/* Behind the last weir__ask_on_job: close what was printed, say what went
 * wrong. */
enum weir__exit weir__ask_end_list(struct weir__ask *ask, int code);

#endif
