/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "notify.h"

/* libcurl tells which descriptors it waits for and until when; the loop tells
 * libcurl when that has happened. Connections are kept and used again. */

enum {
    HEAD_MAX = 256 * 1024, /* of all answers to a request */
    ANSWER_MAX = 1024 * 1024,
    REDIRECTS_MAX = 5,
    WHERE_CAP = 120, /* scheme, host and port; they may be cut */
    RETRY_AFTER_MAX_S = 365 * 24 * 3600 /* max_wait is no longer */
};

struct http {
    struct http_settings settings;
    http_done_fn done;
    CURLM *multi;
    struct weir_timer *timer;
    struct room room;
};

/* --- the loop ------------------------------------------------------------- */

static void forget(struct http_post *post)
{
    curl_easy_cleanup(post->easy);
    curl_url_cleanup(post->at);
    curl_free(post->host);
    post->easy = NULL;
    post->at = NULL;
    post->host = NULL;
}

static void take_out(struct http *http, const struct http_post *post)
{
    struct quiet quiet;

    hush(&quiet);
    (void)curl_multi_remove_handle(http->multi, post->easy); /* is in there */
    unhush(&quiet);
}

void http_cancel(struct http *http, struct http_post *post)
{
    take_out(http, post);
    room_leave(&http->room, &post->share);
    forget(post);
}

/* Connections that are kept count, too: libcurl closes the oldest of them. */
static void bound(struct http *http)
{
    (void)curl_multi_setopt(http->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS,
                            http->room.most);
    (void)curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, http->room.most);
}

static void on_lack(struct http *http)
{
    struct weir_loop *loop = http->settings.loop;
    char text[200];

    if (!room_halve(&http->room, weir_loop_now_ms(loop)))
        return;
    bound(http);
    (void)snprintf(text, sizeof(text),
                   "requests lack descriptors (ulimit -n) or memory: %ld at "
                   "once for now; others wait and lose no attempt",
                   http->room.most); /* fits */
    weir_loop_log(loop, WEIR_LEVEL_WARN, text);
}

/* Control characters could forge lines of a log. */
static char printable(char c)
{
    return c >= ' ' && c <= '~' ? c : ' ';
}

static void end(struct http *http, struct http_post *post)
{
    curl_off_t retry_after_s = 0;

    (void)curl_easy_getinfo(post->easy, CURLINFO_RESPONSE_CODE, &post->status);
    (void)curl_easy_getinfo(post->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    if (retry_after_s > RETRY_AFTER_MAX_S)
        retry_after_s = RETRY_AFTER_MAX_S;
    post->retry_after_ms = (int64_t)retry_after_s * 1000;
    for (char *c = post->said; *c != '\0'; c++)
        *c = printable(*c);
    if (post->is_short)
        on_lack(http);
    else if (post->status != 0 && room_grow(&http->room))
        bound(http);
    http_cancel(http, post);
    http->done(post);
}

/* --- redirects ------------------------------------------------------------ */

static CURLcode refuse(struct http_post *post, CURLcode code)
{
    post->is_hopeless = true;
    return code;
}

/* Their scheme, host and port; false: some differ. */
static bool is_there(CURLU *at, CURLU *to, char ret_where[WHERE_CAP])
{
    static const struct {
        CURLUPart part;
        const char *before;
    } parts[] = {
        {CURLUPART_SCHEME, ""}, {CURLUPART_HOST, "://"}, {CURLUPART_PORT, ":"}};
    bool is_same = true;
    size_t len = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *one = NULL, *other = NULL;

        (void)curl_url_get(at, parts[i].part, &one, CURLU_DEFAULT_PORT);
        (void)curl_url_get(to, parts[i].part, &other, CURLU_DEFAULT_PORT);
        is_same = is_same && one != NULL && other != NULL &&
                  strcasecmp(one, other) == 0;
        if (other != NULL)
            (void)snprintf(ret_where + len, WHERE_CAP - len, "%s%.80s",
                           parts[i].before, other); /* cut */
        len += strlen(ret_where + len);
        curl_free(one);
        curl_free(other);
    }
    return is_same;
}

/* What a redirect does not decide, so that who is let in stays by itself. The
 * rest is left as it came: a path or query that is set alone is rewritten. */
static CURLUcode keep(CURLU *at, CURLU *to)
{
    static const CURLUPart parts[] = {CURLUPART_USER, CURLUPART_PASSWORD,
                                      CURLUPART_ZONEID};
    CURLUcode rc = CURLUE_OK;

    for (size_t i = 0; i < 3 && rc == CURLUE_OK; i++) {
        char *part = NULL;

        (void)curl_url_get(at, parts[i], &part, 0); /* none is fine */
        rc = curl_url_set(to, parts[i], part, 0);
        curl_free(part);
    }
    return rc;
}

/* Why a redirect is not followed, or NULL: `to` is where it leads to. */
static const char *fault_of(struct http_post *post, CURLU *to, const char *url,
                            char where[WHERE_CAP])
{
    if (++post->redirects > REDIRECTS_MAX)
        return "too many redirects";
    if (curl_url_set(to, CURLUPART_URL, url, 0) != CURLUE_OK)
        return "redirected to what is no url";
    if (!is_there(post->at, to, where))
        return "redirected to another scheme, host or port: ";
    return keep(post->at, to) == CURLUE_OK ? NULL : "out of memory";
}

static CURLcode redirect(struct http_post *post, const char *url)
{
    CURLU *to = curl_url();
    char where[WHERE_CAP] = "";
    const char *fault;

    if (to == NULL)
        return CURLE_OUT_OF_MEMORY;
    fault = fault_of(post, to, url, where);
    if (fault == NULL) {
        curl_url_cleanup(post->at);
        post->at = to;
        return CURLE_OK;
    }
    curl_url_cleanup(to);
    (void)snprintf(post->said, sizeof(post->said), "%s%s", fault,
                   where); /* fits */
    return refuse(post, CURLE_TOO_MANY_REDIRECTS);
}

/* The same again, where it is now and in the time that is left. */
static CURLcode go_on(struct http *http, struct http_post *post)
{
    int64_t left_ms = post->end_ms - weir_loop_now_ms(http->settings.loop);
    CURLcode code = curl_easy_setopt(post->easy, CURLOPT_TIMEOUT_MS,
                                     (long)(left_ms < 1 ? 1 : left_ms));

    if (code == CURLE_OK)
        code = curl_easy_setopt(post->easy, CURLOPT_CURLU, post->at);
    if (code != CURLE_OK)
        return code;
    post->answered = 0;
    post->got_no_socket = false;
    memset(post->answer, 0, sizeof(post->answer));
    take_out(http, post);
    return curl_multi_add_handle(http->multi, post->easy) == CURLM_OK
               ? CURLE_OK
               : CURLE_OUT_OF_MEMORY;
}

/* --- its end -------------------------------------------------------------- */

/* libcurl does not say why a name was not resolved or a file not read. */
static bool is_short(const struct http_post *post)
{
    static const CURLcode unclear[] = {
        CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY,
        CURLE_FAILED_INIT, CURLE_SSL_CACERT_BADFILE};

    if (post->code == CURLE_OUT_OF_MEMORY)
        return true;
    if (post->code == CURLE_COULDNT_CONNECT)
        return post->got_no_socket;
    for (size_t i = 0; i < sizeof(unclear) / sizeof(unclear[0]); i++)
        if (post->code == unclear[i])
            return post->got_no_socket || room_was_tight(&post->share) ||
                   strstr(post->said, "thread failed to start") != NULL;
    return false;
}

/* What libcurl calls the end, by what was seen on the way. */
static CURLcode code_of(struct http_post *post, CURLcode code)
{
    if (code == CURLE_URL_MALFORMAT)
        return refuse(post, code);
    if (code == CURLE_COULDNT_CONNECT && *post->refused != '\0' &&
        !post->was_allowed) {
        (void)snprintf(post->said, sizeof(post->said),
                       "the address %s of host %.80s is not allowed",
                       post->refused, post->host); /* fits */
        return refuse(post, code);
    }
    if (code != CURLE_WRITE_ERROR)
        return code;
    /* What it says is not needed to the end. */
    if (post->answered > ANSWER_MAX)
        return CURLE_OK;
    if (post->head_len > HEAD_MAX)
        (void)snprintf(post->said, sizeof(post->said),
                       "the header of the answer does not end"); /* fits */
    return code;
}

static void on_end(struct http *http, CURL *easy, CURLcode code)
{
    struct http_post *post = NULL;
    char *to = NULL;

    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &post);
    post->code = code_of(post, code);
    (void)curl_easy_getinfo(easy, CURLINFO_REDIRECT_URL, &to);
    if (post->code == CURLE_OK && http->settings.follows && to != NULL) {
        post->code = redirect(post, to);
        if (post->code == CURLE_OK)
            post->code = go_on(http, post);
        if (post->code == CURLE_OK)
            return;
    }
    post->is_short = is_short(post);
    end(http, post);
}

static void end_all(struct http *http)
{
    int left;

    for (;;) {
        const CURLMsg *message = curl_multi_info_read(http->multi, &left);

        if (message == NULL)
            return;
        if (message->msg == CURLMSG_DONE)
            on_end(http, message->easy_handle, message->data.result);
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
        post->answer[post->answered + i] = printable(bytes[i]);
    post->answered += len;
    return post->answered > ANSWER_MAX ? 0 : len;
}

/* Newer versions of libcurl bound it, too. */
static size_t on_head(char *bytes, size_t size, size_t count, void *arg)
{
    struct http_post *post = arg;

    (void)bytes;
    post->head_len += size * count;
    return post->head_len > HEAD_MAX ? 0 : size * count;
}

static int on_resolve(void *resolver, void *reserved, void *arg)
{
    struct http_post *post = arg;

    (void)resolver;
    (void)reserved;
    post->got_no_socket = !room_for_lookup(&post->http->room, &post->share);
    return post->got_no_socket ? 1 : 0;
}

static curl_socket_t open_socket(struct http_post *post,
                                 const struct curl_sockaddr *to)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    errno = EMFILE;
    if (room_for_socket(&post->http->room, &post->share))
        fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                   errno == ENOBUFS))
        post->got_no_socket = true;
    return fd;
}

/* Whatever name or number it came by, this is where it would go. */
static curl_socket_t on_connect(void *arg, curlsocktype purpose,
                                struct curl_sockaddr *to)
{
    struct http_post *post = arg;
    const struct http *http = post->http;

    (void)purpose;
    if (allow_has(http->settings.allow, post->host, &to->addr)) {
        post->was_allowed = true;
        return open_socket(post, to);
    }
    (void)getnameinfo(&to->addr, to->addrlen, post->refused,
                      sizeof(post->refused), NULL, 0,
                      NI_NUMERICHOST); /* then it stays unnamed */
    return CURL_SOCKET_BAD;
}

static CURLcode set_protocols(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    return curl_easy_setopt(easy, CURLOPT_PROTOCOLS,
                            (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* Those whose refusal would make the request another one. */
static CURLcode set_request(CURL *easy, const struct http_post *post)
{
    CURLcode code = curl_easy_setopt(easy, CURLOPT_CURLU, post->at);

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

static CURLcode set_policy(struct http_post *post)
{
    const struct http_settings *settings = &post->http->settings;
    long verifies = settings->verifies ? 1L : 0L;
    CURL *easy = post->easy;
    CURLcode code = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, verifies);

    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 2L * verifies);
    if (code == CURLE_OK && *settings->ca_file != '\0')
        code = curl_easy_setopt(easy, CURLOPT_CAINFO, settings->ca_file);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_connect);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, post);
    if (code == CURLE_OK)
        code =
            curl_easy_setopt(easy, CURLOPT_RESOLVER_START_FUNCTION, on_resolve);
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_RESOLVER_START_DATA, post);
    if (code == CURLE_OK && allow_is_given(settings->allow))
        code = curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* would decide */
    if (code == CURLE_OK)
        code = curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                                (long)settings->timeout_ms);
    return code;
}

static CURLcode set_rest(CURL *easy, struct http_post *post)
{
    (void)curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir/" WEIR_VERSION);
    (void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, post->said);
    (void)curl_easy_setopt(easy, CURLOPT_PRIVATE, post);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer);
    (void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, post);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_head);
    (void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, post);
    /* The host's signals are its own. */
    return curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
}

/* Fills what the transfer has of its own. */
static CURLcode prepare(struct http *http, struct http_post *post)
{
    CURLUcode rc;

    post->http = http;
    post->end_ms =
        weir_loop_now_ms(http->settings.loop) + http->settings.timeout_ms;
    post->easy = curl_easy_init();
    post->at = curl_url();
    if (post->easy == NULL || post->at == NULL)
        return CURLE_OUT_OF_MEMORY;
    rc = curl_url_set(post->at, CURLUPART_URL, post->url, 0);
    if (rc == CURLUE_OK)
        rc = curl_url_get(post->at, CURLUPART_HOST, &post->host, 0);
    if (rc == CURLUE_OUT_OF_MEMORY)
        return CURLE_OUT_OF_MEMORY;
    return rc == CURLUE_OK ? CURLE_OK : refuse(post, CURLE_URL_MALFORMAT);
}

bool http_start(struct http *http, struct http_post *post)
{
    post->is_short = true;
    if (!room_enter(&http->room))
        return false;
    post->code = prepare(http, post);
    if (post->code == CURLE_OK)
        post->code = set_request(post->easy, post);
    if (post->code == CURLE_OK)
        post->code = set_policy(post);
    if (post->code == CURLE_OK)
        post->code = set_rest(post->easy, post);
    if (post->code == CURLE_OK &&
        curl_multi_add_handle(http->multi, post->easy) != CURLM_OK)
        post->code = CURLE_OUT_OF_MEMORY;
    post->is_short = is_short(post);
    if (post->code != CURLE_OK) {
        room_leave(&http->room, &post->share);
        forget(post);
    }
    return post->code == CURLE_OK;
}

/* --- all of them ---------------------------------------------------------- */

static void set_multi(struct http *http)
{
    const struct http_settings *settings = &http->settings;
    CURLM *multi = http->multi;

    http->room.total = http->room.most = (long)settings->total;
    bound(http);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, want_socket);
    (void)curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, http);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, want_timer);
    (void)curl_multi_setopt(multi, CURLMOPT_TIMERDATA, http);
    (void)curl_multi_setopt(multi, CURLMOPT_MAX_HOST_CONNECTIONS,
                            (long)settings->per_host);
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
