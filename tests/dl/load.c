/* SPDX-License-Identifier: MIT */
#include "tests/dl/load.h"

#include <stdio.h>

#include "tests/harness/test.h"

const struct weir_host test_host = {.size = sizeof(test_host)};

const char *path_of(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof(path), "%s/%s.so", WEIR_TEST_PLUGINS, name);
    return path;
}

struct weir__plugin_file load(const char *name)
{
    struct weir__plugin_file file;
    struct weir_error err = {0};

    (void)weir__plugin_load(path_of(name), &file, &err);
    EXPECT_STR("", err.text);
    return file;
}

/* Opens with up to four options, the rest NULL. */
int open_with(const struct weir__plugin_file *file,
              const char *const options[4], struct weir__instance *ret_instance,
              struct weir_error *err)
{
    struct weir__instance_options with = {
        .topic = "mail", .options = options, .host = &test_host};

    while (with.option_count < 4 && options[with.option_count] != NULL)
        with.option_count++;
    return weir__instance_open(file, &with, ret_instance, err);
}
