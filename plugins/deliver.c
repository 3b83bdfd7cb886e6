/* SPDX-License-Identifier: MIT */

/* Delivers due jobs into a queue of somebody else's: pushes their bodies to a
 * list, or adds them to a stream. A job is done when the server has answered;
 * until then it is pending, so a worker that dies in between delivers it again.
 *
 * What one call of the handler was given is one command to a list, or one for
 * each job to a stream, and leaves together. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/plugin.h>

enum {
    OPTION_LIST,
    OPTION_END,
    OPTION_STREAM,
    OPTION_MAXLEN,
    OPTION_FIELDS,
    OPTION_FORM,
    OPTION_URL,
    OPTIONS
};

enum {
    PUSH_BYTES = 1024 * 1024, /* of one command, or of one body */
    FIXED_WORDS = 6,          /* XADD KEY MAXLEN ~ N * */
    FIELD_WORDS = 6,          /* id ID topic TOPIC body BODY */
    ENTRY_WORDS = FIXED_WORDS + FIELD_WORDS + 2 * WEIR_MAX_HEADERS,
    NAME_CAP = sizeof("header.") + WEIR_MAX_HEADER,
    FULL_MS = 100,  /* to wait where too much is on its way */
    SHORT_MS = 1000 /* if this worker lacks descriptors or memory */
};

struct deliver {
    struct weir_redis *redis;
    char *key; /* of the list or stream */
    bool is_stream, is_left, has_body_alone, is_msgpack;
    char maxlen[24]; /* "": none */
    /* Bodies of a push as JSON, kept from push to push; where each begins. */
    char *json;
    size_t json_len, json_cap;
    struct weir_slice *words;
    size_t word_cap;
};

/* Jobs whose command is on its way. */
struct push {
    size_t count;
    struct weir_handle handles[];
};

static const struct weir_option options[OPTIONS] = {
    [OPTION_LIST] = {.name = "list",
                     .type = WEIR_OPTION_TEXT,
                     .fallback = "",
                     .help = "Key of a list that bodies are pushed to."},
    [OPTION_END] = {.name = "end",
                    .type = WEIR_OPTION_CHOICE,
                    .fallback = "right",
                    .choices = "left|right",
                    .help = "End of the list that they are pushed at."},
    [OPTION_STREAM] = {.name = "stream",
                       .type = WEIR_OPTION_TEXT,
                       .fallback = "",
                       .help = "Key of a stream that jobs are added to."},
    [OPTION_MAXLEN] = {.name = "maxlen",
                       .type = WEIR_OPTION_INT,
                       .fallback = "0",
                       .max = 1000000000,
                       .help = "About so many entries the stream keeps; 0: "
                               "all."},
    [OPTION_FIELDS] = {.name = "fields",
                       .type = WEIR_OPTION_CHOICE,
                       .fallback = "job",
                       .choices = "job|body",
                       .help = "Of an entry: id, topic, body and headers, or "
                               "the body alone."},
    [OPTION_FORM] = {.name = "form",
                     .type = WEIR_OPTION_CHOICE,
                     .fallback = "json",
                     .choices = "json|msgpack",
                     .help = "How bodies are written."},
    [OPTION_URL] = {.name = "url",
                    .type = WEIR_OPTION_TEXT,
                    .fallback = "",
                    .help = "Address of the server; none: that of the worker.",
                    .flags = WEIR_OPTION_SECRET},
};

/* --- opening ------------------------------------------------------------- */

static void close_deliver(void *self)
{
    struct deliver *deliver = self;

    weir_redis_close(deliver->redis);
    free(deliver->key);
    free(deliver->json);
    free(deliver->words);
    free(deliver);
}

static int refuse(const struct weir_open *with, const char *why)
{
    (void)snprintf(with->error, with->error_cap, "%s", why); /* cut */
    return WEIR_EINVAL;
}

static bool is_given(const struct weir_open *with, int option)
{
    return with->values[option].text[0] != '\0';
}

static int check(const struct weir_open *with)
{
    bool is_stream = is_given(with, OPTION_STREAM);

    if (is_stream == is_given(with, OPTION_LIST))
        return refuse(with, "give it one of list=KEY and stream=KEY");
    if (!is_stream && with->values[OPTION_MAXLEN].number > 0)
        return refuse(with, "maxlen is for a stream: a list has no bound");
    return WEIR_OK;
}

static int open_deliver(const struct weir_open *with, void **ret_self)
{
    const struct weir_option_value *values = with->values;
    bool is_stream = is_given(with, OPTION_STREAM);
    struct deliver *deliver;
    int rc = check(with);

    if (rc < 0)
        return rc;
    deliver = calloc(1, sizeof(*deliver));
    if (deliver == NULL)
        return WEIR_ENOMEM;
    deliver->is_stream = is_stream;
    deliver->is_left = strcmp(values[OPTION_END].text, "left") == 0;
    deliver->has_body_alone = strcmp(values[OPTION_FIELDS].text, "body") == 0;
    deliver->is_msgpack = strcmp(values[OPTION_FORM].text, "msgpack") == 0;
    if (values[OPTION_MAXLEN].number > 0)
        (void)snprintf(deliver->maxlen, sizeof(deliver->maxlen), "%lld",
                       (long long)values[OPTION_MAXLEN].number); /* fits */
    deliver->key = strdup(values[is_stream ? OPTION_STREAM : OPTION_LIST].text);
    rc = deliver->key == NULL
             ? WEIR_ENOMEM
             : weir_open_redis(
                   with,
                   is_given(with, OPTION_URL) ? values[OPTION_URL].text : NULL,
                   &deliver->redis);
    if (rc < 0)
        close_deliver(deliver);
    else
        *ret_self = deliver;
    return rc;
}

/* --- answers ------------------------------------------------------------- */

/* A job that does not come to an end for lack of memory times out. */
static void complete(struct push *push, enum weir_verdict verdict,
                     const char *why)
{
    for (size_t i = 0; i < push->count; i++)
        (void)weir_complete(push->handles[i], verdict,
                            verdict == WEIR_SNOOZE ? SHORT_MS : 0, why);
    free(push);
}

static void on_answer(int code, struct weir_slice text, void *arg)
{
    char why[200];

    if (code == WEIR_OK) {
        complete(arg, WEIR_DONE, NULL);
        return;
    }
    if (code == WEIR_ENOMEM) {
        complete(arg, WEIR_SNOOZE, NULL);
        return;
    }
    if (code == WEIR_ESERVER)
        (void)snprintf(why, sizeof(why), "deliver: %.*s", (int)text.len,
                       (const char *)text.ptr); /* cut */
    complete(arg, WEIR_RETRY,
             code == WEIR_ESERVER ? why
             : code == WEIR_ECONN
                 ? "deliver: there is no connection"
                 : "deliver: no answer came: it may have arrived");
}

/* --- delivering ---------------------------------------------------------- */

static struct weir_slice slice(const char *text)
{
    return (struct weir_slice){(const uint8_t *)text, strlen(text)};
}

static bool reserve_words(struct deliver *deliver, size_t count)
{
    struct weir_slice *words;

    if (count <= deliver->word_cap)
        return true;
    words = realloc(deliver->words, count * sizeof(*words));
    if (words == NULL)
        return false;
    deliver->words = words;
    deliver->word_cap = count;
    return true;
}

/* The body behind the others of this push; it has no place yet, since what
 * follows may move them. 0: out of memory. */
static size_t append_json(struct deliver *deliver, const struct weir_job *job)
{
    size_t at = deliver->json_len, cap = deliver->json_cap;
    size_t len = weir_job_body_json(job, at < cap ? deliver->json + at : NULL,
                                    at < cap ? cap - at : 0);

    if (len > 0 && at + len >= cap) {
        char *json = realloc(deliver->json, 2 * (at + len + 1));

        if (json == NULL)
            return 0;
        deliver->json = json;
        deliver->json_cap = 2 * (at + len + 1);
        len = weir_job_body_json(job, json + at, len + 1);
    }
    deliver->json_len += len;
    return len;
}

static enum weir_verdict give_up(struct weir_job *job, int code)
{
    if (code == WEIR_EFULL || code == WEIR_ENOMEM)
        return weir_snooze(job, FULL_MS);
    return weir_retry(job, "deliver: cannot be sent");
}

/* Send one command for these jobs: each is pending then, or is told why not. */
static void send(struct deliver *deliver, struct weir_job *const *jobs,
                 size_t count, size_t words, enum weir_verdict *verdicts)
{
    struct push *push =
        malloc(sizeof(*push) + count * sizeof(push->handles[0]));
    int rc = WEIR_ENOMEM;

    if (push != NULL) {
        push->count = count;
        for (size_t i = 0; i < count; i++)
            push->handles[i] = weir_job_handle(jobs[i]);
        rc = weir_redis_send(deliver->redis, deliver->words, words, on_answer,
                             push);
    }
    if (rc < 0)
        free(push);
    for (size_t i = 0; i < count; i++)
        verdicts[i] = rc < 0 ? give_up(jobs[i], rc) : WEIR_PENDING;
}

/* How many of these bodies one command pushes; 0: out of memory. Their lengths
 * are in the words behind the first two. */
static size_t gather(struct deliver *deliver, struct weir_job *const *jobs,
                     size_t count)
{
    struct weir_slice *words = deliver->words + 2;
    size_t taken = 0, bytes = 0;

    deliver->json_len = 0;
    while (taken < count && bytes < PUSH_BYTES) {
        if (deliver->is_msgpack)
            words[taken] = weir_job_body(jobs[taken]);
        else
            words[taken].len = append_json(deliver, jobs[taken]);
        if (words[taken].len == 0)
            break;
        bytes += words[taken++].len;
    }
    if (!deliver->is_msgpack) {
        const uint8_t *at = (const uint8_t *)deliver->json;

        for (size_t i = 0; i < taken; at += words[i++].len)
            words[i].ptr = at;
    }
    return taken;
}

static void push_all(struct deliver *deliver, struct weir_job *const *jobs,
                     size_t count, enum weir_verdict *verdicts)
{
    for (size_t done = 0; done < count;) {
        size_t taken = gather(deliver, jobs + done, count - done);

        deliver->words[0] = slice(deliver->is_left ? "LPUSH" : "RPUSH");
        deliver->words[1] = slice(deliver->key);
        if (taken > 0)
            send(deliver, jobs + done, taken, 2 + taken, verdicts + done);
        else
            verdicts[done] = give_up(jobs[done], WEIR_ENOMEM);
        done += taken > 0 ? taken : 1;
    }
}

static void put(struct deliver *deliver, size_t *count, const char *name,
                struct weir_slice value)
{
    deliver->words[(*count)++] = slice(name);
    deliver->words[(*count)++] = value;
}

static size_t write_headers(struct deliver *deliver, const struct weir_job *job,
                            size_t count, char names[][NAME_CAP])
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t found = weir_job_headers(job, headers, WEIR_MAX_HEADERS);

    for (size_t i = 0; i < found; i++) {
        (void)snprintf(names[i], NAME_CAP, "header.%.*s",
                       (int)headers[i].name.len,
                       (const char *)headers[i].name.ptr); /* fits */
        put(deliver, &count, names[i], headers[i].value);
    }
    return count;
}

static void add_entry(struct deliver *deliver, struct weir_job *job,
                      enum weir_verdict *verdict)
{
    char names[WEIR_MAX_HEADERS][NAME_CAP];
    struct weir_slice body = weir_job_body(job);
    size_t count = 0;

    deliver->json_len = 0;
    if (!deliver->is_msgpack) {
        body.len = append_json(deliver, job);
        body.ptr = (const uint8_t *)deliver->json;
    }
    if (body.len == 0) {
        *verdict = give_up(job, WEIR_ENOMEM);
        return;
    }
    put(deliver, &count, "XADD", slice(deliver->key));
    if (deliver->maxlen[0] != '\0') {
        put(deliver, &count, "MAXLEN", slice("~"));
        deliver->words[count++] = slice(deliver->maxlen);
    }
    deliver->words[count++] = slice("*");
    if (!deliver->has_body_alone) {
        put(deliver, &count, "id", weir_job_id(job));
        put(deliver, &count, "topic", weir_job_topic(job));
    }
    put(deliver, &count, "body", body);
    if (!deliver->has_body_alone)
        count = write_headers(deliver, job, count, names);
    send(deliver, &job, 1, count, verdict);
}

static enum weir_verdict run_batch(void *self, struct weir_job *const *jobs,
                                   size_t count, enum weir_verdict *verdicts)
{
    struct deliver *deliver = self;

    if (!reserve_words(deliver, deliver->is_stream ? ENTRY_WORDS : 2 + count)) {
        for (size_t i = 0; i < count; i++) /* that is not their fault */
            verdicts[i] = weir_snooze(jobs[i], FULL_MS);
        return WEIR_EACH;
    }
    if (!deliver->is_stream)
        push_all(deliver, jobs, count, verdicts);
    for (size_t i = 0; deliver->is_stream && i < count; i++)
        add_entry(deliver, jobs[i], &verdicts[i]);
    return WEIR_EACH;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "deliver",
    .version = WEIR_VERSION,
    .summary = "Pushes due jobs to a Redis list or adds them to a stream.",
    .options = options,
    .option_count = OPTIONS,
    .option_size = sizeof(struct weir_option),
    .open = open_deliver,
    .run_batch = run_batch,
    .close = close_deliver,
};
