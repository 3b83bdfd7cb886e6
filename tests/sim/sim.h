/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_SIM_H
#define WEIR_TEST_SIM_H

/* A world in one thread. Threads are fibres, time is set, and the network is
 * memory. A program that links weir_sim has the system calls of libev, hiredis
 * and weir led here, so all three run as they are. Every choice is drawn from
 * the seed: the same seed gives the same bytes in each build.
 *
 *     sim_open(7);
 *     sim_listen("10.0.0.1:6379", &service, server);
 *     sim_start("worker", work, NULL);
 *     sim_run(sim_now() + 60 * SIM_S);
 *     sim_close();
 *
 * Fibres switch only where one blocks or sleeps. A fibre that blocks with a
 * mutex in its hands ends the program, as does one that nothing can wake: a
 * call that blocks outside of a fibre. Only one world is open at a time. Times
 * are in ns of a clock that begins at 1,000 s and stands while code runs; a
 * turn of an event loop costs 1 us. Without an open world all calls go to the
 * system. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_US INT64_C(1000)
#define SIM_MS (1000 * SIM_US)
#define SIM_S  (1000 * SIM_MS)

void sim_open(uint64_t seed);

/* Kills what lives, and frees the world. What weir allocated in killed
 * processes stays allocated. */
void sim_close(void);

/* Lets everything happen that happens before `until_ns`. */
void sim_run(int64_t until_ns);

int64_t sim_now(void);

/* From the world's seed. */
uint64_t sim_random(void);
uint64_t sim_below(uint64_t limit); /* from 0 to limit - 1 */
bool sim_one_in(uint64_t count);    /* false if `count` is 0 */

/* A digest of all that happened: each switch of fibres, each byte sent, and
 * what was given to sim_note. */
uint64_t sim_hash(void);
void sim_note(const void *bytes, size_t len);

/* Prints the sentence and ends the program. */
_Noreturn void sim_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* For worlds, which also run outside of a test. */
#define SIM_CHECK(expression) \
    ((expression)             \
         ? (void)0            \
         : sim_fail("%s:%d: not true: %s", __FILE__, __LINE__, #expression))

/* --- processes ----------------------------------------------------------- */

/* Starts a process, whose first thread calls `fn`. Returns its pid. `name` is
 * kept: it is the process's host name. */
int sim_start(const char *name, void (*fn)(void *arg), void *arg);

/* As kill -9: no thread of the process runs again, and its sockets close. The
 * pid of a process that ended is no error. */
void sim_kill(int pid);

/* As SIGSTOP and SIGCONT. */
void sim_pause(int pid, bool is_paused);

/* Turns of event loops since the process began: a busy loop shows here. */
uint64_t sim_turns(int pid);

/* --- inside a fibre ------------------------------------------------------ */

void sim_sleep(int64_t ns);

/* --- events -------------------------------------------------------------- */

/* `fn` is called at that time, outside of all fibres. */
void sim_at(int64_t at_ns, void (*fn)(void *arg), void *arg);

/* --- the network --------------------------------------------------------- */

struct sim_stream;
struct sim_port;

/* The far end of connections. Its functions run outside of all fibres, and may
 * call sim_send and sim_hang_up. */
struct sim_service {
    /* A client has connected. Returns what the others get as `peer`. */
    void *(*accept)(void *arg, struct sim_stream *stream);
    void (*data)(void *peer, const char *bytes, size_t len);
    /* The connection ended, by either side or by a cut. The stream is gone. */
    void (*gone)(void *peer);
};

/* `address` is IPv4:PORT or the path of a unix socket; `service` is kept. */
struct sim_port *sim_listen(const char *address,
                            const struct sim_service *service, void *arg);

/* Sends to the client. The bytes are copied. */
void sim_send(struct sim_stream *stream, const void *bytes, size_t len);

/* Closes the connection behind what was sent. `gone` follows, later. */
void sim_hang_up(struct sim_stream *stream);

/* How the network is; may change at any time. */
struct sim_net {
    int64_t least_ns,
        spread_ns;  /* a portion takes least_ns + up to spread_ns */
    bool in_pieces; /* portions are split at random bytes */
    size_t window;  /* bytes on their way to a server before writes block */
    uint64_t cut_one_in; /* this many portions end their connection, behind any
                            of their bytes; 0: none */
};
extern struct sim_net sim_net;

/* Cuts each connection of the port at once: what is on its way is lost. */
void sim_cut(struct sim_port *port);

/* Connections are refused, or never made. */
void sim_refuse(struct sim_port *port, bool refuses);
void sim_swallow(struct sim_port *port, bool swallows);

/* All bytes of the port arrive after `until_ns`. */
void sim_stall(struct sim_port *port, int64_t until_ns);

/* Looking up `name` takes 1 to 30 ms and gives `addresses`, IPv4 separated by
 * blanks. Both are copied. Again: others. NULL: the name is not there. */
void sim_name(const char *name, const char *addresses);

#endif
