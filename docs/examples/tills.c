/* SPDX-License-Identifier: MIT */
/* A host that takes a job when it has time for one: two tills close five
 * orders, one at a time each, and the third order at its second attempt.
 * Usage: tills redis://127.0.0.1:6379 */
#include <ev.h>
#include <stdio.h>
#include <weir/take.h>

enum { TILLS = 2, ORDERS = 5 };

static struct weir_reactor *weir;
static struct ev_loop *loop;
static int closed;

struct till {
    struct ev_timer timer;  /* while it closes an order */
    struct weir_take *take; /* of it; NULL: it waits for one */
    long long order;
    char name;
};

static void take_next(struct till *till);

static void on_stopped(void *arg)
{
    (void)arg;
    ev_break(loop, EVBREAK_ALL);
}

static void on_settled(int code, void *arg)
{
    struct till *till = arg;

    if (code != WEIR_OK)
        fprintf(stderr, "tills: order %lld: %s\n", till->order,
                weir_error_text(code));
    if (closed == ORDERS)
        weir_reactor_stop(weir, on_stopped, NULL);
    else
        take_next(till);
}

/* The work is over; nothing was lost meanwhile, or there is nothing to do. */
static void on_timer(struct ev_loop *on, struct ev_timer *timer, int events)
{
    struct till *till = timer->data;
    struct weir_settlement how = {.fn = on_settled, .arg = till};
    struct weir_job *job = weir_take_job(till->take);

    (void)on;
    (void)events;
    if (job != NULL && till->order == 3 && weir_job_counters(job).attempt == 1)
        how = (struct weir_settlement){WEIR_RETRY, 0, "the drawer is stuck",
                                       on_settled, till};
    else if (job != NULL)
        closed++;
    printf("till %c: order %lld %s\n", till->name, till->order,
           how.verdict == WEIR_DONE ? "closed" : "once more");
    if (weir_take_settle(till->take, &how) < 0)
        fprintf(stderr, "tills: an order could not be settled\n");
    till->take = NULL;
}

static void on_taken(int code, struct weir_take *const *takes, size_t count,
                     void *arg)
{
    struct till *till = arg;
    int64_t order = 0;

    if (count == 0) { /* the reactor stops, or an hour is over */
        if (code == WEIR_OK)
            take_next(till);
        return;
    }
    till->take = takes[0];
    (void)weir_job_i64(weir_take_job(till->take), "order", &order);
    till->order = order;
    ev_timer_set(&till->timer, .05, 0.);
    ev_timer_start(loop, &till->timer);
}

static void take_next(struct till *till)
{
    static const char *const options[] = {"retry=10ms", NULL};
    struct weir_take_options with = {
        .wait_ms = 3600000, .options = options, .fn = on_taken, .arg = till};
    struct weir_error err = {0};

    if (weir_reactor_take(weir, "tills", &with, &err) < 0) {
        fprintf(stderr, "tills: %s\n", err.text);
        ev_break(loop, EVBREAK_ALL);
    }
}

static int add(int order, struct weir_error *err)
{
    char json[32];
    struct weir_new_job job = {.delay_ms = 0};
    int len = snprintf(json, sizeof(json), "{\"order\": %d}", order);
    int rc = weir_body_from_json(json, (size_t)len, &job.body, err);

    if (rc == WEIR_OK)
        rc = weir_reactor_add(weir, "tills", &job, NULL, NULL, err);
    weir_body_free(job.body);
    return rc;
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "tills: %s\n", text);
}

int main(int argc, char **argv)
{
    struct weir_options options = {
        .redis_url = argv[argc - 1],
        .log = say,
        .log_level = WEIR_LEVEL_WARN,
    };
    struct weir_error err = {0};
    struct till tills[TILLS] = {{.name = 'A'}, {.name = 'B'}};
    int rc;

    options.loop = loop = ev_default_loop(0);
    rc = weir_reactor_open(&options, &weir, &err);
    for (int order = 1; rc == WEIR_OK && order <= ORDERS; order++)
        rc = add(order, &err);
    for (int i = 0; rc == WEIR_OK && i < TILLS; i++) {
        ev_timer_init(&tills[i].timer, on_timer, 0., 0.);
        tills[i].timer.data = &tills[i];
        take_next(&tills[i]);
    }
    if (rc == WEIR_OK)
        ev_run(loop, 0);
    else
        fprintf(stderr, "tills: %s\n", err.text);
    weir_reactor_free(weir);
    return closed == ORDERS ? 0 : 1;
}
