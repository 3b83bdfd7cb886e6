/* SPDX-License-Identifier: MIT */

/* What weir doctor finds the nodes of a cluster to be together. */

#include "adapters/cli/doctor.h"

#include "adapters/server/info.h"
#include "core/mem.h"
#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CLOCKS_OFF_MS = 100,
    OPEN_MAX = 10,     /* slots that are named */
    IDS_MANY = 1000000 /* one MIGRATE of them takes 1.5 s */
};

static const char fix[] = "redis-cli --cluster fix";

/* --- slots --------------------------------------------------------------- */

static unsigned first_without_node(const struct weir__cluster_map *map)
{
    unsigned slot = 0;

    while (weir__cluster_map_find(map, (uint16_t)slot) != NULL)
        slot++;
    return slot;
}

static void check_covered(struct weir__doctor *doctor,
                          const struct weir__members *members)
{
    size_t covered = weir__cluster_map_covered(members->map);

    if (covered == WEIR__CLUSTER_SLOTS)
        weir__doctor_note(doctor, "cluster", WEIR__HEALTH_OK, NULL,
                          "%zu primar%s serve%s all %d slots", members->count,
                          members->count == 1 ? "y" : "ies",
                          members->count == 1 ? "s" : "", WEIR__CLUSTER_SLOTS);
    else
        weir__doctor_note(doctor, "cluster", WEIR__HEALTH_FAILED, fix,
                          "%zu of %d slots are served by no node, the first is "
                          "%u: their topics wait",
                          WEIR__CLUSTER_SLOTS - covered, WEIR__CLUSTER_SLOTS,
                          first_without_node(members->map));
}

/* The end of the node's own line: "7 10-11 [93->-ID] [95-<-ID]". */
static const char *own_slots(const char *nodes)
{
    const char *text = strstr(nodes, "myself");

    return text == NULL ? "" : text;
}

static const char *name_of(const struct weir__members *members, const char *id)
{
    for (size_t i = 0; i < members->count; i++) {
        const struct weir__member *member = &members->list[i];
        size_t len = strlen(member->node->id);

        if (len > 0 && strncmp(member->node->id, id, len) == 0)
            return member->name;
    }
    return "a node that has no slots";
}

/* One of "[93->-ID]" and "[95-<-ID]", up to the line's end. */
static void note_open(struct weir__doctor *doctor,
                      const struct weir__members *members, const char *text)
{
    char *end;
    unsigned long slot = strtoul(text + 1, &end, 10);
    bool leaves = strncmp(end, "->-", 3) == 0;

    if (!leaves && strncmp(end, "-<-", 3) != 0)
        return;
    weir__doctor_note(doctor, "slots", WEIR__HEALTH_FAILED,
                      "let the move end, or redis-cli --cluster fix",
                      "slot %lu is open, it moves %s %s: its topics wait", slot,
                      leaves ? "to" : "here from", name_of(members, end + 3));
}

static void check_open(struct weir__doctor *doctor,
                       const struct weir__members *members,
                       struct weir__probe *probe)
{
    static const char *const words[] = {"CLUSTER", "NODES", NULL};
    const char *text, *end;
    size_t count = 0;

    if (weir__probe_ask(probe, words, &text) != WEIR_OK) {
        weir__doctor_note(doctor, "slots", WEIR__HEALTH_WARNING,
                          "allow CLUSTER NODES to see open slots here",
                          "the server does not tell which slots are open: %s",
                          text);
        return;
    }
    text = own_slots(text);
    end = text + strcspn(text, "\n");
    while ((text = memchr(text, '[', (size_t)(end - text))) != NULL) {
        if (count++ < OPEN_MAX)
            note_open(doctor, members, text);
        text++;
    }
    if (count == 0)
        weir__doctor_note(doctor, "slots", WEIR__HEALTH_OK, NULL,
                          "none is open");
    else if (count > OPEN_MAX)
        weir__doctor_note(doctor, "slots", WEIR__HEALTH_FAILED, fix,
                          "%zu slots are open in all", count);
}

/* --- each node ------------------------------------------------------------ */

struct told {
    bool has_clock;
    struct weir__clock clock;
    char version[32]; /* "": not told */
};

static void check_replicas(struct weir__doctor *doctor, const char *info)
{
    uint64_t replicas = weir__info_number(info, "connected_slaves");

    weir__doctor_note(
        doctor, "replicas",
        replicas > 0 ? WEIR__HEALTH_OK : WEIR__HEALTH_WARNING,
        "give it a replica: without one its topics wait while it is away",
        "%" PRIu64 " connected", replicas);
}

static void take_version(struct told *told, const char *info)
{
    struct weir_slice version = weir__info_field(info, "valkey_version");

    if (version.len == 0)
        version = weir__info_field(info, "redis_version");
    (void)snprintf(told->version, sizeof(told->version), "%.*s",
                   (int)version.len, (const char *)version.ptr); /* cut */
}

static void look_at(struct weir__doctor *doctor,
                    const struct weir__members *members,
                    const struct weir__member *member, struct told *told)
{
    static const char *const words[] = {"INFO", NULL};
    const char *info;

    told->has_clock = weir__clock_read(member->probe, &told->clock) == NULL;
    if (weir__probe_ask(member->probe, words, &info) == WEIR_OK) {
        take_version(told, info);
        check_replicas(doctor, info);
    }
    check_open(doctor, members, member->probe);
}

/* --- all together --------------------------------------------------------- */

static void compare_versions(struct weir__doctor *doctor,
                             const struct weir__members *members,
                             const struct told *told)
{
    size_t first = 0;

    while (first < members->count && told[first].version[0] == '\0')
        first++;
    for (size_t i = first + 1; i < members->count; i++) {
        if (told[i].version[0] == '\0' ||
            strcmp(told[i].version, told[first].version) == 0)
            continue;
        weir__doctor_note(doctor, "versions", WEIR__HEALTH_WARNING,
                          "end the upgrade", "%s runs %s, %s runs %s",
                          members->list[first].name, told[first].version,
                          members->list[i].name, told[i].version);
        return;
    }
    weir__doctor_note(doctor, "versions", WEIR__HEALTH_OK, NULL,
                      "the same on all nodes");
}

/* What is surely so, however long the answers took. */
static int64_t apart_ms(const struct weir__clock *slow,
                        const struct weir__clock *fast)
{
    return fast->ahead_ms - slow->ahead_ms - fast->unsure_ms - slow->unsure_ms;
}

static void compare_clocks(struct weir__doctor *doctor,
                           const struct weir__members *members,
                           const struct told *told)
{
    int64_t most_ms = 0;
    size_t slow = 0, fast = 0;

    for (size_t i = 0; i < members->count; i++)
        for (size_t k = 0; k < members->count; k++) {
            int64_t ms = apart_ms(&told[i].clock, &told[k].clock);

            if (!told[i].has_clock || !told[k].has_clock || ms <= most_ms)
                continue;
            most_ms = ms;
            slow = i;
            fast = k;
        }
    if (most_ms <= CLOCKS_OFF_MS)
        weir__doctor_note(doctor, "clocks", WEIR__HEALTH_OK, NULL,
                          "those of the nodes are within %d ms", CLOCKS_OFF_MS);
    else
        weir__doctor_note(doctor, "clocks", WEIR__HEALTH_WARNING,
                          "set them by NTP: a slot that moves takes its due "
                          "times along",
                          "%s is %" PRId64 " ms ahead of %s",
                          members->list[fast].name, most_ms,
                          members->list[slow].name);
}

/* --- topics --------------------------------------------------------------- */

struct about_topics {
    struct weir__doctor *doctor;
    const struct weir__members *members;
    const char *prefix;
};

static void check_topic(const char *topic, void *arg)
{
    const struct about_topics *about = arg;
    uint16_t slot = weir__cluster_slot_of_topic(weir__slice_str(topic));
    struct weir__probe *probe = weir__members_probe(about->members, slot);
    char key[WEIR__REDIS_PREFIX_CAP + WEIR_MAX_TOPIC + 8];
    const char *words[] = {"HLEN", key, NULL};
    const char *text;

    (void)snprintf(key, sizeof(key), "%s:{%s}:ids", about->prefix,
                   topic); /* fits */
    if (probe == NULL || weir__probe_ask(probe, words, &text) != WEIR_OK ||
        strtoll(text, NULL, 10) <= IDS_MANY)
        return;
    weir__doctor_note(about->doctor, "topics", WEIR__HEALTH_WARNING,
                      "move its slot when there are fewer: until it has moved "
                      "both nodes stand still",
                      "topic %s has %s ids in slot %u", topic, text,
                      (unsigned)slot);
}

static void check_topics(struct weir__doctor *doctor,
                         const struct weir__members *members,
                         const char *prefix)
{
    struct about_topics about = {doctor, members, prefix};
    size_t seen, before = doctor->count;
    bool is_all;

    if (weir__members_topics(members, prefix, check_topic, &about, &seen,
                             &is_all) &&
        doctor->count == before)
        weir__doctor_note(doctor, "topics", WEIR__HEALTH_OK, NULL,
                          "%zu, none with more than %d ids%s", seen, IDS_MANY,
                          is_all ? "" : " among the first");
}

void weir__doctor_cluster(struct weir__doctor *doctor,
                          const struct weir__members *members,
                          const char *prefix)
{
    struct told *told = weir__mem_new(members->count * sizeof(told[0]));

    if (told == NULL) {
        doctor->is_out_of_memory = true;
        return;
    }
    for (size_t i = 0; i < members->count; i++) {
        doctor->node = members->list[i].name;
        if (members->list[i].probe != NULL)
            look_at(doctor, members, &members->list[i], &told[i]);
    }
    doctor->node = NULL;
    check_covered(doctor, members);
    compare_versions(doctor, members, told);
    compare_clocks(doctor, members, told);
    check_topics(doctor, members, prefix);
    weir__mem_free(told);
}
