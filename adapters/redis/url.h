/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_URL_H
#define WEIR_REDIS_URL_H

/* Server addresses:
 *
 *   redis://[user:pass@]host[:port][/db]
 *   redis://[user:pass@]host[:port],host[:port]...    nodes of a cluster
 *   redis+sentinel://[user:pass@]host[:port][,host[:port]].../NAME[/db]
 *   rediss://  rediss+sentinel://    the same with TLS
 *   unix:///path.sock
 *
 * and parameters behind a '?', each once, joined by '&':
 *
 *   ca= cert= key= server_name= verify=none    where there is TLS
 *   sentinel_user= sentinel_password=          where there are sentinels
 *   password_file= prefix=                     everywhere
 *   db=                                        behind the path of a socket
 *
 * User, password and what parameters say are percent-decoded. A host is a name,
 * an IPv4 address, or an IPv6 address in brackets. */

#include <weir/base.h>

struct weir__tls;

enum {
    WEIR__REDIS_URL_CAP = 16384,
    WEIR__REDIS_HOSTS_MAX = 16,
    WEIR__REDIS_PASSWORD_CAP = 2048, /* tokens of services are long */
    WEIR__REDIS_PREFIX_CAP = 33,
    WEIR__REDIS_TEXT_CAP = 256 /* of host names, paths of files */
};

struct weir__redis_host {
    char name[WEIR__REDIS_TEXT_CAP]; /* IPv6 without brackets */
    uint16_t port;                   /* 0 for a socket */
};

/* Texts that were not given are "". */
struct weir__redis_url {
    bool is_unix;
    bool is_tls;
    bool is_sentinel;
    bool no_verify;           /* verify=none */
    bool has_password_in_env; /* used where there is no other */
    size_t host_count;        /* one at least; of a socket one, its path */
    struct weir__redis_host hosts[WEIR__REDIS_HOSTS_MAX];
    char service[128]; /* NAME, as sentinels know it */
    char user[128];    /* of the data servers, as is the password */
    char password[WEIR__REDIS_PASSWORD_CAP]; /* that stands in the address */
    char sentinel_user[128];
    char sentinel_password[WEIR__REDIS_PASSWORD_CAP];
    char ca[WEIR__REDIS_TEXT_CAP]; /* files; they could be read */
    char cert[WEIR__REDIS_TEXT_CAP];
    char key[WEIR__REDIS_TEXT_CAP];
    char password_file[WEIR__REDIS_TEXT_CAP];
    char server_name[WEIR__REDIS_TEXT_CAP];
    char prefix[WEIR__REDIS_PREFIX_CAP]; /* "weir" where none was given */
    uint32_t db;
    struct weir__tls *tls; /* by weir__tls_new; kept; NULL: not made yet */
};

/* Parse an address. WEIR_EINVAL with a sentence that names the part and never
 * shows a secret. Files that it names are looked at. */
int weir__redis_url_parse(const char *text, struct weir__redis_url *ret_url,
                          struct weir_error *err);

/* The same without a look at what TLS needs, which this build may not have. */
int weir__redis_url_read(const char *text, struct weir__redis_url *ret_url,
                         struct weir_error *err);

/* What to log in with now: the password in the address, that in its file, which
 * is read anew, or that in the variable WEIR_REDIS_PASSWORD; "": none.
 * WEIR_EINVAL where the file has none any more, with a sentence. */
int weir__redis_url_password(const struct weir__redis_url *url,
                             char ret_password[WEIR__REDIS_PASSWORD_CAP],
                             struct weir_error *err);

/* Put "***" in place of the secrets of an address, however wrong it is: for an
 * argument of the process, which everybody sees with ps. It gets shorter, what
 * is left of its bytes is 0. */
void weir__redis_url_hide(char *text);

/* From the address of a service of sentinels to that of one of them, and from
 * any to that of one of its servers; it has `host` alone. */
void weir__redis_url_of_sentinel(const struct weir__redis_url *url,
                                 const struct weir__redis_host *host,
                                 struct weir__redis_url *ret_url);
void weir__redis_url_of_server(const struct weir__redis_url *url,
                               const struct weir__redis_host *host,
                               struct weir__redis_url *ret_url);

/* A server as a sentinel names it. False: there can be none. */
bool weir__redis_host_read(struct weir_slice name, struct weir_slice port,
                           struct weir__redis_host *ret_host);

/* The address without passwords and files, for messages; cut to fit. */
void weir__redis_url_print(const struct weir__redis_url *url, char *buf,
                           size_t cap);

#endif
