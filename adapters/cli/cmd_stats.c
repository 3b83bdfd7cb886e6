/* SPDX-License-Identifier: MIT */

/* weir stats: counts of one topic or of all, once or each second. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/rates.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/visible.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WATCH };

static const double AGAIN_S = 1.0;

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

enum {
    COUNTS = sizeof(counts) / sizeof(counts[0]),
    COLUMNS_MAX = 2 + COUNTS + 3, /* TOPIC, KIND, P50, P99, RATE */
    CELL_CAP = 64
};

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

/* --- a table ------------------------------------------------------------- */

struct row {
    char cells[COLUMNS_MAX][CELL_CAP];
    size_t count;
};

/* A table: columns as wide as their widest cell, numbers to the right. All rows
 * have as many cells. A zeroed struct is an empty one. */
struct table {
    size_t columns, rows;
    size_t widest[COLUMNS_MAX]; /* cell of each, in bytes */
    char (*cells)[CELL_CAP];
};

/* One more cell, or a cut one. */
WEIR_PRINTF(2, 3)
static void put(struct row *row, const char *format, ...)
{
    va_list values;

    WEIR_ASSERT(row->count < COLUMNS_MAX);
    va_start(values, format);
    (void)vsnprintf(row->cells[row->count++], CELL_CAP, format, values);
    va_end(values);
}

static char *cell(const struct table *table, size_t row, size_t column)
{
    return table->cells[row * table->columns + column];
}

/* Room doubles: there may be a hundred thousand rows. */
static bool make_room(struct table *table)
{
    void *cells;

    if ((table->rows & (table->rows - 1)) != 0)
        return true;
    cells = weir__mem_grow(table->cells, (2 * table->rows + 1) * table->columns,
                           CELL_CAP);
    if (cells != NULL)
        table->cells = cells;
    return cells != NULL;
}

static bool add(struct table *table, const struct row *row)
{
    WEIR_ASSERT(table->rows == 0 || table->columns == row->count);
    table->columns = row->count;
    if (!make_room(table))
        return false;
    for (size_t i = 0; i < row->count; i++) {
        struct weir_slice text = weir__slice_str(row->cells[i]);
        char *to = cell(table, table->rows, i);
        size_t len;

        (void)weir__visible_take(&text, to, CELL_CAP); /* cut */
        len = strlen(to);
        if (len > table->widest[i])
            table->widest[i] = len;
    }
    table->rows++;
    return true;
}

/* The first two columns are names, the others numbers. */
static void print_table(const struct table *table)
{
    for (size_t row = 0; row < table->rows; row++) {
        for (size_t i = 0; i < table->columns; i++) {
            int wide = (int)table->widest[i];

            weir__print("%s%*s", i > 0 ? "  " : "", i < 2 ? -wide : wide,
                        cell(table, row, i));
        }
        (void)printf("\n");
    }
}

static void free_table(struct table *table)
{
    weir__mem_free(table->cells);
    table->cells = NULL;
}

/* --- a report ------------------------------------------------------------ */

struct report {
    struct weir__client client;
    const char *topic;       /* NULL: all */
    struct weir__topics all; /* an answer may still come when it is over */
    struct table table;
    struct json_object *topics; /* array, with --json */
    bool is_watching;
    bool is_stopped;
    bool has_failed; /* a topic cannot be read */
    struct weir__rates rates;
    struct ev_timer again;
};

static double rate_of(struct report *report, const struct weir_stats *stats)
{
    return weir__rates_next(&report->rates, stats->topic, stats->done_total,
                            ev_now(report->client.loop));
}

static void put_ms(struct row *row, int64_t us)
{
    if (us < 0)
        put(row, "-");
    else
        put(row, "%" PRId64 ".%01dms", us / 1000, (int)(us % 1000 / 100));
}

/* Of a bounded topic what was dropped is told by reason. */
static void put_count(struct row *row, const struct weir_stats *stats, size_t i)
{
    uint64_t count = count_at(stats, i);

    if (counts[i].at == offsetof(struct weir_stats, dropped_total) &&
        strcmp(stats->kind, "bounded") == 0 && count > 0)
        put(row,
            "%" PRIu64 " (overflow %" PRIu64 ", age %" PRIu64 ", ttl %" PRIu64
            ")",
            count, stats->dropped_overflow, stats->dropped_age,
            stats->dropped_ttl);
    else
        put(row, "%" PRIu64 "%s", count,
            counts[i].at == offsetof(struct weir_stats, ready) &&
                    !stats->ready_is_exact
                ? "+"
                : "");
}

static bool add_titles(struct report *report)
{
    struct row row = {0};

    put(&row, "TOPIC");
    put(&row, "KIND");
    for (size_t i = 0; i < COUNTS; i++)
        if (counts[i].title != NULL)
            put(&row, "%s", counts[i].title);
    put(&row, "P50");
    put(&row, "P99");
    if (report->is_watching)
        put(&row, "RATE");
    return add(&report->table, &row);
}

static bool add_row(struct report *report, const struct weir_stats *stats)
{
    double rate = report->is_watching ? rate_of(report, stats) : -1.0;
    struct row row = {0};

    put(&row, "%s", stats->topic);
    put(&row, "%s%s", stats->kind, stats->paused ? ", paused" : "");
    for (size_t i = 0; i < COUNTS; i++)
        if (counts[i].title != NULL)
            put_count(&row, stats, i);
    put_ms(&row, stats->lateness_p50_us);
    put_ms(&row, stats->lateness_p99_us);
    if (report->is_watching && rate < 0.0)
        put(&row, "-");
    else if (report->is_watching)
        put(&row, "%.0f/s", rate);
    return add(&report->table, &row);
}

static bool add_json(struct report *report, const struct weir_stats *stats)
{
    struct json_object *object = stats_json(stats);
    double rate = report->is_watching ? rate_of(report, stats) : -1.0;

    if (report->is_watching && rate < 0.0)
        weir__object_put(&object, weir__field_null("rate"));
    else if (report->is_watching)
        weir__object_put(&object,
                         weir__field("rate", json_object_new_double(rate)));
    report->topics = weir__array_with(report->topics, object);
    return report->topics != NULL;
}

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct report *report = arg;
    bool is_good = true;

    if (stats != NULL)
        is_good = report->client.cli->json ? add_json(report, stats)
                                           : add_row(report, stats);
    weir__client_finish(&report->client, is_good ? code : WEIR_ENOMEM);
}

/* Of kinds that only a newer version knows the name is shown at least. */
static int ask_one(struct report *report, const char *topic)
{
    const char *kind = report->client.kind;
    int rc = weir__client_ask_kind(&report->client, topic);

    if (rc == WEIR_OK && weir_reactor_declare(report->client.reactor, topic,
                                              kind, NULL) == WEIR_ENOMEM)
        rc = WEIR_ENOMEM;
    if (rc == WEIR_OK)
        rc =
            weir_reactor_stats(report->client.reactor, topic, on_stats, report);
    return rc == WEIR_OK ? weir__client_wait(&report->client) : rc;
}

/* Others are asked all the same. */
static bool is_of_topic(int code)
{
    return code == WEIR_ENOTFOUND || code == WEIR_ESERVER ||
           code == WEIR_EKIND || code == WEIR_EMALFORMED;
}

/* A topic that went away between the two questions is left out; of one that
 * cannot be read a line is said. */
static int skip(struct report *report, const char *topic, int code)
{
    char doing[WEIR_MAX_TOPIC + 16];

    if (code == WEIR_ENOTFOUND)
        return WEIR_OK;
    (void)snprintf(doing, sizeof(doing), "stats of %s", topic); /* fits */
    (void)weir__client_exit(&report->client, code, doing);
    report->client.refusal[0] = '\0'; /* it was said */
    report->has_failed = true;
    return WEIR_OK;
}

static int ask_all(struct report *report)
{
    struct weir__topics *topics = &report->all;
    int rc = weir__topics_ask(&report->client, topics);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&report->client);
    for (size_t i = 0;
         rc == WEIR_OK && !report->is_stopped && i < topics->count; i++) {
        rc = ask_one(report, topics->names[i]);
        if (is_of_topic(rc) && !report->is_stopped)
            rc = skip(report, topics->names[i], rc);
    }
    if (rc == WEIR_OK && topics->count == 0 && !report->is_watching)
        weir__note(report->client.cli, "there are no topics yet");
    weir__topics_fini(topics);
    return rc;
}

/* On a terminal each report takes the place of the one before. */
static enum weir__exit print(struct report *report)
{
    bool is_redrawn = report->is_watching && isatty(STDOUT_FILENO) == 1;

    if (report->client.cli->json)
        return weir__print_object(WEIR__OBJECT(
                   weir__field("topics", json_object_get(report->topics)))) ==
                       WEIR__EXIT_DONE
                   ? WEIR__EXIT_NONE
                   : WEIR__EXIT_FAILED;
    if (is_redrawn)
        (void)printf("\033[H\033[J");
    if (report->table.rows > 1 || report->is_watching)
        print_table(&report->table);
    if (report->is_watching && !is_redrawn)
        (void)printf("\n");
    return WEIR__EXIT_NONE;
}

/* One report; WEIR__EXIT_NONE when it was printed. */
static enum weir__exit report_once(struct report *report)
{
    int rc;

    report->table = (struct table){0};
    report->topics = json_object_new_array();
    if (report->topics == NULL || !add_titles(report)) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    rc = report->topic != NULL ? ask_one(report, report->topic)
                               : ask_all(report);
    if (report->is_stopped)
        return WEIR__EXIT_DONE;
    if (rc == WEIR_ENOTFOUND)
        return weir__client_not_found(&report->client, report->topic, NULL);
    if (rc < 0)
        return weir__client_exit(&report->client, rc, "stats");
    return print(report);
}

static void release(struct report *report)
{
    (void)json_object_put(report->topics);
    report->topics = NULL;
    free_table(&report->table);
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

static enum weir__exit watch(struct report *report)
{
    enum weir__exit rc = WEIR__EXIT_NONE;

    weir__client_on_signal(&report->client, on_signal, report);
    ev_timer_init(&report->again, on_again, AGAIN_S, 0.0);
    report->again.data = report;
    while (rc == WEIR__EXIT_NONE) {
        rc = report_once(report);
        release(report);
        if (rc != WEIR__EXIT_NONE)
            break;
        if (fflush(stdout) != 0)
            rc = WEIR__EXIT_FAILED; /* said at the end */
        ev_timer_set(&report->again, AGAIN_S, 0.0);
        ev_timer_start(report->client.loop, &report->again);
        if (rc == WEIR__EXIT_NONE && !report->is_stopped)
            (void)weir__client_wait(&report->client); /* by the timer */
        ev_timer_stop(report->client.loop, &report->again);
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
        .is_watching = args->value[WATCH] != NULL,
    };
    enum weir__exit rc;

    if (report.topic != NULL && !weir__operand_topic(report.topic))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&report.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = report.is_watching ? watch(&report) : report_once(&report);
    weir__client_close(&report.client); /* its callbacks use the report */
    release(&report);
    weir__rates_fini(&report.rates);
    if (rc == WEIR__EXIT_NONE)
        rc = report.has_failed ? WEIR__EXIT_FAILED : WEIR__EXIT_DONE;
    return rc;
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
             "  5 server unreachable",
    .run = run,
};
