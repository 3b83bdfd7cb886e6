/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_CLIENT_H
#define WEIR_CLI_CLIENT_H

/* A reactor on a loop of its own, for commands that ask one thing after another
 * and wait for each answer, and for `weir run`.
 *
 * Finds the server (--redis, WEIR_REDIS, else the private one, started when
 * needed) and gives up when no connection came up within 3 s. A command issues
 * a request whose callback calls weir__client_finish, then waits. */

#include "adapters/cli/cli.h"
#include "adapters/server/server.h"

#include <ev.h>
#include <weir/weir.h>

struct weir__client {
    const struct weir__cli *cli;
    struct ev_loop *loop; /* owned; the default one would reap children */
    struct weir_reactor *reactor;
    bool is_private;                      /* the private server is used */
    char socket[sizeof("unix://") + 108]; /* address of the private server */
    const char *url; /* as handed to the reactor; borrowed */
    char shown[400]; /* the same without password */
    double limit_s;  /* until the first connection stands */
    struct ev_timer limit;
    struct ev_signal signals[2];  /* SIGTERM, SIGINT */
    void (*on_signal)(void *arg); /* NULL: they end the process */
    void *on_signal_arg;
    int connection_code;  /* what on_connection said last */
    char connection[480]; /* what was wrong with the connection last */
    char reasons[800];    /* what was wrong since this was cleared */
    char refusal[240];    /* the last warning or error logged since wait */
    char held[240];       /* the last one before the first connection, to be
                             logged with that: else a sentence tells it */
    weir_log_line_fn log; /* NULL: one-shot command, lines are kept back */
    const char *topic;    /* weir__client_know's */
    char kind[32];        /* of that topic; "": it does not exist */
    const char *advice;   /* what to do if a topic is missing; NULL: nothing */
    bool was_connected;   /* at least once */
    bool is_connecting;   /* the connection is what is waited for */
    bool is_finished;
    int code; /* WEIR_OK or WEIR_E... of what is waited for */
};

/* The data directory: --data, else WEIR_DATA, else $XDG_STATE_HOME/weir, else
 * ~/.local/state/weir. As weir__server_locate, with the sentence printed. */
int weir__data_dir_make(const struct weir__cli *cli,
                        struct weir__server *ret_server);

/* The same for one that may be missing: then WEIR_ENOTFOUND, nothing printed,
 * and `ret_server` filled with the name as given and no socket. */
int weir__data_dir_find(const struct weir__cli *cli,
                        struct weir__server *ret_server);

/* Whether cli->redis, which is given, is an address; the sentence was
 * printed. */
bool weir__client_check(const struct weir__cli *cli);

/* Which server it is, started when it is the private one: fills `url`, `shown`,
 * `is_private`; nothing is to be closed. WEIR__EXIT_NONE, or what to exit with.
 * BLOCKS while the private server starts. */
enum weir__exit weir__client_find(struct weir__client *client,
                                  const struct weir__cli *cli);

/* Ready to issue requests, connecting. `log` receives log lines; NULL: they
 * are shown at level debug only, because the command says itself what went
 * wrong; that a stored option is ignored is shown as any warning. Requests wait
 * for `patience_ms`; 0: 10 s, 30 s in a cluster. WEIR__EXIT_NONE, or what to
 * exit with: then nothing is to be closed.
 * BLOCKS while the private server starts. */
enum weir__exit weir__client_open(struct weir__client *client,
                                  const struct weir__cli *cli,
                                  weir_log_line_fn log, int64_t patience_ms);

void weir__client_close(struct weir__client *client);

/* Have SIGTERM and SIGINT call `fn` on the loop until the client is closed. */
void weir__client_on_signal(struct weir__client *client, void (*fn)(void *arg),
                            void *arg);

/* Run the loop until weir__client_finish; returns its code. WEIR_ECONN when no
 * server was reached in time. BLOCKS. */
int weir__client_wait(struct weir__client *client);

/* Run the loop until there is a connection, once after opening; codes as above.
 * BLOCKS. */
int weir__client_connect(struct weir__client *client);

/* End the wait; for callbacks. */
void weir__client_finish(struct weir__client *client, int code);

/* Ask of which kind the topic is, into `kind`. WEIR_ENOTFOUND. BLOCKS. */
int weir__client_ask_kind(struct weir__client *client, const char *topic);

/* Ask of which kind the topic is, and have the reactor treat it so: before
 * anything else is asked of it. WEIR__EXIT_NONE, also when there is no such
 * topic; or what to exit with, the sentence was printed. BLOCKS. */
enum weir__exit weir__client_know(struct weir__client *client,
                                  const char *topic);

/* Say why `doing` ("add", "show") did not work; what to exit with. Nothing is
 * said for WEIR_OK. */
enum weir__exit weir__client_exit(struct weir__client *client, int code,
                                  const char *doing);

/* After WEIR_ENOTFOUND: say whether it is the topic that does not exist, and
 * which one may be meant, or in it `id`. With `id` NULL only the topic is
 * looked at, and nothing is said when it exists. BLOCKS. */
enum weir__exit weir__client_not_found(struct weir__client *client,
                                       const char *topic, const char *id);

#endif
