/* SPDX-License-Identifier: MIT */

/* weir doctor: the server and this machine. */

#include "adapters/cli/blame.h"
#include "adapters/cli/client.h"
#include "adapters/cli/doctor.h"
#include "adapters/cli/options.h"
#include "adapters/cli/output.h"
#include "adapters/cli/rights.h"
#include "adapters/cli/services.h"
#include "adapters/server/info.h"
#include "core/text.h"

#include <string.h>
#include <unistd.h>

enum { CONFIG, ACL, MEND };

static const struct weir__flag flags[] = {
    [CONFIG] = {"config", "F",
                "take server and plugin path of a configuration file"},
    [ACL] = {"acl", NULL, "look at nothing; print the least rights weir needs"},
    [MEND] = {"mend", NULL, "remove what is left of lost jobs of TOPIC"},
};

static const char *const words[] = {
    [WEIR__HEALTH_OK] = "ok",
    [WEIR__HEALTH_WARNING] = "warning",
    [WEIR__HEALTH_FAILED] = "failed",
};

/* --- looking -------------------------------------------------------------- */

static bool is_local(const struct weir__redis_url *url,
                     const struct weir__probe *probe)
{
    const char *host = weir__probe_host(probe)->name;

    if (url->is_sentinel)
        return false; /* the server may be anywhere */
    return host[0] == '/' || strcmp(host, "localhost") == 0 ||
           strncmp(host, "127.", 4) == 0 || strcmp(host, "::1") == 0;
}

/* Asked through a connection that is there. */
static void look_at_server(struct weir__doctor *doctor,
                           struct weir__probe *probe,
                           const struct weir__redis_url *url)
{
    struct weir__facts facts;

    if (!weir__facts_read(probe, &facts) && weir__probe_lost(probe) != NULL)
        return; /* nothing else would be answered */
    if (facts.info == NULL) {
        weir__doctor_note(
            doctor, "settings", WEIR__HEALTH_WARNING,
            "allow INFO to see version, eviction and persistence here",
            "the server does not tell its settings: %s", facts.refusal);
    } else {
        facts.is_watched = url->is_sentinel;
        weir__doctor_essentials(doctor, &facts);
        weir__doctor_room(doctor, &facts, is_local(url, probe));
    }
    if (facts.info != NULL && weir__info_number(facts.info, "loading") != 0) {
        weir__doctor_note(doctor, "loading", WEIR__HEALTH_FAILED,
                          "wait until it is done",
                          "the server is still reading its data");
    } else {
        weir__doctor_clock(doctor, probe);
        (void)weir__doctor_scripts(doctor, probe); /* it is in the list */
        weir__doctor_rights(doctor, probe, url->prefix);
    }
    weir__facts_fini(&facts);
}

/* One that is away, or does not answer any more, is a finding: others do. */
static void look_at_member(struct weir__doctor *doctor,
                           const struct weir__member *member,
                           const struct weir__redis_url *url)
{
    const char *lost = member->why;

    doctor->node = member->name;
    if (member->probe != NULL) {
        look_at_server(doctor, member->probe, url);
        lost = weir__probe_lost(member->probe);
    }
    if (lost != NULL)
        weir__doctor_note(doctor, "connection", WEIR__HEALTH_FAILED,
                          "start it, or let its replica take over",
                          "it is away, its topics wait: %s", lost);
    doctor->node = NULL;
}

static void note_unknown_cluster(struct weir__doctor *doctor,
                                 const struct weir_error *err)
{
    weir__doctor_note(doctor, "cluster", WEIR__HEALTH_WARNING,
                      weir__members_advice(err), "%s", err->text);
}

/* The primaries of its cluster, or the server itself. WEIR__EXIT_NONE, or why
 * not: the address is of no use. */
static enum weir__exit look_at_all(struct weir__doctor *doctor,
                                   struct weir__probe *probe,
                                   const struct weir__redis_url *url)
{
    struct weir__members members = {0};
    struct weir_error err = {0};
    int rc = weir__members_open(url, probe, &members, &err);

    for (size_t i = 0; i < members.count; i++)
        look_at_member(doctor, &members.list[i], url);
    if (rc == WEIR_OK) {
        weir__doctor_cluster(doctor, &members, url->prefix);
        weir__doctor_losses(doctor, &members, url->prefix, NULL);
    }
    weir__members_close(&members);
    if (rc == WEIR_OK)
        return WEIR__EXIT_NONE;
    look_at_server(doctor, probe, url);
    if (weir__doctor_worst(doctor, "scripts") == WEIR__HEALTH_OK) {
        members.server = probe;
        weir__doctor_losses(doctor, &members, url->prefix, NULL);
    }
    if (rc != WEIR_ENOTFOUND) {
        note_unknown_cluster(doctor, &err);
        return WEIR__EXIT_NONE;
    }
    if (url->host_count > 1 && !url->is_sentinel) {
        weir__doctor_note(doctor, "cluster", WEIR__HEALTH_FAILED, "give one",
                          "%s port %u is no node of a cluster, and several "
                          "hosts have to be",
                          weir__probe_host(probe)->name,
                          (unsigned)weir__probe_host(probe)->port);
        return WEIR__EXIT_USAGE;
    }
    weir__doctor_note(doctor, "cluster", WEIR__HEALTH_OK, NULL,
                      "no node of a cluster");
    return WEIR__EXIT_NONE;
}

/* What it is for the exit code. */
static enum weir__exit note_unreached(struct weir__doctor *doctor,
                                      const struct weir__client *client, int rc,
                                      const char *why)
{
    weir__doctor_note(
        doctor, "connection", WEIR__HEALTH_FAILED,
        rc == WEIR_ESERVER ? "give user and password in the address"
        : rc == WEIR_ENOTFOUND
            ? "look at the address: the name, the database, the hosts"
            : "start the server, or give --redis URL",
        "%s: %s%s", client->shown,
        rc == WEIR_ESERVER ? "we are turned away: " : "", why);
    return rc == WEIR_ENOTFOUND ? WEIR__EXIT_USAGE : WEIR__EXIT_UNREACHABLE;
}

/* WEIR__EXIT_NONE, or why not when the server cannot be reached, or answers no
 * more. */
static enum weir__exit look_from_outside(struct weir__doctor *doctor,
                                         const struct weir__client *client)
{
    struct weir__redis_url url;
    struct weir__probe *probe;
    struct weir_error err = {0};
    const char *lost;
    enum weir__exit found = WEIR__EXIT_NONE;
    int rc = weir__redis_url_parse(client->url, &url, &err);

    if (rc == WEIR_OK && url.is_sentinel)
        weir__doctor_sentinels(doctor, &url);
    if (rc == WEIR_OK)
        rc = weir__probe_open(&url, WEIR__PROBE_MS, &probe, &err);
    if (rc != WEIR_OK)
        return note_unreached(doctor, client, rc, err.text);
    weir__doctor_note(doctor, "connection", WEIR__HEALTH_OK, NULL, "%s",
                      client->shown);
    found = look_at_all(doctor, probe, &url);
    lost = weir__probe_lost(probe);
    if (lost != NULL)
        found = note_unreached(doctor, client, WEIR_ECONN, lost);
    weir__probe_close(probe);
    return found;
}

/* --- printing ------------------------------------------------------------- */

static enum weir__exit print_json(const struct weir__doctor *doctor)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; i < doctor->count; i++) {
        const struct weir__finding *finding = &doctor->list[i];

        array = weir__array_with(
            array,
            WEIR__OBJECT(weir__field_str("check", finding->check),
                         weir__field_str("status", words[finding->health]),
                         weir__field_str("node", finding->node[0] != '\0'
                                                     ? finding->node
                                                     : NULL),
                         weir__field_str("text", finding->text),
                         weir__field_str("advice", finding->advice)));
    }
    return weir__print_object(array);
}

static void print_health(enum weir__health health)
{
    const bool is_coloured = weir__is_coloured(STDOUT_FILENO);

    if (is_coloured && health == WEIR__HEALTH_OK)
        (void)printf("\033[32m");
    else if (is_coloured && health == WEIR__HEALTH_WARNING)
        (void)printf("\033[33m");
    else if (is_coloured)
        (void)printf("\033[31m");
    weir__print("%-7s", words[health]);
    if (is_coloured)
        (void)printf("\033[0m");
}

static void print_text(const struct weir__doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++) {
        const struct weir__finding *finding = &doctor->list[i];

        print_health(finding->health);
        weir__print("  %-11s  ", finding->check);
        if (finding->node[0] != '\0')
            weir__print("%s: ", finding->node);
        weir__print_text(weir__slice_str(finding->text));
        if (finding->advice[0] != '\0')
            weir__print("; %s", finding->advice);
        (void)printf("\n");
    }
}

/* --- examining ------------------------------------------------------------ */

static enum weir__exit report(const struct weir__cli *cli,
                              const struct weir__doctor *doctor,
                              enum weir__exit unreached)
{
    if (doctor->is_out_of_memory) {
        weir__complain("out of memory");
        return WEIR__EXIT_FAILED;
    }
    if (!cli->json)
        print_text(doctor);
    else if (print_json(doctor) != WEIR__EXIT_DONE)
        return WEIR__EXIT_FAILED;
    if (unreached != WEIR__EXIT_NONE)
        return unreached;
    return weir__doctor_worst(doctor, NULL) == WEIR__HEALTH_FAILED
               ? WEIR__EXIT_FAILED
               : WEIR__EXIT_DONE;
}

static enum weir__exit examine(const struct weir__cli *cli,
                               const struct weir__config_list *plugin_path)
{
    struct weir__doctor doctor = {0};
    struct weir__client client;
    enum weir__exit rc = weir__client_find(&client, cli);
    enum weir__exit unreached;

    if (rc != WEIR__EXIT_NONE)
        return rc;
    unreached = look_from_outside(&doctor, &client);
    if (unreached == WEIR__EXIT_NONE &&
        weir__doctor_worst(&doctor, NULL) != WEIR__HEALTH_FAILED)
        weir__doctor_groups(&doctor, cli);
    weir__doctor_limits(&doctor);
    weir__doctor_plugins(&doctor, plugin_path);
    rc = report(cli, &doctor, unreached);
    weir__doctor_fini(&doctor);
    return rc;
}

/* --- mending -------------------------------------------------------------- */

struct healed {
    struct weir__client client;
    uint64_t jobs; /* that wait */
};

static void on_stats(int code, const struct weir_stats *stats, void *arg)
{
    struct healed *healed = arg;

    if (stats != NULL)
        healed->jobs = stats->ready + stats->scheduled;
    weir__client_finish(&healed->client, code);
}

/* A call of stats mends what can be mended without a search, 256 jobs or
 * entries at a time. */
static enum weir__exit heal(struct healed *healed, const char *topic)
{
    enum weir__exit rc = weir__client_know(&healed->client, topic);
    int code = WEIR_OK;

    for (uint64_t i = 0;
         rc == WEIR__EXIT_NONE && code == WEIR_OK && i < 2 + healed->jobs / 256;
         i++) {
        code =
            weir_reactor_stats(healed->client.reactor, topic, on_stats, healed);
        if (code == WEIR_OK)
            code = weir__client_wait(&healed->client);
    }
    if (code == WEIR_ENOTFOUND)
        return weir__client_not_found(&healed->client, topic, NULL);
    return code < 0 ? weir__client_exit(&healed->client, code, "doctor") : rc;
}

/* Removes the remains of lost jobs that do not heal by themselves. */
static enum weir__exit search(struct weir__doctor *doctor, const char *address,
                              const char *topic)
{
    struct weir__redis_url url;
    struct weir__probe *probe = NULL;
    struct weir__members members = {0};
    struct weir_error err = {0};
    int rc = weir__redis_url_parse(address, &url, &err);

    if (rc == WEIR_OK)
        rc = weir__probe_open(&url, WEIR__PROBE_MS, &probe, &err);
    if (rc != WEIR_OK) {
        weir__complain("doctor: %s", err.text);
        return WEIR__EXIT_UNREACHABLE;
    }
    rc = weir__members_open(&url, probe, &members, &err);
    if (rc != WEIR_OK)
        members.server = probe;
    if (rc != WEIR_OK && rc != WEIR_ENOTFOUND)
        note_unknown_cluster(doctor, &err);
    weir__doctor_losses(doctor, &members, url.prefix, topic);
    weir__members_close(&members);
    weir__probe_close(probe);
    return WEIR__EXIT_NONE;
}

static enum weir__exit mend(const struct weir__cli *cli, const char *topic)
{
    struct weir__doctor doctor = {0};
    struct healed healed = {0};
    enum weir__exit rc = weir__client_open(&healed.client, cli, NULL, 0);

    if (rc != WEIR__EXIT_NONE)
        return rc;
    rc = heal(&healed, topic);
    if (rc == WEIR__EXIT_NONE)
        rc = search(&doctor, healed.client.url, topic);
    if (rc == WEIR__EXIT_NONE)
        rc = report(cli, &doctor, WEIR__EXIT_NONE);
    weir__client_close(&healed.client);
    weir__doctor_fini(&doctor);
    return rc;
}

/* --- rights -------------------------------------------------------------- */

/* `sentinel` is empty where there are none. */
static enum weir__exit print_rules(const struct weir__cli *cli,
                                   const struct weir__buf *server,
                                   const struct weir__buf *sentinel)
{
    struct weir__field more =
        weir__field_text("sentinel_acl", weir__buf_slice(sentinel));

    if (cli->json)
        return weir__print_object(WEIR__OBJECT(
            weir__field_text("acl", weir__buf_slice(server)), more));
    weir__print_text(weir__buf_slice(server));
    weir__print("\n");
    if (sentinel->len > 0) {
        weir__print_text(weir__buf_slice(sentinel));
        weir__print("\n");
    }
    return WEIR__EXIT_DONE;
}

/* Needs no server. */
static enum weir__exit tell_rules(const struct weir__cli *cli,
                                  const struct weir__config *config,
                                  const char *topic)
{
    struct weir__redis_url url;
    struct weir__buf server = {0}, sentinel = {0};
    struct weir_error err = {0};
    enum weir__exit rc = WEIR__EXIT_USAGE;
    int code;

    if (cli->redis != NULL && !weir__client_check(cli))
        return WEIR__EXIT_USAGE;
    (void)weir__redis_url_parse(cli->redis != NULL ? cli->redis
                                                   : "redis://localhost",
                                &url, NULL); /* it is one */
    code = weir__rights_rule(&server, &url, config, topic, &err);
    if (code == WEIR_OK && url.is_sentinel)
        code = weir__rights_sentinel_rule(&sentinel, &url, &err);
    if (code == WEIR_OK)
        rc = print_rules(cli, &server, &sentinel);
    else
        weir__complain("%s", code == WEIR_EINVAL ? err.text : "out of memory");
    if (code == WEIR_ENOMEM)
        rc = WEIR__EXIT_FAILED;
    weir__buf_fini(&server);
    weir__buf_fini(&sentinel);
    return rc;
}

/* --- the command ---------------------------------------------------------- */

static bool check_operand(const struct weir__args *args, const char *topic)
{
    if (args->value[MEND] != NULL && args->value[ACL] != NULL)
        weir__complain("doctor takes --mend or --acl, not both");
    else if (args->value[MEND] != NULL && topic == NULL)
        weir__complain("doctor --mend needs a topic");
    else if (topic != NULL && args->value[MEND] == NULL &&
             args->value[ACL] == NULL)
        weir__complain("doctor takes a topic with --acl or --mend alone");
    else
        return topic == NULL || weir__operand_topic(topic);
    return false;
}

static enum weir__exit run(const struct weir__cli *cli,
                           const struct weir__args *args)
{
    struct weir__services services = {0};
    struct weir__cli configured = *cli;
    const char *topic = args->operand_count > 0 ? args->operand[0] : NULL;
    char from[PATH_MAX];
    bool mends = args->value[MEND] != NULL;
    enum weir__exit rc;

    if (!check_operand(args, topic))
        return WEIR__EXIT_USAGE;
    weir__blame_listen();
    rc = weir__services_read_file(&services, args->value[CONFIG]);
    weir__services_configure(&services, &configured, from);
    if (rc == WEIR__EXIT_NONE && args->value[ACL] != NULL)
        rc = tell_rules(&configured, services.config, topic);
    else if (rc == WEIR__EXIT_NONE && mends)
        rc = mend(&configured, topic);
    else if (rc == WEIR__EXIT_NONE)
        rc = examine(&configured, services.config != NULL
                                      ? &services.config->plugin_path
                                      : NULL);
    weir__services_fini(&services);
    return rc;
}

const struct weir__command weir__cmd_doctor = {
    .name = "doctor",
    .operands = "[TOPIC]",
    WEIR__FLAGS(flags),
    .summary = "Look for what is wrong with the server and this machine",
    .details =
        "A line for each check: ok, warning or failed, what is so, what "
        "to do. Changes\nno data; plugins found on the plugin path are "
        "loaded, where not everybody may\nwrite to them, none is opened. Of a "
        "cluster each primary is looked at, and all\nof them together. With "
        "--json: [{\"check\",\"status\",\"node\",\"text\",\"advice\"}],\n"
        "node being HOST:PORT of a primary, or null.\n"
        "--acl prints, without a server, the ACL rule of a user as whom every "
        "command\nworks and nothing else; he has the name in the address, or "
        "weir. With --config\nit has keys and commands of the file's topics of "
        "kind list and stream. With\nTOPIC the rule is for this topic alone: "
        "who has it adds, runs and sees its jobs,\nand no other's. A second "
        "line is for the sentinels of the address. With --json:\n"
        "{\"acl\",\"sentinel_acl\"}.\n"
        "A server that evicts keys loses jobs and keeps what else it has of "
        "them. Most of\nthat heals by itself; --mend TOPIC removes the rest, "
        "in short steps, and gives\ngroups of a bounded topic their turn "
        "again.",
    .example = "weir doctor --redis redis://10.0.0.7:6379",
    .exits = "0 nothing failed, 1 something failed, 2 wrong usage or\n"
             "  configuration, 5 the server was not reached,\n"
             "  or answers no more",
    .run = run,
};
