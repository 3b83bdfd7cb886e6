/* SPDX-License-Identifier: MIT */
#include "adapters/cli/stats_view.h"

#include "adapters/cli/output.h"
#include "adapters/cli/table.h"
#include "adapters/cli/time.h"
#include "core/mem.h"
#include "core/nearest.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- columns ------------------------------------------------------------- */

enum form { TOPIC, KIND, COUNT, LATENESS, RATE, WORKERS, UNSERVED };

/* In the order of the table. Of those that are not zero the one of the highest
 * rank goes first where there is no room; rank 0 stays. */
static const struct {
    const char *name, *title;
    enum form form;
    unsigned rank;
    size_t at; /* in struct weir_stats */
} columns[] = {
#define AT(member) offsetof(struct weir_stats, member)
    {"topic", "TOPIC", TOPIC, 0, 0},
    {"kind", "KIND", KIND, 0, 0},
    {"scheduled", "SCHEDULED", COUNT, 4, AT(scheduled)},
    {"ready", "READY", COUNT, 1, AT(ready)},
    {"oldest", "OLDEST", LATENESS, 3, AT(oldest_us)},
    {"running", "RUNNING", COUNT, 2, AT(running)},
    {"workers", "WORKERS", WORKERS, 5, 0},
    {"unserved", "UNSERVED", UNSERVED, 2, 0},
    {"ended", "ENDED", LATENESS, 2, AT(lease_ended_us)},
    {"dead", "DEAD", COUNT, 5, AT(dead)},
    {"relaying", "RELAYING", COUNT, 13, AT(relaying)},
    {"done", "DONE", COUNT, 7, AT(done_total)},
    {"retried", "RETRIED", COUNT, 9, AT(retried_total)},
    {"failed", "FAILED", COUNT, 8, AT(failed_total)},
    {"expired", "EXPIRED", COUNT, 12, AT(expired_total)},
    {"crashed", "CRASHED", COUNT, 10, AT(crashed_total)},
    {"dropped", "DROPPED", COUNT, 11, AT(dropped_total)},
    {"lost", "LOST", COUNT, 3, AT(lost_total)},
    {"p50", "P50", LATENESS, 15, AT(lateness_p50_us)},
    {"p99", "P99", LATENESS, 14, AT(lateness_p99_us)},
    {"rate", "RATE", RATE, 6, 0},
#undef AT
};

_Static_assert(sizeof(columns) / sizeof(columns[0]) == WEIR__STATS_COLUMNS,
               "WEIR__STATS_COLUMNS counts columns");

static const char *column_name(const void *unused, size_t i)
{
    (void)unused;
    return columns[i].name;
}

int weir__stats_column_find(const char *name)
{
    for (size_t i = 0; i < WEIR__STATS_COLUMNS; i++)
        if (strcmp(name, columns[i].name) == 0)
            return (int)i;
    return -1;
}

int weir__stats_column(const char *name, bool has_rate)
{
    const int column = weir__stats_column_find(name);
    const char *near =
        weir__nearest(name, columns, WEIR__STATS_COLUMNS, column_name);

    if (column >= 0 && (columns[column].form != RATE || has_rate))
        return column;
    if (column >= 0)
        weir__complain("--sort: there is a rate with --watch only");
    else if (near != NULL)
        weir__complain("--sort: there is no column \"%s\"; did you mean %s?",
                       name, near);
    else
        weir__complain("--sort: there is no column \"%s\"; see weir stats "
                       "--help",
                       name);
    return -1;
}

static uint64_t count_at(const struct weir_stats *stats, size_t at)
{
    uint64_t count;

    memcpy(&count, (const char *)stats + at, sizeof(count));
    return count;
}

static int64_t lateness_at(const struct weir_stats *stats, size_t at)
{
    int64_t us;

    memcpy(&us, (const char *)stats + at, sizeof(us));
    return us;
}

uint64_t weir__stats_weight(const struct weir__stats_row *row, int column)
{
    const size_t at = columns[column].at;

    if (row->is_away)
        return 0;
    switch (columns[column].form) {
    case COUNT:
        return count_at(&row->stats, at);
    case LATENESS:
        return (uint64_t)(lateness_at(&row->stats, at) + 1);
    case RATE:
        return row->rate < 0.0 ? 0 : (uint64_t)(row->rate * 1000.0) + 1;
    case WORKERS:
        return row->workers < 0 ? 0 : (uint64_t)row->workers + 1;
    case UNSERVED:
        return row->stats.unserved == -1 ? 1 : (uint64_t)row->stats.unserved;
    case TOPIC:
    case KIND:
        return 0;
    }
    return 0;
}

/* --- order ---------------------------------------------------------------- */

/* A row, and what it is sorted by. */
struct place {
    struct weir__stats_row *row;
    const char *text; /* kinds: in byte order */
    uint64_t weight;  /* others: the largest first, what is away last */
    size_t at;        /* equal ones stay */
};

static int compare(const void *one_place, const void *other_place)
{
    const struct place *one = one_place, *other = other_place;
    int order = strcmp(one->text, other->text);

    if (order != 0)
        return order;
    if (one->row->is_away != other->row->is_away)
        return one->row->is_away ? 1 : -1;
    if (one->weight != other->weight)
        return one->weight > other->weight ? -1 : 1;
    return one->at < other->at ? -1 : 1;
}

struct weir__stats_row **weir__stats_sorted(const struct weir__stats_view *view,
                                            struct weir__stats_row *rows,
                                            size_t count)
{
    const bool by_kind = view->sort >= 0 && columns[view->sort].form == KIND;
    const bool is_sorted = view->sort >= 0 && columns[view->sort].form != TOPIC;
    struct place *places = weir__mem_new((count + 1) * sizeof(*places));
    struct weir__stats_row **sorted =
        weir__mem_new((count + 1) * sizeof(struct weir__stats_row *));

    for (size_t i = 0; places != NULL && i < count; i++)
        places[i] = (struct place){
            .row = &rows[i],
            .text = by_kind ? rows[i].kind : "",
            .weight = is_sorted ? weir__stats_weight(&rows[i], view->sort) : 0,
            .at = i};
    if (places != NULL && is_sorted)
        qsort(places, count, sizeof(*places), compare);
    for (size_t i = 0; places != NULL && sorted != NULL && i < count; i++)
        sorted[i] = places[i].row;
    if (places == NULL) {
        weir__mem_free(sorted);
        sorted = NULL;
    }
    weir__mem_free(places);
    return sorted;
}

/* --- cells ---------------------------------------------------------------- */

/* Of a bounded topic what was dropped is told by reason where there is room. */
static void put_count(struct weir__row *cells, const struct weir_stats *stats,
                      size_t at, bool has_reasons)
{
    uint64_t count = count_at(stats, at);
    bool is_bound =
        at == offsetof(struct weir_stats, ready) && !stats->ready_is_exact;

    if (has_reasons && at == offsetof(struct weir_stats, dropped_total) &&
        count > 0)
        weir__row_put(cells,
                      "%" PRIu64 " (overflow %" PRIu64 ", age %" PRIu64
                      ", ttl %" PRIu64 ")",
                      count, stats->dropped_overflow, stats->dropped_age,
                      stats->dropped_ttl);
    else
        weir__row_put(cells, "%" PRIu64 "%s", count, is_bound ? "+" : "");
}

/* Loud where jobs could run: they are ready, or a worker died with them. */
static void put_workers(struct weir__row *cells,
                        const struct weir__stats_row *row)
{
    const bool is_waiting =
        (row->stats.ready > 0 || row->stats.lease_ended_us >= 0) &&
        !row->stats.paused;

    if (row->workers > 0)
        weir__row_put(cells, "%" PRId64, row->workers);
    else if (row->workers == 0)
        weir__row_put(cells, is_waiting ? "NONE" : "none");
    else
        weir__row_put(cells, "-");
}

static void put_cell(struct weir__row *cells, const struct weir__stats_row *row,
                     size_t column, bool is_wide)
{
    const struct weir_stats *stats = &row->stats;
    char span[64];
    int64_t us;

    switch (columns[column].form) {
    case TOPIC:
        weir__row_put(cells, "%s", row->topic);
        return;
    case KIND:
        weir__row_put(cells, "%s%s%s", row->kind,
                      stats->paused ? ", paused" : "",
                      stats->limited == WEIR_LIMITED_RATE ? ", at its rate"
                      : stats->limited == WEIR_LIMITED_PARALLEL ? ", full"
                      : stats->limited == WEIR_LIMITED_KEY      ? ", keys full"
                                                                : "");
        return;
    case COUNT:
        put_count(cells, stats, columns[column].at,
                  is_wide && strcmp(row->kind, "bounded") == 0);
        return;
    case LATENESS:
        us = lateness_at(stats, columns[column].at);
        if (us < 0)
            weir__row_put(cells, "-");
        else if (us < 1000000)
            weir__row_put(cells, "%" PRId64 ".%01dms", us / 1000,
                          (int)(us % 1000 / 100));
        else {
            weir__span_print(us / 1000, 2, span);
            weir__row_put(cells, "%s", span);
        }
        return;
    case WORKERS:
        put_workers(cells, row);
        return;
    case UNSERVED:
        if (stats->unserved < 0)
            weir__row_put(cells, "-");
        else
            weir__row_put(cells, "%" PRId64, stats->unserved);
        return;
    case RATE:
        if (row->rate < 0.0)
            weir__row_put(cells, "-");
        else if (row->rate > 0.0 && row->rate < 1.0)
            weir__row_put(cells, "%.0f/min", row->rate * 60.0);
        else
            weir__row_put(cells, "%.0f/s", row->rate);
        return;
    }
}

static void set_row(struct weir__table *table, size_t at,
                    const struct weir__stats_row *row, bool is_wide)
{
    struct weir__row cells = {0};

    if (row->is_away) {
        weir__row_put(&cells, "%s", row->topic);
        weir__row_put(&cells, "away");
        while (cells.count < WEIR__STATS_COLUMNS)
            weir__row_put(&cells, "-");
    }
    for (size_t i = 0; !row->is_away && i < WEIR__STATS_COLUMNS; i++)
        put_cell(&cells, row, i, is_wide);
    weir__table_set(table, at, &cells);
}

/* --- what there is room for ----------------------------------------------- */

static bool is_zero(struct weir__stats_row *const *rows, size_t count,
                    size_t column)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i]->is_shown && weir__stats_weight(rows[i], (int)column) > 0)
            return false;
    return true;
}

/* That nobody serves a topic is nothing to tell of while it has no jobs. */
static bool is_served_or_missed(struct weir__stats_row *const *rows,
                                size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct weir_stats *stats = &rows[i]->stats;

        if (rows[i]->is_shown && !rows[i]->is_away &&
            (rows[i]->workers > 0 ||
             (rows[i]->workers == 0 &&
              stats->ready + stats->scheduled + stats->running > 0)))
            return true;
    }
    return false;
}

static bool is_wanted(const struct weir__stats_view *view,
                      struct weir__stats_row *const *rows, size_t count,
                      size_t column)
{
    if (columns[column].form == RATE)
        return view->has_rate;
    if (columns[column].form == WORKERS && !view->is_wide &&
        (int)column != view->sort && !view->is_kept[column])
        return is_served_or_missed(rows, count);
    return view->is_wide || columns[column].rank == 0 ||
           (int)column == view->sort || view->is_kept[column] ||
           !is_zero(rows, count, column);
}

/* The column to go next; -1: all have to stay. */
static int least(const struct weir__stats_view *view,
                 const struct weir__table *table)
{
    unsigned rank = 0;
    int found = -1;

    for (int i = 0; i < WEIR__STATS_COLUMNS; i++) {
        if (table->is_hidden[i] || i == view->sort || columns[i].rank <= rank)
            continue;
        rank = columns[i].rank;
        found = i;
    }
    return found;
}

static void fit(struct weir__stats_view *view, struct weir__table *table,
                struct weir__stats_row *const *rows, size_t count,
                char left_out[160])
{
    int next;

    left_out[0] = '\0';
    for (size_t i = 0; i < WEIR__STATS_COLUMNS; i++) {
        table->is_hidden[i] = !is_wanted(view, rows, count, i);
        view->is_kept[i] = view->has_rate && !table->is_hidden[i];
    }
    while (!view->is_wide && weir__table_width(table) > view->width &&
           (next = least(view, table)) >= 0) {
        size_t len = strlen(left_out);

        table->is_hidden[next] = true;
        (void)snprintf(left_out + len, 160 - len, "%s%s", len > 0 ? ", " : "",
                       columns[next].name); /* fits */
    }
}

int weir__stats_print(struct weir__stats_view *view,
                      struct weir__stats_row *const *rows, size_t count,
                      char left_out[160])
{
    struct weir__row titles = {0};
    struct weir__table table;

    if (weir__table_init(&table, count + 1, WEIR__STATS_COLUMNS) < 0)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < WEIR__STATS_COLUMNS; i++)
        weir__row_put(&titles, "%s", columns[i].title);
    weir__table_set(&table, 0, &titles);
    for (size_t i = 0; i < count; i++)
        if (rows[i]->is_shown)
            set_row(&table, i + 1, rows[i], view->is_wide);
    fit(view, &table, rows, count, left_out);
    weir__table_print(&table, view->lines);
    weir__table_fini(&table);
    return WEIR_OK;
}

/* --- JSON ----------------------------------------------------------------- */

/* Names of the counts. */
static const struct {
    const char *name;
    size_t at; /* in struct weir_stats */
} counts[] = {
#define NAMED(name)                              \
    {                                            \
#        name, offsetof(struct weir_stats, name) \
    }
    NAMED(scheduled),     NAMED(ready),         NAMED(running),
    NAMED(dead),          NAMED(relaying),      NAMED(added_total),
    NAMED(done_total),    NAMED(retried_total), NAMED(failed_total),
    NAMED(expired_total), NAMED(crashed_total), NAMED(dropped_total),
    NAMED(lost_total),
#undef NAMED
};

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

static struct weir__field limited_field(enum weir_limit limited)
{
    static const char *const names[] = {
        [WEIR_LIMITED_RATE] = "rate",
        [WEIR_LIMITED_PARALLEL] = "parallel",
        [WEIR_LIMITED_KEY] = "key",
    };

    return names[limited] == NULL ? weir__field_null("limited")
                                  : weir__field_str("limited", names[limited]);
}

struct json_object *weir__stats_row_json(const struct weir__stats_view *view,
                                         const struct weir__stats_row *row)
{
    const struct weir_stats *stats = &row->stats;
    struct json_object *object;

    if (row->is_away)
        return WEIR__OBJECT(weir__field_str("topic", row->topic),
                            weir__field_bool("away", true));
    object =
        WEIR__OBJECT(weir__field_str("topic", row->topic),
                     weir__field_str("kind", row->kind),
                     weir__field_bool("paused", stats->paused),
                     limited_field(stats->limited),
                     weir__field_bool("ready_is_exact", stats->ready_is_exact),
                     ms_field("oldest_ms", stats->oldest_us),
                     ms_field("lease_ended_ms", stats->lease_ended_us),
                     weir__field("lateness_ms", lateness_json(stats)));
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        weir__object_put(
            &object,
            weir__field_number(counts[i].name, count_at(stats, counts[i].at)));
    if (strcmp(row->kind, "bounded") == 0) {
        weir__object_put(&object, weir__field("dropped", drops_json(stats)));
        weir__object_put(
            &object, stats->unserved < 0
                         ? weir__field_null("unserved_groups")
                         : weir__field_int("unserved_groups", stats->unserved));
    }
    if (stats->ticks > 0)
        weir__object_put(&object, weir__field_number("ticks", stats->ticks));
    weir__object_put(&object, row->workers < 0
                                  ? weir__field_null("workers")
                                  : weir__field_int("workers", row->workers));
    if (view->has_rate && row->rate < 0.0)
        weir__object_put(&object, weir__field_null("rate"));
    else if (view->has_rate)
        weir__object_put(
            &object, weir__field("rate", json_object_new_double(row->rate)));
    return object;
}

struct json_object *weir__stats_json(const struct weir__stats_view *view,
                                     struct weir__stats_row *const *rows,
                                     size_t count)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < count; i++)
        if (rows[i]->is_shown)
            array =
                weir__array_with(array, weir__stats_row_json(view, rows[i]));
    return WEIR__OBJECT(weir__field("topics", array));
}
