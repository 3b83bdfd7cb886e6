/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_CONN_FIXTURE_H
#define WEIR_TEST_CONN_FIXTURE_H

/* A connection on a loop of its own, with everything it reports written down.
 * One at a time per fixture; waiting has a deadline. */

#include <ev.h>

#include "adapters/redis/conn/conn.h"
#include "tests/harness/test.h"

enum { FIXTURE_REPLIES_MAX = 256, FIXTURE_TEXT_MAX = 512 };

struct fixture_reply {
    int id; /* as sent */
    int code;
    char text[80]; /* the reply, if any */
};

struct fixture {
    struct fixture *next;
    struct ev_loop *loop;
    ev_timer tick;
    struct patience patience;
    struct weir__redis_url url;
    struct weir__conn_options options; /* change before fixture_open */
    struct weir__conn *conn;
    bool closes_on_state; /* close inside on_state */
    int closes_on_id;     /* close inside the callback of this request */

    size_t readies, losses, warnings;
    int lost_code; /* of the last loss */
    char lost_text[FIXTURE_TEXT_MAX];
    size_t replies;
    struct fixture_reply reply[FIXTURE_REPLIES_MAX];
    size_t messages;
    char message[FIXTURE_TEXT_MAX];
    struct weir__log log;
    char log_text[8 * FIXTURE_TEXT_MAX];
};

/* For a unix socket, with options that keep tests short. The test frees it. */
struct fixture *fixture_new(const char *socket_path);
void fixture_open(struct fixture *fixture);
void fixture_close(struct fixture *fixture); /* the connection only */

/* Send words ended by NULL; the answer is noted under `id`. */
void fixture_send(struct fixture *fixture, unsigned flags, int id, ...);
void fixture_send_script(struct fixture *fixture,
                         const struct weir__script *script, int id);

/* One turn of the loop; fails the test when it waits for too long. */
void fixture_turn(struct fixture *fixture);

#define FIXTURE_WAIT(fixture, condition)                           \
    for ((fixture)->patience = patience_start(30.); !(condition);) \
    fixture_turn(fixture)

/* So many turns, of 5 ms each while nothing happens. */
void fixture_turns(struct fixture *fixture, int count);

/* The back-off that was logged last, in ms; -1: none. */
int fixture_retry_ms(const struct fixture *fixture);

/* Reply number `index`, in order of arrival, is this. */
void fixture_expect(const struct fixture *fixture, size_t index, int id,
                    int code, const char *text);

#endif
