/* SPDX-License-Identifier: MIT */
#include "adapters/dl/whole.h"

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.h"

enum { OUR_CLASS = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32 };

static bool read_at(int fd, void *to, size_t len, uint64_t at)
{
    return at <= INT64_MAX && pread(fd, to, len, (off_t)at) == (ssize_t)len;
}

/* True when all that would be mapped is in the file. */
static bool is_whole(int fd, uint64_t size)
{
    ElfW(Ehdr) head;

    if (!read_at(fd, &head, sizeof(head), 0) ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != OUR_CLASS)
        return true; /* dlopen says what it is */
    for (size_t i = 0; i < head.e_phnum; i++) {
        ElfW(Phdr) part;

        if (!read_at(fd, &part, sizeof(part),
                     head.e_phoff + i * head.e_phentsize))
            return false;
        if (part.p_type == PT_LOAD &&
            (part.p_offset > size || part.p_filesz > size - part.p_offset))
            return false;
    }
    return true;
}

int weir__whole_check(const char *path, struct weir_error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const char *fault = NULL;
    struct stat file;

    if (fd < 0)
        return WEIR_OK;
    if (fstat(fd, &file) < 0 ||
        (!S_ISREG(file.st_mode) && !S_ISDIR(file.st_mode)))
        fault = "it is no file";
    else if (S_ISREG(file.st_mode) && !is_whole(fd, (uint64_t)file.st_size))
        fault = "the file ends too early; copy it again";
    (void)close(fd);
    if (fault == NULL)
        return WEIR_OK;
    return weir__error_set(err, WEIR_ENOTFOUND, "plugin %s: %s", path, fault);
}
