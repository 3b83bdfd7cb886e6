/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_FILE_H
#define WEIR_TEST_FILE_H

/* Descriptors of the world. Their numbers begin at 1,000, which a test does not
 * reach otherwise: libev's tables are as long as the largest number. All others
 * are the system's. */

/* Files that define functions of the system include this one first: headers
 * must not turn their names into others. */
#undef _FORTIFY_SOURCE
#undef _FILE_OFFSET_BITS

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sim_file;

struct sim_file_type {
    uint32_t (*events)(const struct sim_file *file); /* EPOLLIN, ... */
    /* As read(2) and write(2) of one that does not block; NULL: EINVAL. */
    ssize_t (*read)(struct sim_file *file, void *buf, size_t len);
    ssize_t (*write)(struct sim_file *file, const void *buf, size_t len);
    /* The descriptor is gone. Frees the file, now or later. */
    void (*close)(struct sim_file *file);
};

struct sim_file {
    const struct sim_file_type *type;
    int fd;
    int pid;
    bool blocks;
    int64_t ready_ns; /* readable from then on; INT64_MAX: time does nothing */
};

/* Gives the file a descriptor; -1 and EMFILE where there is none left. */
int sim_file_add(struct sim_file *file, const struct sim_file_type *type);

/* NULL: no descriptor of the world. */
struct sim_file *sim_file_of(int fd);

/* The file behind a descriptor, if it is of this type; else NULL and errno. */
struct sim_file *sim_file_as(int fd, const struct sim_file_type *type);

#endif
