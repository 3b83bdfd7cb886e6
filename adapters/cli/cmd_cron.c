/* SPDX-License-Identifier: MIT */

/* weir cron: schedules, which add jobs to their topics again and again. */

#include "adapters/cli/ask.h"
#include "adapters/cli/cron_texts.h"
#include "adapters/cli/cron_view.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"
#include "adapters/json/json.h"
#include "core/assert.h"
#include "core/schedule.h"
#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of each of these commands the first flag is the topic. */
#define TOPIC_FLAG "topic", "T", "the topic whose schedule it is"

static const struct weir__flag topic_flags[] = {{TOPIC_FLAG}};

/* The operand is the schedule's name. */
static const char *name_of(const struct weir__ask *ask)
{
    return ask->args->operand[0];
}

/* And that the name is one. */
static bool check_topic(struct weir__ask *ask)
{
    const struct weir_cron cron = {.name = name_of(ask), .every_ms = 1000};
    struct weir_error err = {0};

    ask->topic = ask->args->value[0];
    if (ask->topic != NULL)
        return weir__told(weir_cron_check(&cron, &err), &err) &&
               weir__operand_topic(ask->topic);
    weir__complain("%s needs --topic T; weir cron list tells which have "
                   "schedules",
                   ask->command->name);
    return false;
}

static enum weir__exit refuse(struct weir__ask *ask, int code)
{
    if (code == WEIR_ENOTFOUND) {
        weir__complain("there is no schedule \"%s\" in topic \"%s\"",
                       name_of(ask), ask->topic);
        return WEIR__EXIT_NOT_FOUND;
    }
    if (ask->text[0] == '\0' ||
        (code != WEIR_EINVAL && code != WEIR_EFULL && code != WEIR_ESERVER))
        return WEIR__EXIT_NONE;
    weir__complain("%s: %s", ask->command->name, ask->text);
    return code == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
}

/* --- add ---------------------------------------------------------------- */

enum { TOPIC, FIELDS };

static const struct weir__flag add_flags[] = {
    [TOPIC] = {"topic", "T", "the topic that gets the jobs, of kind delay"},
    [FIELDS + WEIR__CRON_AT] = {"at", "CRON",
                                "when: minute hour day month weekday, with\n"
                                "the second in front if there are six; or\n"
                                "@hourly, @daily, @weekly, @monthly, @yearly"},
    [FIELDS +
        WEIR__CRON_EVERY] = {"every", "D", "each interval instead, 1s to 365d"},
    [FIELDS + WEIR__CRON_ZONE] = {"zone", "Z",
                                  "time zone of --at, such as Europe/Berlin\n"
                                  "(default: UTC)"},
    [FIELDS + WEIR__CRON_BODY] = {"body", "JSON",
                                  "body of the jobs, up to 16 KiB (default:\n"
                                  "null)"},
    [FIELDS + WEIR__CRON_MISSED] = {"missed", "M",
                                    "of times that no worker saw: once, one\n"
                                    "job for all; skip, none; all, each has\n"
                                    "its own (default: once)"},
    [FIELDS + WEIR__CRON_OVERLAP] = {"overlap", "O",
                                     "while the job before is not over: allow\n"
                                     "the next one, or skip it (default:\n"
                                     "allow)"},
    [FIELDS + WEIR__CRON_JITTER] = {"jitter", "D",
                                    "each job is due up to so much later, 0ms\n"
                                    "to 1d (default: 0ms)"},
    [FIELDS + WEIR__CRON_RETRY] = {"retry", "LADDER",
                                   "as of weir add (default: the topic's)"},
    [FIELDS + WEIR__CRON_TTL] = {"ttl", "D", "as of weir add"},
    [FIELDS + WEIR__CRON_URL] = {"url", "U", "as of weir add"},
};

static int read_cron(const struct weir__ask *ask, struct weir_cron *ret_cron,
                     struct weir_error *err)
{
    struct weir__cron_texts texts = {.dashes = "--", .name = name_of(ask)};
    enum weir__cron_field field;

    for (int i = 0; i < WEIR__CRON_FIELDS; i++)
        texts.value[i] = ask->args->value[FIELDS + i];
    return weir__cron_texts_read(&texts, ret_cron, &field, err);
}

static bool check_add(struct weir__ask *ask)
{
    struct weir_error err = {0};
    struct weir_cron cron;
    int rc;

    if (!check_topic(ask))
        return false;
    rc = read_cron(ask, &cron, &err);
    weir_body_free(cron.body);
    return weir__told(rc, &err);
}

/* That it is there already is no failure. */
static void on_set(int code, const char *text, void *arg)
{
    struct weir__ask *ask = arg;

    ask->is_more = code == WEIR_EEXISTS;
    weir__ask_on_code(ask->is_more ? WEIR_OK : code, text, arg);
}

static int ask_add(struct weir__ask *ask)
{
    struct weir_error err = {0};
    struct weir_cron cron;
    int rc = read_cron(ask, &cron, &err); /* was checked */

    weir__ask_new_topic(ask);
    if (rc == WEIR_OK)
        rc = weir_reactor_cron_set(ask->client.reactor, ask->topic, &cron,
                                   on_set, ask, &err);
    weir_body_free(cron.body);
    if (rc < 0)
        (void)snprintf(ask->text, sizeof(ask->text), "%s", err.text); /* fits */
    return rc;
}

static enum weir__exit print_word(const struct weir__ask *ask, const char *word)
{
    if (ask->client.cli->json)
        return weir__print_object(
            WEIR__OBJECT(weir__field_str("topic", ask->topic),
                         weir__field_str("name", name_of(ask)),
                         weir__field_str("schedule", word)));
    weir__print("%s\n", word);
    return WEIR__EXIT_DONE;
}

static enum weir__exit print_added(struct weir__ask *ask)
{
    weir__ask_note_new(ask);
    return print_word(ask, ask->is_more ? "unchanged" : "set");
}

const struct weir__command weir__cmd_cron_add = {
    .name = "cron add",
    .operands = "NAME",
    WEIR__FLAGS(add_flags),
    .summary = "Set a schedule, which adds a job at each of its times",
    .details =
        "Needs --topic, and one of --at and --every. The jobs have the ids "
        "NAME@TIME. One\nof that name is replaced; one that is paused stays "
        "so. Any worker of the topic\nadds the jobs, there is nothing else to "
        "be started. docs/recurring.md has how\ntimes are written and what "
        "summer time does. With --json:\n{\"topic\",\"name\",\"schedule\"}, "
        "that being set or unchanged.",
    .example = "weir cron add nightly --topic report --at '0 3 * * 1-5' "
               "--zone Europe/Berlin",
    .exits = "0 set, or it was there already, 1 the topic has 1,024, 2 wrong\n"
             "  usage, or a job has the id NAME@next, 5 server unreachable",
    .needs_kind = true,
    .check = check_add,
    .ask = ask_add,
    .refuse = refuse,
    .print = print_added,
};

/* --- pause, resume, delete ------------------------------------------------ */

static int ask_verb(struct weir__ask *ask, enum weir_cron_verb verb)
{
    return weir_reactor_cron(ask->client.reactor, ask->topic, name_of(ask),
                             verb, weir__ask_on_code, ask);
}

static int ask_pause(struct weir__ask *ask)
{
    return ask_verb(ask, WEIR_CRON_PAUSE);
}

static int ask_resume(struct weir__ask *ask)
{
    return ask_verb(ask, WEIR_CRON_RESUME);
}

static int ask_delete(struct weir__ask *ask)
{
    return ask_verb(ask, WEIR_CRON_DELETE);
}

static enum weir__exit print_paused(struct weir__ask *ask)
{
    return print_word(ask, "paused");
}

static enum weir__exit print_resumed(struct weir__ask *ask)
{
    return print_word(ask, "resumed");
}

static enum weir__exit print_deleted(struct weir__ask *ask)
{
    return print_word(ask, "deleted");
}

#define VERB_EXITS \
    "0 done, 2 wrong usage, 3 no such schedule, 5 server unreachable"

const struct weir__command weir__cmd_cron_pause = {
    .name = "cron pause",
    .operands = "NAME",
    WEIR__FLAGS(topic_flags),
    .summary = "Add no more jobs of a schedule until it is resumed",
    .details = "Jobs that are there stay. With --json: "
               "{\"topic\",\"name\",\"schedule\"}.",
    .example = "weir cron pause nightly --topic report",
    .exits = VERB_EXITS,
    .needs_kind = true,
    .check = check_topic,
    .ask = ask_pause,
    .refuse = refuse,
    .print = print_paused,
};

const struct weir__command weir__cmd_cron_resume = {
    .name = "cron resume",
    .operands = "NAME",
    WEIR__FLAGS(topic_flags),
    .summary = "Go on with a schedule that was paused, at its next time",
    .details = "What it would have added meanwhile is not made up for. With "
               "--json:\n{\"topic\",\"name\",\"schedule\"}.",
    .example = "weir cron resume nightly --topic report",
    .exits = "0 done, 2 wrong usage, or a job has the id NAME@next, 3 no such\n"
             "  schedule, 5 server unreachable",
    .needs_kind = true,
    .check = check_topic,
    .ask = ask_resume,
    .refuse = refuse,
    .print = print_resumed,
};

const struct weir__command weir__cmd_cron_delete = {
    .name = "cron delete",
    .operands = "NAME",
    WEIR__FLAGS(topic_flags),
    .summary = "Delete a schedule",
    .details = "Jobs that are there stay. One that stands in the configuration "
               "file of a worker\ncomes back when such a worker starts. With "
               "--json: {\"topic\",\"name\",\"schedule\"}.",
    .example = "weir cron delete nightly --topic report",
    .exits = VERB_EXITS,
    .needs_kind = true,
    .check = check_topic,
    .ask = ask_delete,
    .refuse = refuse,
    .print = print_deleted,
};

/* --- list, show, run ------------------------------------------------------ */

/* The one that is named, or each; what is printed as JSON is kept till the
 * end. */
static void on_listed(int code, const struct weir_cron_info *info, void *arg)
{
    struct weir__ask *ask = arg;
    bool is_list = ask->args->operand_count == 0;

    if (info == NULL) {
        if (code == WEIR_OK && !is_list && ask->count == 0)
            code = WEIR_ENOTFOUND;
        if (code == WEIR_EKIND && is_list && ask->args->value[0] == NULL)
            code = WEIR_OK; /* topics of other kinds have none */
        weir__client_finish(&ask->client, code);
        return;
    }
    if (!is_list && strcmp(info->cron.name, name_of(ask)) != 0)
        return;
    ask->count++;
    if (ask->client.cli->json && is_list)
        ask->options =
            weir__array_with(ask->options, weir__cron_json(ask->topic, info));
    else if (ask->client.cli->json)
        ask->options = weir__cron_json(ask->topic, info);
    else if (is_list)
        weir__cron_print_row(ask->topic, info);
    else
        weir__cron_print(ask->topic, info);
}

static int ask_show(struct weir__ask *ask)
{
    return weir_reactor_cron_list(ask->client.reactor, ask->topic, on_listed,
                                  ask);
}

/* Of each topic, one after the other; the frame waits for the last answer. */
static int list_all(struct weir__ask *ask)
{
    int rc = weir__topics_ask(&ask->client, &ask->topics);

    for (size_t i = 0; rc == WEIR_OK && i <= ask->topics.count; i++) {
        rc = weir__client_wait(&ask->client);
        if (rc < 0 || i == ask->topics.count)
            break; /* there are none */
        ask->topic = ask->topics.names[i];
        rc = ask_show(ask);
        if (i + 1 == ask->topics.count)
            return rc;
    }
    if (rc == WEIR_OK)
        weir__topics_fini(&ask->topics);
    return rc == WEIR_OK ? weir__topics_ask(&ask->client, &ask->topics) : rc;
}

static int ask_list(struct weir__ask *ask)
{
    if (ask->client.cli->json)
        ask->options = json_object_new_array();
    return ask->topic != NULL ? ask_show(ask) : list_all(ask);
}

static bool check_list(struct weir__ask *ask)
{
    ask->topic = ask->args->value[0];
    return ask->topic == NULL || weir__operand_topic(ask->topic);
}

static enum weir__exit print_listed(struct weir__ask *ask)
{
    struct json_object *answer = ask->options;

    ask->options = NULL;
    return ask->client.cli->json ? weir__print_object(answer) : WEIR__EXIT_DONE;
}

static const struct weir__flag list_flags[] = {
    {"topic", "T", "only those of this topic (default: of all topics)"}};

#define SCHEDULE_JSON                                                    \
    "{\"topic\",\"name\",\"at\",\"every_ms\",\"zone\",\"missed\","       \
    "\"overlap\",\n\"jitter_ms\",\"retry\",\"ttl_ms\",\"url\",\"body\"," \
    "\"paused\",\"tick\",\"next_ms\",\"next\"}"

const struct weir__command weir__cmd_cron_list = {
    .name = "cron list",
    .operands = "",
    WEIR__FLAGS(list_flags),
    .summary = "List schedules",
    .details = "One a line, with its topic, its times and the next one, or no "
               "tick: a job that\na client added has the id NAME@next; or why "
               "it cannot be read: set it again, or\ndelete it. With --json "
               "an array of\n" SCHEDULE_JSON
               ";\none that cannot be read has \"error\" instead of times.",
    .example = "weir cron list",
    .exits = "0 listed, also when there are none, 2 wrong usage,\n"
             "  5 server unreachable",
    .check = check_list,
    .ask = ask_list,
    .print = print_listed,
};

const struct weir__command weir__cmd_cron_show = {
    .name = "cron show",
    .operands = "NAME",
    WEIR__FLAGS(topic_flags),
    .summary = "Show a schedule and its next five times",
    .details = "Times are in UTC. With --json:\n" SCHEDULE_JSON
               "; times\nare ms since 1970.",
    .example = "weir cron show nightly --topic report",
    .exits = VERB_EXITS,
    .needs_kind = true,
    .check = check_topic,
    .ask = ask_show,
    .refuse = refuse,
    .print = print_listed,
};

/* A job like those of the schedule, whose id has the time of now. */
static int add_now(struct weir__ask *ask, const struct weir_cron_info *info)
{
    const struct weir_cron *cron = &info->cron;
    const struct weir_new_job job = {
        .id = ask->own_id,
        .body = cron->body,
        .retry = cron->retry,
        .ttl_ms = cron->ttl_ms,
        .url = cron->url,
        .headers = cron->headers,
        .header_count = cron->header_count,
    };

    WEIR_ASSERT(sizeof(ask->own_id) >= WEIR__OCCURRENCE_CAP);
    ask->job.body.len = cron->body.len; /* a refusal tells it */
    ask->job.id = ask->own_id;          /* and that */
    (void)weir__occurrence_id(weir__slice_str(cron->name), info->now_ms,
                              ask->own_id);
    return weir__ask_add(ask, &job);
}

static void on_found(int code, const struct weir_cron_info *info, void *arg)
{
    struct weir__ask *ask = arg;

    if (info == NULL) {
        if (!ask->is_more)
            weir__client_finish(&ask->client,
                                code == WEIR_OK ? WEIR_ENOTFOUND : code);
        return;
    }
    if (strcmp(info->cron.name, name_of(ask)) != 0)
        return;
    ask->is_more = true;
    if (info->why != NULL) {
        (void)snprintf(ask->text, sizeof(ask->text), "schedule \"%s\": %s",
                       name_of(ask), info->why); /* fits */
        weir__client_finish(&ask->client, WEIR_EINVAL);
        return;
    }
    code = add_now(ask, info);
    if (code < 0)
        weir__client_finish(&ask->client, code);
}

static int ask_run(struct weir__ask *ask)
{
    return weir_reactor_cron_list(ask->client.reactor, ask->topic, on_found,
                                  ask);
}

static enum weir__exit refuse_run(struct weir__ask *ask, int code)
{
    return ask->is_more ? weir__ask_refuse_added(ask, code) : refuse(ask, code);
}

static enum weir__exit print_run(struct weir__ask *ask)
{
    if (ask->client.cli->json)
        return weir__print_object(
            WEIR__OBJECT(weir__field_str("topic", ask->topic),
                         weir__field_str("id", ask->text)));
    weir__print("%s\n", ask->text);
    return WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_cron_run = {
    .name = "cron run",
    .operands = "NAME",
    WEIR__FLAGS(topic_flags),
    .summary = "Add a job of a schedule now, also of one that is paused",
    .details = "Its times stay as they are, and --overlap does not look at "
               "this job. Prints its\nid. With --json: {\"topic\",\"id\"}.",
    .example = "weir cron run nightly --topic report",
    .exits = "0 added, 1 max_pending is reached, or added, but within 10 s\n"
             "  no server confirmed its durability, 2 wrong usage, or the\n"
             "  body is above max_body, or the server cannot confirm the\n"
             "  durability, 3 no such schedule, 4 a job of this moment is\n"
             "  there already, or another job has the key that is in the\n"
             "  body (nothing was changed), 5 server unreachable",
    .needs_kind = true,
    .check = check_topic,
    .ask = ask_run,
    .refuse = refuse_run,
    .print = print_run,
};
