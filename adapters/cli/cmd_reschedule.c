/* SPDX-License-Identifier: MIT */

/* weir reschedule: another due time for a job. */

#include "adapters/cli/client.h"
#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/time.h"

enum { DELAY, AT };

static const struct weir__flag flags[] = {
    [DELAY] = {"delay", "D", "time from now, such as 0ms, 15s, 3m, 2h, 1d"},
    [AT] = {"at", "RFC3339",
            "point in time instead, such as\n"
            "2026-01-31T08:30:00Z"},
};

struct reschedule {
    struct weir__client client;
    const char *topic, *id;
    enum weir_job_state was;
    int64_t due_ms;
};

static void on_done(int code, enum weir_job_state was, int64_t due_ms,
                    void *arg)
{
    struct reschedule *job = arg;

    job->was = was;
    job->due_ms = due_ms;
    weir__client_finish(&job->client, code);
}

static bool print(const struct reschedule *job)
{
    struct json_object *object;
    char due[32];

    if (!job->client.cli->json) {
        weir__time_print(job->due_ms, due);
        weir__print("due %s\n", due);
        return true;
    }
    object = json_object_new_object();
    if (object != NULL &&
        weir__json_put(object, "topic", json_object_new_string(job->topic)) &&
        weir__json_put(object, "id", json_object_new_string(job->id)) &&
        weir__json_put(object, "due_ms", json_object_new_int64(job->due_ms)))
        return weir__json_print_line(object);
    (void)json_object_put(object);
    return weir__json_print_line(NULL);
}

static enum weir__exit ask(struct reschedule *job, const struct weir_due *due)
{
    int rc = weir_reactor_reschedule(job->client.reactor, job->topic, job->id,
                                     due, on_done, job);

    if (rc == WEIR_OK)
        rc = weir__client_wait(&job->client);
    if (rc == WEIR_ENOTFOUND)
        return weir__client_not_found(&job->client, job->topic, job->id);
    if (rc == WEIR_EINVAL) {
        weir__complain("job \"%s\" in topic \"%s\" is %s; only what is "
                       "scheduled or ready can be given another time",
                       job->id, job->topic, weir_job_state_name(job->was));
        return WEIR__EXIT_FAILED;
    }
    if (rc < 0)
        return weir__client_exit(&job->client, rc, "reschedule");
    return print(job) ? WEIR__EXIT_DONE : WEIR__EXIT_FAILED;
}

static bool read_due(const struct weir__args *args, struct weir_due *ret_due)
{
    const struct weir__job_texts texts = {
        .dashes = "--",
        .value =
            {
                [WEIR__JOB_DELAY] = args->value[DELAY],
                [WEIR__JOB_AT] = args->value[AT],
            },
    };
    struct weir_new_job job = {0};
    struct weir_error err = {0};

    if (args->value[DELAY] == NULL && args->value[AT] == NULL) {
        weir__complain("reschedule needs --delay D or --at RFC3339; see weir "
                       "reschedule --help");
        return false;
    }
    if (weir__job_texts_read(&texts, &job, &err) < 0) {
        weir__complain("%s", err.text);
        return false;
    }
    *ret_due = (struct weir_due){job.delay_ms, job.at_ms};
    return true;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct reschedule job = {.topic = args->operand[0], .id = args->operand[1]};
    struct weir_due due;
    enum weir__exit rc;

    if (!weir__operand_topic(job.topic) || !weir__operand_id(job.id, false) ||
        !read_due(args, &due))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&job.client, cli, NULL);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = weir__client_know(&job.client, job.topic);
    if (rc == WEIR__EXIT_NONE)
        rc = ask(&job, &due);
    weir__client_close(&job.client);
    return rc;
}

const struct weir__command weir__cmd_reschedule = {
    .name = "reschedule",
    .operands = "TOPIC ID",
    .operand_min = 2,
    .operand_max = 2,
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
    .summary = "Give a scheduled or ready job another due time",
    .details = "With --json: {\"topic\",\"id\",\"due_ms\"}.",
    .example = "weir reschedule order.close 42 --delay 1h",
    .exits = "0 done, 1 the job is running or dead, 2 wrong usage,\n"
             "  3 no such topic or job, 5 server unreachable",
    .run = run,
};
