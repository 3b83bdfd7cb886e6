/* SPDX-License-Identifier: MIT */

/* weir topic: which topics there are, and the options stored with one. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "core/error.h"
#include "core/options.h"
#include "core/text.h"

#include <string.h>

struct topic {
    struct weir__client client;
    const char *name;
    bool is_paused;
    char kind[32];
    struct json_object *options; /* owned; stored ones by name; NULL: no
                                    memory */
    char text[240];              /* what the server's side said */
};

/* --- what is stored ----------------------------------------------------- */

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct topic *topic = arg;

    if (stats != NULL) {
        topic->is_paused = stats->paused;
        (void)snprintf(topic->kind, sizeof(topic->kind), "%s", stats->kind);
    }
    weir__client_finish(&topic->client, code);
}

static void on_setting(int code, const char *key, const char *value, void *arg)
{
    struct topic *topic = arg;

    if (key == NULL)
        weir__client_finish(&topic->client,
                            topic->options == NULL ? WEIR_ENOMEM : code);
    else
        weir__object_put(&topic->options, weir__field_str(key, value));
}

static int ask_all(struct topic *topic)
{
    int rc =
        weir_reactor_stats(topic->client.reactor, topic->name, on_stats, topic);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&topic->client);
    if (rc < 0)
        return rc;
    topic->options = json_object_new_object();
    if (topic->options == NULL)
        return WEIR_ENOMEM;
    rc = weir_reactor_settings(topic->client.reactor, topic->name, on_setting,
                               topic);
    return rc == WEIR_OK ? weir__client_wait(&topic->client) : rc;
}

static enum weir__exit print_json(struct topic *topic)
{
    return weir__print_object(
        WEIR__OBJECT(weir__field_str("topic", topic->name),
                     weir__field_str("kind", topic->kind),
                     weir__field_bool("paused", topic->is_paused),
                     weir__field("options", json_object_get(topic->options))));
}

static void print_text(const struct topic *topic)
{
    struct json_object_iterator it = json_object_iter_begin(topic->options);
    struct json_object_iterator end = json_object_iter_end(topic->options);

    weir__print("%-14s%s\n", "topic", topic->name);
    weir__print("%-14s%s\n", "kind", topic->kind);
    weir__print("%-14s%s\n", "paused", topic->is_paused ? "yes" : "no");
    for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
        struct json_object *value = json_object_iter_peek_value(&it);

        if (strcmp(json_object_iter_peek_name(&it), "kind") == 0)
            continue; /* stands above */
        weir__print("%-14s%s\n", json_object_iter_peek_name(&it),
                    json_object_get_string(value));
    }
}

static enum weir__exit show(struct topic *topic)
{
    int rc = ask_all(topic);
    enum weir__exit printed = WEIR__EXIT_DONE;

    if (rc == WEIR_OK && topic->client.cli->json)
        printed = print_json(topic);
    else if (rc == WEIR_OK)
        print_text(topic);
    (void)json_object_put(topic->options);
    if (rc == WEIR_ENOTFOUND)
        return weir__client_not_found(&topic->client, topic->name, NULL);
    if (rc < 0)
        return weir__client_exit(&topic->client, rc, "topic show");
    return printed;
}

static enum weir__exit run_show(const struct weir__cli *cli,
                                const struct weir__args *args)
{
    struct topic topic = {.name = args->operand[0]};
    enum weir__exit rc;

    if (!weir__operand_topic(topic.name))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&topic.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = show(&topic);
    weir__client_close(&topic.client);
    return rc;
}

/* --- setting ------------------------------------------------------------ */

static void on_set(int code, const char *text, void *arg)
{
    struct topic *topic = arg;

    (void)snprintf(topic->text, sizeof(topic->text), "%s",
                   text != NULL ? text : ""); /* cut */
    weir__client_finish(&topic->client, code);
}

/* `settings` ends with NULL, as argv does. */
static enum weir__exit set(struct topic *topic, const char *const *settings)
{
    struct weir_error err = {0};
    int rc = weir_reactor_set(topic->client.reactor, topic->name, settings,
                              on_set, topic, &err);

    if (rc < 0) {
        weir__complain("topic set: %s", err.text);
        return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
    }
    rc = weir__client_wait(&topic->client);
    if (rc == WEIR_EKIND || rc == WEIR_EINVAL) {
        weir__complain("topic set: %s: %s", topic->name,
                       topic->text[0] != '\0' ? topic->text
                                              : weir_error_text(rc));
        return WEIR__EXIT_USAGE;
    }
    if (rc < 0)
        return weir__client_exit(&topic->client, rc, "topic set");
    return show(topic);
}

static enum weir__exit run_set(const struct weir__cli *cli,
                               const struct weir__args *args)
{
    struct topic topic = {.name = args->operand[0]};
    struct weir__options unused;
    struct weir_error err = {0};
    enum weir__exit rc;

    if (!weir__operand_topic(topic.name))
        return WEIR__EXIT_USAGE;
    /* Before a server is looked for. */
    weir__options_init(&unused);
    if (weir__options_read(&unused, topic.name, args->operand + 1, &err) < 0) {
        weir__complain("topic set: %s", err.text);
        return WEIR__EXIT_USAGE;
    }
    rc = weir__client_open(&topic.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&topic.client, topic.name);
    if (rc == WEIR__EXIT_NONE)
        rc = set(&topic, args->operand + 1);
    weir__client_close(&topic.client);
    return rc;
}

/* --- listing ------------------------------------------------------------ */

static enum weir__exit print_names_json(const struct weir__topics *topics)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < topics->count; i++)
        array =
            weir__array_with(array, json_object_new_string(topics->names[i]));
    return weir__print_object(WEIR__OBJECT(weir__field("topics", array)));
}

static enum weir__exit run_list(const struct weir__cli *cli,
                                const struct weir__args *args)
{
    struct weir__client client;
    struct weir__topics topics;
    enum weir__exit rc = weir__client_open(&client, cli, NULL);

    (void)args;
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_exit(&client, weir__topics_ask(&client, &topics),
                           "topic list");
    if (rc == WEIR__EXIT_DONE && cli->json)
        rc = print_names_json(&topics);
    for (size_t i = 0; rc == WEIR__EXIT_DONE && i < topics.count; i++) {
        if (!cli->json)
            weir__print("%s\n", topics.names[i]);
    }
    weir__topics_fini(&topics);
    weir__client_close(&client);
    return rc;
}

const struct weir__command weir__cmd_topic_list = {
    .name = "topic list",
    .operands = "",
    .summary = "List the names of the topics",
    .details =
        "In byte order, one a line. With --json: {\"topics\":[NAME,...]}.",
    .example = "weir topic list",
    .exits = "0 listed, also when there are none, 2 wrong usage,\n"
             "  5 server unreachable",
    .run = run_list,
};

const struct weir__command weir__cmd_topic_show = {
    .name = "topic show",
    .operands = "TOPIC",
    .summary = "Show the options stored with a topic",
    .details = "With --json: {\"topic\",\"kind\",\"paused\","
               "\"options\":{NAME:VALUE,...}}.",
    .example = "weir topic show order.close",
    .exits = "0 shown, 2 wrong usage, 3 no such topic, 5 server unreachable",
    .run = run_show,
};

const struct weir__command weir__cmd_topic_set = {
    .name = "topic set",
    .operands = "TOPIC OPTION=VALUE...",
    .summary = "Store options with a topic, for every worker",
    .details =
        "Options are retry, retry_jitter, concurrency, prefetch, weight, "
        "timeout, lease,\nmax_crashes, ttl, max_dead, on_dead, max_body, "
        "max_pending, delay, consumers,\nlock, auto_ack, parking, key, group, "
        "on_retry, start, after, claim_idle,\nbatch, length, overflow, "
        "max_age, group_ttl, linger, hot and kind; an empty\nvalue removes "
        "one. They beat what workers are configured with; a worker\nfollows "
        "within 5 s. All are set or none. The topic is made when it does not\n"
        "exist. Prints what is stored then, as weir topic show does. Which "
        "kind has\nwhich is in docs/kinds.md. The kind changes only where "
        "there "
        "are no jobs; totals\nbegin again then, and options that the new kind "
        "does not have are removed.",
    .example = "weir topic set order.close retry='15s 3m' concurrency=10 ttl=",
    .exits = "0 set, 2 wrong usage, or jobs of another kind are there, or\n"
             "  on_dead leads back to the topic, 5 server unreachable",
    .run = run_set,
};
