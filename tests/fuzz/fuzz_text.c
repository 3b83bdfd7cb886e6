/* SPDX-License-Identifier: MIT */

/* Any text as a ladder, a duration, a size, an id, a topic: what is taken has a
 * value within its bounds, what is refused has a sentence. */

#include <string.h>

#include "core/ladder.h"
#include "tests/fuzz/fuzz.h"

#define YEAR_MS INT64_C(31536000000)

static void expect_sentence(int code, const struct weir_error *err)
{
    FUZZ_TRUE((code == WEIR_OK) == (err->text[0] == '\0'));
    FUZZ_TRUE(memchr(err->text, '\0', sizeof(err->text)) != NULL);
}

static void ladder(struct weir_slice text)
{
    struct weir__ladder ladder;
    struct weir_error err = {0};
    int code = weir__ladder_parse(text, &ladder, &err);

    expect_sentence(code, &err);
    if (code != WEIR_OK)
        return;
    FUZZ_TRUE(ladder.count <= WEIR__LADDER_STEPS_MAX);
    for (uint32_t i = 0; i < ladder.count; i++)
        FUZZ_TRUE(weir__ladder_delay_ms(&ladder, i) >= 1 &&
                  weir__ladder_delay_ms(&ladder, i) <= YEAR_MS);
    FUZZ_TRUE((weir__ladder_delay_ms(&ladder, UINT32_MAX) > 0) ==
              ladder.repeats);
}

static void duration(struct weir_slice text)
{
    struct weir_error err = {0};
    int64_t ms = -1, again = -1;
    char shown[24];
    int code = weir__duration_parse(text, &ms, &err);

    expect_sentence(code, &err);
    if (code != WEIR_OK)
        return;
    FUZZ_TRUE(ms >= 0 && ms <= 10 * YEAR_MS);
    FUZZ_TRUE(weir__duration_format(ms, shown) == strlen(shown));
    FUZZ_TRUE(weir__duration_parse(weir__slice_str(shown), &again, NULL) ==
                  WEIR_OK &&
              again == ms);
}

static void size_and_names(struct weir_slice text)
{
    struct weir_error err = {0};
    int64_t bytes = -1;
    int code = weir__size_parse(text, &bytes, &err);

    expect_sentence(code, &err);
    FUZZ_TRUE(code != WEIR_OK || bytes >= 0);
    err.text[0] = '\0';
    expect_sentence(weir__id_check(text, &err), &err);
    err.text[0] = '\0';
    expect_sentence(weir__id_check_any(text, &err), &err);
    err.text[0] = '\0';
    expect_sentence(weir__topic_check(text, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_slice text = {data, size};

    ladder(text);
    duration(text);
    size_and_names(text);
    return 0;
}
