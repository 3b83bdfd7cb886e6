/* SPDX-License-Identifier: MIT */
/* Add many jobs in batches, drain them with one reactor, and count how often
 * each was handled. Usage: drain REDIS_URL [JOBS]
 *
 * Adds made in one turn of the loop travel together; this program adds a batch
 * each turn, as a producer that reads from somewhere would. */
#define _POSIX_C_SOURCE 200809L /* for -std=c11 */
#include <ev.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/weir.h>

enum { BATCH = 1000 };

struct drain {
    struct ev_loop *loop;
    struct weir_reactor *weir;
    ev_prepare producer;
    uint8_t *seen; /* how often each job was handled */
    long jobs, sent, added, refused, handled, twice;
    double started, filled, finished;
};

static double now(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail */
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static enum weir_verdict handle(void *self, struct weir_job *job)
{
    struct drain *drain = self;
    int64_t number;

    if (!weir_job_i64(job, "number", &number) || number < 0 ||
        number >= drain->jobs)
        return weir_fail(job, "the body has no number of ours");
    drain->twice += drain->seen[number]++ > 0;
    drain->handled++;
    return WEIR_DONE;
}

/* Everything is added: from here on the reactor drains. */
static void serve(struct drain *drain)
{
    struct weir_topic_options topic = {.run = handle, .self = drain};
    struct weir_error err;

    drain->filled = now();
    if (weir_reactor_serve(drain->weir, "drain", &topic, &err) < 0) {
        fprintf(stderr, "drain: %s\n", err.text);
        ev_break(drain->loop, EVBREAK_ALL);
    }
}

static void on_added(int code, const char *id, void *arg)
{
    struct drain *drain = arg;

    if (code == WEIR_OK)
        drain->added++;
    else if (drain->refused++ == 0)
        fprintf(stderr, "drain: %s: %s\n", id, weir_error_text(code));
    if (drain->added + drain->refused == drain->jobs)
        serve(drain);
}

static void on_idle(const char *topic, void *arg)
{
    struct drain *drain = arg;

    (void)topic;
    drain->finished = now();
    ev_break(drain->loop, EVBREAK_ALL);
}

static int add(struct drain *drain, long number)
{
    static const char text[] = "about a hundred bytes of body, like an order "
                               "with a customer and two items in it";
    char id[32];
    struct weir_new_job job = {.id = id};
    msgpack_sbuffer body;
    msgpack_packer packer;
    int rc;

    snprintf(id, sizeof(id), "drain-%014ld", number);
    msgpack_sbuffer_init(&body);
    msgpack_packer_init(&packer, &body, msgpack_sbuffer_write);
    msgpack_pack_map(&packer, 2);
    msgpack_pack_str(&packer, 6);
    msgpack_pack_str_body(&packer, "number", 6);
    msgpack_pack_int64(&packer, number);
    msgpack_pack_str(&packer, 4);
    msgpack_pack_str_body(&packer, "text", 4);
    msgpack_pack_str(&packer, sizeof(text) - 1);
    msgpack_pack_str_body(&packer, text, sizeof(text) - 1);
    job.body = (struct weir_slice){(const uint8_t *)body.data, body.size};
    rc = weir_reactor_add(drain->weir, "drain", &job, on_added, drain, NULL);
    msgpack_sbuffer_destroy(&body);
    return rc;
}

/* A batch each turn; a full queue means: go on when it has emptied a bit. */
static void produce(struct ev_loop *loop, ev_prepare *watcher, int events)
{
    struct drain *drain = watcher->data;

    (void)events;
    for (int i = 0; i < BATCH && drain->sent < drain->jobs; i++) {
        int rc = add(drain, drain->sent);

        if (rc == WEIR_EFULL)
            return;
        if (rc < 0) {
            fprintf(stderr, "drain: %s\n", weir_error_text(rc));
            ev_break(loop, EVBREAK_ALL);
            return;
        }
        drain->sent++;
    }
    if (drain->sent == drain->jobs)
        ev_prepare_stop(loop, watcher);
}

static int report(const struct drain *drain)
{
    long lost = 0;

    for (long i = 0; i < drain->jobs; i++)
        lost += drain->seen[i] == 0;
    printf("added %ld in %.3f s: %.0f jobs/s\n", drain->added,
           drain->filled - drain->started,
           (double)drain->added / (drain->filled - drain->started));
    printf("drained %ld in %.3f s: %.0f jobs/s\n", drain->handled,
           drain->finished - drain->filled,
           (double)drain->handled / (drain->finished - drain->filled));
    printf("lost %ld, handled twice %ld\n", lost, drain->twice);
    return lost == 0 && drain->twice == 0 ? 0 : 1;
}

/* Among it that no server answers: weir tries again until one does. */
static void say(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    fprintf(stderr, "drain: %s\n", text);
}

int main(int argc, char **argv)
{
    struct drain drain = {.loop = ev_default_loop(0), .jobs = 100000};
    struct weir_options options = {
        .loop = drain.loop, .log = say, .log_level = WEIR_LEVEL_WARN};
    struct weir_error err;

    if (argc < 2) {
        fprintf(stderr, "usage: drain REDIS_URL [JOBS]\n");
        return 2;
    }
    if (argc > 2)
        drain.jobs = strtol(argv[2], NULL, 10);
    options.redis_url = argv[1];
    if (drain.jobs < 1 ||
        weir_reactor_open(&options, &drain.weir, &err) != WEIR_OK) {
        fprintf(stderr, "drain: %s\n", drain.jobs < 1 ? "no jobs" : err.text);
        return 2;
    }
    drain.seen = calloc((size_t)drain.jobs, 1);
    if (drain.seen == NULL) {
        fprintf(stderr, "drain: out of memory\n");
        weir_reactor_free(drain.weir);
        return 1;
    }
    weir_reactor_on_idle(drain.weir, on_idle, &drain);
    drain.started = now();
    ev_prepare_init(&drain.producer, produce);
    drain.producer.data = &drain;
    ev_prepare_start(drain.loop, &drain.producer);
    ev_run(drain.loop, 0);
    weir_reactor_free(drain.weir);
    int rc = drain.finished > 0 ? report(&drain) : 1;
    free(drain.seen);
    return rc;
}
