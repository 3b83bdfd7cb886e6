/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/cli/doctor.h"
#include "adapters/redis/script.h"
#include "tests/harness/test.h"

static bool is_tried(const char *command, size_t len)
{
    const char *const *line = weir__doctor_commands();

    for (; *line != NULL; line++)
        if (strncmp(*line, command, len) == 0 &&
            ((*line)[len] == ' ' || (*line)[len] == '\0'))
            return true;
    return false;
}

/* Commands behind `before` in a script's text. */
static size_t expect_tried(const char *text, const char *before)
{
    size_t count = 0;

    for (text = strstr(text, before); text != NULL;
         text = strstr(text, before)) {
        size_t len;
        char name[32];

        text += strlen(before);
        len = strcspn(text, "'");
        (void)snprintf(name, sizeof(name), "%.*s", (int)len, text);
        EXPECT_STR(is_tried(text, len) ? name : "a command that is tried",
                   name);
        count++;
    }
    return count;
}

TEST(the_doctor_tries_every_command_of_the_scripts)
{
    size_t count = 0;

    for (size_t i = 0; weir__scripts[i] != NULL; i++) {
        count += expect_tried(weir__scripts[i]->text, "call('");
        count += expect_tried(weir__scripts[i]->text, "call_list('");
    }
    EXPECT_TRUE(count > 50);
}
