/* SPDX-License-Identifier: MIT */

/* A worker that is built with steps to die at. Serves until SIGTERM.
 * Usage: step_worker URL TOPIC PLUGIN lease=LEASE kind=KIND [KEY=VALUE...] */

#include <ev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <weir/weir.h>

static void on_stopped(void *arg)
{
    ev_break(arg, EVBREAK_ALL);
}

static void on_signal(struct ev_loop *loop, ev_signal *watcher, int events)
{
    (void)events;
    weir_reactor_stop(watcher->data, on_stopped, loop);
}

static void on_log(enum weir_level level, const char *text, void *arg)
{
    (void)level;
    (void)arg;
    (void)fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
    struct ev_loop *loop = ev_default_loop(0);
    struct weir_reactor *weir = NULL;
    struct weir_error err = {0};
    ev_signal term;

    if (argc < 6)
        return 2;
    if (weir_reactor_open(
            &(struct weir_options){
                .loop = loop,
                .redis_url = argv[1],
                .log = on_log,
                .log_level = WEIR_LEVEL_ERROR,
            },
            &weir, &err) == 0 &&
        weir_reactor_serve(weir, argv[2],
                           &(struct weir_topic_options){
                               .plugin = argv[3],
                               .options = {argv[4], argv[5], "retry=20ms ..."},
                               .plugin_options = (const char *const *)&argv[6],
                               .plugin_option_count = (size_t)argc - 6,
                           },
                           &err) == 0) {
        ev_signal_init(&term, on_signal, SIGTERM);
        term.data = weir;
        ev_signal_start(loop, &term);
        (void)ev_run(loop, 0);
    }
    weir_reactor_free(weir);
    if (err.code != WEIR_OK)
        (void)fprintf(stderr, "step_worker: %s\n", err.text);
    return err.code == WEIR_OK ? 0 : 1;
}
