/* SPDX-License-Identifier: MIT */
#include "adapters/cli/client.h"

#include "adapters/cli/topics.h"

#include "adapters/cli/options.h"
#include "adapters/redis/conn/error.h"
#include "adapters/redis/url.h"
#include "core/assert.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double CONNECT_LIMIT_S = 3.0;   /* and 1 s for each more host */
static const double FAILOVER_LIMIT_S = 10.0; /* where one may be under way */

static void copy_text(char *to, size_t cap, const char *text)
{
    (void)snprintf(to, cap, "%s", text); /* cut to fit */
}

/* --- the data directory ---------------------------------------------- */

/* An absolute path from the environment; the XDG specification has relative
 * ones ignored. */
static const char *absolute(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] == '/' ? value : NULL;
}

static bool default_dir(char *buf, size_t cap)
{
    const char *state = absolute("XDG_STATE_HOME");
    const char *home = absolute("HOME");
    int len = -1;

    if (state != NULL)
        len = snprintf(buf, cap, "%s/weir", state);
    else if (home != NULL)
        len = snprintf(buf, cap, "%s/.local/state/weir", home);
    return len > 0 && (size_t)len < cap;
}

/* `buf` has PATH_MAX bytes. */
static int data_dir(const struct weir__cli *cli, char *buf)
{
    if (cli->data == NULL && default_dir(buf, PATH_MAX))
        return WEIR_OK;
    if (cli->data != NULL &&
        snprintf(buf, PATH_MAX, "%s", cli->data) < PATH_MAX)
        return WEIR_OK;
    weir__complain(cli->data == NULL
                       ? "no place for the private redis-server: HOME is not "
                         "set; give --data DIR or --redis URL"
                       : "the name of the data directory is too long");
    return WEIR_EINVAL;
}

int weir__data_dir_make(const struct weir__cli *cli,
                        struct weir__server *ret_server)
{
    struct weir_error err = {0};
    char dir[PATH_MAX];
    int rc = data_dir(cli, dir);

    if (rc < 0)
        return rc;
    rc = weir__server_locate(dir, true, ret_server, &err);
    if (rc < 0)
        weir__complain("%s", err.text);
    return rc;
}

int weir__data_dir_find(const struct weir__cli *cli,
                        struct weir__server *ret_server)
{
    struct weir_error err = {0};
    char dir[PATH_MAX];
    int rc = data_dir(cli, dir);

    if (rc < 0)
        return rc;
    rc = weir__server_locate(dir, false, ret_server, &err);
    if (rc == WEIR_ENOTFOUND) {
        (void)snprintf(ret_server->dir, sizeof(ret_server->dir), "%.*s",
                       (int)sizeof(ret_server->dir) - 1, dir); /* cut */
        ret_server->socket[0] = '\0';
    } else if (rc < 0) {
        weir__complain("%s", err.text);
    }
    return rc;
}

/* --- which server ----------------------------------------------------- */

/* Start the private server and point the client at it. */
static enum weir__exit use_private(struct weir__client *client)
{
    struct weir__server_info info = {0};
    struct weir__server server;
    struct weir_error err = {0};
    bool started = false;
    int rc = weir__data_dir_make(client->cli, &server);

    if (rc < 0)
        return WEIR__EXIT_USAGE;
    if (strchr(server.dir, '?') != NULL) {
        weir__complain("the data directory %s has a ? in its name, which an "
                       "address cannot hold; give another --data",
                       server.dir);
        return WEIR__EXIT_USAGE;
    }
    rc = weir__server_start(&server, &started, &info, &err);
    if (rc < 0) {
        weir__complain("%s", err.text);
        return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_UNREACHABLE;
    }
    if (started)
        weir__note(client->cli, "private redis-server in %s (started, pid %ld)",
                   server.dir, (long)info.pid);
    client->is_private = true;
    (void)snprintf(client->socket, sizeof(client->socket), "unix://%s",
                   server.socket); /* fits */
    client->url = client->socket;
    return WEIR__EXIT_NONE;
}

static bool parse_url(const struct weir__cli *cli, const char *text,
                      struct weir__redis_url *url)
{
    struct weir_error err = {0};

    if (weir__redis_url_parse(text, url, &err) == WEIR_OK)
        return true;
    weir__complain("%s: %s", cli->redis_from,
                   weir__text_behind(err.text, "redis address: "));
    return false;
}

bool weir__client_check(const struct weir__cli *cli)
{
    struct weir__redis_url url;

    return parse_url(cli, cli->redis, &url);
}

enum weir__exit weir__client_find(struct weir__client *client,
                                  const struct weir__cli *cli)
{
    struct weir__redis_url url;
    enum weir__exit rc;

    memset(client, 0, sizeof(*client));
    client->cli = cli;
    client->url = cli->redis;
    if (client->url == NULL) {
        rc = use_private(client);
        if (rc != WEIR__EXIT_NONE)
            return rc;
    }
    if (!parse_url(cli, client->url, &url))
        return WEIR__EXIT_USAGE;
    client->limit_s = url.is_sentinel
                          ? FAILOVER_LIMIT_S
                          : CONNECT_LIMIT_S + (double)(url.host_count - 1);
    weir__redis_url_print(&url, client->shown, sizeof(client->shown));
    return WEIR__EXIT_NONE;
}

/* --- the reactor ------------------------------------------------------ */

/* Trying again is of no use until somebody changed something. */
static bool is_denial(const char *text)
{
    enum weir__error_class class = weir__error_classify(text);

    return class == WEIR__ERROR_DENIED || class == WEIR__ERROR_NOAUTH;
}

/* As many as there is room for. Those that differ in parentheses alone, as a
 * connection that was closed and then refused, are one. */
static void note_reason(struct weir__client *client, const char *text)
{
    size_t len = strlen(client->reasons);
    char head[sizeof(client->connection)];
    char *details;

    copy_text(head, sizeof(head), text);
    details = strstr(head, " (");
    if (details != NULL)
        *details = '\0';
    if (strstr(client->reasons, head) == NULL &&
        strlen(text) + sizeof("; ") <= sizeof(client->reasons) - len)
        (void)snprintf(client->reasons + len, sizeof(client->reasons) - len,
                       "%s%s", len == 0 ? "" : "; ", text); /* fits */
}

/* A seed may be away where the next one answers. */
static void log_held(struct weir__client *client)
{
    const struct weir_log_line line = {.level = WEIR_LEVEL_WARN,
                                       .text = client->held};

    if (client->held[0] != '\0' && client->cli->log_level <= WEIR_LEVEL_WARN)
        client->log(&line, NULL);
    client->held[0] = '\0';
}

static void on_connection(int code, const char *text, void *arg)
{
    struct weir__client *client = arg;

    client->connection_code = code;
    if (code != WEIR_OK) {
        copy_text(client->connection, sizeof(client->connection), text);
        note_reason(client, text);
        if (!client->was_connected && code == WEIR_ESERVER && is_denial(text))
            weir__client_finish(client, WEIR_ECONN);
        if (!client->was_connected && code == WEIR_ENOTFOUND)
            weir__client_finish(client, WEIR_ECONN);
        return;
    }
    client->was_connected = true;
    log_held(client);
    ev_timer_stop(client->loop, &client->limit);
    if (client->is_connecting)
        weir__client_finish(client, WEIR_OK);
}

static void on_limit(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct weir__client *client = timer->data;

    (void)loop;
    (void)events;
    weir__client_finish(client, WEIR_ECONN);
}

static void on_log(const struct weir_log_line *line, void *arg)
{
    struct weir__client *client = arg;
    bool is_debug = client->cli->log_level == WEIR_LEVEL_DEBUG;

    if (line->event != NULL && strcmp(line->event, "ignored") == 0) {
        if (line->level >= client->cli->log_level) /* no sentence tells it */
            (client->log != NULL ? client->log : weir__log_line)(line, NULL);
        return;
    }
    if (line->level >= WEIR_LEVEL_WARN)
        copy_text(client->refusal, sizeof(client->refusal), line->text);
    if (client->log != NULL && client->reactor != NULL &&
        !client->was_connected && !is_debug && line->level >= WEIR_LEVEL_WARN)
        copy_text(client->held, sizeof(client->held), line->text);
    else if (client->log != NULL && line->level >= client->cli->log_level)
        client->log(line, NULL);
    else if (client->log == NULL && (client->reactor == NULL || is_debug))
        weir__log_line(line, NULL); /* what is said at each start */
}

static enum weir__exit open_reactor(struct weir__client *client,
                                    int64_t patience_ms)
{
    struct weir_options options = {
        .loop = client->loop,
        .redis_url = client->url,
        .name = client->cli->worker,
        .log_line = on_log,
        .log_arg = client,
        /* On another thread, so that it touches nothing of this client's. */
        .blocked_log_line = client->log == NULL ? NULL : weir__log_line,
        .log_level = client->cli->log_level,
        .request_timeout_ms = patience_ms,
        .on_connection = on_connection,
        .on_connection_arg = client,
        .block_warn_ms = client->cli->block_warn_ms,
        .threads = client->cli->threads,
    };
    struct weir_error err = {0};
    int rc;

    if (options.log_level > WEIR_LEVEL_WARN)
        options.log_level = WEIR_LEVEL_WARN; /* kept for sentences */
    rc = weir_reactor_open(&options, &client->reactor, &err);
    if (rc == WEIR_OK)
        return WEIR__EXIT_NONE;
    weir__complain("%s", err.text);
    return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
}

enum weir__exit weir__client_open(struct weir__client *client,
                                  const struct weir__cli *cli,
                                  weir_log_line_fn log, int64_t patience_ms)
{
    enum weir__exit rc = weir__client_find(client, cli);

    if (rc != WEIR__EXIT_NONE)
        return rc;
    client->log = log;
    /* Not the default one, which would reap the children of plugins. */
    client->loop = ev_loop_new(EVFLAG_AUTO);
    if (client->loop == NULL) {
        weir__complain("libev found no way to wait for events");
        return WEIR__EXIT_FAILED;
    }
    rc = open_reactor(client, patience_ms);
    if (rc != WEIR__EXIT_NONE) {
        ev_loop_destroy(client->loop);
        client->loop = NULL;
        return rc;
    }
    ev_timer_init(&client->limit, on_limit, client->limit_s, 0.0);
    client->limit.data = client;
    ev_now_update(client->loop);
    ev_timer_start(client->loop, &client->limit);
    return WEIR__EXIT_NONE;
}

static void on_signal(struct ev_loop *loop, struct ev_signal *watcher,
                      int events)
{
    const struct weir__client *client = watcher->data;

    (void)loop;
    (void)events;
    client->on_signal(client->on_signal_arg);
}

void weir__client_on_signal(struct weir__client *client, void (*fn)(void *arg),
                            void *arg)
{
    static const int numbers[] = {SIGTERM, SIGINT};

    client->on_signal = fn;
    client->on_signal_arg = arg;
    for (size_t i = 0; i < 2; i++) {
        ev_signal_init(&client->signals[i], on_signal, numbers[i]);
        client->signals[i].data = client;
        ev_signal_start(client->loop, &client->signals[i]);
    }
}

void weir__client_close(struct weir__client *client)
{
    for (size_t i = 0; i < 2 && client->on_signal != NULL; i++)
        ev_signal_stop(client->loop, &client->signals[i]);
    ev_timer_stop(client->loop, &client->limit);
    weir_reactor_free(client->reactor); /* NULL: freed before */
    ev_loop_destroy(client->loop);
}

/* --- waiting ---------------------------------------------------------- */

int weir__client_wait(struct weir__client *client)
{
    WEIR_ASSERT(client->reactor != NULL);
    client->is_finished = false;
    client->refusal[0] = '\0';
    while (!client->is_finished)
        (void)ev_run(client->loop, EVRUN_ONCE);
    return client->code;
}

int weir__client_connect(struct weir__client *client)
{
    int code;

    client->is_connecting = true;
    code = weir__client_wait(client);
    client->is_connecting = false;
    return code;
}

void weir__client_finish(struct weir__client *client, int code)
{
    client->is_finished = true;
    client->code = code;
    ev_break(client->loop, EVBREAK_ONE);
}

/* --- what went wrong -------------------------------------------------- */

static enum weir__exit unreachable(const struct weir__client *client)
{
    const char *why = client->connection[0] != '\0' ? client->connection
                                                    : "it does not answer";

    if (client->connection_code == WEIR_ENOTFOUND) {
        weir__complain("redis at %s: %s", client->shown, why);
        return WEIR__EXIT_USAGE;
    }
    if (client->connection_code == WEIR_ESERVER)
        weir__complain("redis at %s turned us away: %s", client->shown, why);
    else if (client->is_private)
        weir__complain("cannot reach the private redis-server at %s: %s; see "
                       "weir server status",
                       client->shown, why);
    else
        weir__complain(
            "cannot reach redis at %s: %s%s", client->shown, why,
            client->was_connected ? "" : "; start it, or give --redis URL");
    return WEIR__EXIT_UNREACHABLE;
}

enum weir__exit weir__client_exit(struct weir__client *client, int code,
                                  const char *doing)
{
    if (code == WEIR_OK)
        return WEIR__EXIT_DONE;
    if (code == WEIR_ECONN)
        return unreachable(client);
    if (code == WEIR_EUNKNOWN) {
        weir__complain("%s: the connection to redis at %s was lost before the "
                       "answer came; look whether it was done",
                       doing, client->shown);
        return WEIR__EXIT_UNREACHABLE;
    }
    if (code == WEIR_EINVAL && client->refusal[0] != '\0') {
        weir__complain("%s: %s", doing,
                       weir__text_behind(client->refusal, "redis: "));
        return WEIR__EXIT_USAGE;
    }
    if (code == WEIR_EKIND && client->kind[0] != '\0') {
        weir__complain("%s: topic \"%s\" is of kind %s, which does not know "
                       "this; see docs/kinds.md",
                       doing, client->topic, client->kind);
        return WEIR__EXIT_USAGE;
    }
    weir__complain("%s: %s%s%s", doing, weir_error_text(code),
                   client->refusal[0] != '\0' ? ": " : "", client->refusal);
    return WEIR__EXIT_FAILED;
}

static void on_kind(int code, const char *kind, void *arg)
{
    struct weir__client *client = arg;

    if (kind != NULL)
        copy_text(client->kind, sizeof(client->kind), kind);
    weir__client_finish(client, code);
}

int weir__client_ask_kind(struct weir__client *client, const char *topic)
{
    int rc = weir_reactor_kind(client->reactor, topic, on_kind, client);

    client->topic = topic;
    client->kind[0] = '\0';
    if (rc == WEIR_OK)
        rc = weir__client_wait(client);
    return rc == WEIR_EUNKNOWN ? WEIR_ECONN : rc; /* nothing was to be done */
}

enum weir__exit weir__client_know(struct weir__client *client,
                                  const char *topic)
{
    struct weir_error err = {0};
    int rc = weir__client_ask_kind(client, topic);

    if (rc == WEIR_ENOTFOUND || (rc == WEIR_OK && client->kind[0] == '\0'))
        return WEIR__EXIT_NONE; /* no such topic, or a signal ended the wait */
    if (rc < 0)
        return weir__client_exit(client, rc, "kind");
    rc = weir_reactor_declare(client->reactor, topic, client->kind, &err);
    if (rc == WEIR_OK)
        return WEIR__EXIT_NONE;
    weir__complain("topic \"%s\": %s", topic, err.text);
    return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
}

static void on_topic(int code, const struct weir_stats *stats, void *arg)
{
    (void)stats;
    weir__client_finish(arg, code);
}

enum weir__exit weir__client_not_found(struct weir__client *client,
                                       const char *topic, const char *id)
{
    char near[WEIR_MAX_TOPIC + 1];
    int rc = weir_reactor_stats(client->reactor, topic, on_topic, client);

    if (rc == WEIR_OK)
        rc = weir__client_wait(client);
    if (rc == WEIR_ENOTFOUND) {
        weir__topics_near(client, topic, near);
        weir__complain("there is no topic \"%s\"%s%s%s%s%s", topic,
                       near[0] != '\0' ? "; did you mean \"" : "", near,
                       near[0] != '\0' ? "\"?" : "",
                       client->advice == NULL ? ""
                       : near[0] != '\0'      ? " "
                                              : "; ",
                       client->advice == NULL ? "" : client->advice);
        return WEIR__EXIT_NOT_FOUND;
    }
    if (rc < 0)
        return weir__client_exit(client, rc, "stats");
    if (id == NULL)
        return WEIR__EXIT_DONE;
    weir__complain("there is no job \"%s\" in topic \"%s\"", id, topic);
    return WEIR__EXIT_NOT_FOUND;
}
