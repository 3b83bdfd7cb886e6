/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_PAIR_H
#define WEIR_TEST_PAIR_H

/* The server in the test's process beside a real one: both get the same
 * commands, and have to give the same bytes. Everything BLOCKS, and ends the
 * test where the answers differ. */

#include "tests/harness/redis_proc.h"
#include "tests/sim/server/server.h"

struct weir__buf;

enum { ANSWER_CAP = 1 << 20 };

extern struct pair {
    int fd; /* to the real server */
    struct server *server;
    struct server_client *client;
    bool is_alone; /* ours alone is asked, and not compared */
    char real[ANSWER_CAP], ours[ANSWER_CAP];
    size_t real_len, ours_len;
} pair;

/* Starts both. Returns the real one, as redis_start. */
struct redis_proc *open_pair(const struct redis_options *options);

/* Gives the command to both; the answers are in `pair`. */
void ask_both(const struct weir__buf *bytes);

/* The answers to `bytes` are the same; without `has_order`, line by line in any
 * order. */
void expect_same(const struct weir__buf *bytes, bool has_order);

/* Both at once, for words that NULL ends. */
void expect_same_words(const char *const *words);
#define EXPECT_SAME(...) \
    expect_same_words((const char *const[]){__VA_ARGS__, NULL})

/* Loads a script into both; returns its SHA-1. */
const char *load(const char *text);

#endif
