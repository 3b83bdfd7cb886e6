/* SPDX-License-Identifier: MIT */

/* weir topic: which topics there are, and the options stored with one. */

#include "adapters/cli/ask.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "core/error.h"
#include "core/options.h"
#include "core/text.h"

#include <string.h>

/* --- what is stored ----------------------------------------------------- */

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct weir__ask *ask = arg;

    if (stats != NULL) {
        ask->is_paused = stats->paused;
        (void)snprintf(ask->kind, sizeof(ask->kind), "%s",
                       stats->kind); /* fits */
    }
    weir__client_finish(&ask->client, code);
}

static void on_setting(int code, const char *key, const char *value, void *arg)
{
    struct weir__ask *ask = arg;

    if (key == NULL)
        weir__client_finish(&ask->client,
                            ask->options == NULL ? WEIR_ENOMEM : code);
    else
        weir__object_put(&ask->options, weir__field_str(key, value));
}

static int ask_show(struct weir__ask *ask)
{
    int rc = weir_reactor_stats(ask->client.reactor, ask->topic, on_stats, ask);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&ask->client);
    if (rc < 0)
        return rc;
    ask->options = json_object_new_object();
    if (ask->options == NULL)
        return WEIR_ENOMEM;
    return weir_reactor_settings(ask->client.reactor, ask->topic, on_setting,
                                 ask);
}

static enum weir__exit print_shown(struct weir__ask *ask)
{
    struct json_object_iterator it = json_object_iter_begin(ask->options);
    struct json_object_iterator end = json_object_iter_end(ask->options);

    if (ask->client.cli->json)
        return weir__print_object(WEIR__OBJECT(
            weir__field_str("topic", ask->topic),
            weir__field_str("kind", ask->kind),
            weir__field_bool("paused", ask->is_paused),
            weir__field("options", json_object_get(ask->options))));
    weir__print("%-14s%s\n", "topic", ask->topic);
    weir__print("%-14s%s\n", "kind", ask->kind);
    weir__print("%-14s%s\n", "paused", ask->is_paused ? "yes" : "no");
    for (; !json_object_iter_equal(&it, &end); json_object_iter_next(&it)) {
        struct json_object *value = json_object_iter_peek_value(&it);

        if (strcmp(json_object_iter_peek_name(&it), "kind") == 0)
            continue; /* stands above */
        weir__print("%-14s%s\n", json_object_iter_peek_name(&it),
                    json_object_get_string(value));
    }
    return WEIR__EXIT_DONE;
}

/* --- setting ------------------------------------------------------------ */

static bool check_set(struct weir__ask *ask)
{
    struct weir__options unused;
    struct weir_error err = {0};

    weir__options_init(&unused);
    if (weir__options_read(&unused, ask->topic, ask->args->operand + 1, &err) ==
        WEIR_OK)
        return true;
    weir__complain("topic set: %s", err.text);
    return false;
}

/* The operands end with NULL, as argv does. Of an error that has a sentence it
 * is left in `text`. */
static int ask_set(struct weir__ask *ask)
{
    struct weir_error err = {0};
    int rc;

    weir__ask_new_topic(ask);
    rc = weir_reactor_set(ask->client.reactor, ask->topic,
                          ask->args->operand + 1, weir__ask_on_code, ask, &err);

    if (rc == WEIR_OK) {
        rc = weir__client_wait(&ask->client);
        (void)weir__error_set(&err, rc, "%s: %s", ask->topic,
                              ask->text[0] != '\0' ? ask->text
                                                   : weir_error_text(rc));
        if (rc != WEIR_EKIND && rc != WEIR_EINVAL &&
            (rc != WEIR_ESERVER || ask->text[0] == '\0'))
            err.text[0] = '\0';
    } else if (ask->client.refusal[0] != '\0') {
        err.text[0] = '\0'; /* what was logged says more */
    }
    (void)snprintf(ask->text, sizeof(ask->text), "%s", err.text); /* fits */
    return rc == WEIR_OK ? ask_show(ask) : rc;
}

static enum weir__exit print_set(struct weir__ask *ask)
{
    const char *before = ask->client.kind;

    weir__ask_note_new(ask);
    if (before[0] != '\0' && strcmp(before, ask->kind) != 0)
        weir__note(ask->client.cli,
                   "topic \"%s\" was of kind %s: its totals begin again",
                   ask->topic, before);
    return print_shown(ask);
}

static enum weir__exit refuse_set(struct weir__ask *ask, int code)
{
    if (ask->text[0] == '\0')
        return WEIR__EXIT_NONE;
    weir__complain("topic set: %s", ask->text);
    return code == WEIR_EKIND || code == WEIR_EINVAL ? WEIR__EXIT_USAGE
                                                     : WEIR__EXIT_FAILED;
}

/* --- listing ------------------------------------------------------------ */

static int ask_names(struct weir__ask *ask)
{
    return weir__topics_ask(&ask->client, &ask->topics);
}

static enum weir__exit print_names(struct weir__ask *ask)
{
    struct json_object *array = NULL;

    if (ask->client.cli->json)
        array = json_object_new_array();
    for (size_t i = 0; i < ask->topics.count; i++) {
        const char *name = ask->topics.names[i];

        if (ask->client.cli->json)
            array = weir__array_with(array, json_object_new_string(name));
        else
            weir__print("%s\n", name);
    }
    return ask->client.cli->json
               ? weir__print_object(WEIR__OBJECT(weir__field("topics", array)))
               : WEIR__EXIT_DONE;
}

#define NAMES_DETAILS \
    "In byte order, one a line. With --json: {\"topics\":[NAME,...]}."
#define NAMES_EXITS                                        \
    "0 listed, also when there are none, 2 wrong usage,\n" \
    "  5 server unreachable"

const struct weir__command weir__cmd_topics = {
    .name = "topics",
    .operands = "",
    .summary = "List the names of the topics, as topic list does",
    .details = NAMES_DETAILS,
    .example = "weir topics",
    .exits = NAMES_EXITS,
    .ask = ask_names,
    .print = print_names,
};

const struct weir__command weir__cmd_topic_list = {
    .name = "topic list",
    .operands = "",
    .summary = "List the names of the topics",
    .details = NAMES_DETAILS,
    .example = "weir topic list",
    .exits = NAMES_EXITS,
    .ask = ask_names,
    .print = print_names,
};

const struct weir__command weir__cmd_topic_show = {
    .name = "topic show",
    .operands = "TOPIC",
    .summary = "Show the options stored with a topic",
    .details = "With --json: {\"topic\",\"kind\",\"paused\","
               "\"options\":{NAME:VALUE,...}}.",
    .example = "weir topic show order.close",
    .exits = "0 shown, 2 wrong usage, 3 no such topic, 5 server unreachable",
    .ask = ask_show,
    .print = print_shown,
};

const struct weir__command weir__cmd_topic_set = {
    .name = "topic set",
    .operands = "TOPIC OPTION=VALUE...",
    .summary = "Store options with a topic, for every worker",
    .details =
        "An empty value removes an option. They beat what the files of "
        "workers say, not\ntheir flags; a worker follows within 5 s. All are "
        "set or none. The topic is\nmade when it does not exist. Prints what "
        "is stored then, as weir topic show\ndoes. The kind changes only "
        "where there are no jobs; totals begin again then,\nand options that "
        "the new kind does not have are removed. What each option\nmeans is "
        "in docs/configuration.md.",
    .lists_options = true,
    .example = "weir topic set order.close retry='15s 3m' concurrency=10 ttl=",
    .exits = "0 set, 2 wrong usage, or jobs of another kind are there, or\n"
             "  on_dead leads back to the topic, 5 server unreachable",
    .needs_kind = true,
    .check = check_set,
    .ask = ask_set,
    .refuse = refuse_set,
    .print = print_set,
};
