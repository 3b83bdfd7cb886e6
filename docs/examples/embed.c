/* SPDX-License-Identifier: MIT */
/* The smallest program that embeds weir: add a job that is due in one second,
 * handle it, stop. Usage: embed redis://127.0.0.1:6379 */
#include <ev.h>
#include <stdio.h>
#include <weir/weir.h>

static void end(void *loop)
{
    ev_break(loop, EVBREAK_ALL);
}

static enum weir_verdict close_order(void *self, struct weir_job *job)
{
    struct weir_reactor **weir = self;
    int64_t order;

    if (!weir_job_i64(job, "order", &order))
        return weir_fail(job, "the body has no order number");
    printf("closing order %lld\n", (long long)order);
    weir_reactor_stop(*weir, end, EV_DEFAULT); /* once this is settled */
    return WEIR_DONE;
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "embed: %s\n", text);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = ev_default_loop(0);
    struct weir_reactor *weir = NULL;
    struct weir_options options = {
        .loop = loop,
        .redis_url = argv[argc - 1],
        .log = say,
        .log_level = WEIR_LEVEL_WARN,
    };
    struct weir_topic_options topic = {.run = close_order, .self = &weir};
    struct weir_new_job job = {.delay_ms = 1000};
    struct weir_error err = {0};

    if (weir_body_from_json("{\"order\": 17}", 13, &job.body, &err) == 0 &&
        weir_reactor_open(&options, &weir, &err) == 0 &&
        weir_reactor_serve(weir, "order.close", &topic, &err) == 0 &&
        weir_reactor_add(weir, "order.close", &job, NULL, NULL, &err) == 0)
        ev_run(loop, 0);
    weir_reactor_free(weir);
    weir_body_free(job.body);
    if (err.code != WEIR_OK)
        fprintf(stderr, "embed: %s\n", err.text);
    return err.code == WEIR_OK ? 0 : 1;
}
