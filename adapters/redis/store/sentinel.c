/* SPDX-License-Identifier: MIT */
#include "adapters/redis/store/sentinel.h"

#include <ev.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/reply.h"
#include "adapters/redis/resp.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

enum {
    ANSWER_MS = 300, /* for one sentinel */
    AGAIN_MS = 5000, /* between questions while all is well */
    LEFT_MS = 10000, /* so long an old primary may still be named */
    KNOWN_MAX = 32,  /* sentinels */
    WHY_MAX = 320,
    NAME_MAX = 128 /* of the primary, among sentinels */
};

/* One that is known. */
struct sentinel {
    struct weir__sentinels *all;
    struct weir__redis_host host;
    struct weir__conn *ear; /* hears of new primaries; NULL: no memory for it */
    bool is_given;          /* it stands in the address */
    bool is_told;           /* another one knows it */
};

/* A connection of the store. */
struct seeker {
    struct weir__conn *conn;
    bool is_waiting; /* for an address */
};

struct weir__sentinels {
    struct weir__locator locator;
    struct weir__conn_options options; /* of connections to sentinels */
    struct weir__redis_url url;        /* theirs, but for the host */
    char service[NAME_MAX];
    const struct weir__log *log;

    struct sentinel *known[KNOWN_MAX]; /* in the order of being asked */
    size_t count;

    struct seeker *seekers;
    size_t seeker_count;
    struct weir__conn *first;        /* of the seekers */
    bool is_confirmed;               /* it stands at the primary */
    struct weir__redis_host primary; /* as far as is known; no name: not */
    struct weir__redis_host left;    /* the one before, and until when its */
    ev_tstamp left_until;            /* name is not believed */

    struct weir__conn *asked; /* to known[at]; NULL: nobody was asked yet */
    size_t at;
    bool is_asking;
    bool is_unknown;   /* one that was asked knows no such primary */
    bool is_silent;    /* that nobody answers was said */
    char why[WHY_MAX]; /* the last one that was asked did not answer */
    ev_timer timer;    /* of the answer; until the next question */
};

static const struct weir__log nowhere;

static bool is_same(const struct weir__redis_host *one,
                    const struct weir__redis_host *other)
{
    return one->port == other->port && strcmp(one->name, other->name) == 0;
}

/* --- who looks for the primary -------------------------------------------- */

static struct seeker *find_seeker(struct weir__sentinels *all,
                                  const struct weir__conn *conn)
{
    for (size_t i = 0; i < all->seeker_count; i++)
        if (all->seekers[i].conn == conn)
            return &all->seekers[i];
    return NULL;
}

/* NULL when out of memory. */
static struct seeker *add_seeker(struct weir__sentinels *all,
                                 struct weir__conn *conn)
{
    struct seeker *seekers = weir__mem_grow(all->seekers, all->seeker_count + 1,
                                            sizeof(struct seeker));

    if (seekers == NULL)
        return NULL;
    all->seekers = seekers;
    seekers[all->seeker_count] = (struct seeker){.conn = conn};
    return &seekers[all->seeker_count++];
}

/* Those who may know it. */
static void tell(struct weir__sentinels *all)
{
    for (size_t i = 0; i < all->seeker_count; i++) {
        struct seeker *seeker = &all->seekers[i];

        if (!seeker->is_waiting ||
            (seeker->conn != all->first && !all->is_confirmed))
            continue;
        seeker->is_waiting = false;
        weir__conn_located(seeker->conn, all->primary.name, all->primary.port);
    }
}

/* The others go on waiting for the first one. */
static void tell_failure(struct weir__sentinels *all, int code,
                         const char *text)
{
    struct seeker *seeker =
        all->first == NULL ? NULL : find_seeker(all, all->first);

    if (seeker == NULL || !seeker->is_waiting)
        return;
    seeker->is_waiting = false;
    weir__conn_not_located(seeker->conn, code, text);
}

/* Who is not at `primary` leaves at once. */
static void move(struct weir__sentinels *all,
                 const struct weir__redis_host *primary)
{
    char text[WHY_MAX + NAME_MAX];

    if (is_same(&all->primary, primary))
        return;
    all->left = all->primary;
    all->left_until = ev_now(all->options.loop) + LEFT_MS / 1000.;
    all->primary = *primary;
    all->is_confirmed = false;
    (void)snprintf(text, sizeof(text), "the primary of %s is %s:%u",
                   all->service, primary->name, primary->port); /* fits */
    weir__log(all->log, WEIR_LEVEL_INFO, "redis: %s", text);
    for (size_t i = 0; i < all->seeker_count; i++)
        if (!all->seekers[i].is_waiting)
            weir__conn_abandon(all->seekers[i].conn, text);
}

/* --- the question --------------------------------------------------------- */

static void arm(struct weir__sentinels *all, int64_t ms)
{
    ev_now_update(all->options.loop); /* it may be as old as the turn */
    ev_timer_stop(all->options.loop, &all->timer);
    ev_timer_set(&all->timer, (double)ms / 1000., 0.);
    ev_timer_start(all->options.loop, &all->timer);
}

static void to_front(struct weir__sentinels *all, struct sentinel *sentinel)
{
    size_t at = 0;

    while (all->known[at] != sentinel)
        at++;
    memmove(&all->known[1], &all->known[0], at * sizeof(all->known[0]));
    all->known[0] = sentinel;
}

static int open_conn(struct sentinel *sentinel,
                     struct weir__conn_options *options,
                     struct weir__conn **ret_conn)
{
    options->host = &sentinel->host;
    sentinel->all->options.seed++;
    return weir__conn_open(options, ret_conn);
}

static void hang_up(struct weir__sentinels *all)
{
    struct weir__conn *conn = all->asked;

    all->asked = NULL;
    all->is_asking = false;
    weir__conn_close(conn);
}

static void note_why(struct weir__sentinels *all, const char *text)
{
    const struct weir__redis_host *host = &all->known[all->at]->host;

    (void)snprintf(all->why, sizeof(all->why), "%s:%u: %s", host->name,
                   host->port, text); /* cut */
}

static void fail(struct weir__sentinels *all)
{
    char text[WHY_MAX + NAME_MAX];

    if (all->is_unknown)
        (void)snprintf(text, sizeof(text),
                       "no sentinel knows a primary named %s",
                       all->service); /* fits */
    else
        (void)snprintf(text, sizeof(text), "no sentinel answers (%s)",
                       all->why); /* fits */
    if (!all->is_silent && all->primary.port != 0)
        weir__log(all->log, WEIR_LEVEL_WARN, "redis: %s, asking again", text);
    all->is_silent = true;
    tell_failure(all, all->is_unknown ? WEIR_ENOTFOUND : WEIR_ECONN, text);
    arm(all, AGAIN_MS);
}

static void ask(struct weir__sentinels *all, size_t at);

static void ask_next(struct weir__sentinels *all)
{
    size_t next = all->at + 1;

    hang_up(all);
    if (next < all->count)
        ask(all, next);
    else
        fail(all);
}

static void on_asked_state(int code, const char *text, void *arg)
{
    struct weir__sentinels *all = arg;

    if (code == WEIR_OK || !all->is_asking)
        return;
    note_why(all, text);
    ask_next(all);
}

static void ask_for_others(struct weir__sentinels *all);

/* Of a switch that another one told of it has not heard yet. */
static bool is_left(const struct weir__sentinels *all,
                    const struct weir__redis_host *primary)
{
    return is_same(primary, &all->left) &&
           ev_now(all->options.loop) < all->left_until;
}

static void on_primary(int code, const struct redisReply *reply, void *arg)
{
    struct weir__sentinels *all = arg;
    struct weir_slice name, port;
    struct weir__redis_host primary;

    if (code == WEIR_ECANCELED || !all->is_asking)
        return;
    if (code != WEIR_OK || !weir__reply_str(reply, 0, &name) ||
        !weir__reply_str(reply, 1, &port) ||
        !weir__redis_host_read(name, port, &primary) ||
        is_left(all, &primary)) {
        if (code == WEIR_OK && reply->type == REDIS_REPLY_NIL)
            all->is_unknown = true;
        note_why(all, code == WEIR_ESERVER ? reply->str : "no answer");
        ask_next(all);
        return;
    }
    all->is_asking = false;
    all->is_silent = false;
    to_front(all, all->known[all->at]);
    all->at = 0;
    ask_for_others(all);
    move(all, &primary);
    arm(all, AGAIN_MS);
    tell(all);
}

static void send_question(struct weir__sentinels *all, bool is_of_others,
                          weir__reply_fn fn)
{
    struct weir__buf bytes = {0};

    weir__resp_command(&bytes, 3);
    weir__resp_str(&bytes, "SENTINEL");
    weir__resp_str(&bytes,
                   is_of_others ? "sentinels" : "get-master-addr-by-name");
    weir__resp_str(&bytes, all->service);
    (void)weir__conn_send(all->asked, &bytes, NULL, WEIR__SEND_ONCE, fn,
                          all); /* else the timer goes on */
    weir__conn_flush(all->asked);
}

/* What fails at once for lack of memory fails when the time is over. */
static void ask(struct weir__sentinels *all, size_t at)
{
    struct weir__conn_options options = all->options;

    options.on_state = on_asked_state;
    options.arg = all;
    options.connect_ms = ANSWER_MS;
    options.handshake_ms = ANSWER_MS;
    if (all->asked != NULL && all->at != at)
        hang_up(all);
    all->at = at;
    all->is_asking = true;
    arm(all, ANSWER_MS);
    note_why(all, "no answer in time");
    if (all->asked != NULL ||
        open_conn(all->known[at], &options, &all->asked) == WEIR_OK)
        send_question(all, false, on_primary);
}

static void begin(struct weir__sentinels *all)
{
    if (all->is_asking)
        return;
    all->is_unknown = false;
    ask(all, 0);
}

static void listen_to_all(struct weir__sentinels *all);

static void on_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    struct weir__sentinels *all = timer->data;

    (void)loop; /* the owner's */
    (void)events;
    if (all->is_asking) {
        ask_next(all);
    } else {
        listen_to_all(all);
        begin(all);
    }
}

/* --- hearing of a switch -------------------------------------------------- */

static struct weir_slice next_word(struct weir_slice *rest)
{
    const uint8_t *blank =
        rest->len == 0 ? NULL : memchr(rest->ptr, ' ', rest->len);
    size_t len = blank == NULL ? rest->len : (size_t)(blank - rest->ptr);
    struct weir_slice word = {rest->ptr, len};
    size_t used = blank == NULL ? len : len + 1;

    rest->ptr += used;
    rest->len -= used;
    return word;
}

/* Name, the old host and port, the new ones. Whoever says so is asked first
 * from now on: the others may not have heard of it yet. */
static void on_switch(struct weir_slice payload, void *arg)
{
    struct sentinel *sentinel = arg;
    struct weir__sentinels *all = sentinel->all;
    struct weir_slice word[5];
    struct weir__redis_host primary;

    for (size_t i = 0; i < 5; i++)
        word[i] = next_word(&payload);
    if (!weir__slice_equal(word[0], weir__slice_str(all->service)) ||
        !weir__redis_host_read(word[3], word[4], &primary) ||
        is_same(&all->primary, &primary))
        return;
    hang_up(all);
    to_front(all, sentinel);
    move(all, &primary);
    begin(all);
}

static void listen_to_all(struct weir__sentinels *all)
{
    struct weir__conn_options options = all->options;

    options.channel = "+switch-master";
    options.on_message = on_switch;
    for (size_t i = 0; i < all->count; i++) {
        options.arg = all->known[i];
        if (all->known[i]->ear == NULL)
            (void)open_conn(all->known[i], &options, &all->known[i]->ear);
    }
}

/* --- sentinels that others know ------------------------------------------- */

/* False when out of memory. */
static bool add(struct weir__sentinels *all,
                const struct weir__redis_host *host, bool is_given)
{
    struct sentinel *sentinel;

    for (size_t i = 0; i < all->count; i++)
        if (is_same(&all->known[i]->host, host)) {
            all->known[i]->is_told = true;
            return true;
        }
    if (all->count == KNOWN_MAX)
        return true;
    sentinel = weir__mem_new(sizeof(*sentinel));
    if (sentinel == NULL)
        return false;
    sentinel->all = all;
    sentinel->host = *host;
    sentinel->is_given = is_given;
    sentinel->is_told = true;
    all->known[all->count++] = sentinel;
    return true;
}

static void release(struct sentinel *sentinel)
{
    weir__conn_close(sentinel->ear);
    weir__mem_free(sentinel);
}

/* Nobody names them any more. The first one is who was asked: it does not name
 * itself. */
static void drop_untold(struct weir__sentinels *all)
{
    size_t kept = 1;

    for (size_t i = 1; i < all->count; i++)
        if (all->known[i]->is_given || all->known[i]->is_told)
            all->known[kept++] = all->known[i];
        else
            release(all->known[i]);
    all->count = kept;
}

/* Names and values. */
static void take_other(struct weir__sentinels *all,
                       const struct redisReply *fields)
{
    struct weir_slice name, value, ip = {0}, port = {0};
    struct weir__redis_host host;

    for (size_t i = 0; weir__reply_str(fields, i, &name) &&
                       weir__reply_str(fields, i + 1, &value);
         i += 2) {
        if (weir__slice_equal(name, weir__slice_str("ip")))
            ip = value;
        else if (weir__slice_equal(name, weir__slice_str("port")))
            port = value;
    }
    if (weir__redis_host_read(ip, port, &host))
        (void)add(all, &host, false); /* the next answer names it again */
}

static void on_others(int code, const struct redisReply *reply, void *arg)
{
    struct weir__sentinels *all = arg;

    if (code != WEIR_OK || reply->type != REDIS_REPLY_ARRAY)
        return;
    WEIR_ASSERT(all->at == 0); /* another one was asked: this was cancelled */
    for (size_t i = 1; i < all->count; i++)
        all->known[i]->is_told = false;
    for (size_t i = 0; i < (size_t)reply->elements; i++)
        take_other(all, reply->element[i]);
    drop_untold(all);
    listen_to_all(all);
}

static void ask_for_others(struct weir__sentinels *all)
{
    send_question(all, true, on_others);
}

/* --- the locator ---------------------------------------------------------- */

static void find(void *arg, struct weir__conn *conn)
{
    struct weir__sentinels *all = arg;
    struct seeker *seeker = find_seeker(all, conn);

    if (all->first == NULL)
        all->first = conn;
    if (seeker == NULL)
        seeker = add_seeker(all, conn);
    if (seeker == NULL) {
        weir__conn_not_located(conn, WEIR_ENOMEM, "out of memory");
        return;
    }
    seeker->is_waiting = true;
    if (all->first == conn) {
        all->is_confirmed = false;
        begin(all);
    } else if (all->is_confirmed) {
        tell(all);
    }
}

static void forget(void *arg, struct weir__conn *conn)
{
    struct weir__sentinels *all = arg;
    struct seeker *seeker = find_seeker(all, conn);

    if (conn == all->first)
        all->first = NULL;
    if (seeker != NULL)
        *seeker = all->seekers[--all->seeker_count];
}

const struct weir__locator *
weir__sentinels_locator(const struct weir__sentinels *sentinels)
{
    return sentinels == NULL ? NULL : &sentinels->locator;
}

void weir__sentinels_confirm(struct weir__sentinels *sentinels)
{
    if (sentinels == NULL)
        return;
    sentinels->is_confirmed = true;
    tell(sentinels);
}

/* --- life ----------------------------------------------------------------- */

int weir__sentinels_open(const struct weir__conn_options *like,
                         struct weir__sentinels **ret_sentinels)
{
    struct weir__sentinels *all = weir__mem_new(sizeof(*all));
    bool has_all = true;

    if (all == NULL)
        return WEIR_ENOMEM;
    WEIR_ASSERT(strlen(like->url->service) < sizeof(all->service));
    memcpy(all->service, like->url->service, strlen(like->url->service) + 1);
    weir__redis_url_of_sentinel(like->url, &like->url->hosts[0], &all->url);
    all->locator = (struct weir__locator){find, forget, all, false};
    all->log = like->log;
    all->options = (struct weir__conn_options){
        .loop = like->loop,
        .url = &all->url,
        .name = like->name,
        .seed = like->seed,
        .log = &nowhere,
        .is_beside = true,
        .depth = like->depth,
    };
    ev_timer_init(&all->timer, on_timer, 0., 0.);
    all->timer.data = all;
    for (size_t i = 0; i < like->url->host_count; i++)
        has_all = add(all, &like->url->hosts[i], true) && has_all;
    if (!has_all) {
        weir__sentinels_close(all);
        return WEIR_ENOMEM;
    }
    listen_to_all(all);
    *ret_sentinels = all;
    return WEIR_OK;
}

void weir__sentinels_close(struct weir__sentinels *sentinels)
{
    if (sentinels == NULL)
        return;
    WEIR_ASSERT(sentinels->seeker_count == 0);
    ev_timer_stop(sentinels->options.loop, &sentinels->timer);
    hang_up(sentinels);
    for (size_t i = 0; i < sentinels->count; i++)
        release(sentinels->known[i]);
    weir__mem_free(sentinels->seekers);
    weir__mem_free(sentinels);
}
