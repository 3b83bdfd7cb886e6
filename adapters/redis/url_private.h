/* SPDX-License-Identifier: MIT */
#ifndef WEIR_REDIS_URL_PRIVATE_H
#define WEIR_REDIS_URL_PRIVATE_H

/* The inside of addresses, shared by
 *   url.c        scheme, login, hosts and path; printing,
 *   url_query.c  parameters, files, where the password comes from,
 *   url_part.c   reading parts of a text.
 *
 * Each calls the ones below it only. */

#include "adapters/redis/url.h"

/* Begins every sentence; the command line leaves it out. */
#define WEIR__REDIS_URL "redis address: "

/* A part of the address, from `ptr` up to `end`. */
struct weir__url_part {
    const char *ptr;
    const char *end;
};

/* --- url_part.c ----------------------------------------------------------- */

/* `name` is for the sentences, which show nothing of the part. */

size_t weir__url_part_len(struct weir__url_part part);

/* The first or last `c` in the part, or NULL. */
const char *weir__url_find(struct weir__url_part part, char c);
const char *weir__url_find_last(struct weir__url_part part, char c);

/* What stands in front of the first `c`, which is taken with it; all where
 * there is none. */
struct weir__url_part weir__url_take(struct weir__url_part *part, char c);

bool weir__url_equal(struct weir__url_part part, const char *text);

/* Copy a part that must fit. */
int weir__url_copy(struct weir__url_part part, char *to, size_t cap,
                   const char *name, struct weir_error *err);

/* The same, percent-decoded. */
int weir__url_decode(struct weir__url_part part, char *to, size_t cap,
                     const char *name, struct weir_error *err);

/* Decimal digits only. */
int weir__url_number(struct weir__url_part part, uint32_t max, const char *name,
                     uint32_t *ret_value, struct weir_error *err);

int weir__url_db(struct weir__url_part part, uint32_t *ret_db,
                 struct weir_error *err);

/* --- url_query.c ---------------------------------------------------------- */

/* The parameters; the rest of the address is in `url`. */
int weir__url_query(struct weir__url_part query, struct weir__redis_url *url,
                    struct weir_error *err);

/* What must be true of the whole address: logins are complete, files can be
 * read. Also takes the password of the environment. */
int weir__url_check(struct weir__redis_url *url, struct weir_error *err);

#endif
