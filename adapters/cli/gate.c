/* SPDX-License-Identifier: MIT */

/* What weir run refuses, or warns of, before it serves. */

#include "adapters/cli/doctor.h"

#include <string.h>

static void warn_unknown(const struct weir__log *log, const char *why)
{
    weir__log(log, WEIR_LEVEL_WARN,
              "redis: its settings are not known (%s); make sure that "
              "maxmemory-policy is noeviction",
              why);
}

static const char *before_text(const struct weir__finding *finding)
{
    return finding->node[0] != '\0' ? ": " : "";
}

static enum weir__exit judge(const struct weir__doctor *doctor, bool may_evict,
                             const struct weir__log *log)
{
    for (size_t i = 0; i < doctor->count; i++) {
        const struct weir__finding *finding = &doctor->list[i];

        if (finding->health == WEIR__HEALTH_OK)
            continue;
        if (finding->health == WEIR__HEALTH_FAILED && !may_evict &&
            strcmp(finding->check, "eviction") == 0) {
            weir__complain("%s%s%s; %s, or give --allow-eviction",
                           finding->node, before_text(finding), finding->text,
                           finding->advice);
            return WEIR__EXIT_USAGE;
        }
        weir__log(log, WEIR_LEVEL_WARN, "redis: %s%s%s; %s", finding->node,
                  before_text(finding), finding->text, finding->advice);
    }
    return WEIR__EXIT_NONE;
}

/* What a worker cannot do without; the rest of its rights is a warning. */
static enum weir__exit judge_rights(struct weir__probe *probe, const char *node,
                                    const char *prefix,
                                    const struct weir__log *log)
{
    struct weir__doctor doctor = {.node = node};
    enum weir__exit rc = WEIR__EXIT_NONE;

    if (!weir__doctor_scripts(&doctor, probe) && doctor.count > 0) {
        weir__complain("%s%s%s; %s", doctor.list[0].node,
                       before_text(&doctor.list[0]), doctor.list[0].text,
                       doctor.list[0].advice);
        rc = WEIR__EXIT_FAILED;
    }
    weir__doctor_fini(&doctor);
    if (rc != WEIR__EXIT_NONE)
        return rc;
    weir__doctor_rights(&doctor, probe, prefix);
    rc = judge(&doctor, true, log);
    weir__doctor_fini(&doctor);
    return rc;
}

static enum weir__exit judge_facts(struct weir__probe *probe, const char *node,
                                   bool may_evict, const struct weir__log *log)
{
    struct weir__doctor doctor = {.node = node};
    struct weir__facts facts;
    enum weir__exit rc = WEIR__EXIT_NONE;

    if (weir__facts_read(probe, &facts)) {
        weir__doctor_essentials(&doctor, &facts);
        rc = judge(&doctor, may_evict, log);
    } else {
        warn_unknown(log, facts.refusal);
    }
    weir__facts_fini(&facts);
    weir__doctor_fini(&doctor);
    return rc;
}

/* What the gate looks at, and how. */
struct visit {
    const char *prefix;
    bool may_evict;
    const struct weir__log *log;
};

/* `node` is NULL where there is no cluster. */
static enum weir__exit look(const struct visit *visit,
                            struct weir__probe *probe, const char *node)
{
    enum weir__exit rc = judge_facts(probe, node, visit->may_evict, visit->log);

    return rc == WEIR__EXIT_NONE
               ? judge_rights(probe, node, visit->prefix, visit->log)
               : rc;
}

static enum weir__exit look_at_members(const struct visit *visit,
                                       const struct weir__members *members)
{
    enum weir__exit rc = WEIR__EXIT_NONE;

    for (size_t i = 0; rc == WEIR__EXIT_NONE && i < members->count; i++) {
        const struct weir__member *member = &members->list[i];

        if (member->probe != NULL)
            rc = look(visit, member->probe, member->name);
        else
            weir__log(visit->log, WEIR_LEVEL_WARN,
                      "redis: %s is away, its topics wait (%s)", member->name,
                      member->why);
    }
    return rc;
}

/* No other node is known, for a reason that `code` and `err` tell. A right that
 * is missing is in the list of rights. */
static enum weir__exit look_at_one(const struct visit *visit,
                                   struct weir__probe *probe, int code,
                                   const struct weir_error *err)
{
    if (code != WEIR_ENOTFOUND && strstr(err->text, "NOPERM") == NULL)
        weir__log(visit->log, WEIR_LEVEL_WARN,
                  "redis: %s; no other server was checked, %s", err->text,
                  weir__members_advice(err));
    return look(visit, probe, NULL);
}

enum weir__exit weir__gate(const struct weir__client *client, bool may_evict,
                           const struct weir__log *log, bool *ret_is_cluster)
{
    struct weir__redis_url url;
    const struct visit visit = {url.prefix, may_evict, log};
    struct weir__probe *probe = NULL;
    struct weir__members members = {0};
    struct weir_error err = {0};
    enum weir__exit rc = WEIR__EXIT_NONE;
    int code;

    if (weir__redis_url_parse(client->url, &url, &err) != WEIR_OK ||
        weir__probe_open(&url, WEIR__PROBE_MS, &probe, &err) != WEIR_OK)
        warn_unknown(log, err.text);
    else if ((code = weir__members_open(&url, probe, &members, &err)) ==
             WEIR_OK)
        rc = look_at_members(&visit, &members);
    else
        rc = look_at_one(&visit, probe, code, &err);
    *ret_is_cluster = members.map != NULL;
    weir__members_close(&members);
    weir__probe_close(probe);
    return rc;
}
