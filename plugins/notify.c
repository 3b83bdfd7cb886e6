/* SPDX-License-Identifier: MIT */

/* Tells somebody about a job: POSTs the body as JSON to the job's url.
 *
 * The answer is the verdict: 2xx done; 408, 429, 5xx and whatever the network
 * does to it are retries, after the time that the answer's Retry-After asks for
 * or else by the ladder (the default one is made for this: 15s 3m 10m 30m 30m
 * 1h 2h 6h 15h); anything else fails. Requests run on the reactor's loop, as
 * many at once as the topic's `concurrency`, `total` and `per_host` allow.
 *
 * Each request names its job in Weir-Topic, Weir-Id and Weir-Attempt, so that
 * the receiver can recognise what came twice. With a `secret`, Weir-Signature
 * is "sha256=" and in hexadecimal the HMAC-SHA256 of these four, joined by
 * newlines: what is in Weir-Timestamp, Weir-Topic and Weir-Id, and the body. */

#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "notify.h"

enum {
    HEAD_REST = 24, /* of what is signed: 20 digits, three newlines, a NUL */
    BODY_FIRST_CAP = 1024,
    HEADER_CAP = 4096,
    SHORT_MS = 1000 /* to wait where this worker lacks something */
};

enum {
    OPTION_TIMEOUT,
    OPTION_PER_HOST,
    OPTION_TOTAL,
    OPTION_MAX_WAIT,
    OPTION_FOLLOW_REDIRECTS,
    OPTION_VERIFY,
    OPTION_CA_FILE,
    OPTION_HEADER,
    OPTION_SECRET,
    OPTION_ALLOW
};

#define OPTION_NUMBER(text, unit, fallback_text, least, most, help_text) \
    {                                                                    \
        .name = (text), .type = (unit), .fallback = (fallback_text),     \
        .min = (least), .max = (most), .help = (help_text),              \
    }

static const struct weir_option options[] = {
    [OPTION_TIMEOUT] = OPTION_NUMBER(
        "timeout", WEIR_OPTION_DURATION, "10s", 10, 3600000,
        "How long a request may take, waiting for a connection included."),
    [OPTION_PER_HOST] = OPTION_NUMBER("per_host", WEIR_OPTION_INT, "16", 1,
                                      10000, "Most connections to one host."),
    [OPTION_TOTAL] = OPTION_NUMBER("total", WEIR_OPTION_INT, "256", 1, 10000,
                                   "Most connections in all."),
    [OPTION_MAX_WAIT] = OPTION_NUMBER(
        "max_wait", WEIR_OPTION_DURATION, "1d", 0, (int64_t)365 * 86400000,
        "Longest Retry-After that is followed; a longer one counts as this."),
    [OPTION_FOLLOW_REDIRECTS] = OPTION_NUMBER(
        "follow_redirects", WEIR_OPTION_BOOL, "no", 0, 0,
        "Follow up to 5 redirects that keep scheme, host and port; a job that "
        "meets another one fails."),
    [OPTION_VERIFY] = OPTION_NUMBER("verify", WEIR_OPTION_BOOL, "yes", 0, 0,
                                    "Check the certificates of https servers."),
    [OPTION_CA_FILE] = {.name = "ca_file",
                        .type = WEIR_OPTION_TEXT,
                        .fallback = "",
                        .help = "File of trusted certificates (PEM); the "
                                "system's when empty."},
    [OPTION_HEADER] = {.name = "header",
                       .type = WEIR_OPTION_TEXT,
                       .fallback = "",
                       .help = "More headers, \"Name: value\", each on a line.",
                       .flags = WEIR_OPTION_SECRET},
    [OPTION_SECRET] = {.name = "secret",
                       .type = WEIR_OPTION_TEXT,
                       .fallback = "",
                       .help = "Sign requests with this; not when empty.",
                       .flags = WEIR_OPTION_SECRET},
    [OPTION_ALLOW] = {.name = "allow",
                      .type = WEIR_OPTION_TEXT,
                      .fallback = "",
                      .help = "Hosts and networks that may be connected to; "
                              "all but link-local ones when empty."},
};

struct notify {
    struct http *http;
    struct curl_slist *headers; /* the same for every request */
    char *secret;
    char *ca_file;
    struct allow *allow;
    int64_t max_wait_ms;
};

/* A run that is pending. The texts of its request are one behind the other:
 * what is signed before the body, then the body, then the url. */
struct request {
    struct http_post post; /* first */
    struct notify *notify;
    struct weir_job *job; /* readable until it is completed */
    struct weir_handle handle;
    char *text;
    size_t head_len;
};

/* --- the verdict ---------------------------------------------------------- */

static bool is_retried(long status)
{
    return status == 408 || status == 429 || status >= 500;
}

static void request_free(struct request *request)
{
    curl_slist_free_all(request->post.headers);
    free(request->text);
    free(request);
}

/* No answer, or not all of it. What this worker lacks is no fault of a job. */
static enum weir_verdict verdict_of_failure(const struct http_post *post,
                                            int64_t *ret_delay_ms,
                                            char why[200])
{
    const char *said =
        *post->said == '\0' ? curl_easy_strerror(post->code) : post->said;

    (void)snprintf(why, 200, "notify: %.180s", said); /* cut */
    if (post->is_hopeless)
        return WEIR_FAIL;
    *ret_delay_ms = SHORT_MS;
    return post->is_short ? WEIR_SNOOZE : WEIR_RETRY;
}

static enum weir_verdict verdict_of(const struct http_post *post,
                                    int64_t max_wait_ms, int64_t *ret_delay_ms,
                                    char why[200])
{
    if (post->code != CURLE_OK)
        return verdict_of_failure(post, ret_delay_ms, why);
    (void)snprintf(why, 200, "notify: answered %ld%s%s", post->status,
                   *post->answer == '\0' ? "" : ": ", post->answer); /* cut */
    if (post->status >= 200 && post->status < 300)
        return WEIR_DONE;
    if (!is_retried(post->status))
        return WEIR_FAIL;
    if (post->retry_after_ms <= 0)
        return WEIR_RETRY;
    *ret_delay_ms =
        post->retry_after_ms < max_wait_ms ? post->retry_after_ms : max_wait_ms;
    return WEIR_RETRY_AFTER;
}

/* What the counters call such an end. */
static const char *counter_of(const struct http_post *post,
                              enum weir_verdict verdict)
{
    if (post->code == CURLE_OPERATION_TIMEDOUT)
        return "timeouts";
    if (post->code != CURLE_OK)
        return "errors";
    if (verdict == WEIR_DONE)
        return "accepted";
    return verdict == WEIR_FAIL ? "refused" : "put_off";
}

static void on_done(struct http_post *post)
{
    struct request *request = (struct request *)post; /* its first member */
    struct weir_handle handle = request->handle;
    char why[200] = "";
    int64_t delay_ms = 0;
    enum weir_verdict verdict =
        verdict_of(post, request->notify->max_wait_ms, &delay_ms, why);

    weir_job_count(request->job, counter_of(post, verdict), 1);
    request_free(request);
    /* It cannot fail on the loop's thread. */
    (void)weir_complete(handle, verdict, delay_ms,
                        verdict == WEIR_DONE ? NULL : why);
}

static void on_cancel(struct weir_job *job, enum weir_cancel why, void *arg)
{
    struct request *request = arg;
    struct weir_handle handle = request->handle;

    (void)job;
    (void)why;
    http_cancel(request->notify->http, &request->post);
    request_free(request);
    (void)weir_complete(handle, WEIR_RETRY, 0, NULL); /* nobody else will */
}

/* --- the request ---------------------------------------------------------- */

/* What is signed: "timestamp\ntopic\nid\nbody". Then the url. Each may have any
 * length. */
static bool write_text(struct request *request, const struct weir_job *job,
                       int64_t now_s)
{
    struct weir_slice id = weir_job_id(job), topic = weir_job_topic(job);
    struct weir_slice url = weir_job_url(job);
    size_t head_cap = HEAD_REST + topic.len + id.len;
    size_t room = BODY_FIRST_CAP, len;
    char *text = malloc(head_cap + room + url.len + 1), *more;

    if (text == NULL)
        return false;
    request->text = text;
    request->head_len = (size_t)snprintf(
        text, head_cap, "%" PRId64 "\n%.*s\n%.*s\n", now_s, (int)topic.len,
        (const char *)topic.ptr, (int)id.len, (const char *)id.ptr); /* fits */
    len = weir_job_body_json(job, text + request->head_len, room);
    if (len >= room) {
        room = len + 1;
        more = realloc(text, head_cap + room + url.len + 1);
        if (more == NULL)
            return false;
        request->text = more;
        len = weir_job_body_json(job, more + request->head_len, room);
    }
    request->post.body = request->text + request->head_len;
    request->post.body_len = len;
    more = request->text + request->head_len + len + 1;
    memcpy(more, url.ptr, url.len);
    more[url.len] = '\0';
    request->post.url = more;
    return len > 0;
}

static bool add_header(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);

    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

static bool sign(struct request *request, int64_t now_s)
{
    const char *secret = request->notify->secret;
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned digest_len = 0;
    char header[200];
    int len;

    if (*secret == '\0')
        return true;
    if (HMAC(EVP_sha256(), secret, (int)strlen(secret),
             (const unsigned char *)request->text,
             request->head_len + request->post.body_len, digest,
             &digest_len) == NULL)
        return false;
    (void)snprintf(header, sizeof(header), "Weir-Timestamp: %" PRId64, now_s);
    if (!add_header(&request->post.headers, header))
        return false;
    len = snprintf(header, sizeof(header), "Weir-Signature: sha256=");
    for (unsigned i = 0; i < digest_len; i++)
        len += snprintf(header + len, sizeof(header) - (size_t)len, "%02x",
                        digest[i]); /* fits: 64 digits */
    return add_header(&request->post.headers, header);
}

static bool add_slices(struct curl_slist **list, struct weir_slice name,
                       struct weir_slice value)
{
    size_t size = name.len + value.len + 3;
    char *text = malloc(size);
    bool is_added;

    if (text == NULL)
        return false;
    (void)snprintf(text, size, "%.*s: %.*s", (int)name.len,
                   (const char *)name.ptr, (int)value.len,
                   (const char *)value.ptr); /* fits */
    is_added = add_header(list, text);
    free(text);
    return is_added;
}

static bool add_named(struct curl_slist **list, const char *name,
                      struct weir_slice value)
{
    const struct weir_slice slice = {(const uint8_t *)name, strlen(name)};

    return add_slices(list, slice, value);
}

static bool is_word(struct weir_slice name, const char *word, size_t len)
{
    return name.len == len &&
           strncasecmp((const char *)name.ptr, word, len) == 0;
}

static bool begins(struct weir_slice name, const char *word)
{
    size_t len = strlen(word);

    return name.len >= len &&
           is_word((struct weir_slice){name.ptr, len}, word, len);
}

/* Is it the business of the job? What says where the request goes, who sends
 * it and by what way, or how it is framed is not, nor what is sent anyway. */
static bool is_passed(const struct notify *notify, struct weir_slice name)
{
    static const char *const others[] = {
        "Authorization",
        "Connection",
        "Content-Encoding",
        "Content-Length",
        "Content-Type",
        "Cookie",
        "Expect",
        "Forwarded",
        "Host",
        "Keep-Alive",
        "Proxy-Connection",
        "Proxy-Authorization",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Via",
        "X-Real-IP",
    };

    if (begins(name, "Weir-") || begins(name, "X-Forwarded-"))
        return false;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (is_word(name, others[i], strlen(others[i])))
            return false;
    for (const struct curl_slist *own = notify->headers; own != NULL;
         own = own->next)
        if (is_word(name, own->data, strcspn(own->data, ":;")))
            return false;
    return true;
}

static bool add_own(struct request *request, const struct weir_job *job)
{
    struct weir_header headers[WEIR_MAX_HEADERS];
    size_t count = weir_job_headers(job, headers, WEIR_MAX_HEADERS);

    for (size_t i = 0; i < count; i++)
        if (is_passed(request->notify, headers[i].name) &&
            !add_slices(&request->post.headers, headers[i].name,
                        headers[i].value))
            return false;
    return true;
}

static bool write_headers(struct request *request, const struct weir_job *job)
{
    struct curl_slist **list = &request->post.headers;
    char header[40];

    for (const struct curl_slist *common = request->notify->headers;
         common != NULL; common = common->next)
        if (!add_header(list, common->data))
            return false;
    (void)snprintf(header, sizeof(header), "Weir-Attempt: %" PRIu32,
                   weir_job_counters(job).attempt); /* fits */
    return add_named(list, "Weir-Topic", weir_job_topic(job)) &&
           add_named(list, "Weir-Id", weir_job_id(job)) &&
           add_header(list, header) && add_own(request, job);
}

static bool is_http(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 ||
           strncasecmp(url, "https://", 8) == 0;
}

/* Seconds since 1970. */
static int64_t wall_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_REALTIME, &now); /* this clock is always there */
    return now.tv_sec;
}

static struct request *request_new(struct notify *notify,
                                   const struct weir_job *job)
{
    struct request *request = calloc(1, sizeof(*request));
    int64_t now_s = wall_s();

    if (request == NULL)
        return NULL;
    request->notify = notify;
    if (write_text(request, job, now_s) && write_headers(request, job) &&
        sign(request, now_s))
        return request;
    request_free(request);
    return NULL;
}

/* Would it arrive as it is, and as one header? So that what is signed can be
 * split in one way only, too. */
static bool is_header_value(struct weir_slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] > '~')
            return false;
    return text.len > 0 && text.len < INT_MAX;
}

/* What can be known before anything is sent; NULL: nothing speaks against it.
 */
static const char *fault_of(const struct weir_job *job)
{
    struct weir_slice url = weir_job_url(job);

    if (url.len == 0)
        return "notify: the job has no url";
    if (memchr(url.ptr, '\0', url.len) != NULL)
        return "notify: the url has a NUL byte inside";
    if (!is_header_value(weir_job_id(job)))
        return "notify: the id is no header value: wanted printable ASCII "
               "without blanks";
    if (!is_header_value(weir_job_topic(job)))
        return "notify: the topic is no header value: wanted printable ASCII "
               "without blanks";
    return NULL;
}

static enum weir_verdict give_up(struct request *request, struct weir_job *job)
{
    char why[200];
    int64_t delay_ms;
    enum weir_verdict verdict =
        verdict_of_failure(&request->post, &delay_ms, why);

    request_free(request);
    if (verdict == WEIR_SNOOZE)
        return weir_snooze(job, delay_ms);
    return verdict == WEIR_FAIL ? weir_fail(job, why) : weir_retry(job, why);
}

static enum weir_verdict run(void *self, struct weir_job *job)
{
    const char *fault = fault_of(job);
    struct request *request;

    if (fault != NULL)
        return weir_fail(job, fault);
    request = request_new(self, job);
    if (request == NULL)
        return weir_snooze(job, SHORT_MS);
    if (!is_http(request->post.url)) {
        request_free(request);
        return weir_fail(job, "notify: the url is neither http nor https");
    }
    request->job = job;
    request->handle = weir_job_handle(job);
    request->post.code = CURLE_OUT_OF_MEMORY;
    request->post.is_short = true;
    if (request->handle.ticket == 0 ||
        !http_start(request->notify->http, &request->post))
        return give_up(request, job);
    weir_job_count(job, "sent", 1);
    weir_job_on_cancel(job, on_cancel, request);
    return WEIR_PENDING;
}

/* --- the instance --------------------------------------------------------- */

static int refuse(const struct weir_open *open, int code, const char *text)
{
    (void)snprintf(open->error, open->error_cap, "%s", text); /* cut */
    return code;
}

/* The option `header`, a line at a time. */
static int read_headers(struct notify *notify, const struct weir_open *open)
{
    const char *text = open->values[OPTION_HEADER].text;
    char line[HEADER_CAP];

    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        if (len >= sizeof(line))
            return refuse(open, WEIR_EINVAL,
                          "option \"header\" has a line of 4 KiB or more");
        memcpy(line, text, len);
        line[len] = '\0';
        if (len > 0 && (strchr(line, ':') == NULL || *line == ':' ||
                        strchr(line, '\r') != NULL))
            return refuse(open, WEIR_EINVAL,
                          "option \"header\" wants lines like \"Name: value\"");
        if (len > 0 && !add_header(&notify->headers, line))
            return refuse(open, WEIR_ENOMEM, "out of memory");
        text += len + (text[len] == '\n' ? 1 : 0);
    }
    return WEIR_OK;
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *own = malloc(size);

    if (own != NULL)
        memcpy(own, text, size);
    return own;
}

static void close_notify(void *self)
{
    struct notify *notify = self;

    if (notify->http != NULL)
        http_close(notify->http);
    allow_free(notify->allow);
    curl_slist_free_all(notify->headers);
    free(notify->secret);
    free(notify->ca_file);
    free(notify);
}

static int fill(struct notify *notify, const struct weir_open *open)
{
    const struct weir_option_value *values = open->values;
    struct http_settings settings = {
        .loop = weir_open_loop(open),
        .timeout_ms = values[OPTION_TIMEOUT].number,
        .per_host = values[OPTION_PER_HOST].number,
        .total = values[OPTION_TOTAL].number,
        .follows = values[OPTION_FOLLOW_REDIRECTS].number != 0,
        .verifies = values[OPTION_VERIFY].number != 0,
    };

    if (settings.loop == NULL)
        return refuse(open, WEIR_EABI,
                      "this host has no loop for plugins; it is too old");
    notify->max_wait_ms = values[OPTION_MAX_WAIT].number;
    notify->secret = copy(values[OPTION_SECRET].text);
    notify->ca_file = copy(values[OPTION_CA_FILE].text);
    settings.ca_file = notify->ca_file;
    if (notify->secret == NULL || notify->ca_file == NULL ||
        !add_header(&notify->headers, "Content-Type: application/json") ||
        !add_header(&notify->headers, "Expect:")) /* do not wait for a 100 */
        return refuse(open, WEIR_ENOMEM, "out of memory");
    notify->allow =
        allow_new(values[OPTION_ALLOW].text, open->error, open->error_cap);
    if (notify->allow == NULL)
        return WEIR_EINVAL;
    settings.allow = notify->allow;
    notify->http = http_open(&settings, on_done);
    if (notify->http == NULL)
        return refuse(open, WEIR_ENOMEM, "libcurl cannot be started");
    return read_headers(notify, open);
}

static int open_notify(const struct weir_open *open, void **ret_self)
{
    struct notify *notify = calloc(1, sizeof(*notify));
    int rc;

    if (notify == NULL)
        return WEIR_ENOMEM;
    rc = fill(notify, open);
    if (rc < 0) {
        close_notify(notify);
        return rc;
    }
    *ret_self = notify;
    return WEIR_OK;
}

WEIR_PLUGIN_EXPORT = {
    .abi = WEIR_PLUGIN_ABI,
    .size = sizeof(struct weir_plugin),
    .name = "notify",
    .version = WEIR_VERSION,
    .summary = "POSTs each job's body as JSON to the job's url.",
    .options = options,
    .option_count = sizeof(options) / sizeof(options[0]),
    .option_size = sizeof(struct weir_option),
    .open = open_notify,
    .run = run,
    .close = close_notify,
};
