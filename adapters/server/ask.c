/* SPDX-License-Identifier: MIT */
#include "adapters/server/ask.h"

#include "adapters/redis/await.h"
#include "adapters/server/info.h"
#include "core/assert.h"
#include "core/error.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER_SECONDS = 2, SHUTDOWN_SECONDS = 30 };

/* Who began to listen on the other end. */
static bool is_trusted(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

/* hiredis does not say why a connect failed in a way to rely on, so the socket
 * is connected here and handed over. NULL with errno, EPERM for a stranger. */
static redisContext *reach(const char *path, int seconds)
{
    struct timeval limit = {.tv_sec = seconds};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(path);
    redisContext *context = NULL;
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    WEIR_ASSERT(len < sizeof(address.sun_path));
    if (fd < 0)
        return NULL;
    memcpy(address.sun_path, path, len + 1);
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
        context = is_trusted(fd) ? redisConnectFd(fd) : NULL;
        errno = is_trusted(fd) ? ENOMEM : EPERM; /* the only ways to fail */
    }
    if (context == NULL) {
        int why = errno;

        (void)close(fd);
        errno = why;
        return NULL;
    }
    (void)redisSetTimeout(context, limit);
    return context;
}

/* NULL: none in time, or none that can be one. */
static redisReply *ask(redisContext *context, const char *command, int seconds)
{
    struct weir__await await;
    redisReply *reply = NULL;

    weir__await_init(&await, context, NULL, seconds * 1000);
    if (redisAppendCommand(context, command) == REDIS_OK)
        reply = weir__await_reply(&await);
    redisFree(context);
    return reply;
}

static void read_info(const char *text, struct weir__server_info *ret_info)
{
    struct weir_slice version = weir__info_field(text, "redis_version");
    struct weir__server_info info = {0};

    info.pid = (pid_t)weir__info_number(text, "process_id");
    info.memory_bytes = weir__info_number(text, "used_memory");
    if (version.len >= sizeof(info.version))
        version.len = sizeof(info.version) - 1;
    if (version.len > 0)
        memcpy(info.version, version.ptr, version.len);
    *ret_info = info;
}

enum weir__server_state weir__server_ask(const char *socket,
                                         struct weir__server_info *ret_info)
{
    enum weir__server_state state = WEIR__SERVER_SILENT;
    redisContext *context = reach(socket, ANSWER_SECONDS);
    redisReply *reply;

    if (context == NULL && errno == EPERM)
        return WEIR__SERVER_FOREIGN;
    if (context == NULL)
        return errno == ENOENT || errno == ECONNREFUSED ? WEIR__SERVER_ABSENT
                                                        : WEIR__SERVER_SILENT;
    reply = ask(context, "INFO", ANSWER_SECONDS);
    if (reply != NULL && reply->type == REDIS_REPLY_STRING) {
        read_info(reply->str, ret_info);
        state = weir__info_number(reply->str, "loading") != 0
                    ? WEIR__SERVER_LOADING
                    : WEIR__SERVER_READY;
    }
    if (reply != NULL)
        freeReplyObject(reply);
    return state;
}

bool weir__server_ask_rewrite(const char *socket)
{
    redisContext *context = reach(socket, ANSWER_SECONDS);
    redisReply *reply = NULL;
    bool is_begun;

    if (context != NULL) /* its log says the rest */
        reply = ask(context, "BGREWRITEAOF", ANSWER_SECONDS);
    is_begun = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    if (reply != NULL)
        freeReplyObject(reply);
    return is_begun;
}

int weir__server_ask_shutdown(const char *socket, struct weir_error *err)
{
    redisContext *context = reach(socket, SHUTDOWN_SECONDS);
    redisReply *reply;
    int rc = WEIR_OK;

    if (context == NULL)
        return weir__error_set(err, WEIR_ECONN, "cannot reach redis at %s: %s",
                               socket, strerror(errno));
    /* No answer when it obeys. */
    reply = ask(context, "SHUTDOWN", SHUTDOWN_SECONDS);
    if (reply != NULL) {
        rc = weir__error_set(err, WEIR_ESERVER,
                             "redis-server refused to shut down: %s",
                             reply->str != NULL ? reply->str : "no reason");
        freeReplyObject(reply);
    }
    return rc;
}
