/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_KIND_QUESTIONS_H
#define WEIR_CLI_KIND_QUESTIONS_H

/* Of which kind topics are, asked of all at once. A topic whose server is away
 * is asked about again each second, for ever; the others do not wait for it. */

#include <ev.h>
#include <weir/weir.h>

struct weir__kind_questions;

struct weir__kind_question {
    struct weir__kind_questions *questions;
    const char *topic; /* borrowed */
    bool is_asked;     /* an answer is on its way */
    bool is_known;     /* it was told */
};

struct weir__kind_questions {
    struct ev_loop *loop;
    struct weir_reactor *reactor;
    struct weir__kind_question *list; /* owned */
    size_t count;
    size_t unknown; /* of them */
    struct ev_timer again;
    /* Runs once for each topic, the `at`th: WEIR_OK, with `kind` NULL where
     * there is no such topic; or an error that asking again would not mend. Not
     * when the reactor is freed before. */
    void (*told)(size_t at, int code, const char *kind, void *arg);
    void *arg;
};

/* Prepare for `count` topics, list[i].topic each. WEIR_ENOMEM. */
int weir__kind_questions_init(struct weir__kind_questions *questions,
                              size_t count);

/* Ask. Nothing is told in here. */
void weir__kind_questions_ask(struct weir__kind_questions *questions);

/* After the reactor was freed; a zeroed struct is fine. */
void weir__kind_questions_fini(struct weir__kind_questions *questions);

#endif
