/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LEASE_FIXTURE_H
#define WEIR_TEST_LEASE_FIXTURE_H

/* Leases and due times of the topic "t" on the server. A test has a long lease
 * that it ends itself where it wants one to end: however slow the machine is,
 * none ends before that. */

#include "tests/redis/store/store_fixture.h"

/* time is the subject */
enum { LEASE_SHORT_MS = 300, LEASE_LONG_MS = 3600000 };

/* Claim nothing with the short lease: from now on the host's keeper renews each
 * third of that, long leases as well. */
void lease_look(struct host *host);

/* What `lease` names: a token (a group is its own name). Until the next
 * call. */
const char *lease_name(const struct weir__run *run);

/* When it ends, ms of the server. */
int64_t lease_end(const char *name);

/* Until it was renewed so often it stands, and `other` (NULL: nobody asks) gets
 * nothing. */
void lease_hold(const char *name, int times, struct host *other);

/* Claim so many jobs, whose lease ends before anything else happens. */
void lease_outlive(struct host *host, size_t jobs);

/* All of them ended long ago. */
void leases_pass(void);

/* What waits in the sorted set weir:{t}:KEY is due. */
void due_now(const char *key, const char *member);

#endif
