/* SPDX-License-Identifier: MIT */
#include "adapters/cli/ask.h"

#include <json-c/json.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/harness/oom.h"
#include "tests/harness/test.h"

enum { JOBS = 3, TEXT_CAP = 8192 };

/* Its id is shown as an escape, which takes memory, too. */
static const struct weir_job_info job = {
    .id = {(const uint8_t *)"\xc2\x85", 2},
};

static enum weir__exit list(int number, int allocations)
{
    static const struct weir__cli cli = {.json = true};
    static const struct weir__command command = {.name = "list"};
    struct weir__ask ask = {.command = &command, .topic = "t", .limit = 10};

    ask.client.cli = &cli;
    for (int i = 0; i < JOBS; i++) {
        if (i == number)
            oom_after(allocations);
        weir__ask_on_job(WEIR_OK, &job, &ask);
        oom_off();
    }
    if (!ask.is_short_of_memory)
        return WEIR__EXIT_NONE;
    return weir__ask_end_list(&ask, WEIR_ENOMEM);
}

/* What is printed when job `number` has so many allocations; false: that was
 * enough. */
static bool lacks_memory(int number, int allocations, char text[TEXT_CAP])
{
    FILE *file = tmpfile();
    int out = dup(STDOUT_FILENO);
    enum weir__exit rc;
    size_t len;

    EXPECT_TRUE(file != NULL && out >= 0);
    EXPECT_INT(STDOUT_FILENO, dup2(fileno(file), STDOUT_FILENO));
    rc = list(number, allocations);
    (void)fflush(stdout);
    (void)dup2(out, STDOUT_FILENO);
    (void)close(out);
    rewind(file);
    len = fread(text, 1, TEXT_CAP - 1, file);
    text[len] = '\0';
    (void)fclose(file);
    EXPECT_TRUE(rc == WEIR__EXIT_FAILED || rc == WEIR__EXIT_NONE);
    return rc == WEIR__EXIT_FAILED;
}

/* NULL: no JSON; a comma behind the last value is none. */
static struct json_object *parse_strictly(const char *text)
{
    struct json_tokener *reader = json_tokener_new();
    struct json_object *json;

    json_tokener_set_flags(reader, JSON_TOKENER_STRICT);
    json = json_tokener_parse_ex(reader, text, -1);
    json_tokener_free(reader);
    return json;
}

TEST(a_list_that_breaks_off_for_want_of_memory_is_json)
{
    char text[TEXT_CAP];

    for (int number = 1; number < JOBS; number++) {
        for (int n = 0; lacks_memory(number, n, text); n++) {
            struct json_object *array = parse_strictly(text);

            EXPECT_STR(array == NULL ? "JSON" : text, text);
            EXPECT_INT(number, json_object_array_length(array));
            (void)json_object_put(array);
        }
    }
}

TEST(a_list_without_memory_for_its_first_job_prints_nothing)
{
    char text[TEXT_CAP];

    for (int n = 0; lacks_memory(0, n, text); n++)
        EXPECT_STR("", text);
}
