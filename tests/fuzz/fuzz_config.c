/* SPDX-License-Identifier: MIT */

/* Any text as a configuration file: it is read, or refused with a sentence. */

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "adapters/config/config.h"
#include "tests/fuzz/fuzz.h"

/* A file that has no name any more; its path while it is open. */
static int open_file(char path[64])
{
    int fd;

    (void)snprintf(path, 64, "/tmp/weir-fuzz-%ld.conf", (long)getpid());
    fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FUZZ_TRUE(fd >= 0 && unlink(path) == 0);
    (void)snprintf(path, 64, "/proc/self/fd/%d", fd);
    return fd;
}

static void tell(const char *sentence, void *arg)
{
    size_t *count = arg;

    FUZZ_TRUE(strncmp(sentence, "/proc/self/fd/", 14) == 0);
    (*count)++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__config *config = NULL;
    size_t count = 0;
    char path[64];
    int fd = open_file(path);
    int code;

    FUZZ_TRUE(write(fd, data, size) == (ssize_t)size);
    code = weir__config_read(path, tell, &count, &config);
    FUZZ_TRUE((code == WEIR_OK) == (count == 0));
    FUZZ_TRUE(code != WEIR_OK || config != NULL);
    if (config != NULL) {
        for (size_t i = 0; i < config->topic_count; i++)
            FUZZ_TRUE(config->topics[i].name != NULL);
        weir__config_free(config);
    }
    (void)close(fd);
    return 0;
}
