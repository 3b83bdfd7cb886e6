/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_COMMAND_H
#define WEIR_CONN_COMMAND_H

/* Commands on their way, and how they get from one connection to another: in a
 * cluster those of a slot follow it, in their order, with all that is known of
 * them. */

#include "adapters/redis/conn/conn.h"
#include "core/assert.h"

/* Commands that keep their order, by whatever connection they go. */
struct weir__sequence {
    uint64_t numbers; /* given so far */
    size_t on_way;    /* at a server, not answered yet */
    bool is_watched;  /* on_drained is called */
};

struct weir__command {
    struct weir__command *next;
    struct weir__buf bytes; /* without the NUL that follows them */
    const struct weir__script *script;
    struct weir__sequence *sequence; /* NULL: of none */
    uint64_t number;                 /* in it */
    weir__reply_fn fn;
    void *arg;
    int64_t queued_ms;
    int64_t sent_ms;
    int64_t first_ms; /* when it was sent for the first time; 0: never */
    int64_t acked_ms; /* when it was answered last */
    size_t elements;  /* of that answer; of the first one, where replayed */
    unsigned flags;
    unsigned noscripts; /* NOSCRIPT answers so far */
    bool wants_script;  /* load the script before it goes out */
    bool may_have_run;  /* it was sent and the connection lost */
    bool is_too_large;  /* its answer */
    unsigned refusals;  /* connections that the server closed over it */
    bool is_replay;     /* it was acknowledged; nobody waits for its answer */
};

struct weir__command_list {
    struct weir__command *first;
    struct weir__command *last; /* undefined while first is NULL */
};

static inline void weir__request_append(struct weir__command_list *list,
                                        struct weir__command *request)
{
    WEIR_ASSERT(request->next == NULL);
    if (list->first == NULL)
        list->first = request;
    else
        list->last->next = request;
    list->last = request;
}

/* The first one, or NULL. */
static inline struct weir__command *
weir__request_take(struct weir__command_list *list)
{
    struct weir__command *request = list->first;

    if (request != NULL) {
        list->first = request->next;
        request->next = NULL;
    }
    return request;
}

/* Put what is in `rest`, which is not to be used afterwards, behind the list.
 */
static inline void weir__request_join(struct weir__command_list *list,
                                      const struct weir__command_list *rest)
{
    if (rest->first == NULL)
        return;
    if (list->first == NULL)
        list->first = rest->first;
    else
        list->last->next = rest->first;
    list->last = rest->last;
}

size_t weir__request_cost(const struct weir__command *request);

/* What weir__conn_send is told of a command. */
struct weir__sending {
    struct weir__buf *bytes;
    const struct weir__script *script;
    unsigned flags;
    weir__reply_fn fn;
    void *arg;
};

/* Send a command that keeps its order among those of a sequence (NULL: of
 * none); codes as of weir__conn_send. */
int weir__conn_send_in(struct weir__conn *conn, struct weir__sequence *sequence,
                       const struct weir__sending *sending);

/* The same, but the command is on no list, and counts nowhere until it is given
 * to a connection. */
int weir__conn_make(struct weir__conn *conn, struct weir__sequence *sequence,
                    const struct weir__sending *sending,
                    struct weir__command **ret_command);

/* Take out the commands of a sequence that are not on their way and were not
 * acknowledged, by their numbers. Those that go by this connection or not at
 * all go on without the sequence. */
void weir__conn_withdraw(struct weir__conn *conn,
                         struct weir__sequence *sequence,
                         struct weir__command_list *ret_list);

/* The same of those that were acknowledged lately, for another server: they are
 * replays from then on. */
void weir__conn_withdraw_acked(struct weir__conn *conn,
                               struct weir__sequence *sequence,
                               struct weir__command_list *ret_list);

/* Put what is in `other`, which is empty afterwards, where its numbers say. */
void weir__commands_merge(struct weir__command_list *list,
                          struct weir__command_list *other);

/* Takes commands from another connection, or that were made, ahead of what is
 * sent from now on; `list` is empty afterwards. */
void weir__conn_give(struct weir__conn *conn, struct weir__command_list *list);

/* Ends commands that are on no list, as if `conn` had had them: with
 * WEIR_EUNKNOWN what may have run, with WEIR_ECONN the others. Their callbacks
 * run in here; `list` is empty afterwards. */
void weir__conn_fail(struct weir__conn *conn, struct weir__command_list *list);

#endif
