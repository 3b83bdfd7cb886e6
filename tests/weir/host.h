/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_HOST_H
#define WEIR_TEST_HOST_H

/* A program with a loop of its own and a reactor on it, on a real server. All
 * of it is closed with the test. */

#include <ev.h>
#include <weir/weir.h>

#include "tests/harness/redis_proc.h"
#include "tests/harness/test.h"

extern struct redis_proc *server;
extern struct ev_loop *loop; /* has a timer, so that it never waits for long */
extern struct weir_reactor *weir; /* NULL: there is none, or no more */

/* The server and the loop are put into the options; NULL: no others. */
void host_open(const struct weir_options *options);
void host_open_on(const struct redis_options *options);
void host_open_at(struct redis_proc *running,
                  const struct weir_options *options);
struct weir_reactor *host_reactor(const struct weir_options *options);
void host_close(void);

/* One turn of the loop; fails the test when AWAIT takes too long. */
void host_turn(void);
extern struct patience host_patience;

/* Whether it holds, in a call: clang warns of a loop whose condition is of
 * local variables alone, which only callbacks write. */
static inline bool host_sees(bool condition)
{
    return condition;
}

#define AWAIT(condition)                                              \
    for (host_patience = patience_start(60.); !host_sees(condition);) \
    host_turn()

/* So many turns; turns for at least so long. */
void host_turns(int count);
void host_pass(int ms);

#endif
