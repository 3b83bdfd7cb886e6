/* SPDX-License-Identifier: MIT */

/* Tests of the promises of sim.h. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/harness/test.h"
#include "tests/sim/sim.h"

static void open_world(void)
{
    sim_open(1);
}

TEST_SETUP(open_world)

static void run_for(int64_t ns)
{
    sim_run(sim_now() + ns);
}

/* --- time ---------------------------------------------------------------- */

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    EXPECT_INT(0, clock_gettime(clock, &now));
    return now.tv_sec * SIM_S + now.tv_nsec;
}

static int64_t woke_ns[2];

static void sleep_an_hour(void *arg)
{
    (void)arg;
    woke_ns[0] = clock_ns(CLOCK_MONOTONIC);
    sim_sleep(3600 * SIM_S);
    woke_ns[1] = clock_ns(CLOCK_MONOTONIC);
}

TEST(an_hour_of_sleep_costs_no_time_and_moves_both_clocks)
{
    int64_t day_ns = clock_ns(CLOCK_REALTIME);

    (void)sim_start("sleeper", sleep_an_hour, NULL);
    run_for(7200 * SIM_S);
    EXPECT_INT(3600 * SIM_S, woke_ns[1] - woke_ns[0]);
    EXPECT_INT(7200 * SIM_S, clock_ns(CLOCK_REALTIME) - day_ns);
}

static void note_time(void *arg)
{
    *(int64_t *)arg = sim_now();
}

TEST(events_come_at_their_times_and_in_their_order)
{
    int64_t at_ns[3] = {0}, begin_ns = sim_now();

    sim_at(begin_ns + 2 * SIM_S, note_time, &at_ns[1]);
    sim_at(begin_ns + SIM_S, note_time, &at_ns[0]);
    sim_at(begin_ns + 9 * SIM_S, note_time, &at_ns[2]);
    run_for(5 * SIM_S);
    EXPECT_INT(begin_ns + SIM_S, at_ns[0]);
    EXPECT_INT(begin_ns + 2 * SIM_S, at_ns[1]);
    EXPECT_INT(0, at_ns[2]);
    EXPECT_INT(begin_ns + 5 * SIM_S, sim_now());
}

/* --- threads ------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond;
static int turn, wakes, timeouts;

static void init_cond(void)
{
    pthread_condattr_t attr;

    EXPECT_INT(0, pthread_condattr_init(&attr));
    EXPECT_INT(0, pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    EXPECT_INT(0, pthread_cond_init(&cond, &attr));
}

static void *wait_for_turn(void *arg)
{
    EXPECT_INT(0, pthread_mutex_lock(&mutex));
    while (turn == 0)
        EXPECT_INT(0, pthread_cond_wait(&cond, &mutex));
    turn--;
    wakes++;
    EXPECT_INT(0, pthread_mutex_unlock(&mutex));
    return arg;
}

static void wake_three_in_turn(void *arg)
{
    pthread_t threads[3];

    init_cond();
    for (int i = 0; i < 3; i++)
        EXPECT_INT(0, pthread_create(&threads[i], NULL, wait_for_turn, arg));
    for (int i = 0; i < 3; i++) {
        sim_sleep(SIM_S);
        EXPECT_INT(i, wakes);
        EXPECT_INT(0, pthread_mutex_lock(&mutex));
        turn++;
        EXPECT_INT(0, pthread_cond_signal(&cond));
        EXPECT_INT(0, pthread_mutex_unlock(&mutex));
    }
    for (int i = 0; i < 3; i++)
        EXPECT_INT(0, pthread_join(threads[i], NULL));
    EXPECT_INT(3, wakes);
    turn = -1;
}

TEST(a_signal_wakes_one_thread_and_join_waits_for_its_end)
{
    (void)sim_start("threads", wake_three_in_turn, NULL);
    run_for(10 * SIM_S);
    EXPECT_INT(-1, turn);
}

static void wait_in_vain(void *arg)
{
    int64_t until_ns = clock_ns(CLOCK_MONOTONIC) + 5 * SIM_S;
    struct timespec until = {until_ns / SIM_S, until_ns % SIM_S};

    (void)arg;
    init_cond();
    EXPECT_INT(0, pthread_mutex_lock(&mutex));
    EXPECT_INT(ETIMEDOUT, pthread_cond_timedwait(&cond, &mutex, &until));
    EXPECT_INT(0, pthread_mutex_unlock(&mutex));
    EXPECT_INT(until_ns, sim_now());
    timeouts++;
}

TEST(a_timed_wait_ends_at_its_time)
{
    (void)sim_start("waiter", wait_in_vain, NULL);
    run_for(10 * SIM_S);
    EXPECT_INT(1, timeouts);
}

/* --- processes ----------------------------------------------------------- */

static int steps[2];

static void step_each_second(void *arg)
{
    for (;;) {
        sim_sleep(SIM_S);
        ++*(int *)arg;
    }
}

TEST(a_killed_process_does_nothing_more_and_a_paused_one_goes_on_later)
{
    int killed = sim_start("killed", step_each_second, &steps[0]);
    int paused = sim_start("paused", step_each_second, &steps[1]);

    run_for(3 * SIM_S + SIM_MS);
    sim_kill(killed);
    sim_pause(paused, true);
    run_for(10 * SIM_S);
    EXPECT_INT(3, steps[0]);
    EXPECT_INT(3, steps[1]);
    sim_pause(paused, false);
    run_for(2 * SIM_S);
    EXPECT_INT(3, steps[0]);
    EXPECT_INT(5, steps[1]); /* the late one, at once, and the next */
}

static char host[2][16];
static pid_t pids[2];

static void tell_who(void *arg)
{
    int i = *(int *)arg;

    EXPECT_INT(0, gethostname(host[i], sizeof(host[i])));
    pids[i] = getpid();
}

TEST(each_process_has_its_name_and_its_pid)
{
    int first = 0, second = 1;
    int pid = sim_start("one", tell_who, &first);

    (void)sim_start("two", tell_who, &second);
    run_for(SIM_S);
    EXPECT_STR("one", host[0]);
    EXPECT_STR("two", host[1]);
    EXPECT_INT(pid, pids[0]);
    EXPECT_TRUE(pids[0] != pids[1]);
}

/* --- descriptors --------------------------------------------------------- */

enum { TIMER_S = 2 };

static int seen;

static void wait_with_epoll(void *arg)
{
    int epoll = epoll_create1(0);
    int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct epoll_event add = {.events = EPOLLIN}, got[4];
    struct itimerspec in_two = {.it_value = {.tv_sec = TIMER_S}};
    uint64_t count = 3;
    int64_t begin_ns = sim_now();

    (void)arg;
    add.data.fd = event;
    EXPECT_INT(0, epoll_ctl(epoll, EPOLL_CTL_ADD, event, &add));
    add.data.fd = timer;
    EXPECT_INT(0, epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &add));
    EXPECT_INT(0, epoll_wait(epoll, got, 4, 1000));
    EXPECT_TRUE(sim_now() >= begin_ns + SIM_S);
    EXPECT_INT(0, timerfd_settime(timer, 0, &in_two, NULL));
    EXPECT_INT(1, epoll_wait(epoll, got, 4, -1));
    EXPECT_INT(timer, got[0].data.fd);
    EXPECT_INT(sizeof(count), read(timer, &count, sizeof(count)));
    EXPECT_INT(1, count);
    count = 3;
    EXPECT_INT(sizeof(count), write(event, &count, sizeof(count)));
    EXPECT_INT(1, epoll_wait(epoll, got, 4, -1));
    EXPECT_INT(event, got[0].data.fd);
    EXPECT_INT(sizeof(count), read(event, &count, sizeof(count)));
    EXPECT_INT(3, count);
    EXPECT_INT(-1, read(event, &count, sizeof(count)));
    EXPECT_INT(EAGAIN, errno);
    EXPECT_INT(0, close(event));
    EXPECT_INT(-1, epoll_ctl(epoll, EPOLL_CTL_MOD, event, &add));
    EXPECT_INT(EBADF, errno);
    seen++;
}

TEST(epoll_tells_of_timers_and_events)
{
    int pid = sim_start("loop", wait_with_epoll, NULL);

    run_for(10 * SIM_S);
    EXPECT_INT(1, seen);
    EXPECT_INT(3, sim_turns(pid));
}

/* --- sockets ------------------------------------------------------------- */

/* Sends back what it gets, and hangs up at "x". */
static int accepted, gone;

static void *accept_echo(void *arg, struct sim_stream *stream)
{
    (void)arg;
    accepted++;
    return stream;
}

static void echo(void *peer, const char *bytes, size_t len)
{
    sim_send(peer, bytes, len);
    if (memchr(bytes, 'x', len) != NULL)
        sim_hang_up(peer);
}

static void note_gone(void *peer)
{
    (void)peer;
    gone++;
}

static const struct sim_service echo_service = {accept_echo, echo, note_gone};
static const struct sockaddr_un echo_address = {AF_UNIX, "/echo"};

static int connect_to_echo(int *ret_fd)
{
    *ret_fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_TRUE(*ret_fd >= 0);
    return connect(*ret_fd, (const struct sockaddr *)&echo_address,
                   sizeof(echo_address));
}

static void talk(void *arg)
{
    char text[64] = "";
    size_t len = 0;
    int fd;

    (void)arg;
    EXPECT_INT(0, connect_to_echo(&fd));
    EXPECT_INT(5, write(fd, "hello", 5));
    while (len < 5) {
        ssize_t got = read(fd, text + len, sizeof(text) - len);

        EXPECT_TRUE(got > 0);
        len += (size_t)got;
    }
    EXPECT_STR("hello", text);
    EXPECT_INT(1, write(fd, "x", 1));
    EXPECT_INT(1, read(fd, text, sizeof(text)));
    EXPECT_INT(0, read(fd, text, sizeof(text)));
    EXPECT_INT(-1, write(fd, "y", 1));
    EXPECT_INT(EPIPE, errno);
    EXPECT_INT(0, close(fd));
    seen++;
}

TEST(a_stream_carries_bytes_in_order_and_ends)
{
    (void)sim_listen("/echo", &echo_service, NULL);
    (void)sim_start("client", talk, NULL);
    run_for(SIM_S);
    EXPECT_INT(1, seen);
    EXPECT_INT(1, accepted);
    EXPECT_INT(1, gone);
}

enum { TALKS = 200 };

/* Which lengths of what was sent came back, before the connection ended. */
static void talk_until_the_cut(void *arg)
{
    unsigned *lengths = arg;

    for (int i = 0; i < TALKS; i++) {
        char text[8];
        size_t len = 0;
        ssize_t got;
        int fd;

        EXPECT_INT(0, connect_to_echo(&fd));
        EXPECT_INT(5, write(fd, "hello", 5));
        while (len < 5 && (got = read(fd, text + len, 5 - len)) > 0)
            len += (size_t)got;
        *lengths |= 1u << len;
        EXPECT_INT(0, close(fd));
    }
    seen++;
}

TEST(a_connection_may_end_behind_any_byte)
{
    unsigned lengths = 0;

    sim_net.cut_one_in = 3;
    (void)sim_listen("/echo", &echo_service, NULL);
    (void)sim_start("client", talk_until_the_cut, &lengths);
    run_for(60 * SIM_S);
    EXPECT_INT(1, seen);
    EXPECT_INT(TALKS, accepted);
    EXPECT_INT(TALKS, gone);
    EXPECT_INT(0x3f, lengths);
}

static void connect_to_nobody(void *arg)
{
    int fd;

    (void)arg;
    EXPECT_INT(-1, connect_to_echo(&fd));
    EXPECT_INT(ECONNREFUSED, errno);
    seen++;
}

TEST(who_does_not_listen_refuses)
{
    struct sim_port *port;

    (void)sim_start("client", connect_to_nobody, NULL);
    run_for(SIM_S);
    EXPECT_INT(1, seen);
    port = sim_listen("/echo", &echo_service, NULL);
    sim_refuse(port, true);
    (void)sim_start("client", connect_to_nobody, NULL);
    run_for(SIM_S);
    EXPECT_INT(2, seen);
    EXPECT_INT(0, accepted);
}

static void wait_for_the_cut(void *arg)
{
    char byte;
    int fd;

    (void)arg;
    EXPECT_INT(0, connect_to_echo(&fd));
    EXPECT_INT(0, read(fd, &byte, 1)); /* blocks until then */
    seen++;
    sim_sleep(3600 * SIM_S);
}

TEST(a_cut_ends_both_sides_and_so_does_a_kill)
{
    struct sim_port *port = sim_listen("/echo", &echo_service, NULL);
    int pid = sim_start("client", wait_for_the_cut, NULL);

    run_for(SIM_S);
    EXPECT_INT(1, accepted);
    sim_cut(port);
    run_for(SIM_S);
    EXPECT_INT(1, seen);
    EXPECT_INT(1, gone);
    sim_kill(pid);
    pid = sim_start("client", wait_for_the_cut, NULL);
    run_for(SIM_S);
    EXPECT_INT(2, accepted);
    sim_kill(pid);
    run_for(SIM_S);
    EXPECT_INT(2, gone);
    EXPECT_INT(1, seen);
}

static int64_t answered_ns;

static void ask_once(void *arg)
{
    char byte = 'a';
    int fd;

    (void)arg;
    EXPECT_INT(0, connect_to_echo(&fd));
    EXPECT_INT(1, write(fd, &byte, 1));
    EXPECT_INT(1, read(fd, &byte, 1));
    answered_ns = sim_now();
    sim_sleep(3600 * SIM_S);
}

TEST(a_stalled_network_delivers_later)
{
    struct sim_port *port = sim_listen("/echo", &echo_service, NULL);
    int64_t begin_ns = sim_now();

    sim_stall(port, begin_ns + 30 * SIM_S);
    (void)sim_start("client", ask_once, NULL);
    run_for(60 * SIM_S);
    EXPECT_TRUE(answered_ns > begin_ns + 30 * SIM_S);
    EXPECT_TRUE(answered_ns < begin_ns + 31 * SIM_S);
}

/* --- seeds --------------------------------------------------------------- */

static uint64_t hash_of(uint64_t seed)
{
    uint64_t hash;

    sim_close();
    sim_open(seed);
    (void)sim_listen("/echo", &echo_service, NULL);
    for (int i = 0; i < 4; i++)
        (void)sim_start("client", ask_once, NULL);
    run_for(SIM_S);
    hash = sim_hash();
    return hash;
}

TEST(a_seed_repeats_its_world_and_another_seed_is_another_world)
{
    uint64_t first = hash_of(7);

    EXPECT_TRUE(hash_of(8) != first);
    EXPECT_TRUE(hash_of(7) == first);
}
