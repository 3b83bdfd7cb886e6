/* SPDX-License-Identifier: MIT */

/* weir server: the private redis-server of a data directory. */

#include "adapters/cli/client.h"
#include "adapters/cli/output.h"
#include "core/text.h"

#include <inttypes.h>
#include <string.h>

/* The directory is not made: where there is none no server runs, which is
 * WEIR_ENOTFOUND. Another error was told. */
static int locate(const struct weir__cli *cli, struct weir__server *ret_server)
{
    if (cli->redis_is_flag) {
        weir__complain("weir server is about the private server, which --redis "
                       "does not use; give --data DIR");
        return WEIR_EINVAL;
    }
    return weir__data_dir_find(cli, ret_server);
}

static enum weir__exit print_json(const struct weir__server *server,
                                  const struct weir__server_info *info)
{
    bool runs = info->pid != 0;

    return weir__print_object(WEIR__OBJECT(
        weir__field_bool("running", runs),
        weir__field_int("pid", runs ? (int64_t)info->pid : -1),
        weir__field_text("dir", weir__slice_str(server->dir)),
        weir__field_text("socket", weir__slice_str(server->socket)),
        weir__field_text("version", weir__slice_str(info->version)),
        weir__field_int("memory_bytes", info->memory_bytes > 0
                                            ? (int64_t)info->memory_bytes
                                            : -1)));
}

static void print_text(const struct weir__server *server,
                       const struct weir__server_info *info)
{
    weir__print("state    %s\n", info->pid != 0 ? "running" : "stopped");
    weir__print("dir      %s\n", server->dir);
    if (info->pid == 0)
        return;
    weir__print("url      unix://%s\n", server->socket);
    (void)printf("pid      %ld\n", (long)info->pid);
    weir__print("version  %s\n", info->version);
    (void)printf("memory   %.1f MiB\n",
                 (double)info->memory_bytes / (1024.0 * 1024.0));
}

static enum weir__exit run_status(const struct weir__cli *cli,
                                  const struct weir__args *args)
{
    struct weir__server_info info = {0};
    struct weir__server server;
    struct weir_error err = {0};
    int rc = locate(cli, &server);

    (void)args;
    if (rc < 0 && rc != WEIR_ENOTFOUND)
        return WEIR__EXIT_USAGE;
    if (rc == WEIR_OK)
        rc = weir__server_status(&server, &info, &err);
    if (rc < 0 && rc != WEIR_ENOTFOUND) {
        weir__complain("%s", err.text);
        return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_UNREACHABLE;
    }
    if (!cli->json)
        print_text(&server, &info);
    else if (print_json(&server, &info) != WEIR__EXIT_DONE)
        return WEIR__EXIT_FAILED;
    return rc == WEIR_OK ? WEIR__EXIT_DONE : WEIR__EXIT_NOT_FOUND;
}

static enum weir__exit run_stop(const struct weir__cli *cli,
                                const struct weir__args *args)
{
    struct weir__server_info none = {0};
    struct weir__server server;
    struct weir_error err = {0};
    int rc = locate(cli, &server);

    (void)args;
    if (rc < 0 && rc != WEIR_ENOTFOUND)
        return WEIR__EXIT_USAGE;
    if (rc == WEIR_OK)
        rc = weir__server_stop(&server, &err);
    if (rc == WEIR_ENOTFOUND) {
        weir__complain("no private redis-server runs in %s", server.dir);
        return WEIR__EXIT_NOT_FOUND;
    }
    if (rc < 0) {
        weir__complain("%s", err.text);
        return rc == WEIR_EINVAL ? WEIR__EXIT_USAGE : WEIR__EXIT_FAILED;
    }
    if (cli->json)
        return print_json(&server, &none);
    weir__note(cli, "private redis-server in %s stopped", server.dir);
    return WEIR__EXIT_DONE;
}

const struct weir__command weir__cmd_server_status = {
    .name = "server status",
    .operands = "",
    .summary = "Show whether the private redis-server runs",
    .details = "With --json: {\"running\",\"pid\",\"dir\",\"socket\","
               "\"version\",\"memory_bytes\"}.",
    .example = "weir server status",
    .exits = "0 running, 2 wrong usage, 3 not running, 5 it does not answer",
    .run = run_status,
};

const struct weir__command weir__cmd_server_stop = {
    .name = "server stop",
    .operands = "",
    .summary = "Stop the private redis-server; its data stays",
    .details = "Returns when its process is gone. The next command that needs "
               "it starts it\nagain.",
    .example = "weir server stop --data /var/lib/weir",
    .exits = "0 stopped, 1 failed, 2 wrong usage, 3 it was not running",
    .run = run_stop,
};
