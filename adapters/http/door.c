/* SPDX-License-Identifier: MIT */
#include "adapters/http/door.h"

#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool weir__secret_equal(struct weir_slice given, const char *secret)
{
    size_t len = strlen(secret);
    volatile unsigned int differs = given.len != len || len == 0;

    for (size_t i = 0; i < len; i++) {
        unsigned int c = i < given.len ? given.ptr[i] : 0;

        differs |= c ^ (unsigned char)secret[i];
    }
    return differs == 0;
}

int weir__token_check(struct weir_slice token, struct weir_error *err)
{
    if (token.len < WEIR__HTTP_TOKEN_MIN || token.len > WEIR__TOKEN_MAX)
        return weir__error_set(
            err, WEIR_EINVAL, "a token has %d to %d characters, not %zu",
            WEIR__HTTP_TOKEN_MIN, WEIR__TOKEN_MAX, token.len);
    for (size_t i = 0; i < token.len; i++) {
        if (token.ptr[i] < 0x21 || token.ptr[i] > 0x7E)
            return weir__error_set(err, WEIR_EINVAL,
                                   "a token is one word of printable ASCII");
    }
    return WEIR_OK;
}

/* Whether `text` is nothing but a port, or nothing at all. */
static bool ends_with_port(const char *text)
{
    return text[0] == '\0' ||
           (text[0] == ':' &&
            strspn(text + 1, "0123456789") == strlen(text + 1));
}

/* 127.0.0.0/8; a name such as 127.0.0.1.example.org is none. */
static bool begins_with_127(const char *host, const char **ret_end)
{
    int dots = 0;
    size_t digits = 0;
    const char *at = host;

    for (; *at == '.' || (*at >= '0' && *at <= '9'); at++) {
        dots += *at == '.' ? 1 : 0;
        digits = *at == '.' ? 0 : digits + 1;
        if (digits > 3 || (*at == '.' && at[1] == '.'))
            return false;
    }
    *ret_end = at;
    return strncmp(host, "127.", 4) == 0 && dots == 3 && digits > 0;
}

bool weir__host_is_loopback(const char *host)
{
    const char *end;

    if (strncasecmp(host, "localhost", 9) == 0)
        return ends_with_port(host + 9);
    if (strncmp(host, "[::1]", 5) == 0)
        return ends_with_port(host + 5);
    return begins_with_127(host, &end) && ends_with_port(end);
}

bool weir__origin_is_host(const char *origin, const char *host)
{
    if (strncasecmp(origin, "http://", 7) == 0)
        return strcasecmp(origin + 7, host) == 0;
    if (strncasecmp(origin, "https://", 8) == 0)
        return strcasecmp(origin + 8, host) == 0;
    return false;
}

void weir__door_cookie_name(const struct weir__door *door, bool is_tls,
                            char ret_name[static WEIR__COOKIE_CAP])
{
    (void)snprintf(ret_name, WEIR__COOKIE_CAP, "%sweir%u",
                   is_tls ? "__Host-" : "", door->port); /* fits */
}

struct weir__session *weir__door_session(struct weir__door *door,
                                         const struct weir__caller *caller)
{
    const char *header = caller->cookie != NULL ? caller->cookie : "";
    struct weir__session *session = NULL;
    char name[WEIR__COOKIE_CAP];
    size_t len;

    weir__door_cookie_name(door, caller->is_tls, name);
    len = strlen(name);
    while (session == NULL && *header != '\0') {
        size_t pair = strcspn(header, ";");

        if (pair > len && strncmp(header, name, len) == 0 && header[len] == '=')
            session = weir__session_find(
                door->sessions,
                weir__slice_of(header + len + 1, pair - len - 1),
                caller->now_s);
        header += pair;
        header += strspn(header, "; ");
    }
    return session;
}

static bool shows_token(const struct weir__door *door, const char *header)
{
    if (header == NULL || strncasecmp(header, "Bearer ", 7) != 0)
        return false;
    return weir__secret_equal(weir__slice_str(header + 7), door->token);
}

static bool has_session(struct weir__door *door,
                        const struct weir__caller *caller)
{
    struct weir__session *session = weir__door_session(door, caller);

    if (session == NULL || caller->key == NULL ||
        !weir__secret_equal(weir__slice_str(caller->key), session->key))
        return false;
    session->used_s = caller->now_s;
    return true;
}

bool weir__caller_is_foreign(const struct weir__caller *caller)
{
    const char *site = caller->fetch_site;

    if (site != NULL && strcmp(site, "same-origin") != 0 &&
        strcmp(site, "none") != 0)
        return true;
    return caller->origin != NULL &&
           (caller->host == NULL ||
            !weir__origin_is_host(caller->origin, caller->host));
}

/* A browser says where a POST comes from; a program that shows the token need
 * not. */
static bool is_same_origin(const struct weir__caller *caller, bool has_token)
{
    return !weir__caller_is_foreign(caller) &&
           (has_token || caller->fetch_site != NULL || caller->origin != NULL);
}

unsigned int weir__door_refuses(struct weir__door *door,
                                const struct weir__caller *caller,
                                enum weir__http_access access,
                                const char **ret_why)
{
    bool has_token = shows_token(door, caller->authorization);
    bool is_known = has_token || has_session(door, caller);

    if (door->checks_host &&
        (caller->host == NULL || !weir__host_is_loopback(caller->host))) {
        *ret_why = "the Host header names another machine";
        return 403;
    }
    if (access == WEIR__HTTP_OPEN)
        return 0;
    if (access == WEIR__HTTP_READ && door->token[0] == '\0')
        return 0;
    if (access == WEIR__HTTP_ACT && door->is_read_only) {
        *ret_why = "weir web was started with --read-only";
        return 403;
    }
    if (door->token[0] == '\0') {
        *ret_why = "nothing can be changed: weir web was started without "
                   "--token-file";
        return 403;
    }
    if (!is_known) {
        *ret_why = "the token is missing or wrong";
        return 401;
    }
    if (access == WEIR__HTTP_ACT && !is_same_origin(caller, has_token)) {
        *ret_why = "the request comes from another site";
        return 403;
    }
    return 0;
}
