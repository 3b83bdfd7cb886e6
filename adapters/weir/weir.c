/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "adapters/json/json.h"
#include "adapters/msgpack/headers.h"
#include "adapters/msgpack/origin.h"
#include "adapters/msgpack/scan.h"
#include "adapters/redis/conn/tls.h"
#include "core/assert.h"
#include "core/call.h"
#include "core/mem.h"
#include "core/random.h"
#include "core/text.h"

/* A reactor's life as a host sees it: opened with options, attached to a loop,
 * stopped, freed; its store and the topics that a host names; calls from other
 * threads. serve.c has its handlers, add.c and manage.c its jobs. */

#define REQUEST_TIMEOUT_MAX_MS (INT64_C(24) * 3600 * 1000)

enum { BLOCK_WARN_MS = 100, THREADS = 8 };

static const char FORKED[] =
    "the reactor was opened before a fork, and its connections and threads "
    "belong to the parent: open another one, with a loop of its own, in the "
    "child";

const struct weir__codec weir__facade_codec = {
    .value = weir__msgpack_find,
    .json = weir__json_print,
    .check = weir__facade_check_job,
    .origin = weir__origin_read,
    .headers = weir__headers_read,
    .put_headers = weir__headers_write,
};

static int64_t on_tick(void *arg)
{
    struct weir_reactor *reactor = arg;
    int64_t wait_ns;

    if (weir__mailbox_is_forked(reactor->mailbox)) {
        if (!reactor->has_refused)
            weir__log(&reactor->log, WEIR_LEVEL_ERROR, "%s", FORKED);
        reactor->has_refused = true;
        return WEIR__TICK_ENDS;
    }
    weir__mailbox_here(reactor->mailbox);
    reactor->depth++;
    weir__notices_run(reactor); /* first: what they add leaves in this turn */
    weir__takes_run(reactor);
    wait_ns = weir__reactor_tick(reactor->core);
    reactor->depth--;
    return weir__notices_are_due(reactor)
               ? 0
               : weir__takes_wait_ns(reactor, wait_ns);
}

/* Names come from it. Containers of one image may agree in the clock, the pid
 * and the address, which only count if the kernel has no random bytes yet. */
static uint64_t make_seed(const struct weir_reactor *reactor)
{
    uint64_t state;

    if (getrandom(&state, sizeof(state), GRND_NONBLOCK) ==
        (ssize_t)sizeof(state))
        return state;
    state = (uint64_t)weir__driver_clock(NULL);
    state ^= (uint64_t)getpid() << 32;
    state ^= (uint64_t)(uintptr_t)reactor;
    return weir__random_next(&state);
}

static bool is_name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

static int check_name(const char *name, struct weir_error *err)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++)
        if (!is_name_byte(name[i]))
            len = 0;
    if (len == 0 || len > WEIR_MAX_TOPIC)
        return weir__error_set(err, WEIR_EINVAL,
                               "worker name \"%.60s\": wanted 1 to %d of "
                               "[A-Za-z0-9._-]",
                               name, WEIR_MAX_TOPIC);
    return WEIR_OK;
}

static int set_name(struct weir_reactor *reactor, const char *name,
                    struct weir_error *err)
{
    char host[17];

    if (name != NULL) {
        int rc = check_name(name, err);

        if (rc == WEIR_OK)
            (void)snprintf(reactor->name, sizeof(reactor->name), "%s", name);
        return rc;
    }
    if (gethostname(host, sizeof(host)) != 0)
        host[0] = '\0';
    host[sizeof(host) - 1] = '\0'; /* a longer name comes without one */
    for (char *c = host; *c != '\0'; c++)
        if (!is_name_byte(*c))
            *c = '-';
    (void)snprintf(reactor->name, sizeof(reactor->name), "%s-%ld-%08lx", host,
                   (long)getpid(), (unsigned long)(reactor->seed & 0xffffffff));
    return WEIR_OK;
}

static void on_completed(uint64_t ticket,
                         const struct weir__completion *completion, void *arg)
{
    struct weir_reactor *reactor = arg;

    if (reactor->core == NULL) { /* by a plugin that is being closed */
        reactor->held -= reactor->held > 0 ? 1 : 0;
        return;
    }
    reactor->depth++;
    weir__reactor_complete(reactor->core, ticket, completion);
    reactor->depth--;
}

static void on_returned(struct weir__thread_run *thread_run, void *arg)
{
    struct weir_reactor *reactor = arg;

    weir__reactor_returned(reactor->core, thread_run);
}

static int open_pool(struct weir_reactor *reactor, uint32_t threads)
{
    struct weir__ev_pool_options pool = {
        .loop = reactor->loop,
        .threads = threads == 0 ? THREADS : threads,
        .log = &reactor->log,
        .depth = &reactor->depth,
        .returned = on_returned,
        .arg = reactor,
    };

    return weir__ev_pool_open(&pool, &reactor->pool);
}

/* --- the store ---------------------------------------------------------- */

static void tell_connection(const struct weir_reactor *reactor, int code,
                            const char *text)
{
    const struct weir__store *store = reactor->store;
    struct weir__call call = {.what = "on_connection"};

    if (reactor->on_connection == NULL)
        return;
    weir__call_begin(store, &call);
    reactor->on_connection(code, text, reactor->on_connection_arg);
    (void)weir__call_end(store, &call); /* has no run */
}

static void on_connection(int code, const char *text, void *arg)
{
    struct weir_reactor *reactor = arg;

    weir__reactor_connection(reactor->core, code == WEIR_OK);
    tell_connection(reactor, code, text);
}

static void on_held(const char *text, void *arg)
{
    tell_connection(arg, WEIR_ECONN, text);
}

static void on_dropped(const struct weir__dropped *dropped, void *arg)
{
    const struct weir_reactor *reactor = arg;
    char topic[WEIR_MAX_TOPIC + 1], group[WEIR_MAX_ID + 1];
    struct weir__call call = {.what = "the drop callback", .topic = topic};

    weir__reactor_dropped(reactor->core, dropped);
    if (reactor->drop_fn == NULL)
        return;
    WEIR_ASSERT(dropped->topic.len < sizeof(topic));
    WEIR_ASSERT(dropped->group.len < sizeof(group));
    memcpy(topic, dropped->topic.ptr, dropped->topic.len);
    topic[dropped->topic.len] = '\0';
    memcpy(group, dropped->group.ptr, dropped->group.len);
    group[dropped->group.len] = '\0';
    weir__call_begin(reactor->store, &call);
    reactor->drop_fn(topic, group, dropped->reason, dropped->count,
                     reactor->drop_arg);
    (void)weir__call_end(reactor->store, &call); /* has no run */
}

void weir_reactor_on_drop(struct weir_reactor *reactor, weir_drop_fn fn,
                          void *arg)
{
    reactor->drop_fn = fn;
    reactor->drop_arg = arg;
}

static int open_store(struct weir_reactor *reactor)
{
    struct weir__store_events events = weir__lane_events();
    struct weir__redis_options options = {
        .loop = reactor->loop,
        .url = &reactor->url,
        .worker = reactor->name,
        .seed = reactor->seed,
        .wait_ms = reactor->request_timeout_ms,
        .clock = weir__driver_clock,
        .log = &reactor->log,
        .blocked_log = &reactor->blocked_log,
        .block_warn_ms = reactor->block_warn_ms,
        .events = &events,
        .arg = reactor,
        .depth = &reactor->depth,
    };
    int rc;

    events.connection = on_connection;
    events.held = on_held;
    events.describe = weir__facade_describe;
    events.dropped = on_dropped;
    rc = weir__redis_open(&options, &reactor->store);
    if (rc == WEIR_OK)
        weir__reactor_attach(reactor->core, reactor->store);
    return rc;
}

/* --- life --------------------------------------------------------------- */

static int open_parts(struct weir_reactor *reactor, uint32_t threads)
{
    struct weir__mailbox_options mailbox = {
        .loop = reactor->loop,
        .completed = on_completed,
        .arg = reactor,
    };
    struct weir__reactor_options core = {
        .codec = &weir__facade_codec,
        .clock = weir__driver_clock,
        .seed = reactor->seed,
        .log = &reactor->log,
        .outcome_log = &reactor->log,
        .zones = &reactor->zones.port,
        .block_warn_ms = reactor->block_warn_ms,
    };
    int rc = weir__mailbox_open(&mailbox, &reactor->mailbox);

    if (rc == WEIR_OK)
        rc = open_pool(reactor, threads);
    if (rc < 0)
        return rc;
    core.mailbox = weir__mailbox_port(reactor->mailbox);
    core.pool = weir__ev_pool_port(reactor->pool);
    reactor->core = weir__reactor_new(&core);
    if (reactor->core == NULL)
        return WEIR_ENOMEM;
    weir__reactor_on_ended(reactor->core, weir__facade_ended, reactor);
    rc = open_store(reactor);
    if (rc < 0)
        return rc;
    return weir__driver_open(reactor->loop, on_tick, reactor, &reactor->driver);
}

/* Copes with a half-built reactor. The store goes first: its callbacks, run
 * with WEIR_ECANCELED, may still look at the rest. */
static void destroy(void *arg)
{
    struct weir_reactor *reactor = arg;

    if (reactor->mailbox != NULL)
        weir__mailbox_here(reactor->mailbox); /* its last callbacks are here */
    reactor->is_freed = true;
    if (reactor->core != NULL) {
        weir__reactor_halt(reactor->core);
        weir__mailbox_read(reactor->mailbox); /* what calls was canceled */
        reactor->held = weir__reactor_drop_pending(reactor->core);
    }
    weir__ev_pool_close(reactor->pool); /* its threads look at the core */
    reactor->pool = NULL;
    if (reactor->store != NULL)
        reactor->store->ops->close(reactor->store);
    reactor->store = NULL; /* what handlers send now has nowhere to go */
    weir__reactor_free(reactor->core);
    reactor->core = NULL; /* what plugins complete now is over */
    weir__takes_fini(reactor);
    weir__notices_fini(&reactor->notices);
    weir__zones_fini(&reactor->zones);
    weir__driver_close(reactor->driver);
    while (reactor->plugins != NULL) {
        struct weir__bound_plugin *bound = reactor->plugins;

        reactor->plugins = bound->next;
        weir__facade_close_plugin(reactor, bound);
    }
    weir__takes_free(&reactor->takes);
    weir__mailbox_close(reactor->mailbox, reactor->held);
    weir__tls_free(reactor->url.tls);
    weir__mem_free(reactor);
}

static int check_options(const struct weir_options *options,
                         struct weir_error *err)
{
    if (options->loop == NULL || options->redis_url == NULL)
        return weir__error_set(err, WEIR_EINVAL,
                               "a reactor needs a loop and a redis_url");
    if (options->request_timeout_ms < 0 ||
        options->request_timeout_ms > REQUEST_TIMEOUT_MAX_MS)
        return weir__error_set(err, WEIR_EINVAL,
                               "request_timeout_ms is %lld: wanted 1 to %lld, "
                               "or 0 for 10000",
                               (long long)options->request_timeout_ms,
                               (long long)REQUEST_TIMEOUT_MAX_MS);
    if (options->block_warn_ms < 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "block_warn_ms is %lld: wanted 1 or more, or 0 "
                               "for %d",
                               (long long)options->block_warn_ms,
                               BLOCK_WARN_MS);
    if (options->threads > WEIR__THREADS_MAX)
        return weir__error_set(
            err, WEIR_EINVAL, "threads is %lu: wanted 1 to %d, or 0 for %d",
            (unsigned long)options->threads, WEIR__THREADS_MAX, THREADS);
    return WEIR_OK;
}

static int open_tls(struct weir_reactor *reactor, struct weir_error *err)
{
    if (reactor->url.no_verify)
        weir__log(&reactor->log, WEIR_LEVEL_WARN,
                  "redis: verify=none: whoever answers is taken for the "
                  "server, passwords included; give ca=FILE instead");
    return weir__tls_new(&reactor->url, &reactor->url.tls, err);
}

int weir_reactor_open(const struct weir_options *options,
                      struct weir_reactor **ret_reactor, struct weir_error *err)
{
    struct weir_reactor *reactor;
    int rc = check_options(options, err);

    if (rc < 0)
        return rc;
    reactor = weir__mem_new(sizeof(*reactor));
    if (reactor == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    reactor->log = (struct weir__log){
        .fn = options->log,
        .arg = options->log_arg,
        .level = options->log_level,
        .line_fn = options->log_line,
    };
    reactor->blocked_log = (struct weir__log){
        .fn = options->blocked_log,
        .arg = options->log_arg,
        .level = options->log_level,
        .line_fn = options->blocked_log_line,
    };
    reactor->on_connection = options->on_connection;
    reactor->on_connection_arg = options->on_connection_arg;
    reactor->loop = options->loop;
    reactor->request_timeout_ms = options->request_timeout_ms;
    reactor->block_warn_ms =
        options->block_warn_ms == 0 ? BLOCK_WARN_MS : options->block_warn_ms;
    reactor->seed = make_seed(reactor);
    weir__notices_init(&reactor->notices);
    weir__takes_init(&reactor->takes);
    weir__zones_init(&reactor->zones);
    (void)gethostname(reactor->host, sizeof(reactor->host) - 1); /* or "" */
    rc = weir__redis_url_parse(options->redis_url, &reactor->url, err);
    if (rc == WEIR_OK)
        rc = open_tls(reactor, err);
    if (rc == WEIR_OK)
        rc = set_name(reactor, options->name, err);
    if (rc == WEIR_OK)
        rc = weir__error_code(err, open_parts(reactor, options->threads));
    if (rc < 0) {
        destroy(reactor);
        return rc;
    }
    *ret_reactor = reactor;
    return WEIR_OK;
}

/* Also in a child of a fork: closing would wait for threads that are not there,
 * and say farewell on sockets of the parent. */
static bool is_over(const struct weir_reactor *reactor)
{
    return reactor->is_freed || weir__mailbox_is_forked(reactor->mailbox);
}

void weir_reactor_free(struct weir_reactor *reactor)
{
    if (reactor == NULL || is_over(reactor))
        return;
    if (reactor->depth == 0) {
        destroy(reactor);
        return;
    }
    /* Inside a callback of ours: what called it still needs the reactor. */
    reactor->is_freed = true;
    weir__reactor_halt(reactor->core);
    weir__driver_defer(reactor->driver, destroy);
}

void weir_reactor_log_level(struct weir_reactor *reactor, enum weir_level level)
{
    reactor->log.level = level;
    reactor->blocked_log.level = level;
}

void weir_reactor_totals(const struct weir_reactor *reactor,
                         struct weir_totals *ret_totals)
{
    *ret_totals = (struct weir_totals){0};
    if (reactor->core != NULL) /* else it is being freed */
        weir__reactor_totals(reactor->core, ret_totals);
}

void weir__facade_measure(struct weir_reactor *reactor)
{
    weir__reactor_measure(reactor->core);
}

void weir__facade_times(const struct weir_reactor *reactor, weir__times_fn fn,
                        void *arg)
{
    if (reactor->core != NULL)
        weir__reactor_times(reactor->core, fn, arg);
}

int weir_reactor_counters(const struct weir_reactor *reactor, const char *topic,
                          weir_counter_fn fn, void *arg)
{
    int rc = weir__facade_check_thread(reactor, NULL);

    if (rc < 0)
        return rc;
    if (reactor->core == NULL)
        return WEIR_ECANCELED;
    return weir__reactor_counters(reactor->core, weir__slice_str(topic), fn,
                                  arg);
}

void weir_reactor_on_idle(struct weir_reactor *reactor, weir_idle_fn fn,
                          void *arg)
{
    if (is_over(reactor))
        return;
    weir__reactor_on_idle(reactor->core, fn, arg);
}

void weir_reactor_stop(struct weir_reactor *reactor, weir_stopped_fn done,
                       void *arg)
{
    if (is_over(reactor))
        return;
    weir__reactor_stop(reactor->core, done, arg);
}

void weir_reactor_give_back(struct weir_reactor *reactor)
{
    if (is_over(reactor))
        return;
    reactor->depth++;
    weir__reactor_abort(reactor->core);
    reactor->depth--;
}

int weir__facade_check_thread(const struct weir_reactor *reactor,
                              struct weir_error *err)
{
    if (weir__mailbox_may_be_here(reactor->mailbox))
        return WEIR_OK;
    if (weir__mailbox_is_forked(reactor->mailbox))
        return weir__error_set(err, WEIR_ETHREAD, "%s", FORKED);
    return weir__error_set(err, WEIR_ETHREAD,
                           "this is not the thread of the reactor's loop: have "
                           "weir_reactor_call run a function there, or add "
                           "jobs with weir_reactor_submit");
}

/* --- topics --------------------------------------------------------------- */

/* The first kind is that of topics that nobody declared. */
static int check_kind(const char *topic, const char *was, const char *kind,
                      struct weir_error *err)
{
    if (strcmp(was, kind) == 0 || strcmp(was, "delay") == 0)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "topic %s was declared as of kind %s", topic, was);
}

int weir__facade_open(struct weir_reactor *reactor, const char *topic,
                      const char *kind, struct weir__store_topic **ret_handle,
                      struct weir_error *err)
{
    struct weir__store_topic_options options = {
        .name = weir__slice_str(topic),
    };
    const struct weir__store_ops *ops;
    int rc = weir__facade_check_thread(reactor, err);

    if (rc == WEIR_OK)
        rc = weir__topic_check(options.name, err);
    if (rc < 0)
        return rc;
    if (reactor->is_freed)
        return weir__error_code(err, WEIR_ECANCELED);
    ops = reactor->store->ops;
    rc = ops->topic_open(reactor->store, &options, ret_handle);
    if (rc == WEIR_OK && kind != NULL) {
        rc = check_kind(topic, ops->kind_name(*ret_handle), kind, err);
        if (rc < 0)
            return rc;
        options.kind = kind;
        rc = ops->topic_open(reactor->store, &options, ret_handle);
    }
    if (rc == WEIR_EINVAL)
        return weir__error_set(err, rc,
                               "kind: \"%.40s\" is not a kind that this "
                               "version of weir can work with",
                               kind);
    return weir__error_code(err, rc);
}

int weir_reactor_declare(struct weir_reactor *reactor, const char *topic,
                         const char *kind, struct weir_error *err)
{
    struct weir__store_topic *handle;

    return weir__facade_open(reactor, topic, kind, &handle, err);
}

/* --- from any thread ------------------------------------------------------ */

struct call {
    struct weir__mailbox_message message; /* first */
    struct weir_reactor *reactor;
    weir_call_fn fn;
    void *arg;
};

/* A message is dropped where the reactor is all but gone. */
static void make_call(struct weir__mailbox_message *message, bool is_dropped)
{
    struct call call = *(struct call *)message; /* its first member */
    bool is_over = is_dropped || call.reactor->is_freed;
    const struct weir__store *store = call.reactor->store;
    struct weir__call made = {.what = "a function of weir_reactor_call"};

    weir__mem_free(message);
    call.reactor->depth++;
    weir__call_begin(store, &made);
    call.fn(is_over ? WEIR_ECANCELED : WEIR_OK, call.reactor, call.arg);
    (void)weir__call_end(store, &made); /* has no run */
    call.reactor->depth--;
}

int weir_reactor_call(struct weir_reactor *reactor, weir_call_fn fn, void *arg)
{
    struct call *call = weir__mem_new(sizeof(*call));
    int rc;

    WEIR_ASSERT(fn != NULL);
    if (call == NULL)
        return WEIR_ENOMEM;
    call->message.read = make_call;
    call->reactor = reactor;
    call->fn = fn;
    call->arg = arg;
    rc = weir__mailbox_send(reactor->mailbox, &call->message, sizeof(*call));
    if (rc < 0)
        weir__mem_free(call);
    return rc;
}
