/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "notify.h"

/* libcurl tells which descriptors it waits for and until when; the loop tells
 * libcurl when that has happened. Connections are kept and used again. */

enum {
    ANSWER_MAX = 1024 * 1024,
    REDIRECTS_MAX = 5,
    RETRY_AFTER_MAX_S = 365 * 24 * 3600 /* max_wait is no longer */
};

struct http {
    struct http_settings settings;
    http_done_fn done;
    CURLM *multi;
    struct weir_timer *timer;
};

/* --- SIGPIPE -------------------------------------------------------------- */

/* TLS libraries write with write(2), which raises it when the peer is gone: it
 * is blocked meanwhile, and one that came of it is taken back. */
struct quiet {
    sigset_t before;
    bool was_pending;
};

static bool pipe_signal_pends(void)
{
    sigset_t pending;

    (void)sigpending(&pending);
    return sigismember(&pending, SIGPIPE) == 1;
}

static sigset_t pipe_signal(void)
{
    sigset_t set;

    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGPIPE);
    return set;
}

static void hush(struct quiet *quiet)
{
    sigset_t set = pipe_signal();

    (void)pthread_sigmask(SIG_BLOCK, &set, &quiet->before);
    quiet->was_pending = pipe_signal_pends();
}

static void unhush(const struct quiet *quiet)
{
    const struct timespec now = {0, 0};
    sigset_t set = pipe_signal();

    if (!quiet->was_pending && pipe_signal_pends())
        (void)sigtimedwait(&set, NULL, &now);
    (void)pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

/* --- the loop ------------------------------------------------------------- */

void http_cancel(struct http *http, struct http_post *post)
{
    struct quiet quiet;

    hush(&quiet);
    (void)curl_multi_remove_handle(http->multi, post->easy); /* is in there */
    unhush(&quiet);
    curl_easy_cleanup(post->easy);
    post->easy = NULL;
}

static void end(struct http *http, CURL *easy, CURLcode code)
{
    struct http_post *post = NULL;
    curl_off_t retry_after_s = 0;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &post);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &post->status);
    (void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    post->code = code;
    /* What it says is not needed to the end. */
    if (code == CURLE_WRITE_ERROR && post->answered > ANSWER_MAX)
        post->code = CURLE_OK;
    if (retry_after_s > RETRY_AFTER_MAX_S)
        retry_after_s = RETRY_AFTER_MAX_S;
    post->retry_after_ms = (int64_t)retry_after_s * 1000;
    http_cancel(http, post);
    http->done(post);
}

static void end_all(struct http *http)
{
    int left;

    for (;;) {
        const CURLMsg *message = curl_multi_info_read(http->multi, &left);

        if (message == NULL)
            return;
        if (message->msg == CURLMSG_DONE)
            end(http, message->easy_handle, message->data.result);
    }
}

static void drive(struct http *http, curl_socket_t fd, int events)
{
    struct quiet quiet;
    int running;

    hush(&quiet);
    (void)curl_multi_socket_action(http->multi, fd, events, &running);
    unhush(&quiet);
    end_all(http);
}

static void on_ready(int fd, unsigned events, void *arg)
{
    int bits = 0;

    if ((events & WEIR_FD_READ) != 0)
        bits |= CURL_CSELECT_IN;
    if ((events & WEIR_FD_WRITE) != 0)
        bits |= CURL_CSELECT_OUT;
    drive(arg, fd, bits);
}

static void on_timer(void *arg)
{
    drive(arg, CURL_SOCKET_TIMEOUT, 0);
}

static int want_socket(CURL *easy, curl_socket_t fd, int what, void *arg,
                       void *watch_arg)
{
    struct http *http = arg;
    struct weir_watch *watch = watch_arg;
    unsigned events = 0;

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        weir_watch_free(watch);
        return 0;
    }
    if (watch == NULL) {
        watch = weir_watch_new(http->settings.loop, fd, on_ready, http);
        if (watch == NULL)
            return -1;
        (void)curl_multi_assign(http->multi, fd, watch); /* a known socket */
    }
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT)
        events |= WEIR_FD_READ;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT)
        events |= WEIR_FD_WRITE;
    weir_watch_set(watch, events);
    return 0;
}

static int want_timer(CURLM *multi, long ms, void *arg)
{
    struct http *http = arg;

    (void)multi;
    if (ms < 0)
        weir_timer_stop(http->timer);
    else
        weir_timer_start(http->timer, ms);
    return 0;
}

/* --- one post ------------------------------------------------------------- */

static size_t on_answer(char *bytes, size_t size, size_t count, void *arg)
{
    struct http_post *post = arg;
    size_t len = size * count;

    for (size_t i = 0; i < len && post->answered + i < ANSWER_CAP - 1; i++)
        post->answer[post->answered + i] =
            bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : ' ';
    post->answered += len;
    return post->answered > ANSWER_MAX ? 0 : len;
}

static CURLcode set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");

    return code != CURLE_OK
               ? code
               : curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
                                  "http,https");
#else
    const long allowed = CURLPROTO_HTTP | CURLPROTO_HTTPS;
    CURLcode code = curl_easy_setopt(easy, CURLOPT_PROTOCOLS, allowed);

    return code != CURLE_OK
               ? code
               : curl_easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS, allowed);
#endif
}

/* Those whose refusal would make the request another one. */
static CURLcode set_request(CURL *easy, const struct http_post *post)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_URL, post->url);

    if (code == CURLE_OK)
        code = set_protocols(easy);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_POST, 1L);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, post->body);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                                (curl_off_t)post->body_len);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_HTTPHEADER, post->headers);
    return code;
}

static CURLcode set_policy(CURL *easy, const struct http_settings *settings)
{
    long verifies = settings->verifies ? 1L : 0L;
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verifies);

    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L * verifies);
    if (code == CURLE_OK && *settings->ca_file != '\0')
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, settings->ca_file);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION,
                                settings->follows ? 1L : 0L);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                                (long)settings->timeout_ms);
    return code;
}

static CURLcode set_rest(CURL *easy, struct http_post *post)
{
    (void)curl_easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTS_MAX);
    (void)curl_easy_setopt(easy, CURLOPT_POSTREDIR, (long)CURL_REDIR_POST_ALL);
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->said);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, post);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
    /* The host's signals are its own. */
    return curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
}

CURLcode http_start(struct http *http, struct http_post *post)
{
    CURLcode code;

    post->easy = curl_easy_init();
    if (post->easy == NULL)
        return CURLE_OUT_OF_MEMORY;
    code = set_request(post->easy, post);
    if (code == CURLE_OK)
        code = set_policy(post->easy, &http->settings);
    if (code == CURLE_OK)
        code = set_rest(post->easy, post);
    if (code == CURLE_OK &&
        curl_multi_add_handle(http->multi, post->easy) != CURLM_OK)
        code = CURLE_OUT_OF_MEMORY;
    if (code != CURLE_OK) {
        curl_easy_cleanup(post->easy);
        post->easy = NULL;
    }
    return code;
}

/* --- all of them ---------------------------------------------------------- */

static void set_multi(struct http *http)
{
    const struct http_settings *settings = &http->settings;
    CURLM *multi = http->multi;

    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, http);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, want_timer);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, http);
    (void)curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                            (long)settings->per_host);
    (void)curl_multi_setopt(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                            (long)settings->total);
    (void)curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)settings->total);
}

struct http *http_open(const struct http_settings *settings, http_done_fn done)
{
    struct http *http;

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return NULL;
    http = calloc(1, sizeof(*http));
    if (http == NULL)
        goto fail;
    http->settings = *settings;
    http->done = done;
    http->timer = weir_timer_new(settings->loop, on_timer, http);
    http->multi = curl_multi_init();
    if (http->timer == NULL || http->multi == NULL)
        goto fail;
    set_multi(http);
    return http;
fail:
    if (http != NULL) {
        weir_timer_free(http->timer);
        (void)curl_multi_cleanup(http->multi); /* NULL is fine */
    }
    free(http);
    curl_global_cleanup();
    return NULL;
}

void http_close(struct http *http)
{
    struct quiet quiet;

    hush(&quiet);
    (void)curl_multi_cleanup(http->multi);
    unhush(&quiet);
    weir_timer_free(http->timer);
    free(http);
    curl_global_cleanup();
}
