/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HTTP_CLIENTS_H
#define WEIR_HTTP_CLIENTS_H

/* The connections of a server, and who has to leave when there are too many of
 * them or too many bytes of answers. On the thread of the loop. */

#include <weir/base.h>

#include <ev.h>

struct weir__client_conn;
struct weir__http_content;

/* In the order in which they came into the list. */
struct weir__client_list {
    struct weir__client_conn *first, *last;
};

struct weir__clients {
    struct ev_loop *loop;
    size_t most, count;
    double request_s;                 /* for a whole head and body */
    size_t answers_max, answers;      /* bytes of answers that are being read */
    struct weir__client_list waiting; /* no whole request has come */
    struct weir__client_list reading; /* an answer is sent */
};

/* A connection came. NULL: it has to be closed at once. If there are too many,
 * the connection leaves that waits longest, else the one that reads longest. If
 * all others are to be answered, the new one is refused. */
struct weir__client_conn *weir__clients_enter(struct weir__clients *clients,
                                              int fd);

/* The connection is closed. NULL is fine. */
void weir__clients_leave(struct weir__client_conn *client);

/* Whether it was refused, or told to leave: no route is called for it. */
bool weir__client_is_leaving(const struct weir__client_conn *client);

/* A whole request has come: it has all the time until its answer. */
void weir__client_is_asking(struct weir__client_conn *client);

/* The client reads an answer of so many bytes. `content` (NULL: the answer is
 * not shared) is counted once for all. If the answers have too many, those that
 * are read for the longest time end. */
void weir__client_reads(struct weir__client_conn *client, size_t bytes,
                        struct weir__http_content *content);

/* The answer was sent, or never will be: the next request may come. */
void weir__client_waits(struct weir__client_conn *client);

#endif
