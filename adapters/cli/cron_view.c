/* SPDX-License-Identifier: MIT */
#include "adapters/cli/cron_view.h"

#include "adapters/cli/cli.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"
#include "adapters/json/json.h"
#include "core/schedule.h"
#include "core/text.h"

enum { NEXT_SHOWN = 5 };

static struct weir__field next_field(const struct weir_cron_info *info)
{
    struct json_object *array = json_object_new_array();
    int64_t next[NEXT_SHOWN];
    int count = info->has_tick ? weir_cron_next(&info->cron, info->from_ms,
                                                info->now_ms, next, NEXT_SHOWN)
                               : 0;

    for (int i = 0; i < count; i++)
        array = weir__array_with(array, json_object_new_int64(next[i]));
    return weir__field("next", array);
}

struct json_object *weir__cron_json(const char *topic,
                                    const struct weir_cron_info *info)
{
    const struct weir_cron *cron = &info->cron;
    struct json_object *body = NULL;

    if (info->why != NULL)
        return WEIR__OBJECT(weir__field_str("topic", topic),
                            weir__field_str("name", cron->name),
                            weir__field_bool("paused", info->is_paused),
                            weir__field_bool("tick", info->has_tick),
                            weir__field_str("error", info->why));
    if (weir__json_from_msgpack(cron->body, &body) < 0)
        return NULL;
    return WEIR__OBJECT(
        weir__field_str("topic", topic), weir__field_str("name", cron->name),
        weir__field_str("at", cron->at),
        weir__field_int("every_ms", cron->every_ms > 0 ? cron->every_ms : -1),
        weir__field_str("zone", cron->zone),
        weir__field_str("missed", weir__missed_name(cron->missed)),
        weir__field_str("overlap", cron->skips_overlap ? "skip" : "allow"),
        weir__field_int("jitter_ms", cron->jitter_ms),
        weir__field_str("retry", cron->retry),
        weir__field_int("ttl_ms", cron->ttl_ms > 0 ? cron->ttl_ms : -1),
        weir__field_str("url", cron->url),
        body == NULL ? weir__field_null("body") : weir__field("body", body),
        weir__field_bool("paused", info->is_paused),
        weir__field_bool("tick", info->has_tick),
        weir__field_int("next_ms", info->next_ms > 0 ? info->next_ms : -1),
        next_field(info));
}

/* "@daily", "every 15m" and the zone. */
static void print_times(const struct weir_cron *cron)
{
    char every[24];

    if (cron->at != NULL) {
        weir__print("%s", cron->at);
    } else {
        (void)weir__duration_format(cron->every_ms, every);
        weir__print("every %s", every);
    }
    if (cron->zone != NULL)
        weir__print(" %s", cron->zone);
}

void weir__cron_print_row(const char *topic, const struct weir_cron_info *info)
{
    char next[32] = "-";

    if (info->next_ms > 0)
        weir__time_print(info->next_ms, next);
    weir__print("%s  %s  ", topic, info->cron.name);
    if (info->why != NULL) {
        weir__print("cannot be read: %s\n", info->why);
        return;
    }
    print_times(&info->cron);
    weir__print("  %s\n", info->is_paused  ? "paused"
                          : info->has_tick ? next
                                           : "no tick");
}

static void print_field(const char *name, const char *value)
{
    if (value != NULL)
        weir__print("%-10s%s\n", name, value);
}

static void print_span(const char *name, int64_t ms)
{
    char text[24];

    if (ms <= 0)
        return;
    (void)weir__duration_format(ms, text);
    print_field(name, text);
}

static void print_next(const struct weir_cron_info *info)
{
    int64_t next[NEXT_SHOWN];
    int count = weir_cron_next(&info->cron, info->from_ms, info->now_ms, next,
                               NEXT_SHOWN);
    char text[32];

    for (int i = 0; i < count; i++) {
        weir__time_print(next[i], text);
        weir__print("%-10s%s\n", i == 0 ? "next" : "", text);
    }
    if (count <= 0)
        print_field("next", count < 0 ? "the zone is not known here" : "never");
}

void weir__cron_print(const char *topic, const struct weir_cron_info *info)
{
    const struct weir_cron *cron = &info->cron;
    char body[256];

    print_field("topic", topic);
    print_field("name", cron->name);
    print_field("error", info->why);
    if (info->why != NULL)
        return;
    print_field("at", cron->at);
    print_span("every", cron->every_ms);
    print_field("zone", cron->zone);
    print_field("missed", weir__missed_name(cron->missed));
    print_field("overlap", cron->skips_overlap ? "skip" : "allow");
    print_span("jitter", cron->jitter_ms);
    print_field("retry", cron->retry);
    print_span("ttl", cron->ttl_ms);
    print_field("url", cron->url);
    if (cron->body.len > 0 &&
        weir__json_print(cron->body, body, sizeof(body)) > 0)
        print_field("body", body);
    print_field("paused", info->is_paused ? "yes" : "no");
    if (info->has_tick)
        print_next(info);
    else if (!info->is_paused)
        print_field("next", "no tick: a job that a client added has its id");
}
