/* SPDX-License-Identifier: MIT */
#include "adapters/cli/data_dir.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* An absolute path from the environment; the XDG specification has relative
 * ones ignored. */
static const char *absolute(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] == '/' ? value : NULL;
}

static bool default_dir(char *buf, size_t cap)
{
    const char *state = absolute("XDG_STATE_HOME");
    const char *home = absolute("HOME");
    int len = -1;

    if (state != NULL)
        len = snprintf(buf, cap, "%s/weir", state);
    else if (home != NULL)
        len = snprintf(buf, cap, "%s/.local/state/weir", home);
    return len > 0 && (size_t)len < cap;
}

/* `buf` has PATH_MAX bytes. */
static int data_dir(const struct weir__cli *cli, char *buf)
{
    if (cli->data == NULL && default_dir(buf, PATH_MAX))
        return WEIR_OK;
    if (cli->data != NULL &&
        snprintf(buf, PATH_MAX, "%s", cli->data) < PATH_MAX)
        return WEIR_OK;
    weir__complain(cli->data == NULL
                       ? "no place for the private redis-server: HOME is not "
                         "set; give --data DIR or --redis URL"
                       : "the name of the data directory is too long");
    return WEIR_EINVAL;
}

int weir__data_dir_make(const struct weir__cli *cli,
                        struct weir__server *ret_server)
{
    struct weir_error err = {0};
    char dir[PATH_MAX];
    int rc = data_dir(cli, dir);

    if (rc < 0)
        return rc;
    rc = weir__server_locate(dir, true, ret_server, &err);
    if (rc < 0)
        weir__complain("%s", err.text);
    return rc;
}

int weir__data_dir_find(const struct weir__cli *cli,
                        struct weir__server *ret_server)
{
    struct weir_error err = {0};
    char dir[PATH_MAX];
    int rc = data_dir(cli, dir);

    if (rc < 0)
        return rc;
    rc = weir__server_locate(dir, false, ret_server, &err);
    if (rc == WEIR_ENOTFOUND) {
        (void)snprintf(ret_server->dir, sizeof(ret_server->dir), "%.*s",
                       (int)sizeof(ret_server->dir) - 1, dir); /* cut */
        ret_server->socket[0] = '\0';
    } else if (rc < 0) {
        weir__complain("%s", err.text);
    }
    return rc;
}
