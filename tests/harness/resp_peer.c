/* SPDX-License-Identifier: MIT */
#include "tests/harness/resp_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "tests/harness/tempdir.h"
#include "tests/harness/test.h"

enum { MAX_CLIENTS = 24, BACKLOG = 64, MAX_RULES = 32, LINE_MAX_LEN = 200 };

struct client {
    int fd; /* -1: free place */
    int number;
    int commands;
    redisReader *reader;
    redisContext *behind; /* its own connection there; NULL: none */
    redisReader *answers; /* of that */
    int owed;             /* answers */
};

struct resp_peer {
    struct resp_peer *next;
    struct tempdir dir;
    char socket[108];
    pid_t pid;
    int listener;       /* -1: the child's */
    int port;           /* 0: a socket */
    const char *behind; /* the server's socket; NULL: there is none */
    const struct resp_rule *rules;
    size_t rule_count;
    int used[MAX_RULES];
    int heard; /* the file of what came */
    char *text;
    int connections;
    struct client clients[MAX_CLIENTS];
};

static struct resp_peer *all;

static _Noreturn void give_up(const char *what)
{
    printf("  resp_peer: %s\n", what);
    (void)fflush(stdout); /* the test has failed already */
    _exit(1);
}

/* A command's words, as resp_peer_heard has them. */
static void write_words(const redisReply *command, char *line, size_t cap)
{
    size_t used = 0;

    for (size_t i = 0; i < (size_t)command->elements; i++) {
        const redisReply *word = command->element[i];

        for (size_t at = 0; at < (size_t)word->len && used + 2 < cap; at++)
            line[used++] = word->str[at] < ' ' || word->str[at] > '~'
                               ? '.'
                               : word->str[at];
        if (i + 1 < (size_t)command->elements && used + 2 < cap)
            line[used++] = ' ';
    }
    line[used] = '\0';
}

static bool fits(const struct resp_rule *rule, int used,
                 const struct client *client, const char *line)
{
    return (rule->connection == 0 || rule->connection == client->number) &&
           (rule->command == 0 || rule->command == client->commands) &&
           (rule->words == NULL || strstr(line, rule->words) != NULL) &&
           (rule->times == 0 || used < rule->times);
}

/* NULL: none fits. */
static const struct resp_rule *
rule_for(struct resp_peer *peer, const struct client *client, const char *line)
{
    for (size_t i = 0; i < peer->rule_count; i++)
        if (fits(&peer->rules[i], peer->used[i], client, line)) {
            peer->used[i]++;
            return &peer->rules[i];
        }
    return NULL;
}

static void note(const struct resp_peer *peer, const struct client *client,
                 const char *line)
{
    (void)dprintf(peer->heard, "%d %.*s\n", client->number, LINE_MAX_LEN,
                  line); /* only tests look */
}

static void hang_up(struct client *client)
{
    (void)close(client->fd); /* only tests look */
    redisReaderFree(client->reader);
    if (client->behind != NULL) {
        redisFree(client->behind);
        redisReaderFree(client->answers);
        client->behind = NULL;
    }
    client->fd = -1;
}

/* False: the other side has hung up. */
static bool send_all(int fd, const char *bytes, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t wrote = send(fd, bytes + done, len - done, MSG_NOSIGNAL);

        if (wrote < 0)
            return false;
        done += (size_t)wrote;
    }
    return true;
}

static bool say(const struct client *client, const char *bytes)
{
    return send_all(client->fd, bytes, strlen(bytes));
}

/* Pass on what the server behind says next, which is waited for. */
static void relay(struct client *client)
{
    char bytes[16 * 1024];
    ssize_t got = read(client->behind->fd, bytes, sizeof(bytes));
    void *one = NULL;

    if (got <= 0 || !send_all(client->fd, bytes, (size_t)got)) {
        hang_up(client);
        return;
    }
    (void)redisReaderFeed(client->answers, bytes, (size_t)got); /* see below */
    while (redisReaderGetReply(client->answers, &one) == REDIS_OK &&
           one != NULL) {
        freeReplyObject(one);
        if (client->owed > 0) /* else it was published */
            client->owed--;
    }
}

static void forward(struct client *client, const redisReply *command)
{
    const char *words[64];
    size_t lens[64], count = (size_t)command->elements;
    char *bytes;
    int len;

    if (count > 64)
        give_up("a command of too many words");
    for (size_t i = 0; i < count; i++) {
        words[i] = command->element[i]->str;
        lens[i] = (size_t)command->element[i]->len;
    }
    len = (int)redisFormatCommandArgv(&bytes, (int)count, words, lens);
    if (len < 0)
        give_up("out of memory");
    client->owed++;
    if (!send_all(client->behind->fd, bytes, (size_t)len))
        hang_up(client);
    redisFreeCommand(bytes);
}

static void obey(struct client *client, const struct resp_rule *rule)
{
    bool is_heard;

    while (client->fd >= 0 && client->owed > 0)
        relay(client);
    if (client->fd < 0)
        return;
    is_heard = rule->bytes == NULL || say(client, rule->bytes);
    while (is_heard && rule->more != NULL) {
        is_heard = say(client, rule->more);
        if (rule->every_ms > 0)
            (void)poll(NULL, 0, rule->every_ms);
    }
    if (rule->hangs_up)
        hang_up(client);
}

static void answer(struct resp_peer *peer, struct client *client,
                   const redisReply *command)
{
    static const struct resp_rule usual = {.bytes = "+OK\r\n"};
    char line[16 * 1024];
    const struct resp_rule *rule;

    client->commands++;
    write_words(command, line, sizeof(line));
    note(peer, client, line);
    rule = rule_for(peer, client, line);
    if (rule == NULL && client->behind != NULL)
        forward(client, command);
    else
        obey(client, rule == NULL ? &usual : rule);
}

static void serve(struct resp_peer *peer, struct client *client)
{
    char bytes[16 * 1024];
    ssize_t got = read(client->fd, bytes, sizeof(bytes));
    void *command = NULL;

    if (got <= 0) {
        hang_up(client);
        return;
    }
    (void)redisReaderFeed(client->reader, bytes, (size_t)got); /* see below */
    while (client->fd >= 0 &&
           redisReaderGetReply(client->reader, &command) == REDIS_OK &&
           command != NULL) {
        answer(peer, client, command);
        freeReplyObject(command);
    }
}

static void welcome(struct resp_peer *peer, int listener)
{
    int fd = accept(listener, NULL, NULL);

    for (size_t i = 0; i < MAX_CLIENTS; i++) {
        struct client *client = &peer->clients[i];

        if (client->fd >= 0)
            continue;
        peer->connections++;
        client->fd = fd;
        client->number = peer->connections;
        client->commands = 0;
        client->reader = redisReaderCreate();
        if (peer->behind != NULL) {
            client->behind = redisConnectUnix(peer->behind);
            client->answers = redisReaderCreate();
            client->owed = 0;
            if (client->behind == NULL || client->behind->err != 0)
                give_up("the server behind is not there");
        }
        return;
    }
    (void)close(fd); /* full */
}

static _Noreturn void run(struct resp_peer *peer, int listener)
{
    struct pollfd fds[2 * MAX_CLIENTS + 1];

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        peer->clients[i].fd = -1;
    for (;;) {
        for (size_t i = 0; i < MAX_CLIENTS; i++) {
            const struct client *client = &peer->clients[i];
            bool is_behind = client->fd >= 0 && client->behind != NULL;

            fds[i] = (struct pollfd){.fd = client->fd, .events = POLLIN};
            fds[MAX_CLIENTS + i] = (struct pollfd){
                .fd = is_behind ? client->behind->fd : -1, .events = POLLIN};
        }
        fds[2 * MAX_CLIENTS] =
            (struct pollfd){.fd = listener, .events = POLLIN};
        if (poll(fds, 2 * MAX_CLIENTS + 1, -1) < 0)
            continue;
        for (size_t i = 0; i < MAX_CLIENTS; i++) {
            struct client *client = &peer->clients[i];

            if (fds[MAX_CLIENTS + i].revents != 0)
                relay(client);
            else if (fds[i].revents != 0)
                serve(peer, client);
        }
        if (fds[2 * MAX_CLIENTS].revents != 0)
            welcome(peer, listener);
    }
}

static int listen_at(const struct sockaddr *address, socklen_t len)
{
    int fd = socket(address->sa_family, SOCK_STREAM, 0);

    if (fd < 0 || bind(fd, address, len) != 0 || listen(fd, BACKLOG) != 0)
        give_up("cannot listen");
    return fd;
}

static void listen_on_socket(struct resp_peer *peer)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    (void)snprintf(peer->socket, sizeof(peer->socket), "%s/p", peer->dir.path);
    memcpy(address.sun_path, peer->socket, sizeof(peer->socket));
    peer->listener = listen_at((struct sockaddr *)&address, sizeof(address));
}

static void listen_on_port(struct resp_peer *peer)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(address);

    peer->listener = listen_at((struct sockaddr *)&address, sizeof(address));
    if (getsockname(peer->listener, (struct sockaddr *)&address, &len) != 0)
        give_up("has no port");
    peer->port = ntohs(address.sin_port);
}

static void stop_all(void)
{
    while (all != NULL)
        resp_peer_stop(all);
}

static struct resp_peer *peer_new(void)
{
    struct resp_peer *peer = calloc(1, sizeof(*peer));
    char path[sizeof(peer->dir.path) + 8];

    if (peer == NULL || !tempdir_make(&peer->dir))
        give_up("no directory");
    (void)snprintf(path, sizeof(path), "%s/heard", peer->dir.path);
    peer->heard = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (peer->heard < 0)
        give_up("no file");
    peer->next = all;
    all = peer;
    test_at_end(stop_all);
    return peer;
}

struct resp_peer *resp_peer_prepare(void)
{
    struct resp_peer *peer = peer_new();

    listen_on_port(peer);
    return peer;
}

void resp_peer_stand_before(struct resp_peer *peer, const char *socket)
{
    peer->behind = socket;
}

void resp_peer_run(struct resp_peer *peer, const struct resp_rule *rules,
                   size_t count)
{
    if (count > MAX_RULES || peer->pid != 0)
        give_up("too many rules, or it runs");
    peer->rules = rules;
    peer->rule_count = count;
    (void)fflush(stdout); /* or the child could print it again */
    peer->pid = fork();
    if (peer->pid < 0)
        give_up("fork failed");
    if (peer->pid == 0)
        run(peer, peer->listener);
    (void)close(peer->listener); /* the child's now */
    peer->listener = -1;
    tempdir_guard(&peer->dir, peer->pid);
}

struct resp_peer *resp_peer_start(const struct resp_rule *rules, size_t count)
{
    struct resp_peer *peer = peer_new();

    listen_on_socket(peer);
    resp_peer_run(peer, rules, count);
    return peer;
}

const char *resp_peer_socket(const struct resp_peer *peer)
{
    return peer->socket;
}

int resp_peer_port(const struct resp_peer *peer)
{
    return peer->port;
}

const char *resp_peer_heard(struct resp_peer *peer)
{
    off_t len = lseek(peer->heard, 0, SEEK_END);
    ssize_t got;

    free(peer->text);
    peer->text = len < 0 ? NULL : calloc(1, (size_t)len + 1);
    if (peer->text == NULL)
        give_up("out of memory");
    got = pread(peer->heard, peer->text, (size_t)len, 0);
    if (got != (ssize_t)len)
        give_up("what came cannot be read");
    return peer->text;
}

void resp_peer_pause(const struct resp_peer *peer)
{
    if (kill(peer->pid, SIGSTOP) != 0)
        give_up("cannot be stopped");
}

void resp_peer_stop(struct resp_peer *peer)
{
    struct resp_peer **at = &all;

    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    if (peer->pid != 0) {
        (void)kill(peer->pid, SIGKILL); /* it may have ended by itself */
        while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (peer->listener >= 0)
        (void)close(peer->listener); /* it never ran */
    (void)close(peer->heard);        /* only tests look */
    tempdir_remove(&peer->dir);
    free(peer->text);
    free(peer);
}

/* --- slots --------------------------------------------------------------- */

void resp_slots(const struct resp_range *ranges, size_t count, char *buf,
                size_t cap)
{
    size_t used = (size_t)snprintf(buf, cap, "*%zu\r\n", count);

    for (size_t i = 0; i < count && used < cap; i++) {
        const struct resp_range *range = &ranges[i];

        used += (size_t)snprintf(buf + used, cap - used,
                                 "*3\r\n:%d\r\n:%d\r\n*3\r\n", range->first,
                                 range->last);
        if (used < cap && range->host == NULL)
            used += (size_t)snprintf(buf + used, cap - used, "$-1\r\n");
        else if (used < cap)
            used += (size_t)snprintf(buf + used, cap - used, "$%zu\r\n%s\r\n",
                                     strlen(range->host), range->host);
        if (used < cap) /* its id is its port */
            used += (size_t)snprintf(buf + used, cap - used,
                                     ":%d\r\n$6\r\n%06d\r\n", range->port,
                                     range->port);
    }
    if (used >= cap)
        give_up("the slots do not fit");
}
