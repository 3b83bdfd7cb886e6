/* SPDX-License-Identifier: MIT */
#include "adapters/dl/trust.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

enum { STICKY = 01000 }; /* S_ISVTX is no part of what we compile with */

static bool is_open_to_all(const struct stat *at)
{
    return (at->st_mode & S_IWOTH) != 0;
}

bool weir__trust_folder(const char *folder)
{
    struct stat at;

    return stat(folder, &at) != 0 || !is_open_to_all(&at) ||
           (at.st_mode & STICKY) != 0;
}

/* In a folder that each may add to, but only take his own from. */
static bool is_of_another(const char *path)
{
    struct stat name;

    return lstat(path, &name) == 0 && name.st_uid != geteuid() &&
           name.st_uid != 0;
}

/* `path` has a slash. */
static int check_folder(const char *path, struct weir_error *err)
{
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX];
    struct stat at;

    if (snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path + 1),
                 path) >= (int)sizeof(folder) ||
        stat(folder, &at) != 0 || !is_open_to_all(&at) ||
        (weir__trust_folder(folder) && !is_of_another(path)))
        return WEIR_OK;
    return weir__error_set(err, WEIR_EINVAL,
                           "plugin %s: everybody may write to its folder, so "
                           "anybody can have put it there; chmod o-w the "
                           "folder, or use another",
                           path);
}

/* The file's name without links; false where it is the same, or not known. */
static bool has_other_name(int fd, const char *path, char ret_name[PATH_MAX])
{
    char link[64];
    ssize_t len;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd); /* fits */
    len = readlink(link, ret_name, PATH_MAX - 1);
    if (len <= 0)
        return false;
    ret_name[len] = '\0';
    return ret_name[0] == '/' && strcmp(ret_name, path) != 0;
}

static int check_file(int fd, const char *path, struct weir_error *err)
{
    char name[PATH_MAX];
    struct stat at;
    int rc = WEIR_OK;

    if (fstat(fd, &at) == 0 && S_ISREG(at.st_mode) && is_open_to_all(&at))
        return weir__error_set(err, WEIR_EINVAL,
                               "plugin %s: everybody may write to it; look at "
                               "what it is, then chmod o-w it",
                               path);
    if (has_other_name(fd, path, name))
        rc = check_folder(name, err);
    return rc;
}

int weir__trust_check(const char *path, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int rc;

    if (fd < 0)
        return WEIR_OK;
    rc = check_folder(path, err);
    if (rc == WEIR_OK)
        rc = check_file(fd, path, err);
    (void)close(fd);
    return rc;
}
