/* SPDX-License-Identifier: MIT */

/* weir stats: counts of one topic or of all, once or each second. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/rates.h"
#include "adapters/cli/table.h"
#include "core/mem.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WATCH };

static const double AGAIN_S = 1.0;

/* A node that is away is a line, which shall not wait for a failover. */
enum { PATIENCE_MS = 3000 };

static const struct weir__flag flags[] = {
    [WATCH] = {"watch", NULL,
               "again each second, with jobs done a second, until\n"
               "SIGINT"},
};

/* --- what is shown ------------------------------------------------------- */

/* Counts: their names in JSON, and their columns in the table, if any. */
static const struct {
    const char *name, *title;
    size_t at; /* in struct weir_stats */
} counts[] = {
#define COUNT(name, title)                              \
    {                                                   \
#        name, title, offsetof(struct weir_stats, name) \
    }
    COUNT(scheduled, "SCHEDULED"),   COUNT(ready, "READY"),
    COUNT(running, "RUNNING"),       COUNT(dead, "DEAD"),
    COUNT(relaying, NULL),           COUNT(added_total, NULL),
    COUNT(done_total, "DONE"),       COUNT(retried_total, "RETRIED"),
    COUNT(failed_total, "FAILED"),   COUNT(expired_total, "EXPIRED"),
    COUNT(crashed_total, "CRASHED"), COUNT(dropped_total, "DROPPED"),
#undef COUNT
};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static uint64_t count_at(const struct weir_stats *stats, size_t i)
{
    uint64_t count;

    memcpy(&count, (const char *)stats + counts[i].at, sizeof(count));
    return count;
}

/* Microseconds as milliseconds with all digits; null when there is no data. */
static struct weir__field ms_field(const char *name, int64_t us)
{
    char text[32];

    if (us < 0)
        return weir__field_null(name);
    (void)snprintf(text, sizeof(text), "%" PRId64 ".%03d", us / 1000,
                   (int)(us % 1000));
    return weir__field(name,
                       json_object_new_double_s((double)us / 1000.0, text));
}

static struct json_object *lateness_json(const struct weir_stats *stats)
{
    return WEIR__OBJECT(ms_field("p50", stats->lateness_p50_us),
                        ms_field("p99", stats->lateness_p99_us),
                        ms_field("max", stats->lateness_max_us));
}

/* Of a bounded topic: what it dropped, by reason. */
static struct json_object *drops_json(const struct weir_stats *stats)
{
    return WEIR__OBJECT(weir__field_number("overflow", stats->dropped_overflow),
                        weir__field_number("age", stats->dropped_age),
                        weir__field_number("ttl", stats->dropped_ttl));
}

static struct json_object *stats_json(const struct weir_stats *stats)
{
    struct json_object *object =
        WEIR__OBJECT(weir__field_str("topic", stats->topic),
                     weir__field_str("kind", stats->kind),
                     weir__field_bool("paused", stats->paused),
                     weir__field_bool("ready_is_exact", stats->ready_is_exact),
                     weir__field("lateness_ms", lateness_json(stats)));

    for (size_t i = 0; i < COUNTS; i++)
        weir__object_put(
            &object, weir__field_number(counts[i].name, count_at(stats, i)));
    if (strcmp(stats->kind, "bounded") == 0)
        weir__object_put(&object, weir__field("dropped", drops_json(stats)));
    return object;
}

/* --- a report ------------------------------------------------------------ */

/* Questions about a topic. */
struct asked {
    struct report *report;
    size_t at; /* in the report; its name is there */
    char kind[32];
};

struct report {
    struct weir__client client;
    const char *topic;       /* NULL: all */
    struct weir__topics all; /* an answer may still come when it is over, */
    struct asked *asked;     /* likewise; of each topic */
    size_t count;            /* of topics */
    size_t next;             /* the first one that was not asked for */
    size_t waiting;          /* for an answer */
    size_t shown;
    int code; /* of the only topic, or why all of it is of no use */
    struct weir__table table;     /* with the titles in front */
    struct json_object **objects; /* with --json; of each topic */
    bool is_watching;
    bool is_stopped;
    bool has_failed;  /* a topic cannot be read */
    size_t away;      /* topics that no node serves now */
    size_t told_away; /* as it was said last */
    struct weir__rates rates;
    struct ev_timer again;
};

static const char *name_of(const struct asked *asked)
{
    const struct report *report = asked->report;

    return report->topic != NULL ? report->topic : report->all.names[asked->at];
}

static double rate_of(struct report *report, const struct weir_stats *stats)
{
    return weir__rates_next(&report->rates, stats->topic, stats->done_total,
                            ev_now(report->client.loop));
}

static void put_ms(struct weir__row *row, int64_t us)
{
    if (us < 0)
        weir__row_put(row, "-");
    else
        weir__row_put(row, "%" PRId64 ".%01dms", us / 1000,
                      (int)(us % 1000 / 100));
}

/* Of a bounded topic what was dropped is told by reason. */
static void put_count(struct weir__row *row, const struct weir_stats *stats,
                      size_t i)
{
    uint64_t count = count_at(stats, i);

    if (counts[i].at == offsetof(struct weir_stats, dropped_total) &&
        strcmp(stats->kind, "bounded") == 0 && count > 0)
        weir__row_put(row,
                      "%" PRIu64 " (overflow %" PRIu64 ", age %" PRIu64
                      ", ttl %" PRIu64 ")",
                      count, stats->dropped_overflow, stats->dropped_age,
                      stats->dropped_ttl);
    else
        weir__row_put(row, "%" PRIu64 "%s", count,
                      counts[i].at == offsetof(struct weir_stats, ready) &&
                              !stats->ready_is_exact
                          ? "+"
                          : "");
}

static void put_titles(const struct report *report, struct weir__row *row)
{
    weir__row_put(row, "TOPIC");
    weir__row_put(row, "KIND");
    for (size_t i = 0; i < COUNTS; i++)
        if (counts[i].title != NULL)
            weir__row_put(row, "%s", counts[i].title);
    weir__row_put(row, "P50");
    weir__row_put(row, "P99");
    if (report->is_watching)
        weir__row_put(row, "RATE");
}

static void set_row(const struct asked *asked, const struct weir__row *row)
{
    weir__table_set(&asked->report->table, asked->at + 1, row);
}

static void show_row(const struct asked *asked, const struct weir_stats *stats)
{
    struct report *report = asked->report;
    double rate = report->is_watching ? rate_of(report, stats) : -1.0;
    struct weir__row row = {0};

    weir__row_put(&row, "%s", stats->topic);
    weir__row_put(&row, "%s%s", stats->kind, stats->paused ? ", paused" : "");
    for (size_t i = 0; i < COUNTS; i++)
        if (counts[i].title != NULL)
            put_count(&row, stats, i);
    put_ms(&row, stats->lateness_p50_us);
    put_ms(&row, stats->lateness_p99_us);
    if (report->is_watching && rate < 0.0)
        weir__row_put(&row, "-");
    else if (report->is_watching)
        weir__row_put(&row, "%.0f/s", rate);
    set_row(asked, &row);
}

static void show_json(const struct asked *asked, const struct weir_stats *stats)
{
    struct report *report = asked->report;
    struct json_object *object = stats_json(stats);
    double rate = report->is_watching ? rate_of(report, stats) : -1.0;

    if (report->is_watching && rate < 0.0)
        weir__object_put(&object, weir__field_null("rate"));
    else if (report->is_watching)
        weir__object_put(&object,
                         weir__field("rate", json_object_new_double(rate)));
    report->objects[asked->at] = object;
}

/* Nobody can tell more of it now. */
static void show_away(const struct asked *asked)
{
    struct report *report = asked->report;
    struct weir__row row = {0};

    report->away++;
    report->shown++;
    if (report->client.cli->json) {
        report->objects[asked->at] =
            WEIR__OBJECT(weir__field_str("topic", name_of(asked)),
                         weir__field_bool("away", true));
        return;
    }
    weir__row_put(&row, "%s", name_of(asked));
    weir__row_put(&row, "away");
    while (row.count < report->table.columns)
        weir__row_put(&row, "-");
    set_row(asked, &row);
}

/* --- asking --------------------------------------------------------------- */

enum { WINDOW = 1000 }; /* topics that are asked for at a time */

/* A line is said of one that cannot be read. */
static void complain_of(const struct asked *asked, int code)
{
    struct weir__client *client = &asked->report->client;
    char doing[WEIR_MAX_TOPIC + 16];

    (void)snprintf(doing, sizeof(doing), "stats of %s",
                   name_of(asked)); /* fits */
    client->topic = name_of(asked);
    (void)snprintf(client->kind, sizeof(client->kind), "%s",
                   asked->kind); /* fits */
    (void)weir__client_exit(client, code, doing);
    client->refusal[0] = '\0'; /* it was said */
    asked->report->has_failed = true;
}

/* One that went away between the two questions is left out. */
static void take_code(const struct asked *asked, int code)
{
    struct report *report = asked->report;

    if (code == WEIR_OK || report->is_stopped)
        return;
    if (code == WEIR_ENOMEM || code == WEIR_ECANCELED || report->topic != NULL)
        report->code = code;
    else if (code == WEIR_ECONN || code == WEIR_EUNKNOWN)
        show_away(asked);
    else if (code != WEIR_ENOTFOUND)
        complain_of(asked, code);
}

static void ask_more(struct report *report);

static void end(const struct asked *asked, int code)
{
    struct report *report = asked->report;

    take_code(asked, code);
    report->waiting--;
    ask_more(report);
    if (report->waiting == 0)
        weir__client_finish(&report->client, report->code);
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    const struct asked *asked = arg;
    struct report *report = asked->report;

    if (stats != NULL) {
        report->shown++;
        if (report->client.cli->json)
            show_json(asked, stats);
        else
            show_row(asked, stats);
    }
    end(asked, code);
}

/* Of kinds that only a newer version knows the name is shown at least. */
static void on_kind(int code, const char *kind, void *arg)
{
    struct asked *asked = arg;
    struct weir_reactor *reactor = asked->report->client.reactor;

    if (code == WEIR_OK) {
        (void)snprintf(asked->kind, sizeof(asked->kind), "%s", kind); /* cut */
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
        struct asked *asked = &report->asked[report->next];
        int rc;

        asked->report = report;
        asked->at = report->next++;
        rc = weir_reactor_kind(report->client.reactor, name_of(asked), on_kind,
                               asked);
        if (rc == WEIR_OK)
            report->waiting++;
        else
            take_code(asked, rc);
    }
}

static int make_room(struct report *report)
{
    struct weir__row titles = {0};

    put_titles(report, &titles);
    report->asked =
        weir__mem_new((report->count + 1) * sizeof(report->asked[0]));
    report->objects =
        weir__mem_new((report->count + 1) * sizeof(struct json_object *));
    if (report->asked == NULL || report->objects == NULL ||
        (!report->client.cli->json &&
         weir__table_init(&report->table, report->count + 1, titles.count) < 0))
        return WEIR_ENOMEM;
    if (!report->client.cli->json)
        weir__table_set(&report->table, 0, &titles);
    return WEIR_OK;
}

static int ask_all(struct report *report)
{
    int rc;

    report->next = report->waiting = report->shown = report->away = 0;
    report->code = WEIR_OK;
    rc = make_room(report);
    if (rc != WEIR_OK)
        return rc;
    ask_more(report);
    return report->waiting > 0 ? weir__client_wait(&report->client)
                               : report->code;
}

static int ask_names(struct report *report)
{
    int rc = weir__topics_ask(&report->client, &report->all);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&report->client);
    report->count = report->all.count;
    if (rc == WEIR_OK && report->count == 0 && !report->is_watching &&
        !report->is_stopped)
        weir__note(report->client.cli, "there are no topics yet");
    return rc;
}

/* --- printing ------------------------------------------------------------- */

static enum weir__exit print_json(struct report *report)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < report->count; i++) {
        if (report->objects[i] != NULL)
            array = weir__array_with(array, report->objects[i]);
        report->objects[i] = NULL;
    }
    return weir__print_object(WEIR__OBJECT(weir__field("topics", array))) ==
                   WEIR__EXIT_DONE
               ? WEIR__EXIT_NONE
               : WEIR__EXIT_FAILED;
}

/* On a terminal each report takes the place of the one before. */
static void print_text(const struct report *report)
{
    bool is_redrawn = report->is_watching && isatty(STDOUT_FILENO) == 1;

    if (is_redrawn)
        (void)printf("\033[H\033[J");
    if (report->shown > 0 || report->is_watching)
        weir__table_print(&report->table);
    if (report->is_watching && !is_redrawn)
        (void)printf("\n");
}

/* Once while it is so. */
static void tell_away(struct report *report)
{
    struct weir__client *client = &report->client;

    if (report->away > report->told_away)
        weir__complain("stats: %zu of %zu topics cannot be reached: %s",
                       report->away, report->count,
                       client->reasons[0] != '\0' ? client->reasons
                                                  : client->connection);
    client->reasons[0] = '\0';
    report->told_away = report->away;
}

/* One report; WEIR__EXIT_NONE when it was printed. */
static enum weir__exit report_once(struct report *report)
{
    enum weir__exit printed = WEIR__EXIT_NONE;
    int rc = report->topic == NULL ? ask_names(report) : WEIR_OK;

    if (rc == WEIR_OK && !report->is_stopped)
        rc = ask_all(report);
    if (report->is_stopped)
        return WEIR__EXIT_DONE;
    if (rc == WEIR_ENOTFOUND)
        return weir__client_not_found(&report->client, report->topic, NULL);
    if (rc < 0)
        return weir__client_exit(
            &report->client, rc == WEIR_EUNKNOWN ? WEIR_ECONN : rc, "stats");
    if (report->client.cli->json)
        printed = print_json(report);
    else
        print_text(report);
    tell_away(report);
    return printed;
}

static void release(struct report *report)
{
    for (size_t i = 0; report->objects != NULL && i < report->count; i++)
        (void)json_object_put(report->objects[i]);
    weir__mem_free(report->objects);
    report->objects = NULL;
    weir__mem_free(report->asked);
    report->asked = NULL;
    weir__table_fini(&report->table);
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
    return rc;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct report report = {
        .topic = args->operand_count > 0 ? args->operand[0] : NULL,
        .count = args->operand_count > 0 ? 1 : 0,
        .is_watching = args->value[WATCH] != NULL,
    };
    enum weir__exit rc;

    if (report.topic != NULL && !weir__operand_topic(report.topic))
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
    .operands = "[TOPIC]",
    WEIR__FLAGS(flags),
    .summary = "Show counts of one topic or of all",
    .details =
        "Totals count since the topic exists; p50 and p99 are lateness "
        "of the last\n5 minutes. A number with + is a lower bound; relaying "
        "counts packs of jobs\non their way to other topics. With --json:\n"
        "{\"topics\":[{\"topic\",\"kind\",\"paused\","
        "\"scheduled\",\"ready\",\n\"ready_is_exact\",\"running\","
        "\"dead\",\"relaying\",\"added_total\",\"done_total\",\n"
        "\"retried_total\",\"failed_total\",\"expired_total\","
        "\"crashed_total\",\n\"dropped_total\","
        "\"lateness_ms\":{\"p50\",\"p99\",\"max\"}}]}, of bounded topics "
        "also\n\"dropped\":{\"overflow\",\"age\",\"ttl\"}.\n"
        "--watch redraws a terminal, and prints a block each second "
        "elsewhere, with\n--json a line; rate is the number of jobs done "
        "a second since the one before,\nnull in the first.",
    .example = "weir stats order.close --watch",
    .exits = "0 shown, or told to stop watching, 1 a topic cannot be read:\n"
             "  those that can are shown, 2 wrong usage, 3 no such topic,\n"
             "  5 server unreachable, or a topic's node: the others are shown",
    .run = run,
};
