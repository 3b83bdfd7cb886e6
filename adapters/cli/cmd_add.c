/* SPDX-License-Identifier: MIT */

/* weir add: one job. Everything that can be checked is checked before the
 * server is looked for. */

#include "adapters/cli/add_lines.h"
#include "adapters/cli/client.h"
#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/refusals.h"
#include "core/buf.h"
#include "core/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { ID, DELAY, AT, BODY, BODY_FILE, RETRY, TTL, URL, GROUP, JSONL };

/* JSON may be longer than the msgpack it becomes: 64 MiB of it are read. */
enum { TEXT_MAX = 64 * 1024 * 1024, READ_SIZE = 64 * 1024 };

static const struct weir__flag flags[] = {
    [ID] = {"id", "I",
            "id of the job: 1 to 128 bytes, no blanks or braces\n"
            "(default: weir makes one that sorts by time)"},
    [DELAY] = {"delay", "D",
               "time from now, such as 250ms, 15s, 3m, 2h, 1d\n"
               "(default: 0ms)"},
    [AT] = {"at", "RFC3339",
            "point in time instead, such as\n"
            "2026-01-31T08:30:00Z"},
    [BODY] = {"body", "JSON",
              "body of the job, at most the max_body of the topic,\n"
              "1 MiB unless set (default: null)"},
    [BODY_FILE] = {"body-file", "F", "read the body from a file, - for stdin"},
    [RETRY] = {"retry", "LADDER",
               "delays between attempts, such as \"15s 3m 10m\",\n"
               "\"5s ...\" for ever, or none (default: the topic's)"},
    [TTL] = {"ttl", "D",
             "drop the job when it was not started within this\n"
             "time after it was due, 1ms to 3650d (default:\n"
             "never)"},
    [URL] = {"url", "U", "an address for handlers, at most 2,048 bytes"},
    [GROUP] = {"group", "G",
               "group of an event; bounded topics need one, others\n"
               "have none"},
    [JSONL] = {"jsonl", "F",
               "add many: a file, - for stdin, with a JSON object on\n"
               "each line whose names are those of the options id,\n"
               "delay, at, body, retry, ttl, url and group"},
};

struct add {
    struct weir__client client;
    const char *topic;
    struct weir_new_job job;
    uint64_t dropped; /* of the job's group, which is full */
};

/* --- what was given --------------------------------------------------- */

static bool read_job(const struct weir__args *args, struct weir_new_job *job)
{
    const struct weir__job_texts texts = {
        .dashes = "--",
        .value =
            {
                [WEIR__JOB_ID] = args->value[ID],
                [WEIR__JOB_DELAY] = args->value[DELAY],
                [WEIR__JOB_AT] = args->value[AT],
                [WEIR__JOB_RETRY] = args->value[RETRY],
                [WEIR__JOB_TTL] = args->value[TTL],
                [WEIR__JOB_URL] = args->value[URL],
                [WEIR__JOB_GROUP] = args->value[GROUP],
            },
    };
    struct weir_error err = {0};

    if (args->value[BODY] != NULL && args->value[BODY_FILE] != NULL) {
        weir__complain("--body and --body-file exclude each other; give one");
        return false;
    }
    if (weir__job_texts_read(&texts, job, &err) == WEIR_OK)
        return true;
    weir__complain("%s", err.text);
    return false;
}

/* With --jsonl everything else about a job stands in its line. */
static bool is_jsonl_alone(const struct weir__args *args)
{
    for (size_t i = 0; i < JSONL; i++) {
        if (args->value[i] == NULL)
            continue;
        weir__complain("--jsonl and --%s exclude each other; write \"%s\" into "
                       "each line",
                       flags[i].name, i == BODY_FILE ? "body" : flags[i].name);
        return false;
    }
    return true;
}

/* --- the body --------------------------------------------------------- */

static bool read_stream(FILE *file, const char *name, struct weir__buf *buf)
{
    for (;;) {
        uint8_t *room = weir__buf_reserve(buf, READ_SIZE);
        size_t len;

        if (room == NULL) {
            weir__complain("out of memory");
            return false;
        }
        len = fread(room, 1, READ_SIZE, file);
        buf->len += len;
        if (buf->len > TEXT_MAX) {
            weir__complain("--body-file: %s has more than 64 MiB", name);
            return false;
        }
        if (len > 0)
            continue;
        if (ferror(file) != 0)
            weir__complain("--body-file: cannot read %s: %s", name,
                           strerror(errno));
        return ferror(file) == 0;
    }
}

static bool read_file(const char *path, struct weir__buf *buf)
{
    FILE *file;
    bool is_read;

    if (strcmp(path, "-") == 0)
        return read_stream(stdin, "stdin", buf);
    file = fopen(path, "r");
    if (file == NULL) {
        weir__complain("--body-file: cannot open %s: %s", path,
                       strerror(errno));
        return false;
    }
    is_read = read_stream(file, path, buf);
    (void)fclose(file); /* was only read */
    return is_read;
}

/* JSON to the msgpack body of the job; released with weir_body_free. */
static bool convert(const char *flag, struct weir_slice json,
                    struct weir_new_job *job)
{
    struct weir_error err = {0};
    struct weir_slice body;

    if (weir_body_from_json((const char *)json.ptr, json.len, &body, &err) <
        0) {
        weir__complain("--%s: %s", flag, weir__text_behind(err.text, "json: "));
        return false;
    }
    if (weir__job_body_check(body, &err) < 0) {
        weir__complain("%s", err.text);
        weir_body_free(body);
        return false;
    }
    job->body = body;
    return true;
}

static bool read_body(const struct weir__args *args, struct weir_new_job *job)
{
    const char *text = args->value[BODY];
    struct weir__buf buf = {0};
    bool is_good = true;

    if (text != NULL)
        return convert("body",
                       (struct weir_slice){(const uint8_t *)text, strlen(text)},
                       job);
    if (args->value[BODY_FILE] != NULL)
        is_good = read_file(args->value[BODY_FILE], &buf) &&
                  convert("body-file", weir__buf_slice(&buf), job);
    weir__buf_fini(&buf);
    return is_good;
}

/* --- adding ----------------------------------------------------------- */

static enum weir__exit print_id(const struct add *add, const char *id)
{
    if (add->client.cli->json)
        return weir__print_object(WEIR__OBJECT(
            weir__field_str("topic", add->topic), weir__field_str("id", id)));
    weir__print("%s\n", id);
    return WEIR__EXIT_DONE;
}

static void on_added(int code, const char *id, void *arg)
{
    struct add *add = arg;

    if (code == WEIR_OK && print_id(add, id) != WEIR__EXIT_DONE)
        code = WEIR_ENOMEM;
    weir__client_finish(&add->client, code);
}

static void on_said(int code, void *arg)
{
    weir__client_finish(arg, code);
}

/* The topic refused the job by one of its limits. */
static enum weir__exit say_limit(struct add *add, int code)
{
    struct weir__refusals refusals = {
        .client = &add->client,
        .topic = add->topic,
        .done = on_said,
        .arg = &add->client,
    };
    struct weir__refusal *refusal = weir__mem_new(sizeof(*refusal));

    if (refusal == NULL)
        return weir__client_exit(&add->client, WEIR_ENOMEM, "add");
    refusal->code = code;
    refusal->body_len = add->job.body.len;
    weir__refusals_init(&refusals);
    weir__refusals_note(&refusals, refusal);
    if (weir__refusals_wait(&refusals))
        (void)weir__client_wait(&add->client); /* it was said in any case */
    return code == WEIR_ETOOBIG ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
}

static void on_drop(const char *topic, const char *group, enum weir_drop reason,
                    uint64_t count, void *arg)
{
    struct add *add = arg;

    (void)topic;
    (void)group;
    (void)reason; /* overflow: nothing else comes with an add */
    add->dropped += count;
}

/* Where the new event itself is dropped, the answer says so. */
static void note_dropped(const struct add *add)
{
    if (add->dropped > 0)
        weir__note(add->client.cli,
                   "group \"%s\" of topic \"%s\" is full: dropped %" PRIu64,
                   add->job.group, add->topic, add->dropped);
}

static enum weir__exit ask(struct add *add)
{
    struct weir_error err = {0};
    int rc;

    weir_reactor_on_drop(add->client.reactor, on_drop, add);
    rc = weir_reactor_add(add->client.reactor, add->topic, &add->job, on_added,
                          add, &err);
    if (rc < 0) {
        weir__complain("%s", err.text);
        return rc == WEIR_ENOMEM || rc == WEIR_EFULL ? WEIR__EXIT_FAILED
                                                     : WEIR__EXIT_USAGE;
    }
    rc = weir__client_wait(&add->client);
    if (weir__is_limit(rc))
        return say_limit(add, rc);
    if (rc == WEIR_OK)
        note_dropped(add);
    if (rc != WEIR_EEXISTS)
        return weir__client_exit(&add->client, rc, "add");
    weir__complain("a job \"%s\" exists already in topic \"%s\"; nothing was "
                   "changed",
                   add->job.id, add->topic);
    return WEIR__EXIT_EXISTS;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct add add = {.topic = args->operand[0]};
    enum weir__exit rc;

    if (args->value[JSONL] != NULL)
        return weir__operand_topic(add.topic) && is_jsonl_alone(args)
                   ? weir__add_lines(cli, add.topic, args->value[JSONL])
                   : WEIR__EXIT_USAGE;
    if (!weir__operand_topic(add.topic) || !read_job(args, &add.job) ||
        !read_body(args, &add.job))
        return WEIR__EXIT_USAGE;
    rc = weir__client_open(&add.client, cli, NULL);
    if (rc == WEIR__EXIT_NONE) {
        rc = weir__client_know(&add.client, add.topic);
        if (rc == WEIR__EXIT_NONE)
            rc = ask(&add);
        weir__client_close(&add.client);
    }
    if (add.job.body.len > 0)
        weir_body_free(add.job.body);
    return rc;
}

const struct weir__command weir__cmd_add = {
    .name = "add",
    .operands = "TOPIC",
    .operand_min = 1,
    .operand_max = 1,
    .flags = flags,
    .flag_count = sizeof(flags) / sizeof(flags[0]),
    .summary = "Add one job and print its id, or many",
    .details = "The topic, 1 to 40 of A-Z a-z 0-9 . _ : -, is made when it "
               "does not exist.\nWith --json: {\"topic\",\"id\"}.\n\n"
               "--jsonl reads lines such as\n"
               "  {\"id\":\"42\",\"delay\":\"15m\",\"body\":{\"order\":42}}\n"
               "A line that is wrong, or that the topic refuses, is reported "
               "with its number\nand not added; the others are. Ends with "
               "\"added N, existing E, refused M\",\nwith --json: "
               "{\"added\",\"existing\",\"refused\"}; of a bounded topic "
               "also with what\nits full groups dropped.",
    .example = "weir add order.close --id 42 --delay 15m "
               "--body '{\"order\":42}'",
    .exits = "0 added, 1 max_pending is reached, or lines were refused, 2 "
             "wrong usage,\n  or the body is above max_body, 4 an id exists "
             "already, in whatever state\n  (nothing was changed for it), "
             "5 server unreachable",
    .run = run,
};
