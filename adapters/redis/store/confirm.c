/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/confirm.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/error.h"
#include "adapters/redis/store/cluster.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum { WAIT_MS = 2000, CHECK_MS = 1 };

#define CONFIRM_NS INT64_C(10000000000)
#define REFUSED_NS INT64_C(1000000000) /* then the server is asked once more */
#define WEAK_NS    INT64_C(1000000000) /* between two lines of the log */

static const double PAUSE_S = .2; /* behind a round that failed */

struct confirm_list {
    struct weir__confirm *first, **end;
};

struct round_request {
    struct weir__request request; /* first */
    struct weir__confirms *confirms;
};

/* What a server can confirm: replicas, or disks. */
struct check {
    struct weir__request request; /* first */
    struct weir__confirms *confirms;
    bool is_asked;
    bool is_known;
    int code;
    int64_t ns; /* when that was answered */
};

struct weir__confirms {
    struct round_request write, wait; /* of the round under way */
    struct weir__redis *store;
    struct weir__server *server;
    struct weir__conn *conn;            /* NULL: there was no memory for it */
    struct check checks[2];             /* by is_fsync */
    struct confirm_list waiting, asked; /* the second: by this round */
    bool may_have_moved; /* some of the waiting were perhaps acknowledged by
                            another server than that of today */
    size_t left;         /* answers of the round to come */
    bool is_written;     /* its first command was answered */
    bool is_fsync;       /* of the round, or the last one */
    ev_timer late;       /* the first of all is */
    ev_timer pause;
    int64_t weak_ns; /* when it was logged that some were not confirmed */
};

static bool wants_disk(uint32_t durability)
{
    return durability >= WEIR__DURABILITY_FSYNC;
}

static int64_t replicas_of(uint32_t durability)
{
    return durability & WEIR__DURABILITY_REPLICAS;
}

/* --- lists ---------------------------------------------------------------- */

static void list_init(struct confirm_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void append(struct confirm_list *list, struct weir__confirm *confirm)
{
    confirm->next = NULL;
    *list->end = confirm;
    list->end = &confirm->next;
}

/* The first of those that take_all returned; NULL: there are no more. */
static struct weir__confirm *take(struct confirm_list *list)
{
    struct weir__confirm *confirm = list->first;

    if (confirm == NULL)
        return NULL;
    list->first = confirm->next;
    return confirm;
}

/* Leaves it empty. */
static struct confirm_list take_all(struct confirm_list *list)
{
    struct confirm_list all = *list;

    list_init(list);
    return all; /* of an empty one only `first` is to be looked at */
}

/* --- ending --------------------------------------------------------------- */

static void log_weak(struct weir__confirms *confirms,
                     const struct weir__confirm *confirm)
{
    const struct weir__log *log = confirms->store->options.log;
    int64_t now_ns = weir__redis_now_ns(confirms->store);
    int64_t replicas = replicas_of(confirm->durability);
    const char *name = confirm->topic->name;
    const char *disk = wants_disk(confirm->durability) ? "on disk " : "";

    if (now_ns - confirms->weak_ns < WEAK_NS)
        return;
    confirms->weak_ns = now_ns;
    if (confirm->reached < 0)
        weir__log(log, WEIR_LEVEL_WARN,
                  "redis: %s: added, but no server said where it is by now",
                  name);
    else if (replicas == 0)
        weir__log(log, WEIR_LEVEL_WARN, "redis: %s: added, but not on disk",
                  name);
    else
        weir__log(log, WEIR_LEVEL_WARN,
                  "redis: %s: added, but %son %" PRId64 " of %" PRId64
                  " replicas",
                  name, disk, confirm->reached, replicas);
}

static void end(struct weir__confirms *confirms, struct weir__confirm *confirm,
                int code)
{
    struct weir__redis *store = confirms->store;

    WEIR_ASSERT(store->unconfirmed >= confirm->bytes);
    store->unconfirmed -= confirm->bytes;
    if (code != WEIR_OK)
        log_weak(confirms, confirm);
    confirm->done(confirm, code);
}

/* Those that are late come to nothing; the others stay in their order. */
static void end_late(struct weir__confirms *confirms, struct confirm_list *list,
                     int64_t *first_ns)
{
    int64_t now_ns = weir__redis_now_ns(confirms->store);
    struct confirm_list all = take_all(list);
    struct weir__confirm *confirm;

    while ((confirm = take(&all)) != NULL) {
        if (confirm->until_ns <= now_ns) {
            end(confirms, confirm, WEIR_EWEAK);
            continue;
        }
        if (confirm->until_ns < *first_ns)
            *first_ns = confirm->until_ns;
        append(list, confirm);
    }
}

static void arm_late(struct weir__confirms *confirms, int64_t until_ns)
{
    const struct weir__redis *store = confirms->store;
    int64_t ns = until_ns - weir__redis_now_ns(store);

    if (store->is_closed || ev_is_active(&confirms->late))
        return;
    ev_now_update(store->options.loop);
    ev_timer_set(&confirms->late, ns <= 0 ? 0. : (double)ns / 1e9 + .001, 0.);
    ev_timer_start(store->options.loop, &confirms->late);
}

static void on_late(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__confirms *confirms = timer->data;
    int64_t first_ns = INT64_MAX;

    (void)loop; /* the store's own */
    (void)events;
    weir__redis_enter(confirms->store);
    end_late(confirms, &confirms->waiting, &first_ns);
    end_late(confirms, &confirms->asked, &first_ns);
    if (first_ns != INT64_MAX)
        arm_late(confirms, first_ns);
    weir__redis_leave(confirms->store);
}

/* --- what the server can do ----------------------------------------------- */

/* Why the server never confirms as it is; NULL: it may yet. */
static const char *refusal_of(const char *text, bool is_fsync)
{
    if (weir__error_classify(text) == WEIR__ERROR_DENIED)
        return is_fsync ? "the user may not: allow it +waitaof"
                        : "the user may not: allow it +wait";
    if (strncmp(text, "ERR unknown command", 19) == 0)
        return "the server has no WAITAOF: Redis from 7.2 on and Valkey have";
    if (strstr(text, "appendonly is disabled") != NULL)
        return "the server keeps no append-only file: set appendonly yes";
    return NULL;
}

static void on_checked(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct check *check = (struct check *)request; /* its first member */
    struct weir__confirms *confirms = check->confirms;
    struct weir__redis *store = confirms->store;
    bool is_fsync = check == &confirms->checks[1];
    const char *why = NULL;

    if (code == WEIR_ESERVER && reply != NULL)
        why = refusal_of(reply->str, is_fsync);
    else if (code == WEIR_OK && weir__conn_identity(confirms->conn)[0] == '\0')
        why = "the server does not tell who it is: allow the user +info";
    check->is_asked = false;
    check->is_known = true;
    check->code = why == NULL ? code : WEIR_EINVAL;
    check->ns = weir__redis_now_ns(store);
    if (why == NULL && code == WEIR_ESERVER && reply != NULL)
        why = reply->str;
    if (why != NULL)
        weir__log(store->options.log, WEIR_LEVEL_WARN,
                  "redis: durability=%s cannot be had, nothing was added: %s",
                  is_fsync ? "fsync" : "replica", why);
    for (struct weir__store_topic *topic = store->topics; topic != NULL;
         topic = topic->next)
        if (topic->place->server == confirms->server)
            weir__topic_mark(topic);
}

static void on_state(int code, const char *text, void *arg)
{
    struct weir__confirms *confirms = arg;

    for (size_t i = 0; i < 2; i++)
        confirms->checks[i].is_known = false;
    if (code != WEIR_OK)
        weir__log(confirms->store->options.log, WEIR_LEVEL_DEBUG,
                  "redis: nothing is confirmed: %s; connecting again", text);
}

static void on_pause(struct ev_loop *loop, ev_timer *timer, int events)
{
    (void)loop; /* the turn ends with a flush */
    (void)timer;
    (void)events;
}

static void connect(struct weir__confirms *confirms)
{
    const char *worker = confirms->store->worker;
    char name[WEIR__KEY_MAX + 8];
    struct weir__conn_options conn = {
        .name = name,
        .seed = 8,
        .wants_identity = true,
        .on_state = on_state,
        .arg = confirms,
    };

    (void)snprintf(name, sizeof(name), "%s:wait", worker); /* fits */
    (void)weir__link_beside(confirms->server, &conn,
                            &confirms->conn); /* NULL: tried again */
}

/* NULL when out of memory. */
static struct weir__confirms *confirms_of(struct weir__server *server)
{
    struct weir__confirms *confirms = server->confirms;

    if (confirms == NULL) {
        confirms = weir__mem_new(sizeof(*confirms));
        if (confirms == NULL)
            return NULL;
        confirms->store = server->store;
        confirms->server = server;
        confirms->weak_ns = -WEAK_NS;
        list_init(&confirms->waiting);
        list_init(&confirms->asked);
        ev_timer_init(&confirms->late, on_late, 0., 0.);
        confirms->late.data = confirms;
        ev_timer_init(&confirms->pause, on_pause, 0., 0.);
        server->confirms = confirms;
    }
    if (confirms->conn == NULL)
        connect(confirms);
    return confirms->conn == NULL ? NULL : confirms;
}

/* The command of a round, or of a check. */
static void write_wait(struct weir__buf *buf, bool is_fsync, int64_t replicas,
                       int64_t ms)
{
    weir__resp_command(buf, is_fsync ? 4 : 3);
    weir__resp_str(buf, is_fsync ? "WAITAOF" : "WAIT");
    if (is_fsync)
        weir__resp_int(buf, 1);
    weir__resp_int(buf, replicas);
    weir__resp_int(buf, ms);
}

int weir__confirm_check(const struct weir__place *place, uint32_t durability)
{
    struct weir__redis *store = place->server->store;
    struct weir__confirms *confirms = confirms_of(place->server);
    struct weir__buf bytes = {0};
    struct check *check;

    if (confirms == NULL)
        return WEIR_ENOMEM;
    check = &confirms->checks[wants_disk(durability)];
    if (check->is_known && (check->code == WEIR_OK ||
                            weir__redis_now_ns(store) - check->ns < REFUSED_NS))
        return check->code;
    if (check->is_asked)
        return WEIR__CONFIRM_ASKED;
    check->is_known = false;
    check->is_asked = true;
    check->confirms = confirms;
    check->request.done = on_checked;
    write_wait(&bytes, wants_disk(durability), 0, CHECK_MS);
    weir__redis_send_by(store, confirms->conn, &bytes, NULL, WEIR__SEND_AGAIN,
                        &check->request);
    weir__conn_flush(confirms->conn);
    return WEIR__CONFIRM_ASKED;
}

/* --- rounds --------------------------------------------------------------- */

/* Can a round of this sort confirm it? A server that does not tell who it is
 * confirms nothing. */
static bool is_for(const struct weir__confirms *confirms,
                   const struct weir__confirm *confirm, bool is_fsync)
{
    return wants_disk(confirm->durability) == is_fsync &&
           confirm->identity[0] != '\0' &&
           strcmp(confirm->identity, weir__conn_identity(confirms->conn)) == 0;
}

/* The least that is wanted of those that the round can confirm; -1: there are
 * none. */
static int64_t least(const struct weir__confirms *confirms, bool is_fsync)
{
    int64_t replicas = -1;

    for (const struct weir__confirm *one = confirms->waiting.first; one != NULL;
         one = one->next)
        if (is_for(confirms, one, is_fsync) &&
            (replicas < 0 || replicas_of(one->durability) < replicas))
            replicas = replicas_of(one->durability);
    return replicas;
}

/* What the round asks for, all that it may confirm. */
static void move_to_asked(struct weir__confirms *confirms)
{
    struct confirm_list all = take_all(&confirms->waiting);
    struct weir__confirm *confirm;

    while ((confirm = take(&all)) != NULL)
        append(is_for(confirms, confirm, confirms->is_fsync)
                   ? &confirms->asked
                   : &confirms->waiting,
               confirm);
}

static bool is_reached(const struct weir__confirms *confirms,
                       const struct weir__confirm *confirm, bool is_on_disk,
                       int64_t replicas)
{
    return replicas >= replicas_of(confirm->durability) &&
           (is_on_disk || !confirms->is_fsync);
}

/* `replicas` -1: the round failed. What it did not reach waits for the next
 * one, in front of what is younger. */
static void end_round(struct weir__confirms *confirms, bool is_on_disk,
                      int64_t replicas)
{
    struct confirm_list all = take_all(&confirms->asked);
    struct confirm_list younger = take_all(&confirms->waiting);
    struct weir__confirm *confirm;

    if (replicas < 0) {
        confirms->may_have_moved = true;
        weir__cluster_ask(confirms->store);
    }
    if (replicas < 0 && !confirms->store->is_closed) {
        ev_timer_set(&confirms->pause, PAUSE_S, 0.);
        ev_timer_start(confirms->store->options.loop, &confirms->pause);
    }
    while ((confirm = take(&all)) != NULL) {
        if (replicas >= 0)
            confirm->reached = replicas;
        if (!is_reached(confirms, confirm, is_on_disk, replicas))
            append(&confirms->waiting, confirm);
        else
            end(confirms, confirm, WEIR_OK);
    }
    while ((confirm = take(&younger)) != NULL)
        append(&confirms->waiting, confirm);
}

static void on_written(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__confirms *confirms =
        ((struct round_request *)request)->confirms; /* its first member */

    (void)reply;
    confirms->is_written = code == WEIR_OK;
    confirms->left--;
    if (confirms->left == 0)
        end_round(confirms, false, -1);
}

/* A number, or that of disks of this server and those of replicas. */
static void on_waited(struct weir__request *request, int code,
                      const struct redisReply *reply)
{
    struct weir__confirms *confirms =
        ((struct round_request *)request)->confirms;
    int64_t replicas = -1, disks = 0;

    confirms->left--;
    if (confirms->left > 0) /* the write comes again: it was not taken */
        return;
    if (code == WEIR_OK && confirms->is_written) {
        if (reply->type == REDIS_REPLY_INTEGER)
            replicas = reply->integer;
        else if (!weir__reply_int(reply, 0, &disks) ||
                 !weir__reply_int(reply, 1, &replicas))
            replicas = -1;
    }
    end_round(confirms, disks > 0, replicas);
}

static void begin_round(struct weir__confirms *confirms, int64_t replicas)
{
    struct weir__redis *store = confirms->store;
    const unsigned flags = WEIR__SEND_HERE;
    struct weir__buf bytes = {0};

    move_to_asked(confirms);
    confirms->left = 2;
    confirms->is_written = false;
    confirms->write.request.done = on_written;
    confirms->write.confirms = confirms;
    confirms->wait.request.done = on_waited;
    confirms->wait.confirms = confirms;
    weir__prefix_command(&bytes, &confirms->asked.first->topic->prefix, 4,
                         "HINCRBY", "meta");
    weir__resp_str(&bytes, "added");
    weir__resp_int(&bytes, 0);
    weir__redis_send_by(store, confirms->conn, &bytes, NULL, flags,
                        &confirms->write.request);
    write_wait(&bytes, confirms->is_fsync, replicas, WAIT_MS);
    weir__redis_send_by(store, confirms->conn, &bytes, NULL, flags,
                        &confirms->wait.request);
    weir__conn_flush(confirms->conn);
}

/* Another server answers for its topic than the one that acknowledged it. */
static bool has_moved(const struct weir__confirms *confirms,
                      const struct weir__confirm *confirm)
{
    const struct weir__server *server = confirms->server;

    if (confirm->topic->place->server != server)
        return true;
    return server->is_up && strcmp(confirm->identity,
                                   weir__conn_identity(server->commands)) != 0;
}

/* What is asked for stays: the old server may still confirm it. */
static void send_again(struct weir__confirms *confirms)
{
    struct weir__redis *store = confirms->store;
    struct confirm_list all = take_all(&confirms->waiting);
    struct weir__confirm *confirm;

    confirms->may_have_moved = !confirms->server->is_up;
    while ((confirm = take(&all)) != NULL) {
        if (!has_moved(confirms, confirm)) {
            append(&confirms->waiting, confirm);
            continue;
        }
        store->unconfirmed -= confirm->bytes;
        confirm->send_again(confirm);
    }
}

/* In turns, so that disks out of reach do not hold up replicas. */
void weir__confirms_flush(struct weir__server *server)
{
    struct weir__confirms *confirms = server->confirms;
    int64_t replicas = -1;

    if (confirms == NULL || confirms->waiting.first == NULL)
        return;
    if (confirms->may_have_moved)
        send_again(confirms);
    if (confirms->left > 0 || confirms->conn == NULL ||
        !weir__conn_is_ready(confirms->conn) || ev_is_active(&confirms->pause))
        return;
    for (int i = 0; i < 2 && replicas < 0; i++) {
        confirms->is_fsync = !confirms->is_fsync;
        replicas = least(confirms, confirms->is_fsync);
    }
    if (replicas >= 0)
        begin_round(confirms, replicas);
}

/* --- handing in ----------------------------------------------------------- */

/* False: there is no memory for it. */
static bool await(struct weir__confirm *confirm, bool is_acknowledged)
{
    struct weir__server *server = confirm->topic->place->server;
    struct weir__redis *store = server->store;
    struct weir__confirms *confirms = confirms_of(server);

    if (confirms == NULL)
        return false;
    if (confirm->until_ns == 0) {
        confirm->until_ns = weir__redis_now_ns(store) + CONFIRM_NS;
        confirm->reached = -1;
    }
    if (is_acknowledged)
        memcpy(confirm->identity, weir__conn_identity(server->commands),
               sizeof(confirm->identity));
    store->unconfirmed += confirm->bytes;
    append(&confirms->waiting, confirm);
    arm_late(confirms, confirm->until_ns);
    return true;
}

/* What was sent again and is lost on its way is sent once more, to whoever
 * answers next. */
int weir__confirm_answered(struct weir__confirm *confirm, int code)
{
    bool is_again = confirm->until_ns != 0;
    bool is_lost = code == WEIR_EUNKNOWN || code == WEIR_ECONN;

    if (confirm->durability == 0 || (code != WEIR_OK && !is_again))
        return code;
    if (code == WEIR_ECANCELED || confirm->topic->store->is_closed)
        return WEIR_EWEAK;
    if (code != WEIR_OK && !is_lost)
        return code;
    return await(confirm, code == WEIR_OK) ? WEIR__CONFIRM_WAITS : WEIR_EWEAK;
}

void weir__confirms_moved(struct weir__redis *store)
{
    for (struct weir__server *server = store->servers; server != NULL;
         server = server->next)
        if (server->confirms != NULL)
            server->confirms->may_have_moved = true;
}

bool weir__confirms_wait(const struct weir__server *server)
{
    const struct weir__confirms *confirms = server->confirms;

    return confirms != NULL &&
           (confirms->waiting.first != NULL || confirms->left > 0);
}

void weir__confirms_close(struct weir__server *server)
{
    struct weir__confirms *confirms = server->confirms;
    struct ev_loop *loop = server->store->options.loop;
    struct confirm_list all;
    struct weir__confirm *confirm;

    if (confirms == NULL)
        return;
    ev_timer_stop(loop, &confirms->late);
    weir__conn_close(confirms->conn); /* a round ends */
    ev_timer_stop(loop, &confirms->pause);
    all = take_all(&confirms->waiting);
    while ((confirm = take(&all)) != NULL)
        end(confirms, confirm, WEIR_EWEAK);
    server->confirms = NULL;
    weir__mem_free(confirms);
}
