/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "tests/chaos/lost/lost.h"

/* A bounded topic: batches of groups are done, or their worker dies. */

enum { LEASE_MS = 5000, GROUPS = 5, ROUNDS = 24, PER_TURN = 64 };

static const char *const keys[] = {"rot", "out",    "lease", "l:a",
                                   "g:a", "absent", "rot"};

static void add(struct lost_run *run, unsigned group, unsigned events)
{
    struct caller *caller = &run->caller;
    char name[4], key[8];

    (void)snprintf(name, sizeof(name), "%c", 'a' + (char)group);
    (void)snprintf(key, sizeof(key), "g:%s", name);
    run->added += events;
    call_script(caller, SCRIPT_BOUNDED_ADD, 9, 6 + events);
    call_keys(caller, "rot hot out meta idle options seen ttl");
    call_keys(caller, key);
    call_str(caller, "t");
    call_str(caller, "bounded");
    call_str(caller, "slot");
    call_int(caller, run->added);
    call_str(caller, name);
    call_int(caller, events);
    for (unsigned i = 0; i < events; i++)
        call_str(caller, "event");
    call_queue(caller);
    freeReplyObject(lost_array(run, 1));
}

/* Groups are candidates that an earlier claim offered; NULL: none. */
static redisReply *claim(struct lost_run *run, const redisReply *groups,
                         unsigned room)
{
    struct caller *caller = &run->caller;
    size_t count = groups == NULL ? 0 : groups->elements;

    call_script(caller, SCRIPT_BOUNDED_CLAIM, 9 + 2 * count, 9 + count);
    call_keys(caller, "rot hot lease out meta idle options ttl");
    for (size_t i = 0; i < count; i++) {
        char key[8];

        (void)snprintf(key, sizeof(key), "g:%s", groups->element[i]->str);
        call_keys(caller, key);
        key[0] = 'l';
        call_keys(caller, key);
    }
    call_keys(caller, "absent");
    call_str(caller, "t");
    call_str(caller, "bounded");
    call_int(caller, room);
    call_int(caller, LEASE_MS);
    call_str(caller, "");
    call_int(caller, 0);
    call_int(caller, groups == NULL ? 20 : 0);
    call_str(caller, "100 0 0 3 0 ");
    call_str(caller, "");
    for (size_t i = 0; i < count; i++)
        call_str(caller, groups->element[i]->str);
    call_queue(caller);
    return lost_array(run, 7);
}

static void settle(struct lost_run *run, const redisReply *batch)
{
    struct caller *caller = &run->caller;
    const char *group = batch->element[0]->str;
    long long events = (long long)batch->element[3]->elements;
    char key[8];

    call_script(caller, SCRIPT_BOUNDED_SETTLE, 11, 12);
    call_keys(caller, "rot hot lease out meta idle options ttl");
    (void)snprintf(key, sizeof(key), "g:%s", group);
    call_keys(caller, key);
    key[0] = 'l';
    call_keys(caller, key);
    call_keys(caller, "absent");
    call_str(caller, "t");
    call_str(caller, group);
    call_str(caller, batch->element[1]->str);
    call_str(caller, "1");
    call_int(caller, 0);
    call_int(caller, events); /* done; none of four other kinds; all */
    for (size_t i = 0; i < 4; i++)
        call_int(caller, 0);
    call_int(caller, events);
    call_int(caller, 0);
    call_queue(caller);
    freeReplyObject(lost_array(run, 0));
    run->done += events;
}

/* Offers, claims, and settles each batch with a probability of `percent`. */
static void work(struct lost_run *run, unsigned percent, unsigned room)
{
    redisReply *offer = claim(run, NULL, 0), *reply;

    if (offer->element[4]->elements > 0) {
        reply = claim(run, offer->element[4], room);
        for (size_t i = 0; i < reply->element[5]->elements; i++)
            if (lost_pick(run, 100) < percent)
                settle(run, reply->element[5]->element[i]);
        freeReplyObject(reply);
    }
    freeReplyObject(offer);
}

static long long stat(struct lost_run *run, const char *name)
{
    redisReply *reply;
    long long number;

    call_script(&run->caller, SCRIPT_BOUNDED_STATS, 4, 0);
    call_keys(&run->caller, "meta lease rot hot");
    call_queue(&run->caller);
    reply = lost_array(run, 2);
    number = lost_stat(reply, name);
    freeReplyObject(reply);
    return number;
}

static void drain(struct lost_run *run)
{
    for (size_t i = 0; i < ROUNDS; i++) {
        (void)stat(run, "lost");
        work(run, 100, 100);
        lost_pass(run, LEASE_MS / 4);
    }
}

static void expect_end(struct lost_run *run, long long lost)
{
    lost_expect(run, "running", 0, stat(run, "running"));
    lost_expect(run, "waiting", 0, stat(run, "waiting"));
    lost_expect(run, "waiting as counted", 0,
                lost_ask(run, "HGET weir:{t}:meta waiting"));
    lost_expect(run, "running as counted", 0,
                lost_ask(run, "HGET weir:{t}:meta running"));
    lost_expect(run, "done", run->added - lost, run->done);
}

/* At a moment at which adds look for groups without a turn. */
static void add_to_all(struct lost_run *run)
{
    lost_pass(run, PER_TURN - run->now_ms % PER_TURN);
    for (unsigned i = 0; i < GROUPS; i++)
        add(run, i, 1);
}

void lost_bounded(struct lost_run *run)
{
    long long lost = 0;
    bool is_found;

    run->part = "a bounded topic";
    run->key = keys[run->seed / 3 % (sizeof(keys) / sizeof(keys[0]))];
    for (unsigned i = 0; i < 12; i++) {
        add(run, lost_pick(run, GROUPS), 1 + lost_pick(run, 4));
        if (i == 4)
            work(run, 50, 100);
    }
    if (lost_pick(run, 2) == 0) {
        lost_pass(run, LEASE_MS + 1);
        work(run, 0, 0); /* leases end, nothing is taken */
    }
    if (lost_pick(run, 2) == 0)
        work(run, 30, 4);
    if (run->key[1] == ':') /* events are lost with it */
        lost = lost_ask(run, "LLEN weir:{t}:%s", run->key);
    (void)lost_ask(run, "DEL weir:{t}:%s", run->key);
    is_found = lost_pick(run, 3) == 0;
    if (is_found)
        add_to_all(run); /* before stats counts something as lost */
    drain(run);
    lost_expect(run, "running at rest", 0, stat(run, "running"));
    lost_expect(run, "waiting at rest", 0, stat(run, "waiting"));
    if (lost > 0 || is_found)
        lost_expect(run, "lost", lost, stat(run, "lost"));
    add_to_all(run);
    drain(run);
    expect_end(run, lost);
}
