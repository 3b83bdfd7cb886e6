/* SPDX-License-Identifier: MIT */

/* libmicrohttpd closes a connection that moves nothing for a while. One that
 * moves a byte now and then stays, so each has a deadline of its own, too. A
 * connection leaves by shutdown: libmicrohttpd sees its end, and closes it. */

#include "adapters/http/clients.h"

#include "adapters/http/content.h"
#include "core/assert.h"
#include "core/mem.h"

#include <sys/socket.h>

struct weir__client_conn {
    struct weir__clients *clients;
    struct weir__client_list *list; /* where it is; NULL: in none */
    struct weir__client_conn *previous, *next;
    struct ev_timer deadline;
    size_t bytes;                       /* of its answer */
    struct weir__http_content *content; /* a share, while it is counted */
    int fd;                             /* libmicrohttpd's */
    bool is_leaving;
};

static void move_to(struct weir__client_conn *client,
                    struct weir__client_list *list)
{
    if (client->list != NULL) {
        struct weir__client_list *from = client->list;

        *(client->previous != NULL ? &client->previous->next : &from->first) =
            client->next;
        *(client->next != NULL ? &client->next->previous : &from->last) =
            client->previous;
    }
    client->list = list;
    client->previous = list != NULL ? list->last : NULL;
    client->next = NULL;
    if (list == NULL)
        return;
    *(list->last != NULL ? &list->last->next : &list->first) = client;
    list->last = client;
}

/* The answer of this client is not counted any more. */
static void uncount(struct weir__client_conn *client)
{
    struct weir__http_content *content = client->content;

    WEIR_ASSERT(content == NULL || content->readers > 0);
    if (content == NULL || --content->readers == 0)
        client->clients->answers -= client->bytes;
    client->bytes = 0;
    client->content = NULL;
    weir__http_content_free(content);
}

static void dismiss(struct weir__client_conn *client)
{
    WEIR_ASSERT(!client->is_leaving && client->clients->count > 0);
    move_to(client, NULL);
    uncount(client);
    ev_timer_stop(client->clients->loop, &client->deadline);
    client->is_leaving = true;
    client->clients->count--;
    (void)shutdown(client->fd, SHUT_RDWR);
}

static void refuse(struct weir__client_conn *client)
{
    static const char answer[] = "HTTP/1.1 503 Service Unavailable\r\n"
                                 "Connection: close\r\nRetry-After: 1\r\n"
                                 "Content-Length: 0\r\n\r\n";

    (void)send(client->fd, answer, sizeof(answer) - 1,
               MSG_DONTWAIT | MSG_NOSIGNAL);
    dismiss(client);
}

static void on_deadline(struct ev_loop *loop, struct ev_timer *watcher,
                        int events)
{
    (void)loop;
    (void)events;
    dismiss(watcher->data);
}

struct weir__client_conn *weir__clients_enter(struct weir__clients *clients,
                                              int fd)
{
    struct weir__client_conn *client = weir__mem_new(sizeof(*client));
    struct weir__client_conn *oldest = clients->waiting.first;

    WEIR_ASSERT(fd >= 0 && clients->most > 0);
    if (client == NULL)
        return NULL;
    client->clients = clients;
    client->fd = fd;
    ev_timer_init(&client->deadline, on_deadline, 0.0, clients->request_s);
    client->deadline.data = client;
    clients->count++;
    weir__client_waits(client);
    if (clients->count <= clients->most)
        return client;
    if (oldest == NULL)
        oldest = clients->reading.first;
    if (oldest != NULL)
        dismiss(oldest);
    else
        refuse(client);
    return client;
}

void weir__clients_leave(struct weir__client_conn *client)
{
    if (client == NULL)
        return;
    if (!client->is_leaving)
        dismiss(client);
    weir__mem_free(client);
}

bool weir__client_is_leaving(const struct weir__client_conn *client)
{
    return client == NULL || client->is_leaving;
}

void weir__client_is_asking(struct weir__client_conn *client)
{
    WEIR_ASSERT(!client->is_leaving);
    move_to(client, NULL);
    ev_timer_stop(client->clients->loop, &client->deadline);
}

void weir__client_reads(struct weir__client_conn *client, size_t bytes,
                        struct weir__http_content *content)
{
    struct weir__clients *clients = client->clients;
    bool is_new = content == NULL || content->readers++ == 0;

    WEIR_ASSERT(!client->is_leaving && client->content == NULL);
    if (content != NULL)
        content->refs++;
    client->content = content;
    client->bytes = bytes;
    move_to(client, &clients->reading);
    clients->answers += is_new ? bytes : 0;
    while (clients->answers > clients->answers_max &&
           clients->reading.first != client)
        dismiss(clients->reading.first);
}

void weir__client_waits(struct weir__client_conn *client)
{
    if (client->is_leaving)
        return;
    uncount(client);
    WEIR_ASSERT(client->content == NULL && client->bytes == 0);
    move_to(client, &client->clients->waiting);
    ev_timer_again(client->clients->loop, &client->deadline);
}
