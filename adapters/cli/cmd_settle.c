/* SPDX-License-Identifier: MIT */

/* weir settle and renew: what becomes of jobs that weir take took. A settle
 * adopts them: it serves the topic, its claims bring what the tokens name, and
 * its handler gives the verdict that the command was told. */

#include "adapters/cli/output.h"
#include "adapters/cli/take.h"
#include "adapters/weir/facade.h"

#include <inttypes.h>
#include <string.h>

static const struct weir__bounds delay_bounds = {0, INT64_C(315360000000),
                                                 "0ms to 3650d"};

/* --- settle ------------------------------------------------------------- */

enum { DONE, RETRY, SNOOZE, FAIL, VERDICTS, DELAY = VERDICTS, ERROR };

static const struct weir__flag settle_flags[] = {
    [DONE] = {"done", NULL, "they are done"},
    [RETRY] = {"retry", NULL, "they failed and run again, by their ladder"},
    [SNOOZE] = {"snooze", "D", "they run again after this time, as no failure"},
    [FAIL] = {"fail", NULL, "they failed for good and are dead"},
    [DELAY] = {"delay", "D", "of --retry: after this time, not by the ladder"},
    [ERROR] = {"error", "TEXT", "of --retry and --fail: why"},
};

static const double settle_limit_s = 30.0; /* until all is answered */

struct settle {
    struct weir__client client;
    const char *topic, *error;
    const char *const *tokens;
    size_t count, ran; /* tokens, jobs that were there */
    int verdict;       /* a flag */
    int64_t delay_ms;
    bool has_delay, is_late;
    struct ev_timer limit;
};

static enum weir_verdict on_job(void *self, struct weir_job *job)
{
    struct settle *settle = self;

    settle->ran++;
    if (settle->verdict == SNOOZE)
        return weir_snooze(job, settle->delay_ms);
    if (settle->verdict == FAIL)
        return weir_fail(job, settle->error);
    if (settle->verdict == RETRY && settle->has_delay)
        return weir_retry_after(job, settle->delay_ms, settle->error);
    return settle->verdict == RETRY ? weir_retry(job, settle->error)
                                    : WEIR_DONE;
}

static void on_all(const char *topic, void *arg)
{
    (void)topic;
    weir__client_finish(arg, WEIR_OK);
}

static void on_late(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct settle *settle = timer->data;

    (void)loop;
    (void)events;
    settle->is_late = true;
    weir__client_finish(&settle->client, WEIR_OK);
}

static enum weir__exit print_settled(const struct settle *settle)
{
    struct weir_totals totals;
    size_t missing;
    enum weir__exit rc;

    weir_reactor_totals(settle->client.reactor, &totals);
    missing = settle->count - settle->ran + (size_t)totals.refused;
    rc = weir__print_count(settle->client.cli, settle->topic, "settled",
                           settle->count - missing);
    if (missing == 0)
        return rc;
    weir__complain("settle: %zu of %zu jobs of topic \"%s\" are not yours any "
                   "more: their lease ended, or they were settled or deleted",
                   missing, settle->count, settle->topic);
    return WEIR__EXIT_NOT_FOUND;
}

static enum weir__exit settle_opened(struct settle *settle)
{
    const struct weir_topic_options options = {.run = on_job, .self = settle};
    struct weir__client *client = &settle->client;
    struct weir_error err = {0};
    int code = WEIR_OK;

    for (size_t i = 0; i < settle->count && code == WEIR_OK; i++)
        code = weir__facade_adopt(client->reactor, settle->topic,
                                  settle->tokens[i]);
    if (code < 0)
        return weir__client_exit(client, code, "settle");
    weir_reactor_on_idle(client->reactor, on_all, client);
    code = weir_reactor_serve(client->reactor, settle->topic, &options, &err);
    if (!weir__told(code, &err))
        return WEIR__EXIT_FAILED;
    ev_timer_init(&settle->limit, on_late, settle_limit_s, 0.0);
    settle->limit.data = settle;
    ev_now_update(client->loop);
    ev_timer_start(client->loop, &settle->limit);
    code = weir__client_wait(client);
    ev_timer_stop(client->loop, &settle->limit);
    if (code < 0)
        return weir__client_exit(client, code, "settle");
    if (!settle->is_late)
        return print_settled(settle);
    weir__complain("settle: the server did not take the verdicts within 30 s; "
                   "settle again before the leases end");
    return WEIR__EXIT_FAILED;
}

/* Exactly one verdict, and what goes with it. */
static bool read_verdict(const struct weir__args *args, struct settle *settle)
{
    const char *const *value = args->value;
    struct weir_error err = {0};
    int verdicts = 0;

    for (int i = 0; i < VERDICTS; i++)
        if (value[i] != NULL) {
            settle->verdict = i;
            verdicts++;
        }
    if (verdicts != 1) {
        weir__complain("settle needs one of --done, --retry, --snooze D and "
                       "--fail; see weir settle --help");
        return false;
    }
    if ((value[DELAY] != NULL && settle->verdict != RETRY) ||
        (value[ERROR] != NULL && settle->verdict != RETRY &&
         settle->verdict != FAIL)) {
        weir__complain("--delay goes with --retry, --error with --retry or "
                       "--fail");
        return false;
    }
    settle->error = value[ERROR];
    settle->has_delay = value[DELAY] != NULL;
    return weir__told(weir__value_duration("--snooze", value[SNOOZE],
                                           delay_bounds, &settle->delay_ms,
                                           &err),
                      &err) &&
           weir__told(weir__value_duration("--delay", value[DELAY],
                                           delay_bounds, &settle->delay_ms,
                                           &err),
                      &err);
}

/* TOPIC TOKEN...: the tokens. False, with a sentence: one is none. */
static bool check_tokens(const struct weir__args *args)
{
    for (size_t i = 1; i < args->operand_count; i++)
        if (!weir__token_is_sound(args->operand[i])) {
            weir__complain("\"%.80s\" is no token of weir take",
                           args->operand[i]);
            return false;
        }
    return true;
}

static enum weir__exit run_settle(const struct weir__cli *cli,
                                  const struct weir__args *args)
{
    struct settle settle = {.topic = args->operand[0],
                            .tokens = args->operand + 1,
                            .count = args->operand_count - 1};
    enum weir__exit rc;

    if (!read_verdict(args, &settle) || !check_tokens(args))
        return WEIR__EXIT_USAGE;
    rc = weir__take_open(&settle.client, cli, settle.topic, "settle");
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = settle_opened(&settle);
    weir__client_close(&settle.client);
    return rc;
}

const struct weir__command weir__cmd_settle = {
    .name = "settle",
    .operands = "TOPIC TOKEN...",
    WEIR__FLAGS(settle_flags),
    .summary = "Say what became of jobs that were taken",
    .details =
        "Tokens are those that weir take printed. One verdict holds for all of "
        "them; a\nretry that the ladder has no step for makes the job dead. "
        "With --json:\n{\"topic\",\"settled\"}, the count.",
    .example = "weir settle mail \"$token\" --retry --error 'no connection'",
    .exits = "0 settled, 1 failed, 2 wrong usage, or another kind of topic,\n"
             "  3 a lease ended, or the job was settled or deleted, 5 server\n"
             "  unreachable",
    .run = run_settle,
};

/* --- renew -------------------------------------------------------------- */

static const struct weir__flag renew_flags[] = {
    {"lease", "D", "from now on, 300ms to 1h (default: 1m)"},
};

struct renew {
    struct weir__client client;
    uint64_t lost;
};

static void on_renewed(int code, uint64_t lost, void *arg)
{
    struct renew *renew = arg;

    renew->lost = lost;
    weir__client_finish(&renew->client, code);
}

static enum weir__exit renew_opened(struct renew *renew,
                                    const struct weir__args *args,
                                    int64_t lease_ms)
{
    struct weir__client *client = &renew->client;
    const char *topic = args->operand[0];
    const struct weir__prolong what = {
        .tokens = args->operand + 1,
        .count = args->operand_count - 1,
        .lease_ms = lease_ms,
    };
    enum weir__exit rc;
    int code =
        weir__facade_prolong(client->reactor, topic, &what, on_renewed, renew);

    if (code == WEIR_OK)
        code = weir__client_wait(client);
    if (code < 0)
        return weir__client_exit(client, code, "renew");
    rc = weir__print_count(client->cli, topic, "renewed",
                           what.count - renew->lost);
    if (renew->lost == 0)
        return rc;
    weir__complain("renew: %" PRIu64 " of %zu leases in topic \"%s\" have "
                   "ended",
                   renew->lost, what.count, topic);
    return WEIR__EXIT_NOT_FOUND;
}

static enum weir__exit run_renew(const struct weir__cli *cli,
                                 const struct weir__args *args)
{
    int64_t lease_ms = WEIR__TAKE_LEASE_MS;
    struct renew renew = {.lost = 0};
    struct weir_error err = {0};
    enum weir__exit rc;

    if (!weir__told(weir__value_duration("--lease", args->value[0],
                                         weir__take_lease_bounds, &lease_ms,
                                         &err),
                    &err) ||
        !check_tokens(args))
        return WEIR__EXIT_USAGE;
    rc = weir__take_open(&renew.client, cli, args->operand[0], "renew");
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = renew_opened(&renew, args, lease_ms);
    weir__client_close(&renew.client);
    return rc;
}

const struct weir__command weir__cmd_renew = {
    .name = "renew",
    .operands = "TOPIC TOKEN...",
    WEIR__FLAGS(renew_flags),
    .summary = "Keep jobs that were taken for longer",
    .details = "Tokens are those that weir take printed. Jobs of one take have "
               "one lease, which\nis renewed with each of them. With --json: "
               "{\"topic\",\"renewed\"}, the count.",
    .example = "weir renew mail \"$token\" --lease 5m",
    .exits = "0 renewed, 2 wrong usage, or another kind of topic, 3 a lease\n"
             "  ended, 5 server unreachable",
    .run = run_renew,
};
