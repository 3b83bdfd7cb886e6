/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "adapters/redis/url_private.h"
#include "core/error.h"
#include "core/text.h"

#define PASSWORD_VARIABLE "WEIR_REDIS_PASSWORD"

/* --- what there is -------------------------------------------------------- */

enum fit { ANYWHERE, WITH_TLS, WITH_SENTINELS, AT_A_SOCKET };

struct parameter {
    const char *name;
    enum fit fit;
    size_t offset; /* of its text in the address */
    size_t cap;    /* 0: it has none */
};

#define TEXT(name, fit)                                     \
    {                                                       \
#        name, fit, offsetof(struct weir__redis_url, name), \
            sizeof(((struct weir__redis_url *)0)->name)     \
    }
static const struct parameter parameters[] = {
    TEXT(ca, WITH_TLS),
    TEXT(cert, WITH_TLS),
    TEXT(key, WITH_TLS),
    TEXT(server_name, WITH_TLS),
    {"verify", WITH_TLS, 0, 0},
    TEXT(sentinel_user, WITH_SENTINELS),
    TEXT(sentinel_password, WITH_SENTINELS),
    TEXT(password_file, ANYWHERE),
    TEXT(prefix, ANYWHERE),
    {"db", AT_A_SOCKET, 0, 0},
};
#undef TEXT

enum { COUNT = sizeof(parameters) / sizeof(parameters[0]) };

/* Why the parameter means nothing at such an address; NULL: it does. */
static const char *misfit(const struct parameter *parameter,
                          const struct weir__redis_url *url)
{
    switch (parameter->fit) {
    case WITH_TLS:
        return url->is_tls ? NULL : "is for rediss:// and rediss+sentinel://";
    case WITH_SENTINELS:
        return url->is_sentinel
                   ? NULL
                   : "is for redis+sentinel:// and rediss+sentinel://";
    case AT_A_SOCKET:
        return url->is_unix ? NULL : "is for unix://; elsewhere write /N";
    case ANYWHERE:
        break;
    }
    return NULL;
}

/* --- reading -------------------------------------------------------------- */

/* A name is shown, unless it may be the rest of a password with a bare '&'. */
static int refuse_unknown(struct weir__url_part name,
                          const struct weir__redis_url *url,
                          struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    if (url->sentinel_password[0] != '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               WEIR__REDIS_URL
                               "unknown parameter behind sentinel_password; "
                               "write & within a password as %%26");
    return weir__error_set(
        err, WEIR_EINVAL,
        WEIR__REDIS_URL "unknown parameter \"%s\"; see docs/configuration.md",
        weir__text_quote(weir__slice_of(name.ptr, weir__url_part_len(name)),
                         quote));
}

static int set_prefix_check(const struct weir__redis_url *url,
                            struct weir_error *err)
{
    if (weir__topic_check(weir__slice_str(url->prefix), NULL) == WEIR_OK)
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           WEIR__REDIS_URL "prefix must be 1 to %d of "
                                           "A-Z a-z 0-9 . _ : -",
                           WEIR__REDIS_PREFIX_CAP - 1);
}

static int set(const struct parameter *parameter, struct weir__url_part value,
               struct weir__redis_url *url, struct weir_error *err)
{
    int rc;

    if (parameter->fit == AT_A_SOCKET)
        return weir__url_db(value, &url->db, err);
    if (parameter->cap == 0) {
        url->no_verify = weir__url_equal(value, "none");
        return url->no_verify
                   ? WEIR_OK
                   : weir__error_set(err, WEIR_EINVAL,
                                     WEIR__REDIS_URL "verify can only be none");
    }
    if (value.ptr == value.end)
        return weir__error_set(err, WEIR_EINVAL,
                               WEIR__REDIS_URL "%s needs a value",
                               parameter->name);
    rc = weir__url_decode(value, (char *)url + parameter->offset,
                          parameter->cap, parameter->name, err);
    if (rc == WEIR_OK &&
        parameter->offset == offsetof(struct weir__redis_url, prefix))
        rc = set_prefix_check(url, err);
    return rc;
}

/* `seen` has a bit for each parameter. */
static int take_one(struct weir__url_part part, struct weir__redis_url *url,
                    unsigned *seen, struct weir_error *err)
{
    struct weir__url_part name = weir__url_take(&part, '=');
    const char *why;
    unsigned i = 0;

    while (i < COUNT && !weir__url_equal(name, parameters[i].name))
        i++;
    if (i == COUNT)
        return refuse_unknown(name, url, err);
    why = misfit(&parameters[i], url);
    if (why == NULL && (*seen >> i & 1u) != 0)
        why = "is given twice";
    if (why != NULL)
        return weir__error_set(err, WEIR_EINVAL, WEIR__REDIS_URL "%s %s",
                               parameters[i].name, why);
    *seen |= 1u << i;
    return set(&parameters[i], part, url, err);
}

int weir__url_query(struct weir__url_part query, struct weir__redis_url *url,
                    struct weir_error *err)
{
    unsigned seen = 0;
    int rc = WEIR_OK;

    while (rc == WEIR_OK && query.ptr < query.end)
        rc = take_one(weir__url_take(&query, '&'), url, &seen, err);
    return rc;
}

/* --- files ---------------------------------------------------------------- */

/* Up to `cap` bytes of the file; a pipe without a writer does not hold us. */
static int read_file(const char *parameter, const char *path, char *buf,
                     size_t cap, size_t *ret_len, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t got = fd < 0 ? -1 : read(fd, buf, cap);
    int why = errno;

    if (fd >= 0)
        (void)close(fd); /* nothing was written */
    if (got < 0)
        return weir__error_set(err, WEIR_EINVAL, WEIR__REDIS_URL "%s=%s: %s",
                               parameter, path, strerror(why));
    *ret_len = (size_t)got;
    return WEIR_OK;
}

static int read_password(const char *path,
                         char password[WEIR__REDIS_PASSWORD_CAP],
                         struct weir_error *err)
{
    char text[WEIR__REDIS_PASSWORD_CAP + 2]; /* "\r\n" behind it */
    const char *why = NULL;
    size_t len = 0;
    int rc = read_file("password_file", path, text, sizeof(text), &len, err);

    if (rc != WEIR_OK)
        return rc;
    if (len > 0 && text[len - 1] == '\n')
        len--;
    if (len > 0 && text[len - 1] == '\r')
        len--;
    if (len == 0)
        why = "is empty";
    else if (len >= WEIR__REDIS_PASSWORD_CAP)
        why = "has more than a password of 2,047 bytes";
    else if (memchr(text, '\0', len) != NULL)
        why = "has a zero byte";
    if (why != NULL)
        return weir__error_set(
            err, WEIR_EINVAL, WEIR__REDIS_URL "password_file=%s %s", path, why);
    memcpy(password, text, len);
    password[len] = '\0';
    return WEIR_OK;
}

static int check_file(const char *parameter, const char *path,
                      struct weir_error *err)
{
    char byte;
    size_t len = 0;

    return path[0] == '\0' ? WEIR_OK
                           : read_file(parameter, path, &byte, 1, &len, err);
}

/* --- logins --------------------------------------------------------------- */

static int take_environment(struct weir__redis_url *url, struct weir_error *err)
{
    const char *password = getenv(PASSWORD_VARIABLE);

    if (url->is_unix || url->password[0] != '\0' ||
        url->password_file[0] != '\0' || password == NULL)
        return WEIR_OK;
    if (strlen(password) >= WEIR__REDIS_PASSWORD_CAP)
        return weir__error_set(err, WEIR_EINVAL,
                               PASSWORD_VARIABLE " is longer than %d bytes",
                               WEIR__REDIS_PASSWORD_CAP - 1);
    url->has_password_in_env = password[0] != '\0';
    return WEIR_OK;
}

int weir__redis_url_password(const struct weir__redis_url *url,
                             char ret_password[WEIR__REDIS_PASSWORD_CAP],
                             struct weir_error *err)
{
    const char *password = url->password;

    if (url->password_file[0] != '\0')
        return read_password(url->password_file, ret_password, err);
    if (url->has_password_in_env)
        password = getenv(PASSWORD_VARIABLE);
    (void)snprintf(ret_password, WEIR__REDIS_PASSWORD_CAP, "%s",
                   password == NULL ? "" : password); /* it was looked at */
    return WEIR_OK;
}

static int check_logins(const struct weir__redis_url *url,
                        struct weir_error *err)
{
    char password[WEIR__REDIS_PASSWORD_CAP];
    int rc;

    if (url->password[0] != '\0' && url->password_file[0] != '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               WEIR__REDIS_URL "a password and password_file "
                                               "are given; one is enough");
    if (url->sentinel_user[0] != '\0' && url->sentinel_password[0] == '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               WEIR__REDIS_URL
                               "sentinel_user needs sentinel_password");
    rc = weir__redis_url_password(url, password, err);
    if (rc == WEIR_OK && url->user[0] != '\0' && password[0] == '\0')
        return weir__error_set(err, WEIR_EINVAL,
                               WEIR__REDIS_URL
                               "before '@' must stand user:password or "
                               ":password, or user with password_file=FILE "
                               "or " PASSWORD_VARIABLE);
    return rc;
}

int weir__url_check(struct weir__redis_url *url, struct weir_error *err)
{
    int rc = take_environment(url, err);

    if (rc == WEIR_OK)
        rc = check_logins(url, err);
    if (rc == WEIR_OK && (url->cert[0] == '\0') != (url->key[0] == '\0'))
        rc = weir__error_set(err, WEIR_EINVAL,
                             WEIR__REDIS_URL "cert and key need each other");
    if (rc == WEIR_OK)
        rc = check_file("ca", url->ca, err);
    if (rc == WEIR_OK)
        rc = check_file("cert", url->cert, err);
    if (rc == WEIR_OK)
        rc = check_file("key", url->key, err);
    return rc;
}
