/* SPDX-License-Identifier: MIT */

/* weir add: one job. Everything that can be checked is checked before the
 * server is looked for. */

#include "adapters/cli/add_lines.h"
#include "adapters/cli/ask.h"
#include "adapters/cli/line_reader.h"
#include "adapters/cli/new_job.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/refusals.h"
#include "core/mem.h"
#include "core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    HEADER, /* first: may be repeated */
    ID,
    DELAY,
    AT,
    BODY,
    BODY_FILE,
    RETRY,
    TTL,
    URL,
    GROUP,
    DURABILITY,
    UNIQUE,
    FOR,
    ELSE,
    MAX_WAIT,
    KEY,
    PRIORITY,
    JSONL
};

/* JSON may be longer than the msgpack it becomes: 64 MiB of it are read. */
enum { TEXT_MAX = 64 * 1024 * 1024 };

static const struct weir__flag flags[] = {
    [HEADER] = {"header", "K=V",
                "a header of the job, such as traceparent=00-...;\n"
                "up to 16 times"},
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
    [DURABILITY] = {"durability", "D",
                    "what has to have the job before add ends: server,\n"
                    "replica[:N] (N replicas), fsync[:N] (its disk and\n"
                    "N replicas') (default: the topic's)"},
    [UNIQUE] = {"unique", "KEY",
                "only one job may have this key, 1 to 2,048 bytes\n"
                "(default: what the topic's option unique finds in\n"
                "the body)"},
    [FOR] = {"for", "HOLD",
             "how long the job has the key: a time such as 10m,\n"
             "until-start or until-done (default: until-done;\n"
             "until-start with replace and debounce)"},
    [ELSE] = {"else", "WHAT",
              "what if another job has it: reject; replace (take\n"
              "the place of one that waits); debounce (and put it\n"
              "off); throttle (one starts in each --for, the last\n"
              "one waits for the next) (default: reject)"},
    [MAX_WAIT] = {"max-wait", "D",
                  "longest that --else debounce puts a job off"},
    [KEY] = {"key", "KEY",
             "whose job it is, 1 to 2,048 bytes: jobs with keys\n"
             "take turns, and the topic's key_parallel and\n"
             "key_rate bound each key"},
    [PRIORITY] = {"priority", "P",
                  "urgent, high, normal or low (default: normal)"},
    [JSONL] = {"jsonl", "F",
               "add many: a file, - for stdin, with a JSON object on\n"
               "each line whose names are those of the options id,\n"
               "delay, at, body, retry, ttl, url, group,\n"
               "durability, unique, for, else, max_wait, key and\n"
               "priority, and headers, an object of texts"},
};

/* --- what was given --------------------------------------------------- */

static bool read_job(const struct weir__args *args, struct weir_new_job *job,
                     struct weir_header *headers)
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
                [WEIR__JOB_DURABILITY] = args->value[DURABILITY],
                [WEIR__JOB_UNIQUE] = args->value[UNIQUE],
                [WEIR__JOB_FOR] = args->value[FOR],
                [WEIR__JOB_ELSE] = args->value[ELSE],
                [WEIR__JOB_MAX_WAIT] = args->value[MAX_WAIT],
                [WEIR__JOB_KEY] = args->value[KEY],
                [WEIR__JOB_PRIORITY] = args->value[PRIORITY],
            },
    };
    struct weir_error err = {0};

    if (args->value[BODY] != NULL && args->value[BODY_FILE] != NULL) {
        weir__complain("--body and --body-file exclude each other; give one");
        return false;
    }
    if (!weir__told(weir__job_texts_read(&texts, job, &err), &err))
        return false;
    job->headers = headers;
    job->header_count = args->all_count[HEADER];
    return weir__told(weir__job_headers_read(args->all[HEADER],
                                             job->header_count, headers, &err),
                      &err);
}

/* With --jsonl everything else about a job stands in its line. */
static bool is_jsonl_alone(const struct weir__args *args)
{
    for (size_t i = 0; i < JSONL; i++) {
        if (args->value[i] == NULL)
            continue;
        weir__complain("--jsonl and --%s exclude each other; write \"%s\" into "
                       "each line",
                       flags[i].name,
                       i == BODY_FILE  ? "body"
                       : i == HEADER   ? "headers"
                       : i == MAX_WAIT ? "max_wait"
                                       : flags[i].name);
        return false;
    }
    return true;
}

/* --- the body --------------------------------------------------------- */

static bool read_all(struct weir__line_reader *reader, const char *name)
{
    struct weir_error err = {0};

    while (!reader->is_ended) {
        if (weir__line_reader_fill(reader, &err) < 0) {
            weir__complain("--body-file: cannot read %s: %s", name, err.text);
            return false;
        }
        if (reader->text.len > TEXT_MAX) {
            weir__complain("--body-file: %s has more than 64 MiB", name);
            return false;
        }
    }
    return true;
}

static bool open_file(const char *path, int *ret_fd)
{
    *ret_fd = STDIN_FILENO;
    if (strcmp(path, "-") != 0)
        *ret_fd = open(path, O_RDONLY | O_CLOEXEC);
    if (*ret_fd < 0)
        weir__complain("--body-file: cannot open %s: %s", path,
                       strerror(errno));
    return *ret_fd >= 0;
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
    if (!weir__told(weir__job_body_check(body, &err), &err)) {
        weir_body_free(body);
        return false;
    }
    job->body = body;
    return true;
}

static bool read_file(const char *path, struct weir_new_job *job)
{
    struct weir__line_reader reader = {0};
    bool is_good;

    if (!open_file(path, &reader.fd))
        return false;
    is_good = read_all(&reader, strcmp(path, "-") == 0 ? "stdin" : path) &&
              convert("body-file", weir__buf_slice(&reader.text), job);
    weir__line_reader_fini(&reader);
    if (reader.fd != STDIN_FILENO)
        (void)close(reader.fd); /* was only read */
    return is_good;
}

static bool check(struct weir__ask *ask)
{
    const char *const *value = ask->args->value;

    if (!read_job(ask->args, &ask->job, ask->headers))
        return false;
    if (value[BODY] != NULL)
        return convert("body", weir__slice_str(value[BODY]), &ask->job);
    return value[BODY_FILE] == NULL || read_file(value[BODY_FILE], &ask->job);
}

/* --- adding ----------------------------------------------------------- */

static void on_added(int code, const char *id, void *arg)
{
    bool is_added = code == WEIR_OK || code == WEIR_EWEAK;
    struct weir__ask *ask = arg;

    (void)snprintf(ask->holder, sizeof(ask->holder), "%s", id); /* cut */
    weir__ask_on_code(code, is_added ? id : NULL, arg);
}

static void on_drop(const char *topic, const char *group, enum weir_drop reason,
                    uint64_t count, void *arg)
{
    struct weir__ask *ask = arg;

    (void)topic;
    (void)group;
    (void)reason; /* overflow: nothing else comes with an add */
    ask->count += count;
}

int weir__ask_add(struct weir__ask *ask, const struct weir_new_job *job)
{
    struct weir_error err = {0};
    int rc = weir_reactor_add(ask->client.reactor, ask->topic, job, on_added,
                              ask, &err);

    if (rc < 0)
        (void)snprintf(ask->text, sizeof(ask->text), "%s", err.text); /* fits */
    return rc;
}

static int ask_add(struct weir__ask *ask)
{
    weir_reactor_on_drop(ask->client.reactor, on_drop, ask);
    return weir__ask_add(ask, &ask->job);
}

static void on_said(int code, void *arg)
{
    weir__client_finish(arg, code);
}

/* The topic refused the job by one of its limits. */
static enum weir__exit say_limit(struct weir__ask *ask, int code)
{
    struct weir__refusals refusals = {
        .client = &ask->client,
        .topic = ask->topic,
        .done = on_said,
        .arg = &ask->client,
    };
    struct weir__refusal *refusal = weir__mem_new(sizeof(*refusal));

    if (refusal == NULL)
        return weir__client_exit(&ask->client, WEIR_ENOMEM, "add");
    refusal->code = code;
    refusal->body_len = ask->job.body.len;
    weir__refusals_init(&refusals);
    weir__refusals_note(&refusals, refusal);
    if (weir__refusals_wait(&refusals))
        (void)weir__client_wait(&ask->client); /* it was said in any case */
    return code == WEIR_ETOOBIG ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
}

static enum weir__exit print(struct weir__ask *ask)
{
    enum weir__exit rc = WEIR__EXIT_DONE;

    if (ask->client.cli->json)
        rc = weir__print_object(
            WEIR__OBJECT(weir__field_str("topic", ask->topic),
                         weir__field_str("id", ask->text)));
    else
        weir__print("%s\n", ask->text);
    if (ask->count > 0) /* where the event itself is dropped it is refused */
        weir__note(ask->client.cli,
                   "group \"%s\" of topic \"%s\" is full: dropped %" PRIu64,
                   ask->job.group, ask->topic, ask->count);
    return rc;
}

/* It was added: its id is of use. */
static enum weir__exit say_weak(struct weir__ask *ask)
{
    (void)print(ask); /* whatever comes of it, it is a failure */
    weir__complain("%s", weir__text_behind(ask->client.refusal, "redis: "));
    return WEIR__EXIT_FAILED;
}

/* Of its id or its key. */
static enum weir__exit say_exists(const struct weir__ask *ask)
{
    const struct weir_new_job *job = &ask->job;
    char key[WEIR__TEXT_QUOTE_CAP];

    if (job->id != NULL && strcmp(job->id, ask->holder) == 0)
        weir__complain("a job \"%s\" exists already in topic \"%s\"; nothing "
                       "was changed",
                       job->id, ask->topic);
    else if (job->unique != NULL)
        weir__complain("job \"%s\" of topic \"%s\" has the key \"%s\"; "
                       "nothing was changed",
                       ask->holder, ask->topic,
                       weir__text_quote(weir__slice_str(job->unique), key));
    else
        weir__complain("job \"%s\" of topic \"%s\" has the unique key that is "
                       "in the body; nothing was changed",
                       ask->holder, ask->topic);
    return WEIR__EXIT_EXISTS;
}

enum weir__exit weir__ask_refuse_added(struct weir__ask *ask, int code)
{
    if (code == WEIR_EWEAK)
        return say_weak(ask);
    if (ask->text[0] != '\0') { /* it was not sent */
        weir__complain("%s", ask->text);
        return code == WEIR_ENOMEM || code == WEIR_EFULL ? WEIR__EXIT_FAILED
                                                         : WEIR__EXIT_USAGE;
    }
    if (weir__is_limit(code))
        return say_limit(ask, code);
    return code == WEIR_EEXISTS ? say_exists(ask) : WEIR__EXIT_NONE;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    if (args->value[JSONL] == NULL)
        return weir__ask(&weir__cmd_add, cli, args);
    return weir__operand_topic(args->operand[0]) && is_jsonl_alone(args)
               ? weir__add_lines(cli, args->operand[0], args->value[JSONL])
               : WEIR__EXIT_USAGE;
}

const struct weir__command weir__cmd_add = {
    .name = "add",
    .operands = "TOPIC",
    WEIR__FLAGS(flags),
    .repeated_count = 1,
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
    .exits = "0 added, 1 max_pending is reached, or lines were refused, or "
             "added, but\n  within 10 s no server confirmed its durability, 2 "
             "wrong usage, or the body\n  is above max_body, or the server "
             "cannot confirm the durability, 4 an id\n  exists already, in "
             "whatever state, or another job has the key (nothing was\n  "
             "changed for it), 5 server unreachable",
    .needs_kind = true,
    .check = check,
    .ask = ask_add,
    .refuse = weir__ask_refuse_added,
    .print = print,
    .run = run, /* many */
};
