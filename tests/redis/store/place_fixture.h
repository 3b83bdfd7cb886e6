/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_PLACE_FIXTURE_H
#define WEIR_TEST_PLACE_FIXTURE_H

/* A store whose servers are scripted peers, the nodes of a cluster, without
 * topics: commands of places alone. A command is "SAY x" with a letter, and
 * peers answer +OK unless a rule says otherwise. The slot is SLOT everywhere
 * but where another one is named. */

#include "adapters/redis/store/cluster.h"
#include "adapters/redis/store/store.h"
#include "tests/harness/resp_peer.h"
#include "tests/harness/test.h"

#define DOWN     "-CLUSTERDOWN The cluster is down\r\n"
#define TRYAGAIN "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"

enum { SLOT = 7, OTHER_SLOT = 8, NODES = 3 };

/* Flags of most commands: they are sent again, also after their answer. */
enum { REPLAY = WEIR__SEND_AGAIN | WEIR__SEND_REPLAY };

extern struct weir__redis *store; /* NULL: not open */
extern char place_log[8192];      /* what was logged, one line each */
extern char place_held[256];      /* what the event `held` told last */
extern int64_t place_ahead_ms;    /* the store's clock, before that of its
                                     connections */

/* Peers with ports, which do not answer yet. */
void nodes_prepare(void);

/* Rules about slots come behind these: all slots are at the node `owner`. */
void node_run(int node, int owner, const struct resp_rule *rules, size_t count);

/* The same without any: the rules are all. */
void node_run_as(int node, const struct resp_rule *rules, size_t count);

/* An error that names the node, and the answer to CLUSTER SLOTS that says that
 * it has all slots. Valid for the test. */
const char *moved_to(int node);
const char *ask_to(int node);
const char *slots_at(int node);

/* The same: those up to `last` are at `first`, the others at `rest`. */
const char *slots_split(int last, int first, int rest);

/* The answer to INFO server of one whose identity begins so. */
const char *info_of(char letter);

int node_port(int node);
void node_stop(int node);
void node_pause(int node); /* it says nothing more */

/* With the node's address, and patience in ms (0: the usual one); waits until
 * its connection stands. Closed with the test, or before. */
void store_open(int node, int64_t wait_ms);

/* The same, without waiting, and at any port. */
void store_open_at(int port, int64_t wait_ms);

/* The same; returns the code. */
int store_try(int port, int64_t wait_ms);
void store_close(void);

/* The slots are at node 0 at first, then at the new owner; these two answer
 * with these rules. `nodes_prepare` was called. */
extern int new_owner;         /* 1 */
extern int64_t place_wait_ms; /* 0: the usual one */
void place_open(const struct resp_rule *rules, size_t count,
                const struct resp_rule *others, size_t other_count);

/* Node 0 has SLOT and node 1 the others, and connections to both stand: an
 * answer "z" was node 1's. Node 1 says `until` times more that it is so, then
 * that it has all slots; node 0 says so for ever. */
void place_open_beside(const struct resp_rule *rules, size_t count, int until);

struct weir__place *place(void);

/* "SAY x" for each letter, in one flush. */
void say(const char *letters, unsigned flags);
void say_at(struct weir__place *at, const char *letters, unsigned flags);

/* The same by a script. */
void say_script(const char *letters, unsigned flags);

/* One with so many bytes more; returns the code, and is not flushed. */
int say_long(struct weir__place *at, char letter, size_t bytes, unsigned flags);

/* The letters that the node was told, in order. */
const char *said(int node);

/* Of how many lines that it heard these words are a part. */
int heard(int node, const char *words);

/* What became of them, in order: a letter, and behind it - for WEIR_ECONN, ?
 * for WEIR_EUNKNOWN, ! for an error of the server, # for WEIR_EFULL, ~ for
 * WEIR_ECANCELED. */
extern char answers[4096];

/* Call `fn` when the answer with the letter came. */
void at_answer(char letter, void (*fn)(void));

void place_turn(void);
extern struct patience place_patience;

#define AWAIT(condition)                                      \
    for (place_patience = patience_start(60.); !(condition);) \
    place_turn()

/* So much time of the loop. */
void place_pass(int ms);

#endif
