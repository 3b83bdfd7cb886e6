/* SPDX-License-Identifier: MIT */

/* weir stats: counts of one topic, of some or of all, once or each second. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/rates.h"
#include "adapters/cli/screen.h"
#include "adapters/cli/stats_view.h"
#include "core/mem.h"

#include <weir/worker.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SORT, WATCH, WIDE };

static const double AGAIN_S = 1.0;

/* A node that is away is a line, which shall not wait for a failover. */
enum { PATIENCE_MS = 3000 };

static const struct weir__flag flags[] = {
    [SORT] = {"sort", "COLUMN",
              "topic or kind, or the largest first: scheduled,\n"
              "ready, oldest, running, workers, unserved, ended,\n"
              "dead, relaying, done, retried, failed, expired,\n"
              "crashed, dropped, lost, p50, p99, or with --watch\n"
              "rate\n"
              "(default: topic)"},
    [WATCH] = {"watch", NULL,
               "again each second, with the rate of jobs done, until\n"
               "SIGINT"},
    [WIDE] = {"wide", NULL,
              "every column; without, none that is zero in every\n"
              "line, and as many as there is room for"},
};

/* --- a report ------------------------------------------------------------ */

/* Questions about a topic. */
struct asked {
    struct report *report;
    struct weir__stats_row *row; /* in the report; with its name */
};

struct report {
    struct weir__client client;
    const char *topic;           /* NULL: several */
    const char *const *patterns; /* of those, or their names */
    size_t pattern_count;        /* 0: all topics */
    const char *missing;         /* one of them that no topic matches */
    struct weir__topics all;     /* an answer may still come when it is over, */
    struct asked *asked;         /* likewise; of each topic */
    struct weir__stats_row *rows;
    size_t count;   /* of topics */
    size_t next;    /* the first one that was not asked for */
    size_t waiting; /* for an answer */
    size_t shown;
    bool has_unnamed; /* a worker serves more topics than it tells */
    int code;         /* of the only topic, or why all of it is of no use */
    struct weir__stats_view view;
    struct weir__screen screen; /* of a watch on a terminal */
    bool is_watching;
    bool is_drawn; /* on the screen, not line by line */
    bool is_stopped;
    size_t unread;    /* topics that cannot be read, now */
    bool has_failed;  /* there was one */
    size_t away;      /* topics that no node serves now */
    size_t told_away; /* as it was said last */
    struct weir__rates rates;
    struct ev_timer again;
};

static const char *name_of(const struct asked *asked)
{
    return asked->row->topic;
}

/* --- asking --------------------------------------------------------------- */

enum { WINDOW = 1000 }; /* topics that are asked for at a time */

/* A line is said of one that cannot be read. */
static void complain_of(const struct asked *asked, int code)
{
    struct weir__client *client = &asked->report->client;
    char doing[WEIR_MAX_TOPIC + 16];

    asked->report->unread++;
    asked->report->has_failed = true;
    if (asked->report->is_drawn)
        return; /* the frame tells how many */
    (void)snprintf(doing, sizeof(doing), "stats of %s",
                   name_of(asked)); /* fits */
    client->topic = name_of(asked);
    (void)snprintf(client->kind, sizeof(client->kind), "%s",
                   asked->row->kind); /* fits */
    (void)weir__client_exit(client, code, doing);
    client->refusal[0] = '\0'; /* it was said */
}

/* Nobody can tell more of it now. */
static void take_away(struct asked *asked)
{
    asked->row->is_shown = asked->row->is_away = true;
    (void)snprintf(asked->row->kind, sizeof(asked->row->kind), "away");
    asked->report->away++;
    asked->report->shown++;
}

/* One that went away between the two questions is left out. */
static void take_code(struct asked *asked, int code)
{
    struct report *report = asked->report;

    if (code == WEIR_OK || report->is_stopped)
        return;
    if (code == WEIR_ENOMEM || code == WEIR_ECANCELED || report->topic != NULL)
        report->code = code;
    else if (code == WEIR_ECONN || code == WEIR_EUNKNOWN)
        take_away(asked);
    else if (code != WEIR_ENOTFOUND)
        complain_of(asked, code);
}

static void ask_more(struct report *report);

static void answered(struct report *report)
{
    report->waiting--;
    ask_more(report);
    if (report->waiting == 0)
        weir__client_finish(&report->client, report->code);
}

static void end(struct asked *asked, int code)
{
    struct report *report = asked->report;

    take_code(asked, code);
    answered(report);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct asked *asked = arg;
    struct report *report = asked->report;
    struct weir__stats_row *row = asked->row;

    if (stats != NULL) {
        report->shown++;
        row->is_shown = true;
        row->stats = *stats;
        row->stats.topic = row->stats.kind = row->stats.unserved_groups =
            NULL; /* borrowed */
        (void)snprintf(row->kind, sizeof(row->kind), "%s",
                       stats->kind); /* cut */
        if (report->is_watching)
            row->rate =
                weir__rates_next(&report->rates, row->topic, stats->done_total,
                                 ev_now(report->client.loop));
    }
    end(asked, code);
}

/* Of kinds that only a newer version knows the name is shown at least. */
static void on_kind(int code, const char *kind, void *arg)
{
    struct asked *asked = arg;
    struct weir_reactor *reactor = asked->report->client.reactor;

    if (code == WEIR_OK) {
        (void)snprintf(asked->row->kind, sizeof(asked->row->kind), "%s",
                       kind); /* cut */
        if (weir_reactor_declare(reactor, name_of(asked), kind, NULL) ==
            WEIR_ENOMEM)
            code = WEIR_ENOMEM;
    }
    if (code == WEIR_OK)
        code = weir_reactor_stats(reactor, name_of(asked), on_stats, asked);
    if (code != WEIR_OK)
        end(asked, code);
}

/* All at once, of whatever node; each answer lets one more go out. */
static void ask_more(struct report *report)
{
    while (report->waiting < WINDOW && report->next < report->count &&
           report->code == WEIR_OK && !report->is_stopped) {
        struct asked *asked = &report->asked[report->next++];
        int rc;

        rc = weir_reactor_kind(report->client.reactor, name_of(asked), on_kind,
                               asked);
        if (rc == WEIR_OK)
            report->waiting++;
        else
            take_code(asked, rc);
    }
}

static int by_topic(const void *name, const void *row)
{
    return strcmp(name, ((const struct weir__stats_row *)row)->topic);
}

/* Rows are in byte order, as the names of topics come. */
static void count_worker(struct report *report,
                         const struct weir_worker *worker)
{
    if (worker->topics_total > worker->topic_count)
        report->has_unnamed = true;
    for (size_t i = 0; i < worker->topic_count; i++) {
        struct weir__stats_row *row =
            bsearch(worker->topics[i].name, report->rows, report->count,
                    sizeof(*row), by_topic);

        if (row != NULL)
            row->workers++;
    }
}

/* One that stops claims no more. Where they cannot be asked, or do not name all
 * that they serve, a topic that nobody names may be served. */
static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    struct report *report = arg;

    if (worker != NULL) {
        if (!worker->is_stopping)
            count_worker(report, worker);
        return;
    }
    for (size_t i = 0; i < report->count; i++)
        if (code != WEIR_OK ||
            (report->rows[i].workers == 0 && report->has_unnamed))
            report->rows[i].workers = -1;
    if (code == WEIR_ECANCELED)
        report->code = code;
    answered(report);
}

/* That they cannot be asked is no reason to tell nothing. */
static void ask_workers(struct report *report)
{
    report->has_unnamed = false;
    report->waiting++;
    if (weir_reactor_workers(report->client.reactor, on_worker, report) < 0)
        on_worker(WEIR_ESERVER, NULL, report);
}

static int make_room(struct report *report)
{
    report->asked =
        weir__mem_new((report->count + 1) * sizeof(report->asked[0]));
    report->rows = weir__mem_new((report->count + 1) * sizeof(report->rows[0]));
    if (report->asked == NULL || report->rows == NULL)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < report->count; i++) {
        struct weir__stats_row *row = &report->rows[i];

        report->asked[i] = (struct asked){report, row};
        row->rate = -1.0;
        (void)snprintf(row->topic, sizeof(row->topic), "%s",
                       report->topic != NULL ? report->topic
                                             : report->all.names[i]); /* fits */
    }
    return WEIR_OK;
}

static int ask_all(struct report *report)
{
    int rc;

    report->next = report->waiting = report->shown = 0;
    report->away = report->unread = 0;
    report->code = WEIR_OK;
    rc = make_room(report);
    if (rc != WEIR_OK)
        return rc;
    if (report->count > 0)
        ask_workers(report);
    ask_more(report);
    return report->waiting > 0 ? weir__client_wait(&report->client)
                               : report->code;
}

static bool is_pattern(const char *operand)
{
    return strpbrk(operand, "*?[") != NULL;
}

static int ask_names(struct report *report)
{
    int rc = weir__topics_ask(&report->client, &report->all);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&report->client);
    report->missing = weir__topics_keep(&report->all, report->patterns,
                                        report->pattern_count);
    report->count = report->all.count;
    if (rc != WEIR_OK || report->is_watching || report->is_stopped)
        return rc;
    if (report->missing != NULL)
        return WEIR_ENOTFOUND;
    if (report->count > 0)
        return rc;
    weir__note(report->client.cli, "there are no topics yet");
    return rc;
}

/* --- printing ------------------------------------------------------------- */

static enum weir__exit print_json(struct report *report,
                                  struct weir__stats_row *const *rows)
{
    return weir__print_object(weir__stats_json(
               &report->view, rows, report->count)) == WEIR__EXIT_DONE
               ? WEIR__EXIT_NONE
               : WEIR__EXIT_FAILED;
}

/* A frame keeps its last line free, where the cursor goes, and one for what is
 * told of topics that are missing. */
static void begin_frame(struct report *report)
{
    size_t lines;

    weir__screen_size(&lines, &report->view.width);
    report->view.lines = lines > 4 ? lines - 2 : 2;
    weir__screen_frame(&report->screen);
}

static void end_frame(const struct report *report)
{
    if (report->away > 0)
        (void)printf("%zu of %zu topics cannot be reached", report->away,
                     report->count);
    if (report->away > 0 && report->unread > 0)
        (void)printf("; ");
    if (report->unread > 0)
        (void)printf("%zu of %zu topics cannot be read: see weir stats",
                     report->unread, report->count);
}

static enum weir__exit print_text(struct report *report,
                                  struct weir__stats_row *const *rows)
{
    char left_out[160] = "";
    size_t lines;

    if (report->is_drawn)
        begin_frame(report);
    else
        weir__screen_size(&lines, &report->view.width);
    if ((report->shown > 0 || report->is_watching) &&
        weir__stats_print(&report->view, rows, report->count, left_out) < 0) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    if (report->is_drawn)
        end_frame(report);
    else if (report->is_watching)
        (void)printf("\n");
    else if (left_out[0] != '\0')
        weir__note(report->client.cli,
                   "there is no room for: %s; --wide shows all", left_out);
    return WEIR__EXIT_NONE;
}

static enum weir__exit print(struct report *report)
{
    struct weir__stats_row **rows;
    enum weir__exit rc;

    rows = weir__stats_sorted(&report->view, report->rows, report->count);
    if (rows == NULL) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    rc = report->client.cli->json ? print_json(report, rows)
                                  : print_text(report, rows);
    weir__mem_free(rows);
    return rc;
}

/* Once while it is so. A frame has it. */
static void tell_away(struct report *report)
{
    struct weir__client *client = &report->client;

    if (report->away > report->told_away && !report->is_drawn)
        weir__complain("stats: %zu of %zu topics cannot be reached: %s",
                       report->away, report->count,
                       client->reasons[0] != '\0' ? client->reasons
                                                  : client->connection);
    client->reasons[0] = '\0';
    report->told_away = report->away;
}

/* What is said then stands where the terminal was before. */
static enum weir__exit refuse(struct report *report, int code)
{
    weir__screen_close(&report->screen);
    if (code == WEIR_ENOTFOUND && report->missing != NULL &&
        is_pattern(report->missing)) {
        weir__complain("there is no topic that matches \"%s\"",
                       report->missing);
        return WEIR__EXIT_NOT_FOUND;
    }
    if (code == WEIR_ENOTFOUND)
        return weir__client_not_found(
            &report->client,
            report->missing != NULL ? report->missing : report->topic, NULL);
    return weir__client_exit(
        &report->client, code == WEIR_EUNKNOWN ? WEIR_ECONN : code, "stats");
}

/* One report; WEIR__EXIT_NONE when it was printed. */
static enum weir__exit report_once(struct report *report)
{
    enum weir__exit printed;
    int rc = report->topic == NULL ? ask_names(report) : WEIR_OK;

    if (rc == WEIR_OK && !report->is_stopped)
        rc = ask_all(report);
    if (report->is_stopped)
        return WEIR__EXIT_DONE;
    if (rc < 0)
        return refuse(report, rc);
    printed = print(report);
    tell_away(report);
    return printed;
}

static void release(struct report *report)
{
    weir__mem_free(report->asked);
    report->asked = NULL;
    weir__mem_free(report->rows);
    report->rows = NULL;
    weir__topics_fini(&report->all);
}

/* --- watching ----------------------------------------------------------- */

static void on_again(struct ev_loop *loop, struct ev_timer *timer, int events)
{
    struct report *report = timer->data;

    (void)loop;
    (void)events;
    weir__client_finish(&report->client, WEIR_OK);
}

static void on_signal(void *arg)
{
    struct report *report = arg;

    report->is_stopped = true;
    weir__client_finish(&report->client, WEIR_OK);
}

static void pause_for(struct report *report, double seconds)
{
    ev_timer_set(&report->again, seconds, 0.0);
    ev_timer_start(report->client.loop, &report->again);
    if (!report->is_stopped)
        (void)weir__client_wait(&report->client); /* by the timer */
    ev_timer_stop(report->client.loop, &report->again);
}

static enum weir__exit watch(struct report *report)
{
    enum weir__exit rc = WEIR__EXIT_NONE;

    weir__client_on_signal(&report->client, on_signal, report);
    ev_timer_init(&report->again, on_again, AGAIN_S, 0.0);
    report->again.data = report;
    while (rc == WEIR__EXIT_NONE) {
        rc = report_once(report);
        if (rc != WEIR__EXIT_NONE)
            break; /* answers may still come */
        release(report);
        if (fflush(stdout) != 0)
            return WEIR__EXIT_FAILED; /* said at the end */
        pause_for(report, AGAIN_S);
        if (report->is_stopped)
            rc = WEIR__EXIT_DONE;
    }
    weir__screen_close(&report->screen);
    return rc;
}

/* The topics are one, those that have a name or match a pattern, or all. */
static bool read_args(struct report *report, const struct weir__cli *cli,
                      const struct weir__args *args)
{
    const char *sort = args->value[SORT];

    report->is_watching = args->value[WATCH] != NULL;
    report->is_drawn =
        report->is_watching && !cli->json && weir__screen_is_there();
    report->view.has_rate = report->is_watching;
    report->view.is_wide = args->value[WIDE] != NULL;
    report->view.sort = -1;
    if (sort != NULL)
        report->view.sort = weir__stats_column(sort, report->is_watching);
    if (sort != NULL && report->view.sort < 0)
        return false;
    report->patterns = args->operand;
    report->pattern_count = args->operand_count;
    for (size_t i = 0; i < args->operand_count; i++)
        if (!is_pattern(args->operand[i]) &&
            !weir__operand_topic(args->operand[i]))
            return false;
    if (args->operand_count == 1 && !is_pattern(args->operand[0])) {
        report->topic = args->operand[0];
        report->count = 1;
    }
    return true;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct report report = {0};
    enum weir__exit rc;

    if (!read_args(&report, cli, args))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&report.client, cli, NULL, PATIENCE_MS);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = report.is_watching ? watch(&report) : report_once(&report);
    weir__client_close(&report.client); /* its callbacks use the report */
    release(&report);
    weir__rates_fini(&report.rates);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    return report.away > 0     ? WEIR__EXIT_UNREACHABLE
           : report.has_failed ? WEIR__EXIT_FAILED
                               : WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_stats = {
    .name = "stats",
    .operands = "[TOPIC]...",
    WEIR__FLAGS(flags),
    .summary = "Show counts of one topic, of some or of all",
    .details =
        "A TOPIC may be a pattern as of file names: 'order.*'. Totals count "
        "since the\n"
        "topic exists; p50 and p99 are lateness of the last 5 minutes. oldest "
        "is how\n"
        "long the first of the ready jobs has been so, also where nobody "
        "serves it; -\n"
        "if its time is not known: entries of a list have none until a worker "
        "took them.\n"
        "Of bounded topics it is a lower bound if more than 64 groups wait. "
        "running\n"
        "counts jobs under a lease, begun or not (weir workers calls them "
        "held); ended is\n"
        "for how long the first lease has been over whose jobs nobody took "
        "back since.\n"
        "workers is how many serve the topic, NONE where jobs wait for one, - "
        "where it is\n"
        "not known. unserved is how many groups of a bounded topic wait that "
        "fit no\n"
        "worker's --groups. A number with + is a lower bound; relaying counts "
        "packs of\n"
        "jobs on their way to other topics.\n"
        "With --json:\n"
        "{\"topics\":[{\"topic\",\"kind\",\"paused\",\"limited\",\n"
        "\"scheduled\",\"ready\",\"ready_is_exact\",\"oldest_ms\","
        "\"lease_ended_ms\",\n\"running\","
        "\"workers\",\"dead\",\"relaying\",\n\"added_total\",\"done_total\","
        "\"retried_total\",\"failed_total\",\n\"expired_total\","
        "\"crashed_total\",\"dropped_total\",\"lost_total\","
        "\n\"lateness_ms\":{\"p50\",\"p99\",\"max\"}}]}, of bounded "
        "topics also\n\"dropped\":{\"overflow\",\"age\",\"ttl\"},"
        "\"unserved_groups\";\n"
        "\"ticks\" of schedules, where there are, wait or run like jobs.\n"
        "--watch redraws a terminal, which then has back what it "
        "showed before, and\n"
        "prints a block each second elsewhere, with --json a line; rate is "
        "the number of\n"
        "jobs done a second, over the time that the last 10 took, a minute "
        "at most.",
    .example = "weir stats 'order.*' --sort ready --watch",
    .exits = "0 shown, or told to stop watching, 1 a topic cannot be read:\n"
             "  those that can are shown, 2 wrong usage, 3 no such topic,\n"
             "  5 server unreachable, or a topic's node: the others are shown",
    .run = run,
};
