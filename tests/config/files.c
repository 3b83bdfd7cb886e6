/* SPDX-License-Identifier: MIT */
#include "tests/config/files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/tempdir.h"

static struct tempdir dir; /* of this test's process; its guard removes it */

void write_bytes(const void *bytes, size_t len)
{
    FILE *file;

    if (dir.path[0] == '\0') {
        EXPECT_TRUE(tempdir_make(&dir));
        EXPECT_INT(0, chdir(dir.path));
    }
    file = fopen("w.conf", "wb");
    EXPECT_TRUE(file != NULL);
    EXPECT_INT(len, fwrite(bytes, 1, len, file));
    EXPECT_INT(0, fclose(file));
}

char told[4096];

static void tell(const char *sentence, void *arg)
{
    size_t len = strlen(told);

    (void)arg;
    (void)snprintf(told + len, sizeof(told) - len, "%s%s", len == 0 ? "" : "\n",
                   sentence); /* cut */
}

int read_config(const char *path, struct weir__config **ret_config)
{
    told[0] = '\0';
    return weir__config_read(path, tell, NULL, ret_config);
}

struct weir__config *config_of(const char *text)
{
    struct weir__config *config = NULL;

    write_bytes(text, strlen(text));
    EXPECT_INT(WEIR_OK, read_config("w.conf", &config));
    EXPECT_STR("", told);
    return config;
}

void expect_refused(const struct refusal *refusals, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct weir__config *config = NULL;

        write_bytes(refusals[i].text, strlen(refusals[i].text));
        EXPECT_INT(WEIR_EINVAL, read_config("w.conf", &config));
        EXPECT_STR(refusals[i].sentence, told);
        weir__config_free(config);
        config = config_of("redis { url = \"u\" }");
        EXPECT_STR("u", config->url.value);
        weir__config_free(config);
    }
}
