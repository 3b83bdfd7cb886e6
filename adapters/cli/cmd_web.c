/* SPDX-License-Identifier: MIT */

/* weir web: what a server holds, over HTTP. */

#include "adapters/cli/client.h"
#include "adapters/cli/signals.h"
#include "adapters/http/door.h"
#include "adapters/web/web.h"
#include "core/error.h"
#include "core/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { LISTEN, TOKEN_FILE, READ_ONLY };

/* Each waits for one answer of the server: a page says sooner that the server
 * is away than a command gives up. */
enum { PATIENCE_MS = 3000, CONNECTIONS = 1024, OTHER_FILES = 128 };

static const struct weir__flag flags[] = {
    [LISTEN] = {"listen", "ADDRESS:PORT",
                "where to listen: 127.0.0.1:8080, [::1]:8080, or\n"
                ":8080, all addresses; port 0 takes a free one\n"
                "(default: 127.0.0.1:8080)"},
    [TOKEN_FILE] = {"token-file", "F",
                    "its first line is the token, 16 to 256 characters,\n"
                    "that readers have to show; without one anybody on\n"
                    "this machine may read, and nothing can be changed"},
    [READ_ONLY] = {"read-only", NULL, "nothing can be changed"},
};

struct web {
    struct weir__client client;
    struct weir__web web;
    struct weir__log log;
    char token[WEIR__TOKEN_MAX + 2]; /* one more than a token has */
};

/* Whether everybody may have written the file. */
static bool may_be_foreign(FILE *file)
{
    struct stat at;

    return fstat(fileno(file), &at) == 0 && S_ISREG(at.st_mode) &&
           (at.st_mode & S_IWOTH) != 0;
}

/* The first line of the file, which is not printed anywhere. */
static enum weir__exit read_token(struct web *web, const char *path)
{
    struct weir_error err = {0};
    FILE *file = fopen(path, "r");
    size_t len = 0;

    if (file != NULL && may_be_foreign(file)) {
        weir__complain("--token-file: everybody may write to %s: make another "
                       "token, then chmod o-w it",
                       path);
        (void)fclose(file);
        return WEIR__EXIT_USAGE;
    }
    if (file != NULL) {
        if (fgets(web->token, sizeof(web->token), file) != NULL)
            len = strcspn(web->token, "\r\n");
        web->token[len] = '\0';
    }
    if (file == NULL || ferror(file) != 0) {
        weir__complain("--token-file: cannot read %s: %s", path,
                       strerror(errno));
        if (file != NULL)
            (void)fclose(file);
        return WEIR__EXIT_USAGE;
    }
    (void)fclose(file); /* it was only read */
    if (weir__token_check(weir__slice_of(web->token, len), &err) == WEIR_OK)
        return WEIR__EXIT_NONE;
    weir__complain("--token-file: %s: %s", path, err.text);
    return WEIR__EXIT_USAGE;
}

/* As many descriptors as connections want. Where the limit is lower for good
 * the rest of the connections waits. */
static uint32_t make_room(void)
{
    struct rlimit limit;
    rlim_t wanted = CONNECTIONS + OTHER_FILES;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return CONNECTIONS;
    if (limit.rlim_cur < wanted) {
        limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* then it is as it was */
    }
    if (limit.rlim_cur >= wanted)
        return CONNECTIONS;
    return limit.rlim_cur > 2 * OTHER_FILES
               ? (uint32_t)limit.rlim_cur - OTHER_FILES
               : OTHER_FILES / 2;
}

static void on_signal(int number, void *arg)
{
    struct web *web = arg;

    weir__log(&web->log, WEIR_LEVEL_INFO, "%s: ending",
              weir__signal_name(number));
    weir__client_finish(&web->client, WEIR_OK);
}

static enum weir__exit listen_at(struct web *web, const struct weir__args *args)
{
    struct weir_error err = {0};
    struct weir__http_options options = {
        .listen = args->value[LISTEN] != NULL ? args->value[LISTEN]
                                              : "127.0.0.1:8080",
        .token = web->token[0] != '\0' ? web->token : NULL,
        .is_read_only = args->value[READ_ONLY] != NULL,
        .what = "--listen",
        .connections = make_room(),
    };
    int rc;

    web->web.loop = web->client.loop;
    web->web.reactor = web->client.reactor;
    web->web.url = web->client.url;
    rc = weir__web_open(&web->web, options, &err);
    if (rc == WEIR_OK)
        return WEIR__EXIT_NONE;
    weir__complain("%s", err.text);
    return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
}

/* With an open client, listening. */
static enum weir__exit work(struct web *web, const struct weir__args *args)
{
    bool can_act = web->token[0] != '\0' && args->value[READ_ONLY] == NULL;
    int code = weir__client_connect(&web->client);

    if (code < 0)
        return weir__client_exit(&web->client, code, "web");
    weir__log(&web->log, WEIR_LEVEL_INFO, "listening at http://%s/%s",
              weir__http_address(web->web.http),
              can_act                          ? ""
              : args->value[READ_ONLY] != NULL ? ", read only"
                                               : ", read only: without "
                                                 "--token-file nothing "
                                                 "can be changed");
    code = weir__client_wait(&web->client);
    return weir__client_exit(&web->client, code, "web");
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct web web = {
        .log = {.line_fn = weir__log_line, .level = cli->log_level}};
    enum weir__exit rc = WEIR__EXIT_NONE;

    weir__log_bound();
    if (args->value[TOKEN_FILE] != NULL)
        rc = read_token(&web, args->value[TOKEN_FILE]);
    if (rc == WEIR__EXIT_NONE)
        rc = weir__client_open(&web.client, cli, weir__log_line, PATIENCE_MS);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = listen_at(&web, args);
    if (rc == WEIR__EXIT_NONE) {
        weir__signals_open(web.client.loop, on_signal, &web);
        rc = work(&web, args);
        weir__signals_close();
        weir_reactor_free(web.client.reactor); /* its callbacks answer */
        web.client.reactor = NULL;
        weir__web_close(&web.web);
    }
    weir__client_close(&web.client);
    return rc;
}

const struct weir__command weir__cmd_web = {
    .name = "web",
    .operands = "",
    WEIR__FLAGS(flags),
    .summary = "Show topics and jobs in a browser, metrics to Prometheus",
    .details =
        "/ is the page, /metrics what Prometheus reads; /healthz says that "
        "this process\nlives, /readyz that the server answers. With a token a "
        "browser asks for it once,\nand programs send the header "
        "\"Authorization: Bearer TOKEN\". It speaks HTTP: put\na proxy with "
        "TLS "
        "before it where readers are elsewhere, see docs/web.md. SIGTERM\nand "
        "SIGINT end it.",
    .example = "weir web --listen :8080 --token-file /etc/weir/web.token",
    .exits = "0 told to end, 1 failed (the address is taken), 2 wrong usage,\n"
             "  5 no server was reached at the start",
    .run = run,
};
