/* SPDX-License-Identifier: MIT */
#include <weir/plugin.h>

#include <arpa/inet.h>
#include <ev.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapters/dl/loader.h"
#include "adapters/ev/plugin_loop.h"
#include "core/text.h"
#include "tests/harness/test.h"

/* notify under a host that checks nothing of a job, so that ids and topics have
 * whatever length and bytes, and against a web server that says whatever a test
 * wants. */

static struct ev_loop *ev;
static struct weir_loop *loop;
static struct weir__plugin_file file;
static struct weir__instance instance;
static struct weir_error err;

/* --- the host ------------------------------------------------------------- */

struct mail {
    struct weir_job job; /* first: what handlers hold */
    struct weir_slice id, topic, url;
    const char *body;
    enum weir_verdict verdict;
    char reason[400];
};

static struct mail *mail_of(const struct weir_job *job)
{
    union {
        const struct weir_job *job;
        struct mail *mail;
    } same = {.job = job};

    return same.mail;
}

static struct weir_slice mail_id(const struct weir_job *job)
{
    return mail_of(job)->id;
}

static struct weir_slice mail_topic(const struct weir_job *job)
{
    return mail_of(job)->topic;
}

static struct weir_slice mail_url(const struct weir_job *job)
{
    return mail_of(job)->url;
}

static void mail_counters(const struct weir_job *job,
                          struct weir_counters *ret_counters)
{
    (void)job;
    *ret_counters = (struct weir_counters){.attempt = UINT32_MAX};
}

static size_t mail_json(const struct weir_job *job, char *buf, size_t cap)
{
    return (size_t)snprintf(buf, cap, "%s", mail_of(job)->body);
}

static void mail_set_reason(struct weir_job *job, const char *text)
{
    (void)snprintf(mail_of(job)->reason, sizeof(mail_of(job)->reason), "%s",
                   text == NULL ? "" : text);
}

static struct weir_handle mail_handle(struct weir_job *job)
{
    return (struct weir_handle){job->host, job, 1};
}

static void mail_on_cancel(struct weir_job *job, weir_cancel_fn fn, void *arg)
{
    (void)job;
    (void)fn;
    (void)arg;
}

static int mail_complete(struct weir_handle handle, enum weir_verdict verdict,
                         int64_t delay_ms, const char *why)
{
    struct mail *mail = handle.owner;

    (void)delay_ms;
    mail->verdict = verdict;
    mail_set_reason(&mail->job, why);
    ev_break(ev, EVBREAK_ALL);
    return WEIR_OK;
}

/* One that is too old to count. */
static const struct weir_host host = {
    .size = offsetof(struct weir_host, job_count),
    .job_id = mail_id,
    .job_topic = mail_topic,
    .job_url = mail_url,
    .job_counters = mail_counters,
    .job_body_json = mail_json,
    .job_set_reason = mail_set_reason,
    .job_handle = mail_handle,
    .job_on_cancel = mail_on_cancel,
    .complete = mail_complete,
};

static int open_notify(const char *const *options, size_t count)
{
    struct weir__ev_loop_options share = {.plugin = "notify", .topic = "mail"};
    struct weir__instance_options with = {.topic = "mail",
                                          .options = options,
                                          .option_count = count,
                                          .host = &host};
    static int depth;

    ev = ev_loop_new(0);
    share.loop = ev;
    share.depth = &depth;
    EXPECT_INT(WEIR_OK, weir__ev_loop_open(&share, &loop));
    with.loop = loop;
    EXPECT_INT(WEIR_OK,
               weir__plugin_load(WEIR_TEST_PLUGINS "/notify.so", &file, &err));
    return weir__instance_open(&file, &with, &instance, &err);
}

static void close_notify(void)
{
    weir__instance_close(&instance);
    weir__ev_loop_close(loop);
    ev_loop_destroy(ev);
}

static void run_mail(struct mail *mail)
{
    mail->job.host = &host;
    mail->verdict = file.copy.run(instance.self, &mail->job);
    if (mail->verdict == WEIR_PENDING)
        ev_run(ev, 0);
}

/* --- the web server ------------------------------------------------------- */

enum { REQUEST_CAP = 16384 };

/* A process that answers one request; what it read comes out of `pipe`. */
struct peer {
    pid_t pid;
    int pipe;
    char url[64];
    char request[REQUEST_CAP];
};

/* A request whose body ends in `end`. */
static void read_request(int fd, int to, const char *end)
{
    static char request[REQUEST_CAP];
    size_t len = 0;

    while (len < strlen(end) ||
           memcmp(request + len - strlen(end), end, strlen(end)) != 0) {
        ssize_t more = read(fd, request + len, sizeof(request) - len);

        if (more <= 0)
            _exit(1);
        len += (size_t)more;
    }
    _exit(write(to, request, len) == (ssize_t)len &&
                  dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") >
                      0
              ? 0
              : 1);
}

static void start_peer(struct peer *peer, const char *end)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM, 0), ends[2];

    EXPECT_INT(0, bind(fd, (struct sockaddr *)&at, len));
    EXPECT_INT(0, listen(fd, 1));
    EXPECT_INT(0, getsockname(fd, (struct sockaddr *)&at, &len));
    EXPECT_INT(0, pipe(ends));
    (void)snprintf(peer->url, sizeof(peer->url), "http://127.0.0.1:%d/",
                   ntohs(at.sin_port)); /* fits */
    peer->pipe = ends[0];
    peer->pid = fork();
    if (peer->pid == 0)
        read_request(accept(fd, NULL, NULL), ends[1], end);
    (void)close(fd);
    (void)close(ends[1]);
}

/* The request that it got. */
static const char *end_peer(struct peer *peer)
{
    ssize_t len = read(peer->pipe, peer->request, sizeof(peer->request) - 1);
    int status = 0;

    EXPECT_TRUE(len > 0);
    peer->request[len] = '\0';
    EXPECT_INT(peer->pid, waitpid(peer->pid, &status, 0));
    EXPECT_INT(0, status);
    (void)close(peer->pipe);
    return peer->request;
}

/* --- ids and topics of any length ----------------------------------------- */

static void fill(char *text, size_t len, char with)
{
    memset(text, with, len);
    text[len] = '\0';
}

/* As long as what notify takes for the body at first, but for the NUL. */
static const char *full_body(void)
{
    static char body[1024];

    fill(body, 1023, 'b');
    body[0] = body[1022] = '"';
    return body;
}

/* The header Weir-Signature that "hush" makes of a request. */
static void write_signature(const struct mail *mail, const char *request,
                            char wanted[100])
{
    static char text[8192];
    unsigned char digest[EVP_MAX_MD_SIZE];
    const char *at = strstr(request, "Weir-Timestamp: ");
    int used = 0;

    EXPECT_TRUE(at != NULL);
    at += strlen("Weir-Timestamp: ");
    (void)snprintf(text, sizeof(text), "%.*s\n%s\n%s\n%s",
                   (int)strcspn(at, "\r"), at, (const char *)mail->topic.ptr,
                   (const char *)mail->id.ptr, mail->body);
    EXPECT_TRUE(HMAC(EVP_sha256(), "hush", 4, (unsigned char *)text,
                     strlen(text), digest, NULL) != NULL);
    used = snprintf(wanted, 100, "\r\nWeir-Signature: sha256=");
    for (int i = 0; i < 32; i++)
        used += snprintf(wanted + used, 100 - (size_t)used, "%02x", digest[i]);
}

static void notify_with(size_t id_len, size_t topic_len)
{
    static char id[1001], topic[1001], wanted[1100];
    struct mail mail = {.id = {(const uint8_t *)id, id_len},
                        .topic = {(const uint8_t *)topic, topic_len},
                        .body = full_body()};
    struct peer peer;
    const char *request;

    fill(id, id_len, 'i');
    fill(topic, topic_len, 't');
    start_peer(&peer, mail.body);
    mail.url = weir__slice_str(peer.url);
    run_mail(&mail);
    EXPECT_STR("", mail.reason);
    EXPECT_INT(WEIR_DONE, mail.verdict);
    request = end_peer(&peer);
    (void)snprintf(wanted, sizeof(wanted), "\r\nWeir-Id: %s\r\n", id);
    EXPECT_CONTAINS(wanted, request);
    (void)snprintf(wanted, sizeof(wanted), "\r\nWeir-Topic: %s\r\n", topic);
    EXPECT_CONTAINS(wanted, request);
    write_signature(&mail, request, wanted);
    EXPECT_CONTAINS(wanted, request);
}

TEST(ids_and_topics_are_sent_and_signed_whatever_their_length)
{
    static const size_t lens[] = {1, 40, 41, 128, 129, 191, 192, 255, 1000};
    const char *const options[] = {"secret=hush"};

    EXPECT_INT(WEIR_OK, open_notify(options, 1));
    for (size_t i = sizeof(lens) / sizeof(lens[0]); i-- > 0;) {
        notify_with(lens[i], 4);
        notify_with(4, lens[i]);
        notify_with(lens[i], lens[i]);
    }
    close_notify();
}

/* A job that must fail, and nothing is sent: nobody listens at its url. */
static const char *refusal(struct weir_slice id, struct weir_slice topic,
                           const char *url)
{
    static struct mail mail;

    mail = (struct mail){
        .id = id, .topic = topic, .url = weir__slice_str(url), .body = "1"};
    run_mail(&mail);
    EXPECT_INT(WEIR_FAIL, mail.verdict);
    return mail.reason;
}

TEST(an_id_or_topic_that_is_no_header_value_fails)
{
    static const uint8_t bytes[] = {0,    '\t', '\n', '\r', 0x1b,
                                    0x1f, ' ',  0x7f, 0x80, 0xff};
    const struct weir_slice good = weir__slice_str("good");

    EXPECT_INT(WEIR_OK, open_notify(NULL, 0));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        const uint8_t text[] = {'a', bytes[i], 'b'};
        const struct weir_slice bad = weir__slice_of(text, sizeof(text));

        EXPECT_STR("notify: the id is no header value: wanted printable ASCII "
                   "without blanks",
                   refusal(bad, good, "http://127.0.0.1:9/"));
        EXPECT_STR("notify: the topic is no header value: wanted printable "
                   "ASCII without blanks",
                   refusal(good, bad, "http://127.0.0.1:9/"));
    }
    EXPECT_CONTAINS("the id is no", refusal(weir__slice_of(NULL, 0), good,
                                            "http://127.0.0.1:9/"));
    close_notify();
}

TEST(a_url_with_control_bytes_fails)
{
    const struct weir_slice id = weir__slice_str("1");

    EXPECT_INT(WEIR_OK, open_notify(NULL, 0));
    EXPECT_CONTAINS("notify: ", refusal(id, id, "http://127.0.0.1:9/\r\nA: b"));
    EXPECT_CONTAINS("notify: ", refusal(id, id, "http://127.0.0.1:9/\033[2J"));
    EXPECT_CONTAINS("notify: ", refusal(id, id, "http://127.0.0.1:9/\x7f"));
    close_notify();
}

static const char *fault_of_header(size_t len)
{
    static char option[5000];
    const char *const options[] = {option};

    fill(option, sizeof("header=") - 1 + len, 'h');
    memcpy(option, "header=a: ", 10);
    err.text[0] = '\0';
    if (open_notify(options, 1) == WEIR_OK)
        close_notify();
    return err.text;
}

TEST(a_header_of_the_option_has_less_than_4_kib)
{
    EXPECT_STR("", fault_of_header(4095));
    EXPECT_CONTAINS("has a line of 4 KiB or more", fault_of_header(4096));
}
