/* SPDX-License-Identifier: MIT */
#include "tests/harness/redis_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/redis/conn/tls.h"
#include "tests/harness/patience.h"
#include "tests/harness/tempdir.h"

enum {
    START_S = 20,
    ARGS_MAX = 64,
    TEXT_CAP = 64 * 1024,
    FIRST_PORT = 20000, /* below the ephemeral range, with BUS as well */
    PORTS = 2768,
    BUS = 10000, /* from a node's port to that of its cluster's bus */
    RESERVED = 4,
    INHERITED_FDS_MAX = 256
};

struct redis_proc {
    struct redis_proc *next;
    struct redis_options options;
    struct tempdir dir;
    char socket[108];
    char url[128];
    char port[8];
    char tls_port[8];
    int reserved[RESERVED]; /* -1: none */
    char tls_url[192];
    struct weir__tls *tls; /* of redis_address */
    pid_t pid;             /* 0: not running */
    redisContext *context;
    redisReply *(*answer)(const char *bytes, size_t len); /* a stand-in */
    char *text; /* of redis_text, TEXT_CAP bytes */
};

static struct redis_proc *all;

static _Noreturn void give_up(const char *what, const struct redis_proc *proc)
{
    printf("  redis_proc: %s", what);
    if (proc != NULL && proc->context != NULL && proc->context->err != 0)
        printf(": %s", proc->context->errstr);
    printf("\n");
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

static void forget_context(struct redis_proc *proc)
{
    if (proc->context != NULL)
        redisFree(proc->context);
    proc->context = NULL;
}

static void stop_all(void)
{
    while (all != NULL)
        redis_stop(all);
}

/* --- starting ---------------------------------------------------------- */

/* Others find the port taken, also while the server is down, who may bind it as
 * well: it has SO_REUSEADDR. Returns a socket that nobody listens on; -1. */
static int reserve_port(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;

    if (fd < 0)
        return -1;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0)
        return fd;
    (void)close(fd); /* nothing was written */
    return -1;
}

/* `nth` of the server; reserved until it is stopped. */
static void choose_port(struct redis_proc *proc, char text[8], int nth)
{
    int port = FIRST_PORT + (int)((getpid() * 7 + nth) % PORTS);
    int *fd = &proc->reserved[2 * nth];

    for (int i = 0; i < PORTS; i++) {
        fd[0] = reserve_port(port);
        fd[1] = fd[0] < 0 ? -1 : reserve_port(port + BUS);
        if (fd[1] >= 0) {
            (void)snprintf(text, 8, "%d", port); /* fits */
            return;
        }
        if (fd[0] >= 0)
            (void)close(fd[0]);
        fd[0] = -1;
        port = FIRST_PORT + (port - FIRST_PORT + 1) % PORTS;
    }
    give_up("no port is free", NULL);
}

static void free_ports(const struct redis_proc *proc)
{
    for (size_t i = 0; i < RESERVED; i++)
        if (proc->reserved[i] >= 0)
            (void)close(proc->reserved[i]);
}

static bool is_over_tls(void)
{
    return getenv("WEIR_TEST_TLS") != NULL;
}

static void make_certificates(const struct redis_proc *proc)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        execlp("bash", "bash", WEIR_CERTIFICATES, proc->dir.path, "server",
               (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
        give_up("no certificates", NULL);
}

static void prepare_tls(struct redis_proc *proc)
{
    choose_port(proc, proc->tls_port, 1);
    (void)snprintf(proc->tls_url, sizeof(proc->tls_url),
                   "rediss://127.0.0.1:%s?ca=%s/ca.pem", proc->tls_port,
                   proc->dir.path); /* fits */
    make_certificates(proc);
}

static void add_arg(char **args, size_t *count, const char *arg)
{
    if (*count >= ARGS_MAX - 1)
        give_up("too many arguments", NULL);
    args[*count] = strdup(arg); /* the process is about to be replaced */
    *count += 1;
    args[*count] = NULL;
}

static void add_tls_args(char **args, size_t *count, const char *port)
{
    const char *const more[] = {
        "--tls-port",         port,         "--tls-cert-file",    "server.pem",
        "--tls-key-file",     "server.key", "--tls-ca-cert-file", "ca.pem",
        "--tls-auth-clients", "no"};

    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
        add_arg(args, count, more[i]);
}

static _Noreturn void become_server(const struct redis_proc *proc)
{
    const char *binary = getenv("WEIR_REDIS_SERVER");
    const char *const fixed[] = {binary != NULL ? binary : "redis-server",
                                 "--port",
                                 proc->options.tcp ? proc->port : "0",
                                 "--bind",
                                 "127.0.0.1",
                                 "--unixsocket",
                                 proc->socket,
                                 "--save",
                                 "",
                                 "--appendonly",
                                 proc->options.appendonly ? "yes" : "no",
                                 "--dir",
                                 proc->dir.path,
                                 "--logfile",
                                 "log",
                                 NULL};
    char *args[ARGS_MAX];
    size_t count = 0;
    int null;

    for (size_t i = 0; fixed[i] != NULL; i++)
        add_arg(args, &count, fixed[i]);
    if (proc->options.appendonly) {
        /* everysec answers before it writes while the disk is busy */
        add_arg(args, &count, "--appendfsync");
        add_arg(args, &count, "no");
    }
    if (proc->options.password != NULL) {
        add_arg(args, &count, "--requirepass");
        add_arg(args, &count, proc->options.password);
    }
    if (proc->options.tls)
        add_tls_args(args, &count, proc->tls_port);
    for (size_t i = 0;
         proc->options.args != NULL && proc->options.args[i] != NULL; i++)
        add_arg(args, &count, proc->options.args[i]);
    null = open("/dev/null", O_RDWR);
    (void)dup2(null, STDIN_FILENO); /* best effort */
    (void)dup2(null, STDOUT_FILENO);
    for (int fd = STDERR_FILENO + 1; fd < INHERITED_FDS_MAX; fd++)
        (void)close(fd); /* most are not open */
    execvp(args[0], args);
    _exit(127);
}

/* Connects the helper connection and asks for a PONG. LOADING is waited out. */
static bool answers(struct redis_proc *proc)
{
    redisReply *reply;
    bool is_pong;

    forget_context(proc);
    proc->context = redisConnectUnix(proc->socket);
    if (proc->context == NULL || proc->context->err != 0)
        return false;
    (void)fcntl(proc->context->fd, F_SETFD, FD_CLOEXEC); /* tidiness */
    if (proc->options.password != NULL)
        freeReplyObject(
            redisCommand(proc->context, "AUTH %s", proc->options.password));
    reply = redisCommand(proc->context, "PING");
    is_pong = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    return is_pong;
}

static void launch(struct redis_proc *proc)
{
    struct patience patience = patience_start(START_S);

    (void)fflush(stdout); /* or the child could print it again */
    proc->pid = fork();
    if (proc->pid < 0)
        give_up("fork failed", proc);
    if (proc->pid == 0)
        become_server(proc);
    tempdir_guard(&proc->dir, proc->pid);
    while (!answers(proc)) {
        if (waitpid(proc->pid, NULL, WNOHANG) == proc->pid)
            give_up("the server ended at once (not installed?)", NULL);
        if (patience_ended(&patience))
            give_up("the server does not answer", proc);
        (void)poll(NULL, 0, 1); /* between two looks */
    }
}

struct redis_proc *redis_prepare(const struct redis_options *options)
{
    struct redis_proc *proc = calloc(1, sizeof(*proc));

    if (proc == NULL)
        give_up("out of memory", NULL);
    if (all == NULL)
        (void)atexit(stop_all); /* the guard remains without it */
    if (options != NULL)
        proc->options = *options;
    for (size_t i = 0; i < RESERVED; i++)
        proc->reserved[i] = -1;
    if (!tempdir_make(&proc->dir))
        give_up("no directory", NULL);
    (void)snprintf(proc->socket, sizeof(proc->socket), "%s/s", proc->dir.path);
    (void)snprintf(proc->url, sizeof(proc->url), "unix://%s", proc->socket);
    if (proc->options.tcp)
        choose_port(proc, proc->port, 0);
    proc->options.tls = proc->options.tls || is_over_tls();
    if (proc->options.tls)
        prepare_tls(proc);
    proc->next = all;
    all = proc;
    return proc;
}

struct redis_proc *redis_start(const struct redis_options *options)
{
    struct redis_proc *proc = redis_prepare(options);

    launch(proc);
    return proc;
}

struct redis_proc *redis_stand_in(redisReply *(*answer)(const char *bytes,
                                                        size_t len))
{
    struct redis_proc *proc = calloc(1, sizeof(*proc));

    if (proc == NULL)
        give_up("out of memory", NULL);
    proc->answer = answer;
    return proc;
}

/* --- facts -------------------------------------------------------------- */

const char *redis_url(const struct redis_proc *proc)
{
    return is_over_tls() ? proc->tls_url : proc->url;
}

void redis_address(struct redis_proc *proc, struct weir__redis_url *ret_url)
{
    struct weir_error err = {0};

    if (weir__redis_url_parse(redis_url(proc), ret_url, &err) < 0 ||
        (proc->tls == NULL && weir__tls_new(ret_url, &proc->tls, &err) < 0))
        give_up(err.text, NULL);
    ret_url->tls = proc->tls;
}

const char *redis_tls_url(const struct redis_proc *proc)
{
    return proc->tls_url;
}

int redis_tls_port(const struct redis_proc *proc)
{
    return (int)strtol(proc->tls_port, NULL, 10);
}

const char *redis_socket(const struct redis_proc *proc)
{
    return proc->socket;
}

const char *redis_dir(const struct redis_proc *proc)
{
    return proc->dir.path;
}

int redis_port(const struct redis_proc *proc)
{
    return (int)strtol(proc->port, NULL, 10);
}

pid_t redis_pid(const struct redis_proc *proc)
{
    return proc->pid;
}

/* --- ending -------------------------------------------------------------- */

void redis_kill(struct redis_proc *proc, int signal_number)
{
    if (proc->pid == 0)
        return;
    (void)kill(proc->pid, signal_number); /* it may have ended by itself */
    if (signal_number != SIGKILL && signal_number != SIGTERM)
        return;
    while (waitpid(proc->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    proc->pid = 0;
    tempdir_guard(&proc->dir, 0);
    forget_context(proc);
}

void redis_restart(struct redis_proc *proc)
{
    redis_kill(proc, SIGKILL);
    launch(proc);
}

void redis_stop(struct redis_proc *proc)
{
    struct redis_proc **link = &all;

    redis_kill(proc, SIGKILL);
    while (*link != proc)
        link = &(*link)->next;
    *link = proc->next;
    tempdir_remove(&proc->dir);
    free_ports(proc);
    weir__tls_free(proc->tls);
    free(proc->text);
    free(proc);
}

/* --- commands ------------------------------------------------------------ */

/* Frees `bytes`, a command of `len`; negative: it could not be written. */
static redisReply *ask_bytes(struct redis_proc *proc, char *bytes,
                             long long len)
{
    void *reply = NULL;

    if (len < 0)
        give_up("out of memory", NULL);
    if (proc->answer == NULL && proc->context == NULL)
        give_up("asked while the server is down", proc);
    if (proc->answer != NULL)
        reply = proc->answer(bytes, (size_t)len);
    else if (redisAppendFormattedCommand(proc->context, bytes, (size_t)len) ==
             REDIS_OK)
        (void)redisGetReply(proc->context, &reply); /* NULL if it failed */
    redisFreeCommand(bytes);
    if (reply == NULL)
        give_up("no reply", proc);
    return reply;
}

static redisReply *ask(struct redis_proc *proc, const char *format, va_list ap)
{
    char *bytes = NULL;
    int len = redisvFormatCommand(&bytes, format, ap);

    return ask_bytes(proc, bytes, len);
}

redisReply *redis_words(struct redis_proc *proc, size_t count,
                        const char **words, const size_t *lens)
{
    char *bytes = NULL;
    long long len = redisFormatCommandArgv(&bytes, (int)count, words, lens);

    return ask_bytes(proc, bytes, len);
}

long long redis_int(struct redis_proc *proc, const char *format, ...)
{
    redisReply *reply;
    long long value;
    va_list ap;

    va_start(ap, format);
    reply = ask(proc, format, ap);
    va_end(ap);
    if (reply->type != REDIS_REPLY_INTEGER) {
        printf("  %s: %s\n", format,
               reply->str != NULL ? reply->str : "not an integer");
        give_up("an integer was expected", proc);
    }
    value = reply->integer;
    freeReplyObject(reply);
    return value;
}

static size_t append(char *text, size_t used, const redisReply *reply)
{
    size_t room = TEXT_CAP - used;
    int wrote;

    if (reply->type == REDIS_REPLY_ARRAY) {
        for (size_t i = 0; i < reply->elements; i++) {
            if (i > 0)
                text[used++] = ' ';
            used = append(text, used, reply->element[i]);
        }
        return used;
    }
    if (reply->type == REDIS_REPLY_INTEGER)
        wrote = snprintf(text + used, room, "%lld", reply->integer);
    else if (reply->type == REDIS_REPLY_NIL)
        wrote = snprintf(text + used, room, "(nil)");
    else
        wrote = snprintf(text + used, room, "%s", reply->str);
    if (wrote < 0 || (size_t)wrote + 1 >= room)
        give_up("reply too long for redis_text", NULL);
    return used + (size_t)wrote;
}

const char *redis_text(struct redis_proc *proc, const char *format, ...)
{
    redisReply *reply;
    bool is_nil;
    va_list ap;

    va_start(ap, format);
    reply = ask(proc, format, ap);
    va_end(ap);
    if (proc->text == NULL)
        proc->text = malloc(TEXT_CAP);
    if (proc->text == NULL)
        give_up("out of memory", NULL);
    is_nil = reply->type == REDIS_REPLY_NIL;
    proc->text[append(proc->text, 0, reply)] = '\0';
    freeReplyObject(reply);
    return is_nil ? NULL : proc->text;
}

long long redis_calls(struct redis_proc *proc, const char *command)
{
    char start[64];
    const char *text = redis_text(proc, "INFO commandstats"), *at;

    (void)snprintf(start, sizeof(start), "cmdstat_%s:calls=", command);
    at = strstr(text, start);
    return at == NULL ? 0 : atoll(at + strlen(start));
}
