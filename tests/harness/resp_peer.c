/* SPDX-License-Identifier: MIT */
#include "tests/harness/resp_peer.h"

#include <errno.h>
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

enum { MAX_CLIENTS = 8, BACKLOG = 64 };

struct client {
    int fd; /* -1: free place */
    int number;
    int commands;
    redisReader *reader;
};

struct resp_peer {
    struct resp_peer *next;
    struct tempdir dir;
    char socket[108];
    pid_t pid;
    const struct resp_rule *rules;
    size_t rule_count;
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

static const struct resp_rule *rule_for(const struct resp_peer *peer,
                                        const struct client *client)
{
    static const struct resp_rule usual = {.bytes = "+OK\r\n"};

    for (size_t i = 0; i < peer->rule_count; i++) {
        const struct resp_rule *rule = &peer->rules[i];

        if ((rule->connection == 0 || rule->connection == client->number) &&
            (rule->command == 0 || rule->command == client->commands))
            return rule;
    }
    return &usual;
}

static void hang_up(struct client *client)
{
    (void)close(client->fd); /* only tests look */
    redisReaderFree(client->reader);
    client->fd = -1;
}

/* False: the other side has hung up. */
static bool say(const struct client *client, const char *bytes)
{
    for (size_t done = 0, len = strlen(bytes); done < len;) {
        ssize_t wrote =
            send(client->fd, bytes + done, len - done, MSG_NOSIGNAL);

        if (wrote < 0)
            return false;
        done += (size_t)wrote;
    }
    return true;
}

static void answer(const struct resp_peer *peer, struct client *client)
{
    const struct resp_rule *rule;
    bool is_heard;

    client->commands++;
    rule = rule_for(peer, client);
    is_heard = rule->bytes == NULL || say(client, rule->bytes);
    while (is_heard && rule->more != NULL) {
        is_heard = say(client, rule->more);
        if (rule->every_ms > 0)
            (void)poll(NULL, 0, rule->every_ms);
    }
    if (rule->hangs_up)
        hang_up(client);
}

static void serve(const struct resp_peer *peer, struct client *client)
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
        freeReplyObject(command);
        answer(peer, client);
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
        return;
    }
    (void)close(fd); /* full */
}

static _Noreturn void run(struct resp_peer *peer, int listener)
{
    struct pollfd fds[MAX_CLIENTS + 1];

    for (size_t i = 0; i < MAX_CLIENTS; i++)
        peer->clients[i].fd = -1;
    for (;;) {
        for (size_t i = 0; i < MAX_CLIENTS; i++)
            fds[i] =
                (struct pollfd){.fd = peer->clients[i].fd, .events = POLLIN};
        fds[MAX_CLIENTS] = (struct pollfd){.fd = listener, .events = POLLIN};
        if (poll(fds, MAX_CLIENTS + 1, -1) < 0)
            continue;
        for (size_t i = 0; i < MAX_CLIENTS; i++)
            if (fds[i].revents != 0)
                serve(peer, &peer->clients[i]);
        if (fds[MAX_CLIENTS].revents != 0)
            welcome(peer, listener);
    }
}

static int listen_on(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, BACKLOG) != 0)
        give_up("cannot listen");
    return fd;
}

static void stop_all(void)
{
    while (all != NULL)
        resp_peer_stop(all);
}

struct resp_peer *resp_peer_start(const struct resp_rule *rules, size_t count)
{
    struct resp_peer *peer = calloc(1, sizeof(*peer));
    int listener;

    if (peer == NULL || !tempdir_make(&peer->dir))
        give_up("no directory");
    peer->rules = rules;
    peer->rule_count = count;
    (void)snprintf(peer->socket, sizeof(peer->socket), "%s/p", peer->dir.path);
    listener = listen_on(peer->socket);
    (void)fflush(stdout); /* or the child could print it again */
    peer->pid = fork();
    if (peer->pid < 0)
        give_up("fork failed");
    if (peer->pid == 0)
        run(peer, listener);
    (void)close(listener); /* the child's now */
    tempdir_guard(&peer->dir, peer->pid);
    peer->next = all;
    all = peer;
    test_at_end(stop_all);
    return peer;
}

const char *resp_peer_socket(const struct resp_peer *peer)
{
    return peer->socket;
}

void resp_peer_stop(struct resp_peer *peer)
{
    struct resp_peer **at = &all;

    while (*at != peer)
        at = &(*at)->next;
    *at = peer->next;
    (void)kill(peer->pid, SIGKILL); /* it may have ended by itself */
    while (waitpid(peer->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    tempdir_remove(&peer->dir);
    free(peer);
}
