/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/port.h"

#include <stdio.h>

#include "adapters/redis/cluster/slot.h"
#include "adapters/redis/conn/tls.h"
#include "adapters/redis/store/store.h"
#include "core/assert.h"
#include "core/call.h"
#include "core/mem.h"
#include "core/text.h"

struct port {
    struct weir_redis base; /* first */
    struct weir__redis_port_options options;
    struct weir__redis_url url;
    struct weir__store *own;         /* NULL: the store is the reactor's */
    struct call *calls, **calls_end; /* without an answer */
    int depth; /* callbacks of its own store on the stack */
    bool is_closed;
    ev_timer flush; /* in the next turn, for all that was sent in this one */
};

/* A command on its way; the store's. */
struct call {
    struct port *port; /* NULL: it is closed */
    struct call *next, **at;
    const struct weir__place *place; /* lives as long as the store */
    weir_redis_fn fn;
    void *arg;
};

static struct port *port_of(struct weir_redis *base)
{
    return (struct port *)base; /* its first member */
}

/* NULL: it is closed. */
static struct weir__redis *store_of(const struct port *port)
{
    return (struct weir__redis *)*port->options.store; /* its first member */
}

/* --- answers ------------------------------------------------------------ */

static struct weir_slice text_of(const struct redisReply *reply, char *digits,
                                 size_t cap)
{
    if (reply == NULL)
        return (struct weir_slice){0};
    if (reply->type == REDIS_REPLY_INTEGER) {
        (void)snprintf(digits, cap, "%lld", reply->integer); /* it fits */
        return weir__slice_str(digits);
    }
    if (reply->str == NULL)
        return (struct weir_slice){0};
    return weir__slice_of(reply->str, (size_t)reply->len);
}

static void forget(struct call *call)
{
    *call->at = call->next;
    if (call->next != NULL)
        call->next->at = call->at;
    else
        call->port->calls_end = call->at;
    call->port = NULL;
}

/* The callback may close the port. */
static void tell(struct call *call, int code, struct weir_slice text)
{
    const struct weir__redis_port_options options = call->port->options;
    const struct weir_loop *before = *options.calling;
    struct weir__call told = {.what = "the callback of a command"};

    forget(call);
    *options.calling = options.share;
    (*options.depth)++;
    weir__call_begin(*options.store, &told);
    call->fn(code, text, call->arg);
    (void)weir__call_end(*options.store, &told); /* has no run */
    (*options.depth)--;
    *options.calling = before;
}

/* Without a connection: is it this process that lacks something? */
static int code_of(int code, const struct weir__server *server)
{
    bool is_short = code == WEIR_ECONN && server != NULL &&
                    weir__conn_was_short(server->commands);

    return is_short ? WEIR_ENOMEM : code;
}

static void on_answer(int code, const struct redisReply *reply, void *arg)
{
    struct call *call = arg;
    char digits[24];

    if (call->port != NULL)
        tell(call, code_of(code, call->place->server),
             text_of(reply, digits, sizeof(digits)));
    weir__mem_free(call);
}

/* --- sending ------------------------------------------------------------ */

static void on_flush(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct port *port = timer->data;

    (void)loop;
    (void)events;
    if (store_of(port) != NULL)
        (*port->options.store)->ops->flush(*port->options.store);
}

static int send_words(struct port *port, struct weir__place *place,
                      const struct weir_slice *words, size_t count,
                      struct call *call)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, count);
    for (size_t i = 0; i < count; i++)
        weir__resp_bytes(&bytes, words[i]);
    if (!ev_is_active(&port->flush))
        ev_timer_start(port->options.loop, &port->flush);
    return weir__place_command(place, &bytes, NULL, WEIR__SEND_ONCE, on_answer,
                               call);
}

static int send(struct weir_redis *base, const struct weir_slice *words,
                size_t count, weir_redis_fn fn, void *arg)
{
    struct port *port = port_of(base);
    struct weir__redis *store = store_of(port);
    struct weir__place *place;
    struct call *call;
    int rc;

    if (count < 2)
        return WEIR_EINVAL;
    if (port->is_closed || store == NULL || store->is_closed)
        return WEIR_ECANCELED;
    place = weir__place_of_slot(store, weir__cluster_slot(words[1]));
    call = weir__mem_new(sizeof(*call));
    if (place == NULL || call == NULL) {
        weir__mem_free(call);
        return WEIR_ENOMEM;
    }
    *call = (struct call){port, NULL, port->calls_end, place, fn, arg};
    rc = send_words(port, place, words, count, call);
    if (rc < 0) {
        weir__mem_free(call);
        return rc;
    }
    *port->calls_end = call;
    port->calls_end = &call->next;
    return WEIR_OK;
}

/* --- life --------------------------------------------------------------- */

static void close_port(struct weir_redis *base)
{
    struct port *port = port_of(base);

    ev_timer_stop(port->options.loop, &port->flush);
    port->is_closed = true;
    while (port->calls != NULL) /* the store frees them */
        tell(port->calls, WEIR_ECANCELED, (struct weir_slice){0});
    if (port->own != NULL)
        port->own->ops->close(port->own);
    weir__tls_free(port->url.tls);
    weir__mem_free(port);
}

static const struct weir_redis_ops ops = {
    .size = sizeof(ops),
    .send = send,
    .close = close_port,
};

/* It has no topics, and so no events. */
static int open_own(struct port *port, struct weir_error *err)
{
    const struct weir__store_events events = {0};
    struct weir__redis_options options = *port->options.redis;
    int rc = weir__redis_url_parse(port->options.url, &port->url, err);

    if (rc == WEIR_OK)
        rc = weir__tls_new(&port->url, &port->url.tls, err);
    if (rc < 0)
        return rc;
    options.url = &port->url;
    options.events = &events;
    options.depth = &port->depth; /* it may be closed while others call */
    rc = weir__redis_open(&options, &port->own);
    port->options.store = &port->own;
    return rc < 0 ? weir__error_code(err, rc) : WEIR_OK;
}

int weir__redis_port_open(const struct weir__redis_port_options *options,
                          struct weir_redis **ret_redis, struct weir_error *err)
{
    struct port *port = weir__mem_new(sizeof(*port));
    int rc = WEIR_OK;

    if (port == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    port->base.ops = &ops;
    port->options = *options;
    port->calls_end = &port->calls;
    ev_timer_init(&port->flush, on_flush, 0., 0.);
    port->flush.data = port;
    if (options->url != NULL)
        rc = open_own(port, err);
    if (rc == WEIR_OK) {
        *ret_redis = &port->base;
        return WEIR_OK;
    }
    weir__tls_free(port->url.tls);
    weir__mem_free(port);
    return rc;
}
