/* SPDX-License-Identifier: MIT */

/* The data directory: made where it is missing, and used only where nobody else
 * may put anything into it, nor has. redis-server follows a link in it as it
 * follows any name, and who answers on the socket gets every job. */

#include "adapters/server/server.h"

#include "core/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- making ----------------------------------------------------------- */

static int make_one(const char *path, struct weir_error *err)
{
    if (mkdir(path, 0700) == 0 || errno == EEXIST)
        return WEIR_OK;
    return weir__error_set(err, WEIR_ESYSTEM,
                           "cannot make the data directory %s: %s", path,
                           strerror(errno));
}

static int make_dirs(const char *dir, struct weir_error *err)
{
    char path[PATH_MAX];
    size_t len = strlen(dir);
    int rc = WEIR_OK;

    if (len >= sizeof(path))
        return weir__error_set(err, WEIR_ETOOBIG,
                               "the name of the data directory is too long");
    memcpy(path, dir, len + 1);
    for (size_t i = 1; i <= len && rc == WEIR_OK; i++) {
        if (path[i] != '/' && path[i] != '\0')
            continue;
        path[i] = '\0';
        rc = make_one(path, err);
        path[i] = dir[i];
    }
    return rc;
}

/* --- whose it is ------------------------------------------------------ */

static bool is_trusted(uid_t owner)
{
    return owner == geteuid() || owner == 0;
}

static int check_dir(int fd, const char *dir, struct weir_error *err)
{
    struct stat at;

    if (fstat(fd, &at) != 0)
        return weir__error_set(err, WEIR_ESYSTEM,
                               "cannot use the data directory %s: %s", dir,
                               strerror(errno));
    if (!is_trusted(at.st_uid))
        return weir__error_set(err, WEIR_EINVAL,
                               "the data directory %s belongs to somebody else "
                               "(uid %lu); give another --data, or --redis "
                               "unix://%s/redis.sock for a server there",
                               dir, (unsigned long)at.st_uid, dir);
    if ((at.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "others may write to the data directory %s; "
                               "chmod go-w it, or give a directory in it as "
                               "--data",
                               dir);
    return WEIR_OK;
}

/* A folder in which redis-server looks for nothing. */
static bool is_aside(const struct stat *at, const char *name)
{
    return S_ISDIR(at->st_mode) && strcmp(name, "appendonlydir") != 0;
}

/* Also what was put there when others could: a link is its maker's. */
static int check_entries(DIR *entries, const char *dir, struct weir_error *err)
{
    const struct dirent *entry;
    struct stat at;

    while ((entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(entries), entry->d_name, &at, AT_SYMLINK_NOFOLLOW) !=
                0 || /* gone meanwhile */
            is_trusted(at.st_uid) ||
            is_aside(&at, entry->d_name))
            continue;
        return weir__error_set(err, WEIR_EINVAL,
                               "%s in the data directory %s belongs to "
                               "somebody else (uid %lu); remove it, or give "
                               "another --data",
                               entry->d_name, dir, (unsigned long)at.st_uid);
    }
    return WEIR_OK;
}

/* The name of a directory without links, by way of an open descriptor:
 * realpath is no part of what we compile with. -1 with errno. */
static int real_name(int fd, char *buf, size_t cap)
{
    char link[64];
    ssize_t len;

    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, buf, cap - 1);
    if (len < 0)
        return -1;
    buf[len] = '\0';
    return 0;
}

/* Open `dir`, check it, and tell its real name in PATH_MAX bytes. */
static int enter(const char *dir, char *real, struct weir_error *err)
{
    DIR *entries = opendir(dir);
    int rc;

    if (entries == NULL || real_name(dirfd(entries), real, PATH_MAX) != 0)
        rc = weir__error_set(
            err, errno == ENOENT ? WEIR_ENOTFOUND : WEIR_ESYSTEM,
            "cannot use the data directory %s: %s", dir, strerror(errno));
    else
        rc = check_dir(dirfd(entries), real, err);
    if (rc == WEIR_OK)
        rc = check_entries(entries, real, err);
    if (entries != NULL)
        (void)closedir(entries); /* was only read */
    return rc;
}

int weir__server_locate(const char *dir, bool make,
                        struct weir__server *ret_server, struct weir_error *err)
{
    struct weir__server server;
    char real[PATH_MAX];
    int rc = make ? make_dirs(dir, err) : WEIR_OK;
    int len;

    if (rc == WEIR_OK)
        rc = enter(dir, real, err);
    if (rc < 0)
        return rc;
    len = snprintf(server.socket, sizeof(server.socket), "%s/redis.sock", real);
    if (len < 0 || (size_t)len >= sizeof(server.socket))
        return weir__error_set(
            err, WEIR_ETOOBIG,
            "the data directory %.80s... has too long a name: the socket in it "
            "would have %d bytes, 107 is the limit; give a shorter --data",
            real, len);
    memcpy(server.dir, real, strlen(real) + 1); /* shorter than socket */
    *ret_server = server;
    return WEIR_OK;
}
