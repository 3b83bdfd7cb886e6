/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "adapters/redis/conn/private.h"
#include "tests/harness/names.h"
#include "tests/harness/oom.h"
#include "tests/harness/redis_proc.h"
#include "tests/redis/conn/conn_fixture.h"

/* --- names ---------------------------------------------------------------- */

static struct redis_proc *start_tcp(void)
{
    const struct redis_options options = {.tcp = true};

    return redis_start(&options);
}

/* Another one, on the same port of another address of this machine. */
static struct redis_proc *start_at(const struct redis_proc *redis,
                                   const char *address)
{
    static char port[8];
    static const char *args[] = {"--port", port, "--bind", NULL, NULL};
    const struct redis_options options = {.args = args};

    (void)snprintf(port, sizeof(port), "%d", redis_port(redis));
    args[3] = address;
    return redis_start(&options);
}

static struct fixture *fixture_at(const char *host,
                                  const struct redis_proc *redis)
{
    struct fixture *f = fixture_new("");

    f->options.watch_ms = 30;
    f->url.is_unix = false;
    f->url.hosts[0].port = (uint16_t)redis_port(redis);
    (void)snprintf(f->url.hosts[0].name, WEIR__REDIS_TEXT_CAP, "%s", host);
    return f;
}

TEST(a_name_is_looked_up_anew_at_each_connect)
{
    struct redis_proc *old = start_tcp();
    struct redis_proc *new = start_at(old, "127.0.0.2");
    struct fixture *f = fixture_at("cache", old);

    f->options.watch_ms = 1000000;
    names_set("cache 127.0.0.1\n");
    fixture_open(f);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "SET", "where", "old", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    names_set("cache 127.0.0.2\n");
    redis_kill(old, SIGKILL);
    FIXTURE_WAIT(f, f->readies == 2);
    fixture_send(f, WEIR__SEND_AGAIN, 2, "SET", "where", "new", NULL);
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 2);
    EXPECT_STR("new", redis_text(new, "GET where"));
    EXPECT_INT(2, names_asked());
}

TEST(the_addresses_of_a_name_are_tried_in_turn_without_a_pause)
{
    struct redis_proc *redis = start_tcp();
    struct fixture *f = fixture_at("cache", redis);

    names_set("cache 127.0.0.3 ::1 127.0.0.1\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(0, f->losses);
    EXPECT_INT(-1, fixture_retry_ms(f));
}

TEST(what_each_address_said_is_reported)
{
    struct redis_proc *redis = start_tcp();
    struct fixture *f = fixture_at("cache", redis);

    redis_kill(redis, SIGKILL);
    names_set("cache 127.0.0.3 127.0.0.1\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_STR("127.0.0.3: Connection refused; 127.0.0.1: Connection refused",
               f->lost_text);
    names_set("cache 127.0.0.2\n");
    FIXTURE_WAIT(f, f->losses == 2);
    EXPECT_STR("127.0.0.2: Connection refused", f->lost_text);
}

TEST(an_address_that_does_not_answer_leaves_time_for_the_next)
{
    struct redis_proc *redis = start_tcp();
    struct redis_proc *silent = start_at(redis, "127.0.0.2");
    struct fixture *f = fixture_at("cache", redis);

    redis_kill(silent, SIGSTOP);
    f->options.handshake_ms = 50;
    names_set("cache 127.0.0.2 127.0.0.1\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->conn->tried == 2);
    f->conn->options.handshake_ms = 30000; /* the next one may be slow */
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(0, f->losses);
}

TEST(a_name_without_an_address_is_a_sentence)
{
    struct redis_proc *redis = start_tcp();
    struct fixture *f = fixture_at("nowhere", redis);

    names_set("nowhere\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 2);
    EXPECT_INT(WEIR_ECONN, f->lost_code);
    EXPECT_CONTAINS("no address for host nowhere: ", f->lost_text);
    names_set("nowhere 127.0.0.1\n");
    FIXTURE_WAIT(f, f->readies == 1);
}

/* "": it has ::1. */
static const char *lack_of_machine(void)
{
    const struct sockaddr_in6 loopback = {.sin6_family = AF_INET6,
                                          .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&loopback,
                               sizeof(loopback)) == 0;

    if (fd >= 0)
        (void)close(fd);
    return has ? "" : "this machine has no address ::1, which this test needs";
}

TEST(localhost_is_both_families_and_asks_nobody)
{
    struct redis_proc *redis = start_tcp();
    struct redis_proc *six;
    struct fixture *f = fixture_at("localhost", redis);
    struct fixture *direct = fixture_at("::1", redis);

    EXPECT_STR("", lack_of_machine());
    six = start_at(redis, "::1");
    names_set("localhost\n::1\n");
    redis_kill(redis, SIGKILL);
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(0, f->losses);
    fixture_open(direct);
    FIXTURE_WAIT(direct, direct->readies == 1);
    EXPECT_INT(0, names_asked());
    redis_stop(six);
}

TEST(a_name_that_moves_is_followed_although_the_old_server_answers)
{
    struct redis_proc *old = start_tcp();
    struct redis_proc *new = start_at(old, "127.0.0.2");
    struct fixture *f = fixture_at("cache", old);
    struct fixture *beside = fixture_at("cache", old);

    names_set("cache 127.0.0.1\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    beside->options.loop = f->loop;
    beside->options.lead = f->conn;
    fixture_open(beside);
    FIXTURE_WAIT(f, beside->readies == 1);
    names_set("cache 127.0.0.2\n");
    FIXTURE_WAIT(f, f->readies == 2 && beside->readies == 2);
    EXPECT_STR("host cache is at 127.0.0.2 now", f->lost_text);
    EXPECT_STR("host cache is at 127.0.0.2 now", beside->lost_text);
    EXPECT_CONTAINS("connected_clients:3", redis_text(new, "INFO clients"));
    fixture_close(beside);
}

TEST(a_server_that_does_not_answer_is_left_when_its_name_moves)
{
    struct redis_proc *old = start_tcp();
    struct redis_proc *new = start_at(old, "127.0.0.2");
    struct fixture *f = fixture_at("cache", old);

    names_set("cache 127.0.0.1\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    redis_kill(old, SIGSTOP);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "SET", "where", "new", NULL);
    weir__conn_flush(f->conn);
    names_set("cache 127.0.0.2\n");
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_STR("host cache is at 127.0.0.2 now", f->lost_text);
    EXPECT_STR("new", redis_text(new, "GET where"));
}

TEST(a_name_that_tells_its_addresses_in_turn_is_not_chased)
{
    struct redis_proc *one = start_tcp();
    struct redis_proc *other = start_at(one, "127.0.0.2");
    struct fixture *f = fixture_at("cache", one);

    names_set("cache 127.0.0.1\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    names_set("cache 127.0.0.2\n");
    FIXTURE_WAIT(f, f->readies == 2);
    names_set("cache 127.0.0.1\n");
    FIXTURE_WAIT(f, names_asked() == 5);
    EXPECT_INT(1, f->losses);
    redis_stop(other);
}

TEST(a_look_at_a_name_that_finds_nothing_changes_nothing)
{
    struct redis_proc *redis = start_tcp();
    struct fixture *f = fixture_at("cache", redis);

    names_set("cache 127.0.0.1\n");
    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    names_set("cache\n");
    FIXTURE_WAIT(f, names_asked() == 3);
    EXPECT_INT(0, f->losses);
}

/* --- a resolver that takes its time --------------------------------------- */

static void make_slow(const char *host, char path[128])
{
    char line[200];

    (void)snprintf(path, 128, "%s/fifo", names_dir());
    EXPECT_INT(0, mkfifo(path, 0600));
    (void)snprintf(line, sizeof(line), "%s <%s\n", host, path);
    names_set(line);
}

static void answer(const char *path, const char *address)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    EXPECT_TRUE(fd >= 0);
    EXPECT_INT(strlen(address), write(fd, address, strlen(address)));
    (void)close(fd);
}

TEST(a_lookup_that_takes_too_long_goes_on_for_the_next_attempt)
{
    struct redis_proc *redis = start_tcp();
    struct fixture *f = fixture_at("slow", redis);
    char path[128];

    make_slow("slow", path);
    f->options.connect_ms = 20;
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 2);
    EXPECT_STR("no address for host slow within 20 ms", f->lost_text);
    EXPECT_INT(1, names_asked());
    answer(path, "127.0.0.1\n");
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(1, names_asked());
}

TEST(closing_does_not_wait_for_a_lookup)
{
    struct redis_proc *redis = start_tcp();
    struct fixture *f = fixture_at("slow", redis);
    struct fixture *other = fixture_at("127.0.0.1", redis);
    char path[128];

    make_slow("slow", path);
    fixture_open(f);
    FIXTURE_WAIT(f, names_asked() == 1);
    fixture_close(f);
    answer(path, "127.0.0.1\n"); /* somebody still reads it */
    fixture_open(other);
    FIXTURE_WAIT(other, other->readies == 1);
    EXPECT_INT(0, f->readies);
}

TEST(a_lookup_for_which_there_is_no_memory_is_made_later)
{
    struct redis_proc *redis = start_tcp();
    struct fixture *f = fixture_at("cache", redis);

    names_set("cache 127.0.0.1\n");
    oom_after(1); /* the connection itself */
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    oom_off();
    EXPECT_STR("no memory to look up host cache", f->lost_text);
    EXPECT_INT(WEIR_ENOMEM, f->lost_code);
    FIXTURE_WAIT(f, f->readies == 1);
}

/* --- locators ------------------------------------------------------------- */

struct finder {
    struct weir__locator locator;
    size_t found, forgotten;
    bool waits; /* somebody else answers */
    const char *host;
    uint16_t port;
};

static void on_find(void *arg, struct weir__conn *conn)
{
    struct finder *finder = arg;

    finder->found++;
    if (!finder->waits && finder->host == NULL)
        weir__conn_not_located(conn, WEIR_ENOTFOUND, "nobody knows");
    else if (!finder->waits)
        weir__conn_located(conn, finder->host, finder->port);
}

static void on_forget(void *arg, struct weir__conn *conn)
{
    struct finder *finder = arg;

    (void)conn;
    finder->forgotten++;
}

static struct fixture *fixture_of(struct finder *finder,
                                  const struct redis_proc *redis)
{
    struct fixture *f = fixture_at("unused", redis);

    finder->locator = (struct weir__locator){on_find, on_forget, finder, false};
    finder->port = (uint16_t)redis_port(redis);
    f->options.locator = &finder->locator;
    return f;
}

TEST(a_locator_answers_at_once_later_or_in_the_negative)
{
    struct redis_proc *redis = start_tcp();
    struct finder finder = {0};
    struct fixture *f = fixture_of(&finder, redis);

    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 1);
    EXPECT_INT(WEIR_ENOTFOUND, f->lost_code);
    EXPECT_STR("nobody knows", f->lost_text);
    finder.waits = true;
    FIXTURE_WAIT(f, finder.found == 2);
    names_set("cache 127.0.0.1\n");
    weir__conn_located(f->conn, "cache", finder.port);
    FIXTURE_WAIT(f, f->readies == 1);
    finder.waits = false;
    finder.host = "127.0.0.1";
    redis_restart(redis);
    FIXTURE_WAIT(f, f->readies == 2);
    EXPECT_INT(0, finder.forgotten);
    fixture_close(f);
    EXPECT_INT(1, finder.forgotten);
}

TEST(commands_wait_for_a_locator_only_so_long)
{
    struct redis_proc *redis = start_tcp();
    struct finder finder = {.waits = true};
    struct fixture *f = fixture_of(&finder, redis);

    f->options.connect_ms = 20;
    f->options.wait_ms = 60;
    fixture_open(f);
    fixture_send(f, WEIR__SEND_AGAIN, 1, "PING", NULL);
    FIXTURE_WAIT(f, f->replies == 1);
    fixture_expect(f, 0, 1, WEIR_ECONN, "");
    EXPECT_INT(0, f->losses);
    weir__conn_located(f->conn, "127.0.0.1", finder.port);
    FIXTURE_WAIT(f, f->readies == 1);
    fixture_close(f);
    EXPECT_INT(1, finder.forgotten);
}

TEST(a_connection_that_is_abandoned_finds_the_server_at_once)
{
    struct redis_proc *old = start_tcp();
    struct redis_proc *new = start_at(old, "127.0.0.2");
    struct finder finder = {.host = "127.0.0.1"};
    struct fixture *f = fixture_of(&finder, old);

    fixture_open(f);
    FIXTURE_WAIT(f, f->readies == 1);
    finder.host = "127.0.0.2";
    fixture_send(f, WEIR__SEND_AGAIN, 1, "SET", "where", "new", NULL);
    weir__conn_abandon(f->conn, "it moved");
    weir__conn_flush(f->conn);
    FIXTURE_WAIT(f, f->replies == 1);
    EXPECT_STR("new", redis_text(new, "GET where"));
    EXPECT_STR("it moved", f->lost_text);
    EXPECT_INT(0, fixture_retry_ms(f));
    EXPECT_TRUE(redis_text(old, "GET where") == NULL);
    fixture_close(f); /* the finder hears of it */
}

TEST(abandoning_ends_a_back_off)
{
    struct redis_proc *old = start_tcp();
    struct redis_proc *new = start_at(old, "127.0.0.2");
    struct finder finder = {.host = "127.0.0.1"};
    struct fixture *f = fixture_of(&finder, old);

    redis_kill(old, SIGKILL);
    fixture_open(f);
    FIXTURE_WAIT(f, f->losses == 6); /* up to 3.2 s from now */
    finder.host = "127.0.0.2";
    weir__conn_abandon(f->conn, "it moved");
    FIXTURE_WAIT(f, f->readies == 1);
    EXPECT_INT(6, f->losses);
    EXPECT_INT(7, finder.found);
    fixture_close(f); /* likewise */
    redis_stop(new);
}
