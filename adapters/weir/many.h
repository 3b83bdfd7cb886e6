/* SPDX-License-Identifier: MIT */
#ifndef WEIR_MANY_H
#define WEIR_MANY_H

/* Jobs that are added in one call, with one answer for all of them. */

#include "adapters/weir/facade.h"

/* The jobs, their answers as far as they came, and the callback. */
struct weir__many {
    struct weir__mailbox_message message; /* first: to the loop, and back */
    struct weir_reactor *reactor;
    weir_added_many_fn fn;
    void *arg;
    /* All are answered: takes it. On the loop's thread. */
    void (*done)(struct weir__many *many);
    void *done_arg;
    struct weir__copies *copies; /* until they are added; NULL: none */
    struct weir_added *added;
    struct weir__one *ones; /* one for each job */
    struct weir__long_id *long_ids;
    size_t count;
    size_t open;               /* not answered yet */
    struct weir__tally *tally; /* that counts it; NULL: not on the loop yet */
    size_t bytes;
};

/* Check jobs as far as any thread can and copy them: `bytes` is what all of it
 * takes; `done` is weir__many_answer. WEIR_EINVAL, WEIR_ETOOBIG,
 * WEIR_EMALFORMED, WEIR_ENOMEM, with a sentence. */
int weir__many_copy(const struct weir_new_jobs *jobs,
                    struct weir__many **ret_many, struct weir_error *err);

/* Send it to the loop, where they are added. WEIR_EFULL, WEIR_ECANCELED: it is
 * still the caller's. */
int weir__many_send(struct weir__many *many, struct weir_reactor *reactor);

/* Run its callback and free it. */
void weir__many_answer(struct weir__many *many);

/* Free it without an answer; NULL is fine. */
void weir__many_free(struct weir__many *many);

#endif
