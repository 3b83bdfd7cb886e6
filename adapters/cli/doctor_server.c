/* SPDX-License-Identifier: MIT */

/* What weir doctor makes of what a server says about itself. */

#include "adapters/cli/doctor.h"

#include "adapters/server/info.h"
#include "core/mem.h"
#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MEMORY_TIGHT_PERCENT = 80, CLIENTS_TIGHT_PERCENT = 90 };

static const double MIB = 1024.0 * 1024.0;

/* A slice as the arguments of "%.*s". */
#define TEXT(slice) (int)(slice).len, (const char *)(slice).ptr

/* --- reading ------------------------------------------------------------ */

/* A setting's value; untouched when the server does not tell. An answer is the
 * name, a line feed, the value. */
static void read_setting(struct weir__probe *probe, const char *name,
                         char *ret_value, size_t cap)
{
    const char *words[] = {"CONFIG", "GET", name, NULL};
    const char *text;
    size_t len = strlen(name);

    if (weir__probe_ask(probe, words, &text) != WEIR_OK ||
        strncmp(text, name, len) != 0 || text[len] != '\n')
        return;
    text += len + 1;
    (void)snprintf(ret_value, cap, "%s", text[0] != '\0' ? text : "-"); /* cut
                                                                         */
}

bool weir__facts_read(struct weir__probe *probe, struct weir__facts *ret_facts)
{
    static const char *const words[] = {"INFO", NULL};
    struct weir__facts facts = {0};
    const char *text;

    if (weir__probe_ask(probe, words, &text) == WEIR_OK) {
        facts.info = weir__mem_new(strlen(text) + 1);
        if (facts.info != NULL)
            memcpy(facts.info, text, strlen(text) + 1);
        else
            text = "out of memory";
    }
    if (facts.info == NULL)
        (void)snprintf(facts.refusal, sizeof(facts.refusal), "%s",
                       text); /* cut */
    read_setting(probe, "appendfsync", facts.appendfsync,
                 sizeof(facts.appendfsync));
    read_setting(probe, "save", facts.save, sizeof(facts.save));
    read_setting(probe, "min-replicas-to-write", facts.min_replicas,
                 sizeof(facts.min_replicas));
    *ret_facts = facts;
    return facts.info != NULL;
}

void weir__facts_fini(struct weir__facts *facts)
{
    weir__mem_free(facts->info);
    facts->info = NULL;
}

/* --- what jobs depend on ------------------------------------------------ */

/* "7.0.15" is at least 6.2. */
static bool is_at_least(struct weir_slice version, unsigned long major,
                        unsigned long minor)
{
    char *end;
    unsigned long number = strtoul((const char *)version.ptr, &end, 10);

    if (number != major)
        return number > major;
    return *end == '.' && strtoul(end + 1, NULL, 10) >= minor;
}

static void check_version(struct weir__doctor *doctor, const char *info)
{
    struct weir_slice valkey = weir__info_field(info, "valkey_version");
    struct weir_slice version = weir__info_field(info, "redis_version");
    const char *name = valkey.len > 0 ? "valkey" : "redis";
    bool is_new_enough = valkey.len > 0
                             ? is_at_least(valkey, 7, 2)
                             : version.len > 0 && is_at_least(version, 6, 2);

    if (valkey.len > 0)
        version = valkey;
    if (version.len == 0)
        version = weir__slice_str("of a version that it does not tell");
    weir__doctor_note(
        doctor, "version",
        is_new_enough ? WEIR__HEALTH_OK : WEIR__HEALTH_FAILED,
        "weir needs Redis 6.2 or Valkey 7.2: install a newer server", "%s %.*s",
        name, TEXT(version));
}

static void check_eviction(struct weir__doctor *doctor, const char *info)
{
    struct weir_slice policy = weir__info_field(info, "maxmemory_policy");
    uint64_t evicted = weir__info_number(info, "evicted_keys");

    if (policy.len == 0) {
        weir__doctor_note(doctor, "eviction", WEIR__HEALTH_WARNING,
                          "make sure that it is noeviction",
                          "the server does not tell its maxmemory-policy");
    } else if (evicted > 0 &&
               weir__info_is(info, "maxmemory_policy", "noeviction")) {
        weir__doctor_note(doctor, "eviction", WEIR__HEALTH_WARNING,
                          "look at losses, then CONFIG RESETSTAT",
                          "noeviction, but %" PRIu64
                          " keys were evicted since the server started",
                          evicted);
    } else if (weir__info_is(info, "maxmemory_policy", "noeviction")) {
        weir__doctor_note(doctor, "eviction", WEIR__HEALTH_OK, NULL,
                          "noeviction");
    } else {
        weir__doctor_note(
            doctor, "eviction", WEIR__HEALTH_FAILED,
            "set maxmemory-policy noeviction in its configuration",
            "maxmemory-policy is %.*s: a server that is full drops jobs",
            TEXT(policy));
    }
}

static void check_snapshots_only(struct weir__doctor *doctor,
                                 const struct weir__facts *facts)
{
    bool has_none = strcmp(facts->save, "-") == 0;

    if (!has_none && facts->save[0] != '\0' &&
        weir__info_is(facts->info, "rdb_last_bgsave_status", "err")) {
        weir__doctor_note(
            doctor, "persistence", WEIR__HEALTH_FAILED,
            "look into its log: is the disk full?",
            "the last snapshot failed, the server refuses writes");
        return;
    }
    weir__doctor_note(
        doctor, "persistence", WEIR__HEALTH_WARNING,
        "set appendonly yes in the server's configuration", "%s",
        has_none ? "nothing is written to disk: a restart loses every job"
                 : "no append-only file: a restart loses what came since the "
                   "last snapshot");
}

static void check_persistence(struct weir__doctor *doctor,
                              const struct weir__facts *facts)
{
    if (weir__info_number(facts->info, "aof_enabled") == 0) {
        check_snapshots_only(doctor, facts);
    } else if (weir__info_is(facts->info, "aof_last_write_status", "err")) {
        weir__doctor_note(doctor, "persistence", WEIR__HEALTH_FAILED,
                          "look into its log: is the disk full?",
                          "the append-only file cannot be written, the server "
                          "refuses writes");
    } else if (strcmp(facts->appendfsync, "no") == 0) {
        weir__doctor_note(doctor, "persistence", WEIR__HEALTH_WARNING,
                          "set appendfsync everysec, or always",
                          "append-only file, synced when the system likes: a "
                          "power cut loses up to 30 s");
    } else {
        weir__doctor_note(doctor, "persistence", WEIR__HEALTH_OK, NULL,
                          "append-only file%s%s",
                          facts->appendfsync[0] != '\0' ? ", appendfsync " : "",
                          facts->appendfsync);
    }
}

static void check_replica(struct weir__doctor *doctor, const char *info)
{
    struct weir_slice host = weir__info_field(info, "master_host");

    weir__doctor_note(doctor, "replication", WEIR__HEALTH_FAILED,
                      "give the address of the primary",
                      "the server is a replica of %.*s port %" PRIu64
                      " (link %s) and takes no jobs",
                      TEXT(host), weir__info_number(info, "master_port"),
                      weir__info_is(info, "master_link_status", "up") ? "up"
                                                                      : "down");
}

/* A server tells of replicas that are good enough where it wants some. */
static void check_primary(struct weir__doctor *doctor,
                          const struct weir__facts *facts)
{
    const char *info = facts->info;
    uint64_t replicas = weir__info_number(info, "connected_slaves");
    uint64_t good = weir__info_number(info, "min_slaves_good_slaves");
    bool wants_some = weir__info_field(info, "min_slaves_good_slaves").len > 0;
    bool wants_all =
        wants_some && good < strtoul(facts->min_replicas, NULL, 10);
    bool may_be_cut_off = !wants_some && (replicas > 0 || facts->is_watched);

    weir__doctor_note(
        doctor, "replication",
        wants_all        ? WEIR__HEALTH_FAILED
        : may_be_cut_off ? WEIR__HEALTH_WARNING
                         : WEIR__HEALTH_OK,
        wants_all
            ? "it refuses writes: start replicas, or lower "
              "min-replicas-to-write"
            : "set min-replicas-to-write 1 and min-replicas-max-lag 2, or what "
              "it takes while it is cut off from its replicas gets lost",
        "primary, %" PRIu64 " replica%s connected, %s needed to write",
        replicas, replicas == 1 ? "" : "s",
        !wants_some                      ? "0"
        : facts->min_replicas[0] != '\0' ? facts->min_replicas
                                         : "not known how many");
}

static void check_replication(struct weir__doctor *doctor,
                              const struct weir__facts *facts)
{
    if (weir__info_is(facts->info, "role", "slave"))
        check_replica(doctor, facts->info);
    else
        check_primary(doctor, facts);
}

void weir__doctor_essentials(struct weir__doctor *doctor,
                             const struct weir__facts *facts)
{
    check_version(doctor, facts->info);
    check_eviction(doctor, facts->info);
    check_persistence(doctor, facts);
    check_replication(doctor, facts);
}

/* --- room ---------------------------------------------------------------- */

static void check_memory(struct weir__doctor *doctor, const char *info)
{
    uint64_t most = weir__info_number(info, "maxmemory");
    uint64_t used = weir__info_number(info, "used_memory");
    enum weir__health health = WEIR__HEALTH_OK;

    if (most == 0) {
        weir__doctor_note(doctor, "memory", WEIR__HEALTH_OK, NULL,
                          "%.1f MiB used, no maxmemory", (double)used / MIB);
        return;
    }
    if (used >= most)
        health = WEIR__HEALTH_FAILED;
    else if (used / MEMORY_TIGHT_PERCENT >= most / 100)
        health = WEIR__HEALTH_WARNING;
    weir__doctor_note(doctor, "memory", health,
                      "raise maxmemory, or have the backlog worked off",
                      "%.1f MiB used of maxmemory %.1f MiB%s",
                      (double)used / MIB, (double)most / MIB,
                      used >= most ? ": jobs are refused" : "");
}

/* A server that writes its file anew forks, which takes as much memory again
 * where the system does not overcommit. */
static void check_overcommit(struct weir__doctor *doctor)
{
    FILE *file = fopen("/proc/sys/vm/overcommit_memory", "r");
    int mode;

    if (file == NULL)
        return;
    mode = fgetc(file);
    (void)fclose(file);
    if (mode == '1') {
        weir__doctor_note(doctor, "overcommit", WEIR__HEALTH_OK, NULL,
                          "vm.overcommit_memory is 1");
        return;
    }
    weir__doctor_note(
        doctor, "overcommit", WEIR__HEALTH_WARNING,
        "sysctl vm.overcommit_memory=1",
        "vm.overcommit_memory is %c: a large server may fail to write its data",
        mode);
}

static void check_clients(struct weir__doctor *doctor, const char *info)
{
    uint64_t most = weir__info_number(info, "maxclients");
    uint64_t now = weir__info_number(info, "connected_clients");
    bool is_tight = most > 0 && now >= most * CLIENTS_TIGHT_PERCENT / 100;

    if (most == 0) {
        weir__doctor_note(doctor, "clients", WEIR__HEALTH_OK, NULL,
                          "%" PRIu64 " connected", now);
        return;
    }
    weir__doctor_note(
        doctor, "clients", is_tight ? WEIR__HEALTH_WARNING : WEIR__HEALTH_OK,
        "raise maxclients: a worker has up to 7 connections to a server",
        "%" PRIu64 " connected of maxclients %" PRIu64, now, most);
}

void weir__doctor_room(struct weir__doctor *doctor,
                       const struct weir__facts *facts, bool is_local)
{
    check_memory(doctor, facts->info);
    if (is_local)
        check_overcommit(doctor);
    check_clients(doctor, facts->info);
}
