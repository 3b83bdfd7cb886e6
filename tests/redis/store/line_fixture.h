/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LINE_FIXTURE_H
#define WEIR_TEST_LINE_FIXTURE_H

/* Answers of the server that a host does not get. */

#include "tests/redis/store/store_fixture.h"

/* What the server counts in a topic's `meta`. */
long long world_count(const char *topic, const char *name);

/* Nobody who connects finds the server, until this is taken back. */
void world_hide_server(bool is_hidden);

/* The server, which stands still, gets what the host sends and goes on until
 * the topic has counted more than `before`; the host hears nothing of it, and
 * the server is hidden. */
void host_lose_answer(struct host *host, const char *topic, const char *name,
                      long long before);

#endif
