/* SPDX-License-Identifier: MIT */
#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "adapters/redis/conn/tls.h"
#include "adapters/redis/url_private.h"
#include "core/error.h"
#include "core/text.h"

enum {
    DEFAULT_PORT = 6379,
    SENTINEL_PORT = 26379,
    MAX_PORT = 65535,
    MAX_SOCKET_PATH = 107 /* sun_path without its NUL */
};

static const char default_prefix[] = "weir";

static int refuse(const char *why, struct weir_error *err)
{
    return weir__error_set(err, WEIR_EINVAL, WEIR__REDIS_URL "%s", why);
}

/* --- schemes -------------------------------------------------------------- */

static const struct scheme {
    const char *text;
    bool is_tls;
    bool is_sentinel;
    bool is_unix;
} schemes[] = {
    {"redis://", false, false, false},
    {"rediss://", true, false, false},
    {"redis+sentinel://", false, true, false},
    {"rediss+sentinel://", true, true, false},
    {"unix://", false, false, true},
};

enum { SCHEMES = sizeof(schemes) / sizeof(schemes[0]) };

static int take_scheme(struct weir__url_part *rest, struct weir__redis_url *url,
                       struct weir_error *err)
{
    for (size_t i = 0; i < SCHEMES; i++) {
        size_t len = strlen(schemes[i].text);

        if (strncmp(rest->ptr, schemes[i].text, len) != 0)
            continue;
        rest->ptr += len;
        url->is_tls = schemes[i].is_tls;
        url->is_sentinel = schemes[i].is_sentinel;
        url->is_unix = schemes[i].is_unix;
        return WEIR_OK;
    }
    return refuse("must begin with redis:// or unix://, or with rediss://, "
                  "redis+sentinel:// or rediss+sentinel://",
                  err);
}

/* --- login ---------------------------------------------------------------- */

/* user:password, :password, or user where the password is elsewhere */
static int parse_login(struct weir__url_part part, struct weir__redis_url *url,
                       struct weir_error *err)
{
    struct weir__url_part user = weir__url_take(&part, ':');
    int rc;

    if (user.ptr == user.end && part.ptr == part.end)
        return refuse("before '@' must stand user:password or :password", err);
    rc = weir__url_decode(user, url->user, sizeof(url->user), "the user", err);
    if (rc != WEIR_OK)
        return rc;
    return weir__url_decode(part, url->password, sizeof(url->password),
                            "the password", err);
}

/* --- hosts ---------------------------------------------------------------- */

/* Within brackets. */
static int check_v6(const char *name, struct weir_error *err)
{
    uint8_t address[16];

    if (strchr(name, '%') != NULL)
        return refuse("an IPv6 address with a zone, %..., cannot be used", err);
    if (inet_pton(AF_INET6, name, address) != 1)
        return refuse("in brackets must stand an IPv6 address, as in [::1]",
                      err);
    return WEIR_OK;
}

static int check_name(const char *name, struct weir_error *err)
{
    static const char known[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_";
    char quote[WEIR__TEXT_QUOTE_CAP];

    if (name[0] == '\0')
        return refuse("a host is missing", err);
    if (name[strspn(name, known)] == '\0')
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           WEIR__REDIS_URL "host \"%s\" must be of letters, "
                                           "digits, '.', '-' and '_'",
                           weir__text_quote(weir__slice_str(name), quote));
}

/* :port, or nothing */
static int parse_port(struct weir__url_part part, uint16_t fallback,
                      struct weir__redis_host *host, struct weir_error *err)
{
    uint32_t port = fallback;
    int rc = WEIR_OK;

    if (part.ptr < part.end) {
        part.ptr++;
        rc = weir__url_number(part, MAX_PORT, "the port", &port, err);
    }
    if (rc == WEIR_OK && port == 0)
        rc = refuse("the port must not be 0", err);
    host->port = (uint16_t)port;
    return rc;
}

/* host, host:port, [v6], [v6]:port */
static int parse_host(struct weir__url_part part, uint16_t fallback,
                      struct weir__redis_host *host, struct weir_error *err)
{
    bool is_v6 = part.ptr < part.end && *part.ptr == '[';
    struct weir__url_part name = part;
    const char *end = weir__url_find(part, is_v6 ? ']' : ':');
    int rc;

    if (is_v6 && end == NULL)
        return refuse("'[' without ']'", err);
    if (!is_v6 && end != weir__url_find_last(part, ':'))
        return refuse("an IPv6 address must stand in brackets, as in [::1]",
                      err);
    name.ptr += is_v6 ? 1 : 0;
    name.end = end == NULL ? part.end : end;
    part.ptr = is_v6 ? name.end + 1 : name.end;
    if (part.ptr < part.end && *part.ptr != ':')
        return refuse("text after ']'", err);
    rc = weir__url_copy(name, host->name, sizeof(host->name), "a host", err);
    if (rc == WEIR_OK)
        rc = parse_port(part, fallback, host, err);
    if (rc != WEIR_OK)
        return rc;
    return is_v6 ? check_v6(host->name, err) : check_name(host->name, err);
}

static int parse_hosts(struct weir__url_part part, struct weir__redis_url *url,
                       struct weir_error *err)
{
    uint16_t fallback = url->is_sentinel ? SENTINEL_PORT : DEFAULT_PORT;
    bool has_more;
    int rc;

    do {
        if (url->host_count == WEIR__REDIS_HOSTS_MAX)
            return refuse("more than 16 hosts", err);
        has_more = weir__url_find(part, ',') != NULL;
        rc = parse_host(weir__url_take(&part, ','), fallback,
                        &url->hosts[url->host_count], err);
        url->host_count++;
    } while (rc == WEIR_OK && has_more);
    return rc;
}

/* --- path ----------------------------------------------------------------- */

static int parse_service(struct weir__url_part part,
                         struct weir__redis_url *url, struct weir_error *err)
{
    int rc = weir__url_copy(part, url->service, sizeof(url->service),
                            "the name behind the sentinels", err);

    if (rc != WEIR_OK)
        return rc;
    if (url->service[0] == '\0')
        return refuse("behind the sentinels must stand the name of what they "
                      "watch, as in redis+sentinel://host/mymaster",
                      err);
    if (check_name(url->service, NULL) != WEIR_OK)
        return refuse("the name behind the sentinels must be of letters, "
                      "digits, '.', '-' and '_'",
                      err);
    return WEIR_OK;
}

/* NAME/db of sentinels, else db */
static int parse_path(struct weir__url_part part, struct weir__redis_url *url,
                      struct weir_error *err)
{
    int rc = WEIR_OK;

    if (url->is_sentinel)
        rc = parse_service(weir__url_take(&part, '/'), url, err);
    if (rc == WEIR_OK && part.ptr < part.end)
        rc = weir__url_db(part, &url->db, err);
    if (rc == WEIR_OK && !url->is_sentinel && url->host_count > 1 &&
        url->db != 0)
        rc = refuse("several hosts are a cluster, which has no databases", err);
    return rc;
}

static int parse_tcp(struct weir__url_part part, struct weir__redis_url *url,
                     struct weir_error *err)
{
    const char *at = weir__url_find_last(part, '@'); /* passwords may have it */
    int rc = WEIR_OK;

    if (at != NULL) {
        rc = parse_login((struct weir__url_part){part.ptr, at}, url, err);
        part.ptr = at + 1;
    }
    if (rc == WEIR_OK)
        rc = parse_hosts(weir__url_take(&part, '/'), url, err);
    return rc == WEIR_OK ? parse_path(part, url, err) : rc;
}

static int parse_unix(struct weir__url_part path, struct weir__redis_url *url,
                      struct weir_error *err)
{
    if (weir__url_part_len(path) < 2 || *path.ptr != '/')
        return refuse("unix:// needs an absolute path, as in "
                      "unix:///run/redis.sock",
                      err);
    url->host_count = 1;
    return weir__url_copy(path, url->hosts[0].name, MAX_SOCKET_PATH + 1,
                          "the path", err);
}

/* --- the whole ------------------------------------------------------------ */

int weir__redis_url_read(const char *text, struct weir__redis_url *ret_url,
                         struct weir_error *err)
{
    struct weir__url_part query = {text, text + strlen(text)}, part;
    struct weir__redis_url url = {0};
    int rc;

    if (weir__url_part_len(query) >= WEIR__REDIS_URL_CAP)
        return refuse("longer than 16,383 bytes", err);
    rc = take_scheme(&query, &url, err);
    if (rc != WEIR_OK)
        return rc;
    (void)snprintf(url.prefix, sizeof(url.prefix), "%s", default_prefix);
    part = weir__url_take(&query, '?');
    /* What follows such a '?' belongs to the login and is not to be shown. */
    if (!url.is_unix && weir__url_find(query, '@') != NULL)
        return refuse("an '@' behind a '?'; write %40 and %3F within user, "
                      "password and parameters",
                      err);
    rc = url.is_unix ? parse_unix(part, &url, err) : parse_tcp(part, &url, err);
    if (rc == WEIR_OK)
        rc = weir__url_query(query, &url, err);
    if (rc == WEIR_OK)
        rc = weir__url_check(&url, err);
    if (rc == WEIR_OK)
        *ret_url = url;
    return rc;
}

/* Whether there is TLS, and what is in its files. */
static int check_tls(const struct weir__redis_url *url, struct weir_error *err)
{
    struct weir__tls *tls;
    int rc = weir__tls_new(url, &tls, err);

    weir__tls_free(tls);
    return rc;
}

int weir__redis_url_parse(const char *text, struct weir__redis_url *ret_url,
                          struct weir_error *err)
{
    struct weir__redis_url url;
    int rc = weir__redis_url_read(text, &url, err);

    if (rc == WEIR_OK)
        rc = check_tls(&url, err);
    if (rc == WEIR_OK)
        *ret_url = url;
    return rc;
}

/* --- printing ------------------------------------------------------------- */

/* What did not fit is left out. */
struct line {
    char *ptr;
    size_t cap;
    size_t len;
};

WEIR_PRINTF(2, 3)
static void append(struct line *line, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(line->ptr + line->len, line->cap - line->len, format, args);
    va_end(args);
    if (len > 0)
        line->len += (size_t)len;
    if (line->len >= line->cap)
        line->len = line->cap - 1;
}

static void append_hosts(struct line *line, const struct weir__redis_url *url)
{
    for (size_t i = 0; i < url->host_count; i++) {
        const struct weir__redis_host *host = &url->hosts[i];
        bool is_v6 = strchr(host->name, ':') != NULL;

        append(line, "%s%s%s%s:%u", i > 0 ? "," : "", is_v6 ? "[" : "",
               host->name, is_v6 ? "]" : "", host->port);
    }
}

static void append_tcp(struct line *line, const struct weir__redis_url *url)
{
    append(line, "redis%s%s://", url->is_tls ? "s" : "",
           url->is_sentinel ? "+sentinel" : "");
    if (url->user[0] != '\0')
        append(line, "%s@", url->user);
    append_hosts(line, url);
    if (url->is_sentinel)
        append(line, "/%s", url->service);
    if (url->db != 0)
        append(line, "/%u", url->db);
}

void weir__redis_url_print(const struct weir__redis_url *url, char *buf,
                           size_t cap)
{
    struct line line = {buf, cap, 0};
    const char *mark = "?";

    if (!url->is_unix)
        append_tcp(&line, url);
    else
        append(&line, "unix://%s", url->hosts[0].name);
    if (url->is_unix && url->db != 0) {
        append(&line, "?db=%u", url->db);
        mark = "&";
    }
    if (strcmp(url->prefix, default_prefix) != 0 && url->prefix[0] != '\0')
        append(&line, "%sprefix=%s", mark, url->prefix);
}

/* --- hiding --------------------------------------------------------------- */

static void put_stars(char *from, size_t len)
{
    size_t stars = len < 3 ? len : 3, rest = strlen(from + len);

    memset(from, '*', stars);
    memmove(from + stars, from + len, rest);
    memset(from + stars + rest, '\0', len - stars);
}

void weir__redis_url_hide(char *text)
{
    static const char parameter[] = "sentinel_password=";
    char *login = strstr(text, "://"), *end = strrchr(text, '@'), *secret;

    secret = login == NULL ? NULL : strchr(login + strlen("://"), ':');
    if (secret != NULL && end != NULL && secret < end)
        put_stars(secret + 1, (size_t)(end - secret - 1));
    secret = strchr(text, '?');
    secret = secret == NULL ? NULL : strstr(secret, parameter);
    if (secret == NULL)
        return;
    secret += strlen(parameter);
    put_stars(secret, strcspn(secret, "&"));
}
