/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_DOCTOR_H
#define WEIR_CLI_DOCTOR_H

/* What weir doctor looks at, and what weir run looks at before it serves. Each
 * check adds findings to a list; nothing is printed here. A server is asked
 * through a connection that blocks, and nothing on it is changed, but that it
 * keeps the scripts, as it does for every worker. */

#include "adapters/cli/client.h"
#include "adapters/config/config.h"
#include "adapters/redis/cluster/map.h"
#include "adapters/redis/probe.h"
#include "core/error.h"

enum weir__health {
    WEIR__HEALTH_OK,
    WEIR__HEALTH_WARNING, /* jobs are handled, but something can go wrong */
    WEIR__HEALTH_FAILED   /* they are not, get lost, or nobody can take over */
};

struct weir__finding {
    const char *check;
    enum weir__health health;
    char node[280];   /* of a cluster, that it is about; "": of no one */
    char text[256];   /* what is so */
    char advice[256]; /* what to do; "" when nothing is to be done */
};

/* A zeroed struct is an empty list. */
struct weir__doctor {
    struct weir__finding *list; /* owned */
    size_t count;
    bool is_out_of_memory; /* findings are missing */
    const char *node;      /* that findings are about from now on, or NULL */
};

void weir__doctor_fini(struct weir__doctor *doctor);

/* `advice`, which may be NULL, is left out where all is well. */
WEIR_PRINTF(5, 6)
void weir__doctor_note(struct weir__doctor *doctor, const char *check,
                       enum weir__health health, const char *advice,
                       const char *format, ...);

/* The worst of all findings of `check`; with NULL of all. */
enum weir__health weir__doctor_worst(const struct weir__doctor *doctor,
                                     const char *check);

/* --- doctor_server.c: what a server says of itself ---------------------- */

struct weir__facts {
    char *info;           /* owned */
    char appendfsync[16]; /* "" when not known, as below */
    char save[128];       /* "-": known to be nothing */
    char min_replicas[16];
    bool is_watched;   /* sentinels named it; set by who knows */
    char refusal[160]; /* why there is no info */
};

/* False when it does not tell, with `refusal`. */
bool weir__facts_read(struct weir__probe *probe, struct weir__facts *ret_facts);
void weir__facts_fini(struct weir__facts *facts);

/* Version, eviction, persistence, replication: what jobs depend on. */
void weir__doctor_essentials(struct weir__doctor *doctor,
                             const struct weir__facts *facts);

/* Memory and clients: how near it is to its limits. */
void weir__doctor_room(struct weir__doctor *doctor,
                       const struct weir__facts *facts, bool is_local);

/* --- doctor_rights.c: what a server lets us do --------------------------- */

/* A clock against this machine's. */
struct weir__clock {
    int64_t ahead_ms;
    int64_t unsure_ms; /* by so much more or less */
};

/* NULL, or why the server tells no time; valid until the next question. */
const char *weir__clock_read(struct weir__probe *probe,
                             struct weir__clock *ret_clock);

void weir__doctor_clock(struct weir__doctor *doctor, struct weir__probe *probe);
/* False: it denies us scripts. */
bool weir__doctor_scripts(struct weir__doctor *doctor,
                          struct weir__probe *probe);
/* `prefix`: of keys and channels, see url.h. */
void weir__doctor_rights(struct weir__doctor *doctor, struct weir__probe *probe,
                         const char *prefix);

/* --- members.c: the nodes of a cluster ----------------------------------- */

/* A primary that has slots. */
struct weir__member {
    char name[280]; /* "10.0.0.7:6379" */
    const struct weir__cluster_node *node;
    struct weir__probe *probe; /* owned; NULL: it is away, */
    char why[480];             /* and why */
};

/* A zeroed struct has none. */
struct weir__members {
    struct weir__cluster_map *map; /* owned; NULL: no cluster, */
    struct weir__probe *server;    /* but this server; borrowed */
    struct weir__member *list;     /* owned */
    size_t count;
};

/* Connect to all that the server names. WEIR_ENOTFOUND: it is no node of a
 * cluster; WEIR_ESERVER: it tells of no others; WEIR_ENOMEM; `err` names the
 * server and says why. Members that are away are no error. BLOCKS, for each. */
int weir__members_open(const struct weir__redis_url *url,
                       struct weir__probe *server,
                       struct weir__members *ret_members,
                       struct weir_error *err);
void weir__members_close(struct weir__members *members);

/* What to do about an error of weir__members_open. */
const char *weir__members_advice(const struct weir_error *err);

/* Who serves the slot; NULL: the node is away. */
struct weir__probe *weir__members_probe(const struct weir__members *members,
                                        uint16_t slot);

/* Call `fn` for each topic that there is, some 20,000 at most: how many were
 * told, and whether these are all. False: the list is not told. BLOCKS. */
bool weir__members_topics(const struct weir__members *members,
                          const char *prefix,
                          void (*fn)(const char *topic, void *arg), void *arg,
                          size_t *ret_count, bool *ret_is_all);

/* Ask a command of the SCAN family, which has `cursor` among its words, and
 * take the next cursor. The members, one in each line; the caller frees them
 * with weir__mem_free. NULL: `*ret_why`. BLOCKS. */
char *weir__probe_page(struct weir__probe *probe, const char *const *words,
                       char cursor[24], const char **ret_why);

/* --- doctor_cluster.c: what they are together ----------------------------- */

/* Slots that nobody has or that are open, nodes without a replica, versions and
 * clocks that differ, topics that are large. BLOCKS. */
void weir__doctor_cluster(struct weir__doctor *doctor,
                          const struct weir__members *members,
                          const char *prefix);

/* --- doctor_losses.c: jobs that a server lost key by key ------------------ */

/* Search each topic for remains of lost jobs; or search `topic` alone, and
 * remove them. Topics of kind list, stream, sync and concurrent mend
 * themselves. BLOCKS; a step holds the server for about 1 ms. */
void weir__doctor_losses(struct weir__doctor *doctor,
                         const struct weir__members *members,
                         const char *prefix, const char *topic);

/* --- doctor_sentinel.c: what sentinels say of the primary ---------------- */

/* Those of the address are asked one by one, 1 s each: whether they name one
 * primary, and whether they are enough for a failover. BLOCKS. */
void weir__doctor_sentinels(struct weir__doctor *doctor,
                            const struct weir__redis_url *url);

/* --- doctor_groups.c: bounded topics -------------------------------------- */

/* Groups that no worker serves, through a connection of its own; nothing where
 * the server is away. BLOCKS. */
void weir__doctor_groups(struct weir__doctor *doctor,
                         const struct weir__cli *cli);

/* --- doctor_local.c: this process and its machine ------------------------ */

void weir__doctor_limits(struct weir__doctor *doctor);

/* `dirs` of the configuration, or NULL. Loads each plugin found, but for those
 * in a place that everybody may write to. */
void weir__doctor_plugins(struct weir__doctor *doctor,
                          const struct weir__config_list *dirs);

/* --- gate.c: what weir run asks of a server before it serves -------------- */

/* Look at the server that `client` is connected to, or at each primary of its
 * cluster; one that is away is named in the log. Refused, with a sentence, are
 * one that evicts (unless `may_evict`) and one that lets us run no script.
 * Named in the log are an old one, a replica, one that keeps nothing on disk,
 * one that does not tell, and missing rights. WEIR__EXIT_NONE, or what to exit
 * with; `*ret_is_cluster` then. BLOCKS. */
enum weir__exit weir__gate(const struct weir__client *client, bool may_evict,
                           const struct weir__log *log, bool *ret_is_cluster);

#endif
