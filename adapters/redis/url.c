/* SPDX-License-Identifier: MIT */
#include "adapters/redis/url.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"

enum {
    DEFAULT_PORT = 6379,
    MAX_PORT = 65535,
    MAX_DB = 1000000,
    MAX_SOCKET_PATH = 107 /* sun_path without its NUL */
};

/* A part of the address, from `ptr` up to `end`. */
struct part {
    const char *ptr;
    const char *end;
};

static size_t part_len(struct part part)
{
    return (size_t)(part.end - part.ptr);
}

/* The first or last `c` in the part, or NULL. */
static const char *find(struct part part, char c)
{
    return part.ptr == part.end ? NULL : memchr(part.ptr, c, part_len(part));
}

static const char *find_last(struct part part, char c)
{
    const char *found = NULL;

    for (const char *at = part.ptr; at < part.end; at++)
        if (*at == c)
            found = at;
    return found;
}

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Copies a part that must fit; `name` is for the sentence. */
static int copy(struct part part, char *to, size_t cap, struct weir_error *err)
{
    if (part_len(part) >= cap)
        return weir__error_set(err, WEIR_EINVAL,
                               "redis address: host or path longer than %zu "
                               "bytes",
                               cap - 1);
    memcpy(to, part.ptr, part_len(part));
    to[part_len(part)] = '\0';
    return WEIR_OK;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Percent-decodes user or password; the sentence names which, never what. */
static int decode(struct part part, char *to, size_t cap, const char *name,
                  struct weir_error *err)
{
    size_t used = 0;

    for (const char *at = part.ptr; at < part.end; at++) {
        int c = (unsigned char)*at;

        if (c == '%') {
            int high = part.end - at > 2 ? hex_value(at[1]) : -1;
            int low = part.end - at > 2 ? hex_value(at[2]) : -1;

            c = high < 0 || low < 0 ? 0 : high * 16 + low;
            at += 2;
        }
        if (c == 0)
            return weir__error_set(err, WEIR_EINVAL,
                                   "redis address: bad %%-sequence in the %s",
                                   name);
        if (used + 1 >= cap)
            return weir__error_set(err, WEIR_EINVAL,
                                   "redis address: %s longer than %zu bytes",
                                   name, cap - 1);
        to[used++] = (char)c;
    }
    to[used] = '\0';
    return WEIR_OK;
}

/* Decimal digits only. */
static int number(struct part part, uint32_t max, const char *name,
                  uint32_t *ret_value, struct weir_error *err)
{
    uint32_t value = 0;
    bool is_good = part_len(part) > 0 && part_len(part) <= 7;

    for (const char *at = part.ptr; is_good && at < part.end; at++) {
        is_good = *at >= '0' && *at <= '9';
        value = value * 10 + (uint32_t)(*at - '0');
    }
    if (!is_good || value > max)
        return weir__error_set(err, WEIR_EINVAL,
                               "redis address: %s must be a number up to %u",
                               name, max);
    *ret_value = value;
    return WEIR_OK;
}

/* user:password, :password */
static int parse_login(struct part part, struct weir__redis_url *url,
                       struct weir_error *err)
{
    const char *colon = find(part, ':');
    int rc;

    if (colon == NULL || colon + 1 == part.end)
        return weir__error_set(err, WEIR_EINVAL,
                               "redis address: before '@' must stand "
                               "user:password or :password");
    rc = decode((struct part){part.ptr, colon}, url->user, sizeof(url->user),
                "user", err);
    if (rc != WEIR_OK)
        return rc;
    return decode((struct part){colon + 1, part.end}, url->password,
                  sizeof(url->password), "password", err);
}

/* Resolving a name would block the loop, so only what needs none. */
static int check_host(const struct weir__redis_url *url, struct weir_error *err)
{
    uint8_t address[16];

    if (strcmp(url->host, "localhost") == 0 ||
        inet_pton(AF_INET, url->host, address) == 1 ||
        inet_pton(AF_INET6, url->host, address) == 1)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "redis address: host \"%s\" must be a numeric "
                           "address or localhost",
                           url->host);
}

/* host, host:port, [v6], [v6]:port */
static int parse_host(struct part part, struct weir__redis_url *url,
                      struct weir_error *err)
{
    struct part host = part;
    const char *colon;
    uint32_t port = DEFAULT_PORT;
    int rc;

    if (part.ptr < part.end && *part.ptr == '[') {
        const char *bracket = find(part, ']');

        if (bracket == NULL)
            return weir__error_set(err, WEIR_EINVAL,
                                   "redis address: '[' without ']'");
        host = (struct part){part.ptr + 1, bracket};
        part.ptr = bracket + 1;
        colon = part.ptr == part.end ? NULL : part.ptr;
    } else {
        colon = find(part, ':');
        host.end = colon == NULL ? part.end : colon;
    }
    if (colon != NULL) {
        rc = *colon != ':' ? weir__error_set(err, WEIR_EINVAL,
                                             "redis address: text after ']'")
                           : number((struct part){colon + 1, part.end},
                                    MAX_PORT, "the port", &port, err);
        if (rc != WEIR_OK)
            return rc;
    }
    if (port == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "redis address: the port must not be 0");
    url->port = (uint16_t)port;
    rc = copy(host, url->host, sizeof(url->host), err);
    return rc != WEIR_OK ? rc : check_host(url, err);
}

static int parse_tcp(struct part part, struct weir__redis_url *url,
                     struct weir_error *err)
{
    const char *at = find_last(part, '@'); /* passwords may hold an '@' */
    const char *slash;
    int rc = WEIR_OK;

    if (at != NULL) {
        rc = parse_login((struct part){part.ptr, at}, url, err);
        part.ptr = at + 1;
    }
    if (rc != WEIR_OK)
        return rc;
    slash = find(part, '/');
    rc = parse_host((struct part){part.ptr, slash == NULL ? part.end : slash},
                    url, err);
    if (rc != WEIR_OK || slash == NULL || slash + 1 == part.end)
        return rc;
    return number((struct part){slash + 1, part.end}, MAX_DB, "the database",
                  &url->db, err);
}

static int parse_unix(struct part part, struct weir__redis_url *url,
                      struct weir_error *err)
{
    const char *query = find(part, '?');
    struct part path = {part.ptr, query == NULL ? part.end : query};
    int rc;

    url->is_unix = true;
    if (part_len(path) < 2 || *path.ptr != '/')
        return weir__error_set(err, WEIR_EINVAL,
                               "redis address: unix:// needs an absolute "
                               "path, as in unix:///run/redis.sock");
    rc = copy(path, url->host, MAX_SOCKET_PATH + 1, err);
    if (rc != WEIR_OK || query == NULL)
        return rc;
    if (!starts_with(query, "?db="))
        return weir__error_set(err, WEIR_EINVAL,
                               "redis address: after '?' only db=N is known");
    return number((struct part){query + strlen("?db="), part.end}, MAX_DB,
                  "the database", &url->db, err);
}

int weir__redis_url_parse(const char *text, struct weir__redis_url *ret_url,
                          struct weir_error *err)
{
    struct part rest = {text, text + strlen(text)};
    struct weir__redis_url url = {0};
    int rc;

    if (starts_with(text, "redis://")) {
        rest.ptr += strlen("redis://");
        rc = parse_tcp(rest, &url, err);
    } else if (starts_with(text, "unix://")) {
        rest.ptr += strlen("unix://");
        rc = parse_unix(rest, &url, err);
    } else if (starts_with(text, "rediss://")) {
        rc = weir__error_set(err, WEIR_EINVAL,
                             "redis address: this build has no TLS for "
                             "rediss://; use a tunnel such as stunnel");
    } else {
        rc = weir__error_set(err, WEIR_EINVAL,
                             "redis address: must begin with redis:// or "
                             "unix://");
    }
    if (rc == WEIR_OK)
        *ret_url = url;
    return rc;
}

void weir__redis_url_print(const struct weir__redis_url *url, char *buf,
                           size_t cap)
{
    bool is_v6 = strchr(url->host, ':') != NULL;
    char db[16] = "";

    if (url->db != 0)
        (void)snprintf(db, sizeof(db), "%s%u", url->is_unix ? "?db=" : "/",
                       url->db); /* fits */
    if (url->is_unix)
        (void)snprintf(buf, cap, "unix://%s%s", url->host, db); /* cut */
    else
        (void)snprintf(buf, cap, "redis://%s%s%s%s%s:%u%s", url->user,
                       url->user[0] == '\0' ? "" : "@", is_v6 ? "[" : "",
                       url->host, is_v6 ? "]" : "", url->port, db); /* cut */
}
