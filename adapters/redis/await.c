/* SPDX-License-Identifier: MIT */
#include "adapters/redis/await.h"

#include <poll.h>
#include <stdio.h>

#include "adapters/redis/conn/tls.h"
#include "adapters/redis/monotonic.h"
#include "core/assert.h"

void weir__await_init(struct weir__await *await, redisContext *context,
                      struct ssl_st *ssl, int limit_ms)
{
    WEIR_ASSERT(context != NULL && context->err == 0);
    await->context = context;
    await->ssl = ssl;
    await->limit_ms = limit_ms;
    weir__reply_guard_install(&await->guard, context->reader);
    await->guard.outstanding = 1; /* each answer was asked for */
}

/* The guard's refusal is an error like those of hiredis. */
static void refuse(struct weir__await *await)
{
    redisContext *context = await->context;

    context->err = REDIS_ERR_OTHER;
    weir__reply_guard_explain(&await->guard, context->errstr,
                              sizeof(context->errstr));
}

/* Errors of hiredis stay in the context, in OpenSSL's words where it knows. */
static bool note_error(struct weir__await *await, int rc)
{
    redisContext *context = await->context;

    if (rc != REDIS_OK && await->ssl != NULL)
        (void)weir__tls_reason(await->ssl, context->errstr,
                               sizeof(context->errstr));
    return rc != REDIS_OK;
}

/* With TLS the socket does not block. */
static void send_all(struct weir__await *await, int64_t until_ms)
{
    redisContext *context = await->context;
    struct pollfd look = {.fd = context->fd, .events = POLLOUT};
    int64_t left_ms = until_ms - weir__monotonic_ms();
    int is_done = 0;

    while (is_done == 0 && context->err == 0 && left_ms > 0) {
        if (await->ssl != NULL)
            weir__tls_prepare();
        (void)note_error(await, redisBufferWrite(context, &is_done));
        left_ms = until_ms - weir__monotonic_ms();
        if (is_done == 0 && await->ssl != NULL && left_ms > 0)
            (void)poll(&look, 1, (int)left_ms); /* or a signal: once more */
    }
}

/* Wait until there is something to read, and read it. */
static void receive(struct weir__await *await, int64_t until_ms)
{
    redisContext *context = await->context;
    struct pollfd look = {.fd = context->fd, .events = POLLIN};
    int64_t left_ms = until_ms - weir__monotonic_ms();
    int ready = left_ms > 0 ? poll(&look, 1, (int)left_ms) : 0;

    if (ready < 0)
        return; /* a signal */
    if (ready == 0) {
        context->err = REDIS_ERR_OTHER;
        (void)snprintf(context->errstr, sizeof(context->errstr),
                       "no answer within %d ms", await->limit_ms); /* fits */
        return;
    }
    if (await->ssl != NULL)
        weir__tls_prepare();
    if (!note_error(await, redisBufferRead(context)) &&
        !weir__reply_guard_admits_rest(&await->guard, context->reader))
        refuse(await);
}

redisReply *weir__await_reply(struct weir__await *await)
{
    int64_t until_ms = weir__monotonic_ms() + await->limit_ms;
    redisContext *context = await->context;
    void *reply = NULL;

    send_all(await, until_ms);
    while (reply == NULL && context->err == 0) {
        if (redisGetReplyFromReader(context, &reply) != REDIS_OK) {
            if (await->guard.refusal != WEIR__REFUSAL_NONE)
                refuse(await);
        } else if (reply == NULL) {
            receive(await, until_ms);
        }
    }
    return reply;
}
