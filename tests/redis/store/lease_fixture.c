/* SPDX-License-Identifier: MIT */
#include "tests/redis/store/lease_fixture.h"

#include <stdio.h>
#include <stdlib.h>

void lease_look(struct host *host)
{
    EXPECT_INT(0, host_claim(host, 1, LEASE_SHORT_MS));
}

const char *lease_name(const struct weir__run *run)
{
    static char name[24];

    (void)snprintf(name, sizeof(name), "%llu", (unsigned long long)run->token);
    return name;
}

int64_t lease_end(const char *name)
{
    const char *text = redis_text(proc, "ZSCORE weir:{t}:lease %s", name);

    EXPECT_TRUE(text != NULL);
    return strtoll(text, NULL, 10);
}

void lease_hold(const char *name, int times, struct host *other)
{
    int64_t end = lease_end(name);

    while (times > 0) {
        int64_t next;

        if (other != NULL)
            EXPECT_INT(0, host_claim(other, 10, LEASE_LONG_MS));
        next = lease_end(name);
        EXPECT_TRUE((double)next > ev_time() * 1000.);
        times -= next > end;
        end = next;
    }
}

void leases_pass(void)
{
    static const char pass[] =
        "local names = redis.call('ZRANGE', KEYS[1], 0, -1) "
        "for _, name in ipairs(names) do "
        "  redis.call('ZADD', KEYS[1], 1, name) end "
        "return #names";

    EXPECT_TRUE(redis_int(proc, "EVAL %s 1 weir:{t}:lease", pass) > 0);
}

void lease_outlive(struct host *host, size_t jobs)
{
    EXPECT_INT(jobs, host_claim(host, jobs, LEASE_LONG_MS));
    leases_pass();
}

void due_now(const char *key, const char *member)
{
    EXPECT_INT(1, redis_int(proc, "ZADD weir:{t}:%s XX CH 1 %s", key, member));
}
