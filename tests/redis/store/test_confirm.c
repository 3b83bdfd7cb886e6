/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "tests/harness/oom.h"
#include "tests/redis/store/store_fixture.h"

/* Adds that are answered when replicas or disks have them. */

static struct redis_proc *replica;

/* --- servers -------------------------------------------------------------- */

static void follow(struct redis_proc *follower)
{
    EXPECT_STR(
        "OK", redis_text(follower, "REPLICAOF 127.0.0.1 %d", redis_port(proc)));
    AWAIT(strstr(redis_text(follower, "INFO replication"),
                 "master_link_status:up") != NULL);
}

/* The world, and a replica of its server that hears everything. */
static void open_pair(void)
{
    static const char *const args[] = {"--repl-diskless-sync-delay", "0", NULL};
    const struct redis_options options = {.tcp = true, .args = args};

    (void)world_open(&options);
    replica = redis_start(&options);
    follow(replica);
    EXPECT_INT(1, redis_int(proc, "INCR last"));
    EXPECT_INT(1, redis_int(proc, "WAIT 1 0")); /* its first one takes 1 s */
}

/* With a replica that says no more what it has. */
static struct host *open_stopped(const char *kind)
{
    struct host *host;

    open_pair();
    host = host_open_as("w1", kind,
                        (const char *const[]){"durability=replica", NULL});
    redis_kill(replica, SIGSTOP);
    world_ns = world_clock(NULL); /* nothing is given up after 10 s */
    return host;
}

static bool has_waitaof(void)
{
    return strncmp(redis_text(proc, "WAITAOF 0 0 1"), "ERR unknown", 11) != 0;
}

static void kill_wait_connection(void)
{
    const char *list = redis_text(proc, "CLIENT LIST");
    const char *end = strstr(list, ":wait "), *line = end;

    EXPECT_TRUE(end != NULL);
    while (line > list && line[-1] != '\n')
        line--;
    EXPECT_INT(
        1, redis_int(proc, "CLIENT KILL ID %ld", strtol(line + 3, NULL, 10)));
}

/* --- jobs ----------------------------------------------------------------- */

static const uint8_t seven[] = {7};

static int try_add(struct host *host, const char *id, const char *durability)
{
    const struct weir__option *row =
        &weir__topic_options[WEIR__TOPIC_durability];
    struct weir__record record = {.body = {seven, 1}};
    struct weir__new_job job = {.id = weir__slice_str(id), .record = &record};
    int64_t value = 0;

    if (durability != NULL)
        EXPECT_INT(WEIR_OK, weir__option_read(row, durability, &value, NULL));
    job.durability = (uint32_t)value;
    if (strcmp(host->topic->kind->name, "bounded") == 0)
        job.group = weir__slice_str("g");
    return host->store->ops->add(host->topic, &job, host_added, host);
}

static void add(struct host *host, const char *id, const char *durability)
{
    EXPECT_INT(WEIR_OK, try_add(host, id, durability));
}

static long long count_of(const char *counter)
{
    return redis_int(proc, "EVAL %s 0 %s",
                     "return tonumber(redis.call('HGET', 'weir:{t}:meta', "
                     "ARGV[1]) or 0)",
                     counter);
}

/* Nothing of what was added is answered, though the server has it. */
static void expect_waits(struct host *host, int added)
{
    int before = host->added + host->failed;

    AWAIT(count_of("added") == added);
    world_pass(200);
    EXPECT_INT(before, host->added + host->failed);
}

/* --- replicas ------------------------------------------------------------- */

TEST(an_add_is_answered_when_the_replica_has_it)
{
    struct host *host;

    open_pair();
    host = host_open_as("w1", "delay",
                        (const char *const[]){"durability=replica", NULL});
    add(host, "a", NULL);
    AWAIT(host->added == 1);
    EXPECT_INT(1, redis_int(replica, "HEXISTS weir:{t}:ids a"));
    redis_kill(replica, SIGSTOP);
    add(host, "b", NULL); /* by the connection whose last write it has */
    expect_waits(host, 2);
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == 2);
    EXPECT_INT(1, redis_int(replica, "HEXISTS weir:{t}:ids b"));
    EXPECT_INT(0, host->failed);
}

TEST(an_event_is_answered_when_the_replica_has_it)
{
    struct host *host = open_stopped("bounded");

    add(host, NULL, NULL);
    expect_waits(host, 1);
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == 1);
    EXPECT_INT(1, redis_int(replica, "LLEN weir:{t}:g:g"));
}

TEST(jobs_that_only_the_server_has_to_have_do_not_wait_for_others)
{
    struct host *host = open_stopped("delay");

    add(host, "a", NULL);
    add(host, "b", "server");
    add(host, "c", "replica");
    add(host, "d", "server");
    add(host, "a", "server"); /* of one flush the first counts */
    AWAIT(host->added == 2 && host->existing == 1);
    expect_waits(host, 4);
    add(host, "e", "server");
    AWAIT(host->added == 3);
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == 5);
}

TEST(what_is_refused_is_told_at_once)
{
    struct host *host = open_stopped("delay");

    add(host, "a", "server");
    AWAIT(host->added == 1);
    add(host, "a", NULL);
    add(host, "b", NULL);
    AWAIT(host->existing == 1);
    expect_waits(host, 2);
    add(host, "a", NULL); /* nothing is left to be confirmed */
    AWAIT(host->existing == 2);
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == 2);
}

TEST(a_job_is_told_once_that_it_was_not_confirmed)
{
    struct host *host, *events, *many;
    int64_t begin_ns;

    open_pair();
    host = host_open("w1");
    events = host_open_as("w2", "bounded",
                          (const char *const[]){"durability=replica:2", NULL});
    many = host_open("w3");
    host_use(events, "e");
    host_use(many, "m");
    begin_ns = world_clock(NULL);
    add(events, NULL, NULL);
    add(many, "a", "replica:1");
    add(many, "b", "replica:2");
    AWAIT(many->added == 1);
    EXPECT_STR("a", many->last_id);
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
    add(host, "a", "replica");
    AWAIT(host->failed == 1 && events->failed == 1 && many->failed == 1);
    EXPECT_INT(WEIR_EWEAK, host->last_code);
    EXPECT_INT(WEIR_EWEAK, events->last_code);
    EXPECT_INT(WEIR_EWEAK, many->last_code);
    EXPECT_TRUE(world_clock(NULL) - begin_ns >= INT64_C(10000000000));
    EXPECT_CONTAINS("redis: t: added, but on 0 of 1 replicas", world_log);
    EXPECT_INT(1, count_of("added"));
    EXPECT_INT(1, redis_int(proc, "LLEN weir:{e}:g:g"));
    add(host, "b", "server");
    AWAIT(host->added == 1);
    world_pass(100);
    EXPECT_INT(1, host->failed);
}

/* --- connections and servers ---------------------------------------------- */

TEST(a_lost_connection_for_waiting_is_made_anew)
{
    struct host *host = open_stopped("delay");

    add(host, "a", NULL);
    expect_waits(host, 1);
    kill_wait_connection();
    expect_waits(host, 1);
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == 1);
}

/* Who asks for the server from now on finds the replica, which has one. */
TEST(another_server_than_that_which_has_the_job_confirms_nothing)
{
    struct host *host = open_stopped("delay");
    struct redis_proc *old = proc, *third = redis_start(NULL);

    redis_kill(replica, SIGCONT);
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
    add(host, "a", NULL);
    expect_waits(host, 1);
    EXPECT_INT(0, rename(redis_socket(replica), redis_socket(old)));
    kill_wait_connection();
    proc = replica;
    follow(third);
    AWAIT(strstr(redis_text(replica, "CLIENT LIST"), ":wait ") != NULL);
    world_pass(200);
    EXPECT_INT(0, host->added);
    EXPECT_INT(0, redis_int(replica, "HEXISTS weir:{t}:ids a"));
    redis_kill(old, SIGKILL);
    AWAIT(host->added == 1);
    EXPECT_INT(1, redis_int(third, "HEXISTS weir:{t}:ids a"));
}

/* The replica knows nothing of the job, and has a replica only later. */
static void fail_over(const char *kind)
{
    struct host *host = open_stopped(kind);
    struct redis_proc *third = redis_start(NULL);
    int ups = host->ups;

    redis_kill(replica, SIGCONT);
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
    add(host, NULL, NULL);
    expect_waits(host, 1);
    redis_kill(proc, SIGKILL);
    EXPECT_INT(0, rename(redis_socket(replica), redis_socket(proc)));
    proc = replica;
    AWAIT(host->ups > ups);
    expect_waits(host, 1);
    follow(third);
    AWAIT(host->added == 1);
    EXPECT_INT(1, redis_int(third, "EVAL %s 0",
                            "return tonumber(redis.call('HGET', "
                            "'weir:{t}:meta', 'added'))"));
    EXPECT_INT(0, host->failed);
}

TEST(a_job_that_waits_is_confirmed_by_the_server_that_took_over)
{
    fail_over("delay");
}

TEST(an_event_that_waits_is_confirmed_by_the_server_that_took_over)
{
    fail_over("bounded");
}

/* What was acknowledged is said again for some seconds only. */
TIME_TEST(a_job_that_waited_for_long_is_sent_to_the_server_that_took_over)
{
    struct host *host;
    int ups;

    open_pair();
    host = host_open("w1");
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
    add(host, "a", "replica");
    expect_waits(host, 1);
    world_pass(5000);
    ups = host->ups;
    redis_kill(proc, SIGKILL);
    EXPECT_INT(0, rename(redis_socket(replica), redis_socket(proc)));
    proc = replica;
    AWAIT(host->ups > ups);
    AWAIT(count_of("added") == 1);
    AWAIT(host->failed == 1);
    EXPECT_INT(WEIR_EWEAK, host->last_code);
    EXPECT_INT(1, redis_int(proc, "HEXISTS weir:{t}:ids a"));
}

TEST(a_server_that_takes_no_writes_confirms_nothing_and_is_asked_now_and_then)
{
    struct host *host = open_stopped("delay");
    long long waits;
    double begin;

    add(host, "a", NULL);
    expect_waits(host, 1);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 1"));
    AWAIT(strstr(redis_text(proc, "INFO errorstats"), "_OOM") != NULL);
    redis_kill(replica, SIGCONT);
    begin = ev_time();
    waits = redis_calls(proc, "wait");
    world_pass(1000); /* time is the subject */
    EXPECT_INT(0, host->added);
    EXPECT_TRUE((double)(redis_calls(proc, "wait") - waits) <=
                2 + (ev_time() - begin) / .2);
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET maxmemory 0"));
    AWAIT(host->added == 1);
}

static int closed_code, closed_count;

static void on_closed(int code, const char *id, void *arg)
{
    (void)id;
    (void)arg;
    closed_code = code;
    closed_count++;
}

TEST(jobs_that_wait_when_the_store_is_closed_are_weak_and_logged_once)
{
    static const char line[] = "redis: t: added, but";
    struct weir__record record = {.body = {seven, 1}};
    struct weir__new_job job = {.record = &record};
    struct host *host = open_stopped("delay");

    for (int i = 0; i < 2; i++) { /* each in a pack of its own */
        EXPECT_INT(WEIR_OK,
                   host->store->ops->add(host->topic, &job, on_closed, NULL));
        expect_waits(host, i + 1);
    }
    EXPECT_INT(0, closed_count);
    host_close(host);
    EXPECT_INT(2, closed_count);
    EXPECT_INT(WEIR_EWEAK, closed_code);
    EXPECT_CONTAINS(line, world_log);
    EXPECT_TRUE(strstr(strstr(world_log, line) + 1, line) == NULL);
}

/* --- what a process keeps ------------------------------------------------- */

TEST(jobs_that_wait_are_bounded)
{
    static uint8_t body[1 << 20] = {0xc6, 0, 0x0f, 0xff, 0xfb};
    struct weir__record record = {.body = {body, sizeof(body)}};
    struct weir__new_job job = {.record = &record};
    struct host *host = open_stopped("delay");
    int count = 0, before;

    do { /* what is on its way counts twice */
        before = count;
        for (world_patience = patience_start(30.);
             host->store->ops->add(host->topic, &job, host_added, host) ==
             WEIR_OK;
             world_turn())
            count++;
        AWAIT(count_of("added") == count);
        AWAIT(weir__place_queued(host->topic->place) == 0);
    } while (count > before);
    EXPECT_TRUE(count >= 31 && count < 40);
    EXPECT_INT(WEIR_EFULL,
               host->store->ops->add(host->topic, &job, host_added, host));
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == count);
    EXPECT_INT(0, host->failed);
    add(host, "a", NULL);
    AWAIT(host->added == count + 1);
}

TEST(a_check_survives_any_allocation_failure)
{
    struct host *host;
    int answered = 0;

    open_pair();
    for (int n = 0; answered < 3; n++) {
        EXPECT_TRUE(n < 1000);
        host = host_open_as("w1", "delay",
                            (const char *const[]){"durability=replica", NULL});
        add(host, NULL, NULL);
        oom_after(n);
        world_turns(20);
        oom_off();
        AWAIT(host->added + host->failed == 1);
        answered = host->added == 1 ? answered + 1 : 0;
        EXPECT_TRUE(host->added == 1 || host->last_code == WEIR_ENOMEM ||
                    host->last_code == WEIR_ECONN);
        host_close(host);
    }
}

/* --- what the server can do ----------------------------------------------- */

static void expect_refused(struct host *host, const char *durability,
                           const char *why)
{
    add(host, "a", durability);
    add(host, "b", "server");
    AWAIT(host->failed == 1 && host->added == 1);
    EXPECT_INT(0, redis_int(proc, "HEXISTS weir:{t}:ids a"));
    EXPECT_CONTAINS("cannot be had, nothing was added: ", world_log);
    EXPECT_CONTAINS(why, world_log);
}

TEST(a_server_without_an_append_only_file_confirms_no_disk)
{
    struct host *host = host_open("w1");

    expect_refused(host, "fsync",
                   has_waitaof() ? "set appendonly yes" : "Redis from 7.2");
    if (!has_waitaof())
        return;
    EXPECT_STR("OK", redis_text(proc, "CONFIG SET appendonly yes"));
    world_ns = world_clock(NULL) + INT64_C(1100000000); /* asks again */
    add(host, "c", "fsync");
    AWAIT(host->added == 2);
}

TEST(a_user_who_may_not_wait_is_told_so)
{
    struct host *host;

    (void)world_open(NULL);
    EXPECT_STR("OK", redis_text(proc, "ACL SETUSER default -wait"));
    host = host_open("w1");
    expect_refused(host, "replica", "allow it +wait");
    EXPECT_INT(WEIR_EINVAL,
               host->last_code == WEIR_OK ? WEIR_EINVAL : host->last_code);
}

TEST(a_server_that_does_not_tell_who_it_is_confirms_nothing)
{
    struct host *host;

    (void)world_open(NULL);
    EXPECT_STR("OK", redis_text(proc, "ACL SETUSER default -info"));
    host = host_open("w1");
    expect_refused(host, "replica", "+info");
}

TEST(a_disk_confirms_where_the_server_knows_how)
{
    static const char *const args[] = {"--appendfsync", "everysec", NULL};
    static const struct redis_options aof = {.args = args, .appendonly = true};
    struct host *host;

    (void)world_open(&aof);
    host = host_open_as("w1", "delay",
                        (const char *const[]){"durability=fsync", NULL});
    add(host, "a", NULL);
    AWAIT(host->added + host->failed == 1);
    EXPECT_INT(has_waitaof(), host->added);
    EXPECT_INT(has_waitaof(), redis_int(proc, "HEXISTS weir:{t}:ids a"));
    if (!has_waitaof())
        return;
    EXPECT_TRUE(redis_calls(proc, "waitaof") > 1);
    add(host, "b", "fsync:1"); /* there is no replica */
    add(host, "c", "server");
    AWAIT(host->added == 2);
    expect_waits(host, 3);
}

/* --- options -------------------------------------------------------------- */

TEST(a_producer_follows_what_is_stored_with_its_topic)
{
    struct host *host;

    open_pair();
    host = host_open("w1");
    add(host, "a", NULL);
    AWAIT(host->added == 1);
    redis_kill(replica, SIGSTOP);
    EXPECT_INT(WEIR_OK, host_set(host, "durability", "replica"));
    add(host, "b", NULL); /* its answer tells */
    AWAIT(host->added == 2);
    add(host, "c", NULL);
    expect_waits(host, 3);
    EXPECT_INT(WEIR_OK, host_set(host, "durability", ""));
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == 3);
}

TEST(a_producer_of_events_looks_at_what_is_stored_after_5_s)
{
    struct host *host;

    open_pair();
    host = host_open_kind("w1", "bounded");
    add(host, NULL, NULL);
    AWAIT(host->added == 1);
    redis_kill(replica, SIGSTOP);
    EXPECT_INT(WEIR_OK, host_set(host, "durability", "replica"));
    host->topic->limits.read_ns -= INT64_C(5000000000);
    add(host, NULL, NULL);
    expect_waits(host, 2);
    redis_kill(replica, SIGCONT);
    AWAIT(host->added == 2);
}

TEST(a_flag_beats_what_is_stored)
{
    static const char *const flags[] = {"durability=server", NULL};
    struct weir__options options = weir__options_default;
    struct host *host;
    long long waits;

    open_pair();
    waits = redis_calls(proc, "wait");
    host = host_open("w1");
    EXPECT_INT(WEIR_OK, weir__options_pin(&options, "t", flags, NULL));
    EXPECT_INT(WEIR_OK, host_set(host, "durability", "replica:9"));
    host_serve_with(host, &options);
    add(host, "a", NULL);
    AWAIT(host->added == 1);
    EXPECT_INT(waits, redis_calls(proc, "wait"));
}

/* --- the ledger ----------------------------------------------------------- */

/* The process ends with the primary: nobody says anything again. */
TEST(what_was_answered_is_on_the_replica_that_takes_over)
{
    int count = 0, answered;
    struct host *host;
    char id[24];

    open_pair();
    host = host_open_as("w1", "delay",
                        (const char *const[]){"durability=replica", NULL});
    for (world_patience = patience_start(30.); host->added <= 1000;
         world_turn())
        for (int i = 0; i < 20 && count - host->added < 2000; i++) {
            (void)snprintf(id, sizeof(id), "job-%d", count++);
            add(host, id, NULL);
        }
    for (int i = 0; i < 20; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", count++);
        add(host, id, NULL);
    }
    host->store->ops->flush(host->store); /* these leave and are not answered */
    redis_kill(proc, SIGKILL);
    answered = host->added;
    EXPECT_STR("OK", redis_text(replica, "REPLICAOF NO ONE"));
    EXPECT_TRUE(answered > 1000 && answered < count);
    EXPECT_TRUE(redis_int(replica, "HLEN weir:{t}:ids") >= answered);
    for (int i = 0; i < answered; i++) /* they are answered in their order */
        EXPECT_INT(1, redis_int(replica, "HEXISTS weir:{t}:ids job-%d", i));
}
