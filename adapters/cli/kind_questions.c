/* SPDX-License-Identifier: MIT */
#include "adapters/cli/kind_questions.h"

#include "core/assert.h"
#include "core/mem.h"

#include <string.h>

static const double AGAIN_S = 1.0;

static void ask_later(struct weir__kind_questions *questions)
{
    if (ev_is_active(&questions->again))
        return;
    ev_now_update(questions->loop);
    ev_timer_set(&questions->again, AGAIN_S, 0.0);
    ev_timer_start(questions->loop, &questions->again);
}

static void on_kind(int code, const char *name, void *arg)
{
    struct weir__kind_question *question = arg;
    struct weir__kind_questions *questions = question->questions;

    WEIR_ASSERT(question->is_asked && !question->is_known);
    question->is_asked = false;
    if (code == WEIR_ECANCELED)
        return;
    if (code == WEIR_ECONN || code == WEIR_EUNKNOWN) {
        ask_later(questions);
        return;
    }
    question->is_known = true;
    questions->unknown--;
    questions->told((size_t)(question - questions->list),
                    code == WEIR_ENOTFOUND ? WEIR_OK : code, name,
                    questions->arg);
}

void weir__kind_questions_ask(struct weir__kind_questions *questions)
{
    WEIR_ASSERT(questions->reactor != NULL && questions->told != NULL);
    for (size_t i = 0; i < questions->count; i++) {
        struct weir__kind_question *question = &questions->list[i];

        if (question->is_known || question->is_asked)
            continue;
        question->is_asked =
            weir_reactor_kind(questions->reactor, question->topic, on_kind,
                              question) == WEIR_OK;
        if (!question->is_asked) /* no memory now */
            ask_later(questions);
    }
}

static void on_again(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    (void)loop;
    (void)events;
    weir__kind_questions_ask(timer->data);
}

int weir__kind_questions_init(struct weir__kind_questions *questions,
                              size_t count)
{
    memset(questions, 0, sizeof(*questions));
    questions->list = weir__mem_new(count * sizeof(*questions->list));
    if (questions->list == NULL)
        return WEIR_ENOMEM;
    questions->count = count;
    questions->unknown = count;
    for (size_t i = 0; i < count; i++)
        questions->list[i].questions = questions;
    ev_timer_init(&questions->again, on_again, AGAIN_S, 0.0);
    questions->again.data = questions;
    return WEIR_OK;
}

void weir__kind_questions_fini(struct weir__kind_questions *questions)
{
    if (questions->list == NULL)
        return;
    ev_timer_stop(questions->loop, &questions->again);
    weir__mem_free(questions->list);
    questions->list = NULL;
    questions->count = 0;
}
