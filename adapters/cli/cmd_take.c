/* SPDX-License-Identifier: MIT */

/* weir take: jobs for a shell or any other caller. A take lets go of
 * its jobs, and their leases last until cmd_settle.c ends or renews them. */

#include "adapters/cli/take.h"

#include "adapters/cli/output.h"
#include "adapters/weir/facade.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

const struct weir__bounds weir__take_lease_bounds = {300, 3600000,
                                                     "300ms to 1h"};
static const struct weir__bounds delay_bounds = {0, INT64_C(315360000000),
                                                 "0ms to 3650d"};

enum weir__exit weir__take_open(struct weir__client *client,
                                const struct weir__cli *cli, const char *topic,
                                const char *doing)
{
    enum weir__exit rc;

    if (!weir__operand_topic(topic))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(client, cli, NULL, 0);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(client, topic);
    if (rc == WEIR__EXIT_NONE && client->kind[0] != '\0' &&
        strcmp(client->kind, "delay") != 0) {
        weir__complain("%s: topic \"%s\" is of kind %s; this is for topics of "
                       "kind delay",
                       doing, topic, client->kind);
        rc = WEIR__EXIT_USAGE;
    }
    if (rc != WEIR__EXIT_NONE)
        weir__client_close(client);
    return rc;
}

/* --- take --------------------------------------------------------------- */

enum { LIMIT, LEASE, WAIT, FOLLOW };

static const double end_limit_s = 5.0;
static const double look_s = 0.01; /* at what the pipe holds */
static const double gone_s = 1.0;  /* for a reader that ended */

static const struct weir__flag take_flags[] = {
    [LIMIT] = {"limit", "N", "at most so many jobs, 1 to 1000 (default: 1)"},
    [LEASE] = {"lease", "D",
               "how long they are yours unless they are renewed,\n"
               "300ms to 1h (default: 1m)"},
    [WAIT] = {"wait", "D",
              "how long to wait for the first one, up to 3650d\n"
              "(default: 0ms, with --follow 3650d)"},
    [FOLLOW] = {"follow", NULL,
                "into a pipe: take the next job when the last one\n"
                "was read from it"},
};

struct take {
    struct weir__client client;
    const struct weir__cli *cli;
    const char *topic;
    int64_t limit, lease_ms, wait_ms;
    size_t count;   /* printed */
    bool is_broken; /* a job could not be printed: all go back */
    bool is_following;
    struct weir_take *unread; /* of --follow: it lies in the pipe */
    struct ev_timer timer;
};

static bool print_taken(const struct take *take, const struct weir_take *taken)
{
    char token[WEIR_TAKE_TOKEN];
    struct weir_job_info info;
    struct json_object *object;

    if (weir_take_token(taken, token) != WEIR_OK)
        return false;
    weir__facade_info(weir_take_job(taken), &info);
    object = weir__job_json(take->topic, &info);
    weir__object_put(&object, weir__field_str("token", token));
    if (take->cli->json || object == NULL)
        return weir__print_object(object) == WEIR__EXIT_DONE;
    weir__print("%s ", token);
    weir__print_text(info.id);
    (void)weir__print_json(" ", json_object_object_get(object, "body"));
    weir__print("\n");
    (void)json_object_put(object);
    return ferror(stdout) == 0;
}

/* --- one after the other -------------------------------------------------- */

static void on_taken(int code, struct weir_take *const *takes, size_t count,
                     void *arg);

static int begin_take(struct take *take, struct weir_error *err)
{
    char lease[32];
    const char *const pinned[] = {lease, NULL};
    const struct weir_take_options options = {
        .limit = (size_t)take->limit,
        .wait_ms = take->wait_ms,
        .overrides = pinned,
        .fn = on_taken,
        .arg = take,
    };

    (void)snprintf(lease, sizeof(lease), "lease=%" PRId64 "ms", take->lease_ms);
    return weir_reactor_take(take->client.reactor, take->topic, &options, err);
}

static bool is_reader_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};

    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

static bool is_pipe_empty(void)
{
    int unread = 0;

    return ioctl(STDOUT_FILENO, FIONREAD, &unread) < 0 || unread == 0;
}

static void look_again(struct take *take)
{
    take->timer.repeat = take->unread != NULL ? look_s : gone_s;
    ev_timer_again(take->client.loop, &take->timer);
}

/* A job is the reader's when the pipe is empty. Until then the reactor renews
 * its lease. */
static void on_look(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct take *take = timer->data;
    struct weir_error err;
    int rc = WEIR_OK;

    (void)loop;
    (void)events;
    if (take->unread != NULL && is_pipe_empty()) {
        rc = weir_take_let_go(take->unread);
        take->unread = NULL;
        if (rc == WEIR_OK)
            rc = begin_take(take, &err);
    }
    if (rc < 0 || is_reader_gone())
        weir__client_finish(&take->client, rc);
    else
        look_again(take);
}

static void follow(struct take *take, struct weir_take *taken)
{
    take->unread = taken;
    look_again(take);
}

/* A job that no reader can get any more goes back. */
static void end_follow(struct take *take)
{
    ev_timer_stop(take->client.loop, &take->timer);
    if (take->unread == NULL)
        return;
    if ((is_reader_gone() ? weir_take_give_back(take->unread, NULL, NULL)
                          : weir_take_let_go(take->unread)) < 0)
        return; /* the reactor is being freed */
    take->unread = NULL;
}

/* False, with a sentence: stdout is no pipe, or several jobs are wanted. */
static bool may_follow(const struct take *take, const struct weir__args *args)
{
    struct stat out;

    if (!take->is_following)
        return true;
    if (args->value[LIMIT] != NULL) {
        weir__complain("take: --follow takes one job after the other; leave "
                       "--limit out");
        return false;
    }
    if (fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode))
        return true;
    weir__complain("take: --follow needs a pipe: weir take %s --follow | while "
                   "read -r token id body; do ...; done",
                   take->topic);
    return false;
}

/* --- what was taken ------------------------------------------------------- */

static void on_taken(int code, struct weir_take *const *takes, size_t count,
                     void *arg)
{
    struct take *take = arg;

    for (size_t i = 0; i < count && !take->is_broken; i++)
        take->is_broken = !print_taken(take, takes[i]);
    take->is_broken = fflush(stdout) != 0 || take->is_broken;
    take->count += count;
    if (take->is_following && count > 0 && !take->is_broken) {
        follow(take, takes[0]);
        return;
    }
    for (size_t i = 0; i < count; i++)
        if ((take->is_broken ? weir_take_give_back(takes[i], NULL, NULL)
                             : weir_take_let_go(takes[i])) < 0)
            break; /* the reactor is being freed */
    if (code != WEIR_ECANCELED)
        weir__client_finish(&take->client, code);
}

static void on_stopped(void *arg)
{
    weir__client_finish(arg, WEIR_OK);
}

static void on_end_limit(struct ev_loop *loop, struct ev_timer *timer,
                         int events)
{
    (void)loop;
    (void)events;
    weir__client_finish(timer->data, WEIR_OK);
}

static void on_interrupt(void *arg)
{
    weir__client_finish(arg, WEIR_OK);
}

/* What came beside them goes back, or comes back where the server does not
 * answer in time. */
static int end_take(struct take *take)
{
    struct weir__client *client = &take->client;
    int code;

    weir_reactor_stop(client->reactor, on_stopped, client);
    ev_timer_init(&take->timer, on_end_limit, end_limit_s, 0.0);
    take->timer.data = client;
    ev_now_update(client->loop);
    ev_timer_start(client->loop, &take->timer);
    code = weir__client_wait(client);
    ev_timer_stop(client->loop, &take->timer);
    return code;
}

static enum weir__exit run_opened(struct take *take)
{
    struct weir__client *client = &take->client;
    struct weir_error err = {0};
    int code;

    if (client->kind[0] == '\0' && take->wait_ms == 0)
        return weir__client_not_found(client, take->topic, NULL);
    ev_timer_init(&take->timer, on_look, gone_s, gone_s);
    take->timer.data = take;
    if (!weir__told(begin_take(take, &err), &err))
        return WEIR__EXIT_FAILED;
    weir__client_on_signal(client, on_interrupt, client);
    if (take->is_following)
        look_again(take);
    code = weir__client_wait(client);
    end_follow(take);
    if (code == WEIR_OK)
        code = end_take(take);
    if (code < 0)
        return weir__client_exit(client, code, "take");
    if (take->is_broken && !(take->is_following && is_reader_gone())) {
        weir__complain("take: the jobs could not be printed, they went back");
        return WEIR__EXIT_FAILED;
    }
    return take->count > 0 ? WEIR__EXIT_DONE : WEIR__EXIT_NOT_FOUND;
}

static enum weir__exit run_take(const struct weir__cli *cli,
                                const struct weir__args *args)
{
    static const struct weir__bounds limit = {1, WEIR_MAX_TAKE, "1 to 1000"};
    struct take take = {.cli = cli,
                        .topic = args->operand[0],
                        .limit = 1,
                        .lease_ms = WEIR__TAKE_LEASE_MS,
                        .is_following = args->value[FOLLOW] != NULL};
    struct weir_error err = {0};
    enum weir__exit rc;

    if (take.is_following)
        take.wait_ms = delay_bounds.max;
    if (!may_follow(&take, args) ||
        !weir__told(weir__value_number("--limit", args->value[LIMIT], limit,
                                       &take.limit, &err),
                    &err) ||
        !weir__told(weir__value_duration("--lease", args->value[LEASE],
                                         weir__take_lease_bounds,
                                         &take.lease_ms, &err),
                    &err) ||
        !weir__told(weir__value_duration("--wait", args->value[WAIT],
                                         delay_bounds, &take.wait_ms, &err),
                    &err))
        return WEIR__EXIT_USAGE;
    rc = weir__take_open(&take.client, cli, take.topic, "take");
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = run_opened(&take);
    weir__client_close(&take.client);
    return rc;
}

const struct weir__command weir__cmd_take = {
    .name = "take",
    .operands = "TOPIC",
    WEIR__FLAGS(take_flags),
    .summary = "Take jobs that are due, to be settled later",
    .details =
        "A line for each: its token, its id and its body, with blanks between "
        "them; with\n--json an object, what weir show prints and \"token\". "
        "They are yours until their\nlease ends: settle or renew them by their "
        "tokens before. Those that are not come\nback then, and that counts "
        "as a crash (max_crashes). Of topics of kind delay.",
    .example = "weir take mail --follow | while read -r token id body; do\n"
               "    send \"$body\" && weir settle mail \"$token\" --done ||\n"
               "        weir settle mail \"$token\" --retry\n  done",
    .exits = "0 taken, 1 failed, 2 wrong usage, or another kind of topic,\n"
             "  3 no such topic, or nothing is due, 5 server unreachable",
    .run = run_take,
};
