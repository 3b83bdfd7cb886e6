/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "adapters/cli/doctor.h"
#include "adapters/redis/script.h"
#include "tests/harness/resp_peer.h"
#include "tests/harness/test.h"

/* --- what INFO says ------------------------------------------------------ */

static const struct weir__finding *find(const struct weir__doctor *doctor,
                                        const char *check)
{
    size_t i = 0;

    while (i < doctor->count && strcmp(doctor->list[i].check, check) != 0)
        i++;
    EXPECT_TRUE(i < doctor->count);
    return &doctor->list[i];
}

static void expect_essential(const char *info, const char *check,
                             enum weir__health health, const char *text)
{
    char copy[256];
    struct weir__facts facts = {.info = copy};
    struct weir__doctor doctor = {0};
    const struct weir__finding *finding;

    (void)snprintf(copy, sizeof(copy), "%s", info); /* fits */
    weir__doctor_essentials(&doctor, &facts);
    finding = find(&doctor, check);
    EXPECT_INT(health, finding->health);
    EXPECT_CONTAINS(text, finding->text);
    EXPECT_INT(health == WEIR__HEALTH_OK, finding->advice[0] == '\0');
    weir__doctor_fini(&doctor);
}

TEST(a_version_below_the_floor_fails)
{
    const struct {
        const char *info;
        bool is_fine;
        const char *text;
    } cases[] = {
        {"redis_version:6.2.0\r\n", true, "redis 6.2.0"},
        {"redis_version:6.0.20\r\n", false, "redis 6.0.20"},
        {"redis_version:5.0.14\r\n", false, "redis 5.0.14"},
        {"redis_version:7.0.15\r\n", true, "redis 7.0.15"},
        {"redis_version:10.0.1\r\n", true, "redis 10.0.1"},
        {"redis_version:7.2.4\r\nvalkey_version:7.2.5\r\n", true,
         "valkey 7.2.5"},
        {"redis_version:7.2.4\r\nvalkey_version:7.1.0\r\n", false,
         "valkey 7.1.0"},
        {"redis_version:7.2.4\r\nvalkey_version:8.0.1\r\n", true,
         "valkey 8.0.1"},
        {"nothing:1\r\n", false, "does not tell"},
        {"", false, "does not tell"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_essential(cases[i].info, "version",
                         cases[i].is_fine ? WEIR__HEALTH_OK
                                          : WEIR__HEALTH_FAILED,
                         cases[i].text);
}

TEST(a_file_that_cannot_be_written_fails)
{
    expect_essential("aof_enabled:1\r\naof_last_write_status:err\r\n",
                     "persistence", WEIR__HEALTH_FAILED, "cannot be written");
    expect_essential("aof_enabled:1\r\naof_last_write_status:ok\r\n",
                     "persistence", WEIR__HEALTH_OK, "append-only file");
}

TEST(a_policy_that_is_not_told_is_a_warning)
{
    expect_essential("redis_version:7.0.0\r\n", "eviction",
                     WEIR__HEALTH_WARNING, "maxmemory-policy");
}

TEST(a_primary_that_writes_without_its_replicas_is_a_warning)
{
    expect_essential("role:master\r\nconnected_slaves:1\r\n", "replication",
                     WEIR__HEALTH_WARNING, "1 replica connected, 0 needed");
    expect_essential("role:master\r\nconnected_slaves:0\r\n", "replication",
                     WEIR__HEALTH_OK, "0 replicas connected, 0 needed");
    expect_essential("role:master\r\nconnected_slaves:1\r\n"
                     "min_slaves_good_slaves:1\r\n",
                     "replication", WEIR__HEALTH_OK, "not known how many");
}

/* --- clocks -------------------------------------------------------------- */

static void expect_time(const char *seconds, enum weir__health health,
                        const char *text)
{
    char bytes[120];
    const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = bytes}; /* behind PING */
    struct weir__redis_url url = {.is_unix = true, .host_count = 1};
    struct weir__doctor doctor = {0};
    struct weir__probe *probe;
    struct resp_peer *peer;

    (void)snprintf(bytes, sizeof(bytes), "*2\r\n$%zu\r\n%s\r\n$1\r\n0\r\n",
                   strlen(seconds), seconds);
    peer = resp_peer_start(&rule, 1);
    (void)snprintf(url.hosts[0].name, WEIR__REDIS_TEXT_CAP, "%s",
                   resp_peer_socket(peer));
    EXPECT_INT(WEIR_OK, weir__probe_open(&url, WEIR__PROBE_MS, &probe, NULL));
    weir__doctor_clock(&doctor, probe);
    EXPECT_INT(health, find(&doctor, "clock")->health);
    EXPECT_CONTAINS(text, find(&doctor, "clock")->text);
    weir__doctor_fini(&doctor);
    weir__probe_close(probe);
}

static void expect_clock(long long ahead_s, enum weir__health health,
                         const char *text)
{
    struct timespec now;
    char seconds[24];

    EXPECT_INT(0, clock_gettime(CLOCK_REALTIME, &now));
    (void)snprintf(seconds, sizeof(seconds), "%lld",
                   (long long)now.tv_sec + ahead_s);
    expect_time(seconds, health, text);
}

TEST(clocks_that_differ_are_a_warning)
{
    expect_clock(3600, WEIR__HEALTH_WARNING, "s ahead of this machine's");
    expect_clock(-3600, WEIR__HEALTH_WARNING, "s behind this machine's");
    expect_clock(3600, WEIR__HEALTH_WARNING, "clock is 3");
}

TEST(a_time_that_cannot_be_is_a_warning)
{
    expect_time("9223372036854775807", WEIR__HEALTH_WARNING, "cannot be");
    expect_time("-9223372036854775808", WEIR__HEALTH_WARNING, "cannot be");
    expect_time("253402300800", WEIR__HEALTH_WARNING, "cannot be");
    expect_time("now", WEIR__HEALTH_WARNING, "cannot be");
    expect_time("", WEIR__HEALTH_WARNING, "cannot be");
    expect_time("253402300799", WEIR__HEALTH_WARNING, "ahead of");
    expect_time("0", WEIR__HEALTH_WARNING, "behind");
}

TEST(a_server_that_hangs_up_tells_no_time)
{
    static const struct resp_rule rule = {
        .connection = 1, .command = 2, .bytes = "*2\r\n$1", .hangs_up = true};
    struct weir__redis_url url = {.is_unix = true, .host_count = 1};
    struct resp_peer *peer = resp_peer_start(&rule, 1);
    struct weir__doctor doctor = {0};
    struct weir__probe *probe;

    (void)snprintf(url.hosts[0].name, WEIR__REDIS_TEXT_CAP, "%s",
                   resp_peer_socket(peer));
    EXPECT_INT(WEIR_OK, weir__probe_open(&url, WEIR__PROBE_MS, &probe, NULL));
    weir__doctor_clock(&doctor, probe);
    EXPECT_INT(WEIR__HEALTH_WARNING, find(&doctor, "clock")->health);
    weir__doctor_clock(&doctor, probe); /* fails again, without harm */
    EXPECT_INT(2, doctor.count);
    weir__doctor_fini(&doctor);
    weir__probe_close(probe);
}
