/* SPDX-License-Identifier: MIT */

/* weir workers: who serves topics. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/screen.h"
#include "adapters/cli/table.h"

#include <weir/worker.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WIDE };

static const struct weir__flag flags[] = {
    [WIDE] = {"wide", NULL,
              "every column; of topics how many jobs run of how many\n"
              "may at once: order=3/4"},
};

/* --- asking --------------------------------------------------------------- */

static struct json_object *topics_json(const struct weir_worker *worker)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < worker->topic_count; i++) {
        const struct weir_worker_topic *topic = &worker->topics[i];

        array = weir__array_with(
            array, WEIR__OBJECT(weir__field_str("topic", topic->name),
                                topic->concurrency > 0
                                    ? weir__field_number("concurrency",
                                                         topic->concurrency)
                                    : weir__field_null("concurrency"),
                                weir__field_number("held", topic->held),
                                weir__field_number("running", topic->running),
                                topic->groups[0] != '\0'
                                    ? weir__field_str("groups", topic->groups)
                                    : (struct weir__field){0}));
    }
    return array;
}

struct json_object *weir__worker_json(const struct weir_worker *worker)
{
    return WEIR__OBJECT(
        weir__field_str("name", worker->name),
        weir__field_str("host", worker->host),
        weir__field_int("pid", worker->pid),
        weir__field_str("version", worker->version),
        weir__field("topics", topics_json(worker)),
        weir__field_number("topics_total", worker->topics_total),
        weir__field_number("held", worker->held),
        weir__field_number("running", worker->running),
        weir__field_int("since_ms", worker->since_ms),
        weir__field_int("seen_ms", worker->seen_ms),
        weir__field_int("lag_us", worker->lag_us),
        weir__field_str("transport", worker->transport),
        weir__field_number("connections", worker->connections),
        weir__field_bool("stopping", worker->is_stopping));
}

/* They are kept as JSON. */
static void on_worker(int code, const struct weir_worker *worker, void *arg)
{
    struct weir__ask *ask = arg;

    if (worker == NULL)
        weir__client_finish(&ask->client,
                            ask->options == NULL ? WEIR_ENOMEM : code);
    else
        ask->options =
            weir__array_with(ask->options, weir__worker_json(worker));
}

static int ask_workers(struct weir__ask *ask)
{
    ask->options = json_object_new_array();
    if (ask->options == NULL)
        return WEIR_ENOMEM;
    return weir_reactor_workers(ask->client.reactor, on_worker, ask);
}

/* --- a table -------------------------------------------------------------- */

enum {
    NAME,
    TOPICS,
    HELD,
    RUNNING,
    SINCE,
    LAG,
    CONNECTION,
    HOST,
    PID,
    VERSION,
    COLUMNS
};

/* Of what stands in a line beside its worker's name and topics; and what
 * topics have at least. */
enum { BESIDE = 39, TOPICS_LEAST = 8 };

static const char *text_of(struct json_object *worker, const char *name)
{
    struct json_object *value = json_object_object_get(worker, name);

    return value == NULL ? "" : json_object_get_string(value);
}

static int64_t number_of(struct json_object *worker, const char *name)
{
    return json_object_get_int64(json_object_object_get(worker, name));
}

enum { MORE_CAP = 24 }; /* " +9223372036854775807" */

/* Of an earlier version, which does not tell it, the name alone. */
static void print_topic(struct json_object *topic, bool is_wide,
                        char text[WEIR_MAX_TOPIC + 48])
{
    int64_t concurrency = number_of(topic, "concurrency");

    if (is_wide && concurrency > 0)
        (void)snprintf(text, WEIR_MAX_TOPIC + 48, "%s=%" PRId64 "/%" PRId64,
                       text_of(topic, "topic"), number_of(topic, "running"),
                       concurrency); /* fits */
    else
        (void)snprintf(text, WEIR_MAX_TOPIC + 48, "%s",
                       text_of(topic, "topic")); /* fits */
}

/* The first topics, as many as fit, and how many more there are; of the first
 * one as much as fits. */
static void put_topics(struct weir__row *row, struct json_object *worker,
                       size_t cap, bool is_wide)
{
    struct json_object *topics = json_object_object_get(worker, "topics");
    int64_t left = number_of(worker, "topics_total");
    size_t count = json_object_array_length(topics), len = 0;
    char text[WEIR__TABLE_CELL] = "", more[MORE_CAP] = "";

    for (size_t i = 0; i < count; i++) {
        char name[WEIR_MAX_TOPIC + 48], then[MORE_CAP] = "";

        print_topic(json_object_array_get_idx(topics, i), is_wide, name);
        if (--left > 0)
            (void)snprintf(then, sizeof(then), " +%" PRId64, left); /* fits */
        if (i > 0 && len + 1 + strlen(name) + strlen(then) > cap)
            break;
        (void)snprintf(text + len, sizeof(text) - len, "%s%s", i > 0 ? "," : "",
                       name); /* fits, or is the first one */
        len = strlen(text);
        memcpy(more, then, sizeof(more));
    }
    if (len + strlen(more) > cap)
        len = strlen(more) < cap ? cap - strlen(more) : 0;
    weir__row_put(row, "%.*s%s", (int)len, text, more);
}

static void put_age(struct weir__row *row, int64_t ms)
{
    int64_t seconds = ms / 1000;

    if (seconds < 60)
        weir__row_put(row, "%" PRId64 "s", seconds < 0 ? 0 : seconds);
    else if (seconds < 3600)
        weir__row_put(row, "%" PRId64 "m", seconds / 60);
    else if (seconds < 2 * 86400)
        weir__row_put(row, "%" PRId64 "h", seconds / 3600);
    else
        weir__row_put(row, "%" PRId64 "d", seconds / 86400);
}

static void put_connection(struct weir__row *row, struct json_object *worker)
{
    int64_t again = number_of(worker, "connections") - 1;
    bool stops =
        json_object_get_boolean(json_object_object_get(worker, "stopping"));
    char times[32] = "";

    if (again > 0)
        (void)snprintf(times, sizeof(times), "+%" PRId64, again); /* fits */
    weir__row_put(row, "%s%s%s", text_of(worker, "transport"), times,
                  stops ? " stopping" : "");
}

static void set_row(struct weir__table *table, size_t at,
                    struct json_object *worker, size_t topics_cap, bool is_wide)
{
    int64_t lag_ms = number_of(worker, "lag_us") / 1000;
    struct weir__row row = {0};

    weir__row_put(&row, "%s", text_of(worker, "name"));
    put_topics(&row, worker, topics_cap, is_wide);
    weir__row_put(&row, "%" PRId64, number_of(worker, "held"));
    weir__row_put(&row, "%" PRId64, number_of(worker, "running"));
    put_age(&row, number_of(worker, "seen_ms") - number_of(worker, "since_ms"));
    if (lag_ms < 10000)
        weir__row_put(&row, "%" PRId64 "ms", lag_ms);
    else
        put_age(&row, lag_ms);
    put_connection(&row, worker);
    weir__row_put(&row, "%s", text_of(worker, "host"));
    weir__row_put(&row, "%" PRId64, number_of(worker, "pid"));
    weir__row_put(&row, "%s", text_of(worker, "version"));
    weir__table_set(table, at, &row);
}

static void set_titles(struct weir__table *table)
{
    static const char *const titles[COLUMNS] = {
        "WORKER", "TOPICS", "HELD", "RUNNING", "SINCE",
        "LAG",    "CONN",   "HOST", "PID",     "VERSION"};
    struct weir__row row = {0};

    for (size_t i = 0; i < COLUMNS; i++)
        weir__row_put(&row, "%s", titles[i]);
    weir__table_set(table, 0, &row);
}

/* What there is no room for goes, the last columns first. */
static void fit(struct weir__table *table, size_t width)
{
    for (size_t i = COLUMNS; i-- > HOST;)
        table->is_hidden[i] = true;
    for (size_t i = HOST; i-- > HELD && weir__table_width(table) > width;)
        table->is_hidden[i] = true;
}

static size_t room_for_topics(struct json_object *workers, size_t width)
{
    size_t widest = 0, count = json_object_array_length(workers);

    for (size_t i = 0; i < count; i++) {
        size_t len =
            strlen(text_of(json_object_array_get_idx(workers, i), "name"));

        widest = len > widest ? len : widest;
    }
    if (width <= widest + BESIDE + TOPICS_LEAST)
        return TOPICS_LEAST;
    width -= widest + BESIDE;
    return width < WEIR__TABLE_CELL - 1 ? width : WEIR__TABLE_CELL - 1;
}

static enum weir__exit print_table(const struct weir__ask *ask)
{
    struct json_object *workers = ask->options;
    size_t count = json_object_array_length(workers), lines, width, room;
    bool is_wide = ask->args->value[WIDE] != NULL;
    struct weir__table table;

    if (weir__table_init(&table, count + 1, COLUMNS) < 0) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    weir__screen_size(&lines, &width);
    room = is_wide ? WEIR__TABLE_CELL - 1 : room_for_topics(workers, width);
    set_titles(&table);
    for (size_t i = 0; i < count; i++)
        set_row(&table, i + 1, json_object_array_get_idx(workers, i), room,
                is_wide);
    if (!is_wide)
        fit(&table, width);
    weir__table_print(&table, 0);
    weir__table_fini(&table);
    return WEIR__EXIT_DONE;
}

static enum weir__exit print(struct weir__ask *ask)
{
    if (ask->client.cli->json)
        return weir__print_object(WEIR__OBJECT(
            weir__field("workers", json_object_get(ask->options))));
    if (json_object_array_length(ask->options) > 0)
        return print_table(ask);
    weir__note(ask->client.cli, "no worker is there");
    return WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_workers = {
    .name = "workers",
    .operands = "",
    WEIR__FLAGS(flags),
    .summary = "List who serves topics",
    .details =
        "A worker is a weir run, or a program with weir inside that serves "
        "topics. It\ntells that it is there each 5 s, and is gone when it "
        "ends, or 15 s after it\ndied or stood still. LAG is how late its loop "
        "was at worst of late, CONN how\nit reaches the server and how often "
        "it came back.\nWith --json: {\"workers\":[{\"name\",\"host\",\"pid\","
        "\"version\",\"topics\":\n[{\"topic\",\"concurrency\",\"held\","
        "\"running\",\"groups\"}],\"topics_total\",\n\"held\",\"running\","
        "\"since_ms\",\"seen_ms\",\"lag_us\",\"transport\",\"connections\",\n"
        "\"stopping\"},...]};\ntopics are the first 1,000, concurrency is null "
        "where the worker does not tell\nit, times are those of the server.",
    .example = "weir workers",
    .exits = "0 listed, also when there are none, 2 wrong usage,\n"
             "  5 server unreachable",
    .ask = ask_workers,
    .print = print,
};
