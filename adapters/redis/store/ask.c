/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/base.h"
#include "core/assert.h"
#include "core/chaos.h"

/* Commands and their answers. What cannot be sent is answered by a timer, since
 * no callback runs inside an op. */

void weir__base_enter(struct weir__base *base)
{
    if (base->options.depth != NULL)
        (*base->options.depth)++;
}

void weir__base_leave(struct weir__base *base)
{
    if (base->options.depth != NULL)
        (*base->options.depth)--;
}

static void answered(int code, const struct redisReply *reply, void *arg)
{
    struct weir__ask *ask = arg;

    WEIR_ASSERT(ask->base->kind != NULL);
    WEIR__STEP("answer");
    ask->done(ask, code, reply);
}

static void fail_all(struct weir__base *base)
{
    while (base->failed != NULL) {
        struct weir__ask *ask = base->failed;

        base->failed = ask->next;
        if (base->failed == NULL)
            base->failed_end = &base->failed;
        ask->done(ask, ask->code, NULL);
    }
}

static void on_failing(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__base *base = timer->data;

    (void)loop; /* the store's own */
    (void)events;
    weir__base_enter(base);
    fail_all(base);
    weir__base_leave(base);
}

void weir__base_fail(struct weir__ask *ask, int code)
{
    struct weir__base *base = ask->base;

    ask->code = code;
    ask->next = NULL;
    *base->failed_end = ask;
    base->failed_end = &ask->next;
    if (!base->is_closed && !ev_is_active(&base->failing))
        ev_timer_start(base->options.loop, &base->failing);
}

void weir__base_send_by(struct weir__base *base, struct weir__conn *conn,
                        struct weir__buf *bytes,
                        const struct weir__script *script, unsigned flags,
                        struct weir__ask *ask)
{
    int rc = WEIR_ECANCELED;

    if (ask != NULL)
        ask->base = base;
    if (base->is_closed)
        weir__buf_fini(bytes);
    else
        rc = weir__conn_send(conn, bytes, script, flags,
                             ask == NULL ? NULL : answered, ask);
    if (rc != WEIR_OK && ask != NULL)
        weir__base_fail(ask, rc);
}

void weir__base_send(struct weir__base *base, struct weir__buf *bytes,
                     const struct weir__script *script, unsigned flags,
                     struct weir__ask *ask)
{
    weir__base_send_by(base, base->commands, bytes, script, flags, ask);
}

void weir__base_ask_init(struct weir__base *base)
{
    base->failed_end = &base->failed;
    ev_timer_init(&base->failing, on_failing, 0., 0.);
    base->failing.data = base;
}

void weir__base_ask_fini(struct weir__base *base)
{
    ev_timer_stop(base->options.loop, &base->failing);
    fail_all(base);
}
