/* SPDX-License-Identifier: MIT */

/* Any text as what a client sends: its target, and the headers that decide who
 * it is. What was parsed lies inside of what was allocated, and nobody is let
 * in without the token. */

#include <string.h>

#include "adapters/http/door.h"
#include "adapters/http/target.h"
#include "tests/fuzz/fuzz.h"

static void fuzz_parts(const struct weir__target *target, size_t size)
{
    for (size_t i = 0; i < target->part_count; i++)
        FUZZ_TRUE(target->part[i] > target->bytes &&
                  target->part[i] + strlen(target->part[i]) <=
                      target->bytes + size);
    for (size_t i = 0; i < target->field_count; i++)
        FUZZ_TRUE(strlen(target->field[i].name) +
                      strlen(target->field[i].value) <
                  size);
    FUZZ_TRUE(weir__target_fits(target, "/") == 0);
    (void)weir__target_fits(target, "/api/topics/");
}

static void fuzz_door(const char *text)
{
    struct weir__door door = {
        .token = "\xff no header has this",
        .sessions = {{.cookie = "a", .key = "\xff nor this"}}};
    const struct weir__caller caller = {.host = text,
                                        .origin = text,
                                        .fetch_site = text,
                                        .authorization = text,
                                        .cookie = text,
                                        .key = text};
    const char *why = NULL;

    (void)weir__host_is_loopback(text);
    if (strchr(text, '\xff') == NULL)
        FUZZ_TRUE(weir__door_refuses(&door, &caller, WEIR__HTTP_ACT, &why) ==
                      401 &&
                  why != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct weir__target target;

    if (weir__target_parse(text, &target) == WEIR_OK) {
        fuzz_parts(&target, strlen(text));
        weir__target_fini(&target);
    }
    fuzz_door(text);
    free(text);
    return 0;
}
