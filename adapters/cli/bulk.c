/* SPDX-License-Identifier: MIT */
#include "adapters/cli/bulk.h"

#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

#include <inttypes.h>
#include <string.h>

enum {
    SLICE = 4000, /* jobs that are looked at between changes */
    WINDOW = 200, /* requests on their way */
    NAMED_MAX = 5 /* ids in a sentence */
};

enum { LIMIT_MAX = 1000000000 };

/* --- what was given ------------------------------------------------------- */

/* NULL: not given, or the command has no such flag. */
static const char *given(const struct weir__command *command,
                         const struct weir__args *args, const char *name)
{
    for (size_t i = 0; i < command->flag_count; i++)
        if (strcmp(command->flags[i].name, name) == 0)
            return args->value[i];
    return NULL;
}

bool weir__bulk_is_wanted(const struct weir__command *command,
                          const struct weir__args *args)
{
    static const char *const names[] = {"ids-from", "where",  "before",
                                        "after",    "reason", "state",
                                        "limit",    "dry-run"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (given(command, args, names[i]) != NULL)
            return true;
    return args->operand_count > 2;
}

static bool read_conditions(struct weir__bulk *bulk)
{
    const struct weir__command *command = bulk->rule->command;
    const struct weir__args *args = bulk->ask.args;
    const struct weir__conditions conditions = {
        .where = given(command, args, "where"),
        .before = given(command, args, "before"),
        .after = given(command, args, "after"),
        .reason = given(command, args, "reason"),
    };
    struct weir_error err = {0};
    int rc = weir__filter_init(&bulk->filter, &conditions,
                               (int64_t)(ev_time() * 1e3), &err);

    if (rc == WEIR_ESYSTEM || rc == WEIR_ENOMEM) /* the line is right */
        bulk->refusal = WEIR__EXIT_FAILED;
    return weir__told(rc, &err);
}

static bool read_state(struct weir__bulk *bulk)
{
    const char *text = given(bulk->rule->command, bulk->ask.args, "state");

    bulk->ask.state = bulk->rule->state;
    if (text == NULL)
        return true;
    for (int state = WEIR_JOB_SCHEDULED; state <= WEIR_JOB_DEAD; state++) {
        if (strcmp(text, weir_job_state_name((enum weir_job_state)state)) != 0)
            continue;
        bulk->ask.state = state;
        return true;
    }
    weir__complain("--state: \"%s\" is none of scheduled, ready, running, dead",
                   text);
    return false;
}

static bool read_limit(struct weir__bulk *bulk)
{
    static const struct weir__bounds limits = {1, LIMIT_MAX, "1 to 1000000000"};
    const char *text = given(bulk->rule->command, bulk->ask.args, "limit");
    struct weir_error err = {0};
    int64_t limit = 0;
    int rc = weir__value_number("--limit", text, limits, &limit, &err);

    bulk->ask.limit = text == NULL ? bulk->rule->limit : (size_t)limit;
    return weir__told(rc, &err);
}

static bool has_ids(const struct weir__bulk *bulk)
{
    return bulk->given.path != NULL || bulk->ask.args->operand_count > 1;
}

/* What is changed has to be named. */
static bool is_narrow(const struct weir__bulk *bulk)
{
    const struct weir__command *command = bulk->rule->command;
    bool is_chosen = has_ids(bulk) || weir__filter_has_any(&bulk->filter) ||
                     given(command, bulk->ask.args, "state") != NULL;
    bool is_all = given(command, bulk->ask.args, "all") != NULL;

    if (bulk->rule->done != NULL && is_all && is_chosen)
        weir__complain(has_ids(bulk)
                           ? "%s: ids and --all exclude each other; give one"
                           : "%s: --all and conditions exclude each other; "
                             "give one",
                       command->name);
    else if (bulk->rule->done != NULL && !is_all && !is_chosen)
        weir__complain("%s needs ids, or a condition such as --where; see weir "
                       "%s --help",
                       command->name, command->name);
    else
        return true;
    return false;
}

static bool check(struct weir__bulk *bulk)
{
    const struct weir__args *args = bulk->ask.args;
    const struct weir__command *command = bulk->rule->command;

    if (!weir__operand_topic(bulk->ask.topic))
        return false;
    for (size_t i = 1; i < args->operand_count; i++)
        if (!weir__operand_id(args->operand[i], false))
            return false;
    bulk->given.path = given(command, args, "ids-from");
    bulk->is_dry = given(command, args, "dry-run") != NULL;
    return read_state(bulk) && read_limit(bulk) && read_conditions(bulk) &&
           is_narrow(bulk);
}

/* --- which jobs are meant ------------------------------------------------- */

static bool is_in_state(const struct weir__bulk *bulk,
                        const struct weir_job_info *job)
{
    if (bulk->rule->is_waiting && job->state > WEIR_JOB_READY)
        return false;
    return bulk->ask.state < 0 || (int)job->state == bulk->ask.state;
}

static void print_line(struct weir__bulk *bulk, const struct weir_job_info *job)
{
    struct weir__ask *ask = &bulk->ask;

    if (!bulk->rule->print_line(ask, job))
        ask->is_short_of_memory = true;
    ask->count++;
    bulk->is_full = ask->count == ask->limit || ask->is_short_of_memory ||
                    ferror(stdout) != 0;
}

/* Only a list shows ticks of schedules: they are nobody's jobs. */
static void look(struct weir__bulk *bulk, const struct weir_job_info *job)
{
    if (job->is_tick &&
        (bulk->rule->print_line != NULL || bulk->rule->done != NULL))
        return;
    if (!bulk->is_full)
        weir__filter_take(&bulk->filter, bulk->ask.topic, job);
    bulk->is_full |= bulk->filter.is_broken;
}

static void end_slice(struct weir__bulk *bulk, int code)
{
    weir__filter_flush(&bulk->filter);
    bulk->is_full |= bulk->filter.is_broken;
    weir__client_finish(&bulk->ask.client, code);
}

static void on_meant(const struct weir_job_info *job, void *arg)
{
    struct weir__bulk *bulk = arg;

    if (bulk->is_full)
        return;
    if (bulk->rule->print_line != NULL) {
        print_line(bulk, job);
        return;
    }
    if (bulk->rule->done == NULL) {
        weir__ask_on_job(WEIR_OK, job, &bulk->ask);
        bulk->is_full = bulk->ask.is_more || bulk->ask.is_short_of_memory ||
                        ferror(stdout) != 0;
        return;
    }
    weir__buf_append(&bulk->ids, job->id.ptr, job->id.len);
    weir__buf_append(&bulk->ids, "", 1);
    bulk->meant++;
    bulk->is_full = bulk->meant == bulk->ask.limit;
}

/* --- requests of one job ------------------------------------------------- */

/* At most WINDOW are on their way. */
static struct weir__bulk_one *begin_one(struct weir__bulk *bulk, const char *id)
{
    struct weir__bulk_one *one = bulk->free_one;

    if (one != NULL)
        bulk->free_one = one->next;
    else
        one = &bulk->ones[bulk->one_count++];
    WEIR_ASSERT(bulk->one_count <= WINDOW && strlen(id) < sizeof(one->id));
    one->bulk = bulk;
    memcpy(one->id, id, strlen(id) + 1);
    return one;
}

static void end_one(struct weir__bulk_one *one)
{
    one->next = one->bulk->free_one;
    one->bulk->free_one = one;
}

/* Not there, or not in that state. */
static void miss(struct weir__bulk *bulk, const char *id)
{
    bulk->gone++;
    if (bulk->gone > NAMED_MAX)
        return;
    if (bulk->gone > 1)
        weir__buf_append(&bulk->named, ", ", 2);
    weir__buf_append(&bulk->named, id, strlen(id));
}

/* --- those of a list ------------------------------------------------------ */

static void on_listed(int code, const struct weir_job_info *job, void *arg)
{
    struct weir__bulk *bulk = arg;

    if (job == NULL) {
        end_slice(bulk, code);
        return;
    }
    WEIR_ASSERT(job->place.len > 0 && job->place.len <= WEIR_MAX_PLACE);
    bulk->asked++;
    memcpy(bulk->place, job->place.ptr, job->place.len);
    bulk->place[job->place.len] = '\0';
    if (is_in_state(bulk, job))
        look(bulk, job);
    else
        bulk->is_end = true; /* states come one after the other */
}

/* A place in other kinds is a number: what is deleted in front of it would make
 * it another one. */
static size_t slice_size(const struct weir__bulk *bulk)
{
    size_t size = SLICE, left = bulk->ask.limit - bulk->ask.count;

    if (strcmp(bulk->ask.client.kind, "delay") != 0)
        size = SIZE_MAX;
    if (bulk->rule->done != NULL || weir__filter_has_any(&bulk->filter))
        return size;
    return left < size ? left + 1 : size;
}

static int list_slice(struct weir__bulk *bulk)
{
    const struct weir_list what = {
        .state = bulk->ask.state,
        .limit = slice_size(bulk),
        .after = bulk->place[0] == '\0' ? NULL : bulk->place,
    };
    char after[sizeof(bulk->place)];
    int rc;

    memcpy(after, bulk->place, sizeof(after)); /* the list writes a new one */
    bulk->asked = 0;
    rc = weir_reactor_list_from(bulk->ask.client.reactor, bulk->ask.topic,
                                &what, on_listed, bulk);
    if (rc == WEIR_OK)
        rc = weir__client_wait(&bulk->ask.client);
    if (bulk->asked < what.limit)
        bulk->is_end = true;
    return rc;
}

/* --- those with ids ------------------------------------------------------- */

static void on_shown(int code, const struct weir_job_info *job, void *arg)
{
    struct weir__bulk_one *one = arg;
    struct weir__bulk *bulk = one->bulk;

    WEIR_ASSERT(bulk->out > 0);
    bulk->out--;
    if (code == WEIR_ENOTFOUND || (job != NULL && !is_in_state(bulk, job)))
        miss(bulk, one->id);
    else if (job != NULL)
        look(bulk, job);
    else if (bulk->code == WEIR_OK)
        bulk->code = code;
    end_one(one);
    if (bulk->out == 0)
        end_slice(bulk, bulk->code);
}

/* Look at it, unless its id says it all. */
static void take_id(struct weir__bulk *bulk, const char *id)
{
    bool is_looked_at = bulk->rule->done == NULL || bulk->is_dry ||
                        weir__filter_has_any(&bulk->filter);
    struct weir__bulk_one *one;
    int rc;

    bulk->asked++;
    if (!is_looked_at) {
        weir__buf_append(&bulk->ids, id, strlen(id) + 1);
        bulk->meant++;
        bulk->is_full = bulk->meant == bulk->ask.limit;
        return;
    }
    one = begin_one(bulk, id);
    rc = weir_reactor_show(bulk->ask.client.reactor, bulk->ask.topic, id,
                           on_shown, one);
    if (rc == WEIR_OK) {
        bulk->out++;
        return;
    }
    bulk->code = rc;
    end_one(one);
}

static int id_slice(struct weir__bulk *bulk)
{
    bulk->asked = 0;
    while (bulk->asked < WINDOW && bulk->code == WEIR_OK && !bulk->is_full) {
        const char *id = weir__ids_next(&bulk->given);

        bulk->is_end = id == NULL;
        if (bulk->is_end)
            break;
        take_id(bulk, id);
    }
    if (bulk->given.is_out_of_memory)
        bulk->code = WEIR_ENOMEM;
    return bulk->out == 0 ? bulk->code : weir__client_wait(&bulk->ask.client);
}

/* --- changing them -------------------------------------------------------- */

static void act_on_more(struct weir__bulk *bulk)
{
    WEIR_ASSERT(bulk->out <= WINDOW && bulk->asked <= bulk->ids.len);
    while (bulk->code == WEIR_OK && bulk->out < WINDOW &&
           bulk->asked < bulk->ids.len) {
        const char *id = (const char *)bulk->ids.ptr + bulk->asked;
        struct weir__bulk_one *one = begin_one(bulk, id);
        int rc = bulk->rule->act(one);

        if (rc < 0) {
            bulk->code = rc;
            end_one(one);
            break;
        }
        bulk->asked += strlen(id) + 1;
        bulk->out++;
    }
    if (bulk->out == 0)
        weir__client_finish(&bulk->ask.client, bulk->code);
}

void weir__bulk_answer(struct weir__bulk_one *one, int code)
{
    struct weir__bulk *bulk = one->bulk;

    WEIR_ASSERT(bulk->out > 0 && !bulk->is_dry);
    bulk->out--;
    if (code == WEIR_OK)
        bulk->done++;
    else if (code == WEIR_ENOTFOUND || code == WEIR_EINVAL ||
             code == WEIR_EMALFORMED)
        miss(bulk, one->id);
    else if (bulk->code == WEIR_OK)
        bulk->code = code;
    end_one(one);
    act_on_more(bulk);
}

static void tell_ids(struct weir__bulk *bulk)
{
    bool is_json = bulk->ask.client.cli->json;
    struct json_object *json;

    for (size_t at = 0; at < bulk->ids.len;) {
        const char *id = (const char *)bulk->ids.ptr + at;

        at += strlen(id) + 1;
        if (!is_json) {
            weir__print("would %s %s\n", bulk->rule->word, id);
        } else {
            json = json_object_new_string(id);
            (void)weir__print_json(bulk->done > 0 ? "," : "", json);
            (void)json_object_put(json);
        }
        bulk->done++;
    }
}

static int act(struct weir__bulk *bulk)
{
    if (bulk->ids.failed)
        return WEIR_ENOMEM;
    if (bulk->is_dry) {
        tell_ids(bulk);
        return WEIR_OK;
    }
    bulk->asked = 0;
    act_on_more(bulk);
    if (bulk->out == 0)
        return bulk->code;
    return weir__client_wait(&bulk->ask.client);
}

/* --- what came of it ------------------------------------------------------ */

static void print_done(const struct weir__bulk *bulk)
{
    const char *what = bulk->rule->done;

    if (bulk->ask.client.cli->json && bulk->is_dry)
        weir__print("],\"meant\":%" PRIu64 "}\n", bulk->meant);
    else if (bulk->ask.client.cli->json)
        (void)weir__print_object(
            WEIR__OBJECT(weir__field_str("topic", bulk->ask.topic),
                         weir__field_number(what, bulk->done),
                         weir__field_number("meant", bulk->done + bulk->gone),
                         weir__field_number("gone", bulk->gone))); /* said */
    else if (bulk->is_dry)
        weir__print("would %s %" PRIu64 " job%s\n", bulk->rule->word,
                    bulk->meant, bulk->meant == 1 ? "" : "s");
    else if (bulk->gone == 0)
        weir__print("%s %" PRIu64 "\n", what, bulk->done);
    else
        weir__print("%s %" PRIu64 " of %" PRIu64 "%s\n", what, bulk->done,
                    bulk->done + bulk->gone,
                    has_ids(bulk) ? "" : "; the others had moved");
}

static void say_gone(const struct weir__bulk *bulk)
{
    char more[32] = "";

    if (bulk->gone > NAMED_MAX)
        (void)snprintf(more, sizeof(more), " and %" PRIu64 " more",
                       bulk->gone - NAMED_MAX); /* fits */
    weir__complain("%" PRIu64 " of the ids that were given %s not there: "
                   "%.*s%s",
                   bulk->gone, bulk->gone == 1 ? "is" : "are",
                   (int)bulk->named.len, (const char *)bulk->named.ptr, more);
}

/* Says how many jobs were changed before the filter broke. */
static void say_broken(const struct weir__bulk *bulk)
{
    const char *why = bulk->filter.err.text;

    if (bulk->rule->done == NULL)
        weir__complain("%s; not all jobs were looked at", why);
    else if (bulk->done == 0 || bulk->is_dry)
        weir__complain("%s; nothing was changed", why);
    else
        weir__complain("%s; %" PRIu64 " jobs were %s before", why, bulk->done,
                       bulk->rule->done);
}

static enum weir__exit conclude(struct weir__bulk *bulk, int code)
{
    enum weir__exit rc = WEIR__EXIT_DONE;

    if (bulk->ask.is_short_of_memory || bulk->filter.is_short_of_memory)
        code = WEIR_ENOMEM;
    if (bulk->rule->done == NULL && bulk->rule->print_line == NULL) {
        rc = weir__ask_end_list(&bulk->ask, code);
    } else {
        if (bulk->rule->done != NULL &&
            (bulk->is_dry || code == WEIR_OK || bulk->done > 0))
            print_done(bulk);
        if (code == WEIR_ENOTFOUND || (code == WEIR_OK && bulk->meant == 0))
            rc = weir__client_not_found(&bulk->ask.client, bulk->ask.topic,
                                        NULL);
        else if (code < 0)
            rc = weir__client_exit(&bulk->ask.client, code,
                                   bulk->rule->command->name);
    }
    if (bulk->filter.failed > 1)
        weir__complain("--where failed on %" PRIu64 " jobs in all, which were "
                       "passed over",
                       bulk->filter.failed);
    if (rc == WEIR__EXIT_DONE && has_ids(bulk) && bulk->gone > 0) {
        say_gone(bulk);
        rc = WEIR__EXIT_NOT_FOUND;
    }
    if (rc == WEIR__EXIT_DONE && bulk->filter.is_broken) {
        say_broken(bulk);
        rc = WEIR__EXIT_FAILED;
    }
    if (rc == WEIR__EXIT_DONE &&
        (bulk->filter.failed > 0 || bulk->given.has_wrong))
        rc = WEIR__EXIT_FAILED;
    return rc;
}

/* --- all of it ------------------------------------------------------------ */

/* A line says all that such a kind has of a job. */
static bool keeps_jobs(const struct weir__bulk *bulk)
{
    const char *kind = bulk->ask.client.kind;

    if (bulk->rule->print_line == NULL || kind[0] == '\0' ||
        strcmp(kind, "delay") == 0 || strcmp(kind, "bounded") == 0)
        return true;
    weir__complain("topic \"%s\" is of kind %s: export is for topics of kind "
                   "delay and bounded",
                   bulk->ask.topic, kind);
    return false;
}

static enum weir__exit talk(struct weir__bulk *bulk)
{
    enum weir__exit rc = weir__client_know(&bulk->ask.client, bulk->ask.topic);
    int code = WEIR_OK;

    if (rc == WEIR__EXIT_NONE && !keeps_jobs(bulk))
        rc = WEIR__EXIT_USAGE;
    if (rc != WEIR__EXIT_NONE)
        return rc;
    if (bulk->is_dry && bulk->ask.client.cli->json)
        weir__print("{\"topic\":\"%s\",\"ids\":[", bulk->ask.topic);
    while (code == WEIR_OK && !bulk->is_end && !bulk->is_full) {
        weir__buf_reset(&bulk->ids);
        code = has_ids(bulk) ? id_slice(bulk) : list_slice(bulk);
        if (code == WEIR_OK && bulk->ids.len > 0 &&
            (bulk->is_dry || !bulk->filter.is_broken))
            code = act(bulk);
    }
    return conclude(bulk, code);
}

static enum weir__exit run(struct weir__bulk *bulk, const struct weir__cli *cli)
{
    enum weir__exit rc = weir__client_open(&bulk->ask.client, cli, NULL, 0);

    if (rc == WEIR__EXIT_NONE) {
        rc = talk(bulk);
        weir__client_close(&bulk->ask.client);
    }
    return rc;
}

enum weir__exit weir__bulk(const struct weir__bulk_rule *rule,
                           const struct weir__cli *cli,
                           const struct weir__args *args,
                           const struct weir_due *due)
{
    struct weir__bulk bulk = {
        .ask = {.command = rule->command,
                .args = args,
                .topic = args->operand[0]},
        .rule = rule,
        .refusal = WEIR__EXIT_USAGE,
        .filter = {.meant = on_meant, .arg = &bulk},
        .given = {.operand = args->operand + 1,
                  .operand_count = args->operand_count - 1},
    };
    enum weir__exit rc;

    if (due != NULL)
        bulk.due = *due;
    bulk.ones = weir__mem_new(WINDOW * sizeof(*bulk.ones));
    if (bulk.ones == NULL) {
        weir__complain("out of memory");
        rc = WEIR__EXIT_FAILED;
    } else if (check(&bulk) && weir__ids_open(&bulk.given)) {
        rc = run(&bulk, cli);
    } else {
        rc = bulk.refusal;
    }
    weir__mem_free(bulk.ones);
    weir__ids_fini(&bulk.given);
    weir__buf_fini(&bulk.named);
    weir__buf_fini(&bulk.ids);
    weir__filter_fini(&bulk.filter);
    return rc;
}
