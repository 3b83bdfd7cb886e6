/* SPDX-License-Identifier: MIT */
#include "adapters/cli/ask.h"

#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "core/mem.h"

#include <stdio.h>
#include <string.h>

/* --- answers ------------------------------------------------------------ */

void weir__ask_on_code(int code, const char *text, void *arg)
{
    struct weir__ask *ask = arg;

    (void)snprintf(ask->text, sizeof(ask->text), "%s",
                   text != NULL ? text : ""); /* cut */
    weir__client_finish(&ask->client, code);
}

void weir__ask_on_count(int code, uint64_t count, void *arg)
{
    struct weir__ask *ask = arg;

    ask->count = count;
    weir__client_finish(&ask->client, code);
}

static bool print_json(const struct weir__ask *ask,
                       const struct weir_job_info *job)
{
    struct json_object *object = weir__job_json(ask->topic, job);
    bool is_good = object != NULL &&
                   weir__print_json(ask->count == 0 ? "[\n" : ",\n", object);

    (void)json_object_put(object);
    return is_good;
}

void weir__ask_on_job(int code, const struct weir_job_info *job, void *arg)
{
    struct weir__ask *ask = arg;

    if (job == NULL) {
        weir__client_finish(&ask->client,
                            ask->is_short_of_memory ? WEIR_ENOMEM : code);
        return;
    }
    if (ask->is_short_of_memory)
        return;
    if (ask->count == ask->limit) {
        ask->is_more = true;
        return;
    }
    if (!ask->client.cli->json)
        ask->command->print_job(job);
    else
        ask->is_short_of_memory = !print_json(ask, job);
    ask->count += ask->is_short_of_memory ? 0 : 1;
    if (ferror(stdout) != 0)
        weir__client_finish(&ask->client, WEIR_OK); /* nobody gets the rest */
}

void weir__ask_new_topic(struct weir__ask *ask)
{
    if (ask->client.kind[0] == '\0')
        weir__topics_near(&ask->client, ask->topic, ask->near);
}

void weir__ask_note_new(const struct weir__ask *ask)
{
    if (ask->near[0] != '\0')
        weir__note(ask->client.cli, "topic \"%s\" is new; did you mean \"%s\"?",
                   ask->topic, ask->near);
}

enum weir__exit weir__ask_end_list(struct weir__ask *ask, int code)
{
    bool is_none = code == WEIR_OK && ask->count == 0;
    enum weir__exit rc;

    if (code == WEIR_ENOTFOUND || is_none)
        rc = weir__client_not_found(&ask->client, ask->topic, NULL);
    else
        rc = weir__client_exit(&ask->client, code, ask->command->name);
    if (ask->client.cli->json && ask->count > 0)
        (void)printf("\n]\n"); /* closed also when it broke off */
    else if (ask->client.cli->json && rc == WEIR__EXIT_DONE)
        (void)printf("[]\n");
    if (ask->is_more)
        weir__note(ask->client.cli,
                   "there are more than %zu; --limit N shows more", ask->limit);
    return rc;
}

/* --- the frame ---------------------------------------------------------- */

/* The first operand is a topic, but for NAME, which a schedule has; the usage
 * line says whether the second is an id. */
static bool take_operands(struct weir__ask *ask)
{
    const char *const *operand = ask->args->operand;

    if (ask->args->operand_count > 0 &&
        strcmp(ask->command->operands, "NAME") != 0)
        ask->topic = operand[0];
    if (ask->args->operand_count > 1 &&
        strstr(ask->command->operands, "ID") != NULL)
        ask->id = operand[1];
    return (ask->topic == NULL || weir__operand_topic(ask->topic)) &&
           (ask->id == NULL || weir__operand_id(ask->id, false));
}

static enum weir__exit conclude(struct weir__ask *ask, int code)
{
    const struct weir__command *command = ask->command;
    enum weir__exit rc = WEIR__EXIT_NONE;

    if (command->print_job != NULL)
        return weir__ask_end_list(ask, code);
    if (code < 0 && command->refuse != NULL)
        rc = command->refuse(ask, code);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    if (code == WEIR_ENOTFOUND)
        return weir__client_not_found(&ask->client, ask->topic, ask->id);
    if (code < 0)
        return weir__client_exit(&ask->client, code, command->name);
    return command->print(ask);
}

/* With an open client. */
static enum weir__exit talk(struct weir__ask *ask)
{
    enum weir__exit rc = WEIR__EXIT_NONE;
    int code;

    if (ask->command->needs_kind)
        rc = weir__client_know(&ask->client, ask->topic);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    code = ask->command->ask(ask);
    if (code == WEIR_OK)
        code = weir__client_wait(&ask->client);
    return conclude(ask, code);
}

enum weir__exit weir__ask(const struct weir__command *command,
                          const struct weir__cli *cli,
                          const struct weir__args *args)
{
    struct weir__ask ask = {.command = command, .args = args};
    enum weir__exit rc;

    if (!take_operands(&ask) ||
        (command->check != NULL && !command->check(&ask)))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&ask.client, cli, NULL, 0);
    if (rc == WEIR__EXIT_NONE) {
        rc = talk(&ask);
        weir__client_close(&ask.client);
    }
    weir__topics_fini(&ask.topics);
    (void)json_object_put(ask.options);
    if (ask.job.body.len > 0)
        weir_body_free(ask.job.body);
    return rc;
}
