/* SPDX-License-Identifier: MIT */

/* Topics and their history, as the snapshot has them: no question to the
 * server, however many pages are open. */

#include "adapters/cli/stats_view.h"
#include "adapters/web/api.h"
#include "adapters/web/snapshot.h"
#include "core/assert.h"
#include "core/mem.h"

#include <stdlib.h>
#include <string.h>

static const struct weir__stats_view stats_view = {.has_rate = true};

/* --- which of them -------------------------------------------------------- */

struct found {
    struct weir__topic_view *view;
    uint64_t weight; /* what they are sorted by, the largest first; */
    size_t at;       /* equal ones stay in byte order */
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool starts_with(const char *text, const char *part)
{
    while (*part != '\0' && lower(*text) == lower(*part)) {
        text++;
        part++;
    }
    return *part == '\0';
}

/* Anywhere, whatever the case. */
static bool contains(const char *text, const char *part)
{
    for (; *text != '\0'; text++)
        if (starts_with(text, part))
            return true;
    return *part == '\0';
}

static int compare(const void *one_found, const void *other_found)
{
    const struct found *one = one_found, *other = other_found;

    if (one->weight != other->weight)
        return one->weight > other->weight ? -1 : 1;
    return one->at < other->at ? -1 : 1;
}

/* Topics whose names have `part`, in the order of `column`; owned by the
 * caller. NULL: no memory. */
static struct found *find(const struct weir__web *web, const char *part,
                          int column, size_t *ret_count)
{
    size_t all;
    struct weir__topic_view *const *topics =
        weir__snapshot_topics(web->snapshot, &all);
    struct found *found = weir__mem_new((all + 1) * sizeof(*found));
    size_t count = 0;

    for (size_t i = 0; found != NULL && i < all; i++) {
        if (!topics[i]->row.is_shown || !contains(topics[i]->row.topic, part))
            continue;
        found[count] = (struct found){topics[i], 0, i};
        if (column >= 0)
            found[count].weight = weir__stats_weight(&topics[i]->row, column);
        count++;
    }
    if (found != NULL && column >= 0)
        qsort(found, count, sizeof(*found), compare);
    *ret_count = count;
    return found;
}

/* --- the list ------------------------------------------------------------- */

struct sums {
    uint64_t topics, paused, away, scheduled, ready, running, dead;
    double rate;
    int64_t oldest_us;
};

static struct sums sum(const struct weir__web *web)
{
    struct sums sums = {.oldest_us = -1};
    size_t count;
    struct weir__topic_view *const *topics =
        weir__snapshot_topics(web->snapshot, &count);

    for (size_t i = 0; i < count; i++) {
        const struct weir__stats_row *row = &topics[i]->row;
        const struct weir_stats *stats = &row->stats;

        if (!row->is_shown)
            continue;
        sums.topics++;
        sums.away += row->is_away ? 1 : 0;
        if (row->is_away)
            continue;
        sums.paused += stats->paused ? 1 : 0;
        sums.scheduled += stats->scheduled;
        sums.ready += stats->ready;
        sums.running += stats->running;
        sums.dead += stats->dead;
        sums.rate += row->rate > 0.0 ? row->rate : 0.0;
        if (stats->oldest_us > sums.oldest_us)
            sums.oldest_us = stats->oldest_us;
    }
    return sums;
}

static struct json_object *sums_json(const struct weir__web *web)
{
    const struct sums sums = sum(web);

    return WEIR__OBJECT(
        weir__field_number("topics", sums.topics),
        weir__field_number("paused", sums.paused),
        weir__field_number("away", sums.away),
        weir__field_number("scheduled", sums.scheduled),
        weir__field_number("ready", sums.ready),
        weir__field_number("running", sums.running),
        weir__field_number("dead", sums.dead),
        weir__field("rate", json_object_new_double(sums.rate)),
        weir__field_int("oldest_ms",
                        sums.oldest_us < 0 ? -1 : sums.oldest_us / 1000));
}

/* "ok", or why what is shown is as old as it is. */
static struct weir__field state_field(const struct weir__web *web)
{
    const int code = weir__snapshot_code(web->snapshot);

    return weir__field_str("server",
                           code == WEIR_OK ? "ok" : weir_error_text(code));
}

/* When that was is told where it is not now, or every answer would differ. */
static struct weir__field taken_field(const struct weir__web *web)
{
    return weir__snapshot_code(web->snapshot) == WEIR_OK
               ? (struct weir__field){0}
               : weir__field_int("taken_ms",
                                 weir__snapshot_taken_ms(web->snapshot));
}

static void answer_topics(const struct weir__web *web,
                          struct weir__http_request *request,
                          const struct found *found, size_t count, size_t from,
                          size_t limit)
{
    const char *order = weir__http_query(request, "order");
    const bool is_reversed = order != NULL && strcmp(order, "up") == 0;
    struct json_object *array = json_object_new_array();

    WEIR_ASSERT(found != NULL && limit <= WEIR__API_PAGE_MAX);
    for (size_t i = from; i < count && i - from < limit; i++)
        array = weir__array_with(
            array, weir__stats_row_json(
                       &stats_view,
                       &found[is_reversed ? count - 1 - i : i].view->row));
    weir__api_answer_tagged(
        request,
        WEIR__OBJECT(state_field(web), taken_field(web),
                     weir__field_bool("complete",
                                      weir__snapshot_rounds(web->snapshot) > 0),
                     weir__field("sums", sums_json(web)),
                     weir__field_number("found", count),
                     weir__field_number("offset", from),
                     weir__field("topics", array)));
}

void weir__api_topics(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    const char *part = weir__http_query(request, "q");
    const char *sort = weir__http_query(request, "sort");
    int column = -1;
    size_t from, limit, count;
    struct found *found;

    if (!weir__api_number(request, "offset", SIZE_MAX, 0, &from) ||
        !weir__api_number(request, "limit", WEIR__API_PAGE_MAX, WEIR__API_PAGE,
                          &limit))
        return;
    if (sort != NULL) {
        column = weir__stats_column_find(sort);
        if (column < 0) {
            weir__http_refuse(request, 400, "topics cannot be sorted by this");
            return;
        }
    }
    weir__snapshot_look(web->snapshot);
    found = find(web, part != NULL ? part : "", column, &count);
    if (found == NULL)
        weir__api_refuse(request, WEIR_ENOMEM, NULL);
    else
        answer_topics(web, request, found, count, from, limit);
    weir__mem_free(found);
}

/* --- one topic ------------------------------------------------------------ */

void weir__api_topic(struct weir__web *web, struct weir__http_request *request,
                     const char *topic)
{
    const struct weir__topic_view *view =
        weir__snapshot_find(web->snapshot, topic);

    WEIR_ASSERT(view != NULL); /* it is known */
    weir__api_answer_tagged(
        request,
        WEIR__OBJECT(state_field(web), taken_field(web),
                     weir__field("topic", weir__stats_row_json(&stats_view,
                                                               &view->row))));
}

struct settings {
    struct weir__http_request *request;
    struct json_object *options; /* NULL: no memory */
};

static void on_setting(int code, const char *key, const char *value, void *arg)
{
    struct settings *settings = arg;

    if (key != NULL) {
        weir__object_put(&settings->options, weir__field_str(key, value));
        return;
    }
    if (code == WEIR_OK) {
        weir__api_answer(settings->request, WEIR__OBJECT(weir__field(
                                                "options", settings->options)));
    } else {
        weir__api_refuse(settings->request, code, NULL);
        (void)json_object_put(settings->options);
    }
    weir__mem_free(settings);
}

void weir__api_options(struct weir__web *web,
                       struct weir__http_request *request, const char *topic)
{
    struct settings *settings = weir__mem_new(sizeof(*settings));
    int rc = WEIR_ENOMEM;

    if (settings != NULL) {
        *settings = (struct settings){request, json_object_new_object()};
        rc = weir_reactor_settings(web->reactor, topic, on_setting, settings);
    }
    if (rc == WEIR_OK)
        return;
    if (settings != NULL)
        (void)json_object_put(settings->options);
    weir__mem_free(settings);
    weir__api_refuse(request, rc, NULL);
}

/* --- the last hour -------------------------------------------------------- */

/* Points of a plot, the oldest first; what is not known is null. */
static struct json_object *
points(const struct weir__history *history,
       float (*point)(const struct weir__history *history, size_t age))
{
    struct json_object *array = json_object_new_array();

    for (size_t age = WEIR__HISTORY_POINTS; age-- > 0;) {
        const float value = point(history, age);
        char text[32];

        if (value < 0.0f) {
            if (array != NULL && json_object_array_add(array, NULL) != 0) {
                (void)json_object_put(array);
                array = NULL;
            }
            continue;
        }
        (void)snprintf(text, sizeof(text), "%.3f", (double)value); /* fits */
        array = weir__array_with(array,
                                 json_object_new_double_s((double)value, text));
    }
    return array;
}

static struct json_object *history_json(const struct weir__history *history)
{
    return WEIR__OBJECT(
        weir__field("rate", points(history, weir__history_rate)),
        weir__field("lateness_ms", points(history, weir__history_lateness_ms)));
}

/* ?topics=a,b,c; those that do not exist are left out. */
void weir__api_history(struct weir__http_request *request, void *arg)
{
    struct weir__web *web = arg;
    const char *names = weir__http_query(request, "topics");
    struct json_object *topics = json_object_new_object();

    for (size_t i = 0; names != NULL && i < WEIR__API_PAGE_MAX; i++) {
        const size_t len = strcspn(names, ",");
        char name[WEIR_MAX_TOPIC + 1] = "";
        const struct weir__topic_view *view;

        if (len < sizeof(name))
            memcpy(name, names, len);
        view = weir__snapshot_find(web->snapshot, name);
        if (view != NULL)
            weir__object_put(&topics,
                             weir__field(name, history_json(&view->history)));
        names = names[len] == ',' ? names + len + 1 : NULL;
    }
    weir__api_answer_tagged(
        request,
        WEIR__OBJECT(weir__field_number("step_ms", WEIR__HISTORY_STEP_MS),
                     weir__field_number("points", WEIR__HISTORY_POINTS),
                     weir__field("topics", topics)));
}
