/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LOCAL_H
#define WEIR_TEST_LOCAL_H

/* A client in the same process, without a network: an answer is there when the
 * command was given. Everything ends the program where it fails. */

#include <stddef.h>

struct redisReply;
struct server;
struct local;

struct local *local_open(struct server *server);
void local_close(struct local *local);

/* Gives a whole command, as bytes or as words that NULL ends. */
void local_give(struct local *local, const void *bytes, size_t len);
void local_say(struct local *local, const char *const *words);

/* The next answer or message, the caller's to free; NULL: there is none. */
struct redisReply *local_take(struct local *local);

#endif
