/* SPDX-License-Identifier: MIT */
#include "adapters/redis/conn/resolve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ev.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "adapters/redis/monotonic.h"
#include "adapters/redis/thread.h"
#include "core/assert.h"
#include "core/mem.h"

/* --- asking --------------------------------------------------------------- */

static void add_text(struct weir__addresses *addresses, const char *text)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (strcmp(addresses->text[i], text) == 0)
            return;
    if (addresses->count == WEIR__ADDRESSES_MAX)
        return;
    (void)snprintf(addresses->text[addresses->count], WEIR__ADDRESS_CAP, "%s",
                   text); /* fits */
    addresses->count++;
}

bool weir__addresses_known(const char *host,
                           struct weir__addresses *ret_addresses)
{
    bool is_local = strcmp(host, "localhost") == 0;
    uint8_t bytes[16];

    if (!is_local && inet_pton(AF_INET, host, bytes) != 1 &&
        inet_pton(AF_INET6, host, bytes) != 1)
        return false;
    ret_addresses->count = 0;
    add_text(ret_addresses, is_local ? "127.0.0.1" : host);
    if (is_local)
        add_text(ret_addresses, "::1");
    return true;
}

bool weir__host_is_name(const char *host)
{
    return !weir__addresses_known(host, &(struct weir__addresses){0});
}

static void add(struct weir__addresses *addresses, const struct sockaddr *from)
{
    char text[WEIR__ADDRESS_CAP];
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    const char *done = NULL;

    if (from->sa_family == AF_INET) {
        memcpy(&four, from, sizeof(four));
        done = inet_ntop(AF_INET, &four.sin_addr, text, sizeof(text));
    } else if (from->sa_family == AF_INET6) {
        memcpy(&six, from, sizeof(six));
        done = inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof(text));
    }
    if (done != NULL)
        add_text(addresses, text);
}

static const char *ask(const char *host, struct weir__addresses *ret_addresses)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    int rc;

    errno = 0;
    rc = getaddrinfo(host, NULL, &hints, &list);
    if (rc != 0) /* a lack of descriptors has no code of its own */
        return errno == EMFILE || errno == ENFILE ? strerror(errno)
                                                  : gai_strerror(rc);
    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next)
        add(ret_addresses, at->ai_addr);
    freeaddrinfo(list);
    return ret_addresses->count > 0 ? NULL : gai_strerror(EAI_NONAME);
}

/* --- on a thread ---------------------------------------------------------- */

/* Belongs to who asks and to the thread; who leaves last frees it. */
struct weir__lookup {
    pthread_mutex_t lock;
    pthread_cond_t left;
    struct ev_loop *loop; /* NULL: somebody waits for `left` */
    struct ev_async found;
    bool is_done;      /* under the lock: the thread has left */
    bool is_cancelled; /* under the lock: the other side has */
    weir__lookup_fn fn;
    void *arg;
    const char *why;
    struct weir__addresses addresses;
    char host[]; /* as it was given */
};

static void free_lookup(struct weir__lookup *lookup)
{
    weir__redis_lock_fini(&lookup->lock, &lookup->left);
    weir__mem_free(lookup);
}

static void *look_up(void *arg)
{
    struct weir__lookup *lookup = arg;
    bool is_cancelled;

    lookup->why = ask(lookup->host, &lookup->addresses);
    (void)pthread_mutex_lock(&lookup->lock);
    is_cancelled = lookup->is_cancelled;
    lookup->is_done = true;
    if (lookup->loop == NULL)
        (void)pthread_cond_signal(&lookup->left);
    else if (!is_cancelled) /* under the lock: later the loop may be gone */
        ev_async_send(lookup->loop, &lookup->found);
    (void)pthread_mutex_unlock(&lookup->lock);
    if (is_cancelled)
        free_lookup(lookup);
    return NULL;
}

/* False when the thread has to free it. */
static bool leave(struct weir__lookup *lookup)
{
    bool is_done;

    (void)pthread_mutex_lock(&lookup->lock);
    is_done = lookup->is_done;
    lookup->is_cancelled = true;
    (void)pthread_mutex_unlock(&lookup->lock);
    return is_done;
}

/* NULL: out of memory. */
static struct weir__lookup *new_lookup(const char *host)
{
    size_t size = strlen(host) + 1;
    struct weir__lookup *lookup = weir__mem_new(sizeof(*lookup) + size);

    if (lookup == NULL)
        return NULL;
    if (!weir__redis_lock_init(&lookup->lock, &lookup->left)) {
        weir__mem_free(lookup);
        return NULL;
    }
    memcpy(lookup->host, host, size);
    return lookup;
}

static int start_thread(struct weir__lookup *lookup)
{
    pthread_t thread;
    int rc = weir__redis_thread_start(&thread, look_up, lookup);

    if (rc == 0)
        (void)pthread_detach(thread); /* it was just made */
    return rc;
}

/* --- for who waits -------------------------------------------------------- */

static void await(struct weir__lookup *lookup, int limit_ms)
{
    int64_t until_ns = weir__monotonic_ns() + limit_ms * INT64_C(1000000);

    (void)pthread_mutex_lock(&lookup->lock);
    while (!lookup->is_done &&
           weir__redis_lock_wait(&lookup->lock, &lookup->left, until_ns))
        continue;
    (void)pthread_mutex_unlock(&lookup->lock);
}

const char *weir__addresses_find(const char *host, int limit_ms,
                                 struct weir__addresses *ret_addresses)
{
    struct weir__lookup *lookup;
    const char *why = "the resolver does not answer";

    if (weir__addresses_known(host, ret_addresses))
        return NULL;
    lookup = new_lookup(host);
    if (lookup == NULL || start_thread(lookup) != 0) {
        if (lookup != NULL)
            free_lookup(lookup);
        return "no memory";
    }
    await(lookup, limit_ms);
    if (leave(lookup)) {
        *ret_addresses = lookup->addresses;
        why = lookup->why;
        free_lookup(lookup);
    }
    return why;
}

/* --- for a loop ----------------------------------------------------------- */

static void on_found(struct ev_loop *loop, ev_async *found, int events)
{
    struct weir__lookup *lookup = found->data;
    struct weir__addresses addresses;
    weir__lookup_fn fn = lookup->fn;
    const char *why;
    void *arg = lookup->arg;
    bool is_done = leave(lookup);

    (void)events;
    WEIR_ASSERT(is_done);
    addresses = lookup->addresses;
    why = lookup->why;
    ev_async_stop(loop, found);
    free_lookup(lookup);
    fn(&addresses, why, arg);
}

struct weir__lookup *weir__lookup_start(struct ev_loop *loop, const char *host,
                                        weir__lookup_fn fn, void *arg)
{
    struct weir__lookup *lookup = new_lookup(host);

    if (lookup == NULL)
        return NULL;
    lookup->loop = loop;
    lookup->fn = fn;
    lookup->arg = arg;
    ev_async_init(&lookup->found, on_found);
    lookup->found.data = lookup;
    ev_async_start(loop, &lookup->found);
    if (start_thread(lookup) != 0) {
        ev_async_stop(loop, &lookup->found);
        free_lookup(lookup);
        return NULL;
    }
    return lookup;
}

void weir__lookup_cancel(struct weir__lookup *lookup)
{
    if (lookup == NULL)
        return;
    ev_async_stop(lookup->loop, &lookup->found);
    if (leave(lookup))
        free_lookup(lookup);
}
