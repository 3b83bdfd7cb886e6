/* SPDX-License-Identifier: MIT */
#include "core/ladder.h"

#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

#define STEP_MAX_MS ((int64_t)365 * 86400000)

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static struct weir_slice trim(struct weir_slice text)
{
    while (text.len > 0 && is_blank(text.ptr[text.len - 1]))
        text.len--;
    while (text.len > 0 && is_blank(text.ptr[0]))
        text = weir__slice_of(text.ptr + 1, text.len - 1);
    return text;
}

static bool is_text(struct weir_slice text, const char *wanted)
{
    return weir__slice_equal(text, weir__slice_str(wanted));
}

/* Cuts the first word off a trimmed text. */
static struct weir_slice next_word(struct weir_slice *text)
{
    struct weir_slice word = *text;
    size_t len = 0;

    while (len < text->len && !is_blank(text->ptr[len]))
        len++;
    word.len = len;
    *text = trim(weir__slice_of(text->ptr + len, text->len - len));
    return word;
}

static int parse_step(struct weir_slice word, uint32_t number, int64_t *ret_ms,
                      struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    struct weir_error why;
    int64_t ms = 0;

    if (is_text(word, "none"))
        return weir__error_set(err, WEIR_EINVAL,
                               "retry ladder: \"none\" stands alone");
    if (is_text(word, "..."))
        return weir__error_set(
            err, WEIR_EINVAL, "retry ladder: \"...\" comes last, after a step");
    if (weir__duration_parse(word, &ms, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "retry ladder, step %u: %s",
                               number, why.text);
    if (ms < 1 || ms > STEP_MAX_MS)
        return weir__error_set(
            err, WEIR_EINVAL,
            "retry ladder, step %u: \"%s\" is not within 1ms and 365d", number,
            weir__text_quote(word, quote));
    *ret_ms = ms;
    return WEIR_OK;
}

/* Takes the trailing "..." off a trimmed text; false when there is none. */
static bool cut_dots(struct weir_slice *text)
{
    if (text->len < 3 ||
        !is_text(weir__slice_of(text->ptr + text->len - 3, 3), "..."))
        return false;
    *text = trim(weir__slice_of(text->ptr, text->len - 3));
    return true;
}

int weir__ladder_parse(struct weir_slice text, struct weir__ladder *ret_ladder,
                       struct weir_error *err)
{
    struct weir__ladder ladder = {0};
    struct weir_slice rest = trim(text);

    if (rest.len == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "retry ladder is empty: write \"none\" for no "
                               "retries, or steps such as 15s 3m");
    if (is_text(rest, "none")) {
        *ret_ladder = ladder;
        return WEIR_OK;
    }
    ladder.repeats = cut_dots(&rest);
    if (rest.len == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "retry ladder: \"...\" has no step to repeat");
    while (rest.len > 0) {
        struct weir_slice word = next_word(&rest);
        int rc;

        if (ladder.count == WEIR__LADDER_STEPS_MAX)
            return weir__error_set(err, WEIR_EINVAL,
                                   "retry ladder has more than %d steps",
                                   WEIR__LADDER_STEPS_MAX);
        rc = parse_step(word, ladder.count + 1, &ladder.step_ms[ladder.count],
                        err);
        if (rc < 0)
            return rc;
        ladder.count++;
    }
    *ret_ladder = ladder;
    return WEIR_OK;
}

int64_t weir__ladder_delay_ms(const struct weir__ladder *ladder, uint32_t retry)
{
    WEIR_ASSERT(ladder->count <= WEIR__LADDER_STEPS_MAX);
    WEIR_ASSERT(!ladder->repeats || ladder->count > 0);
    if (retry < ladder->count)
        return ladder->step_ms[retry];
    return ladder->repeats ? ladder->step_ms[ladder->count - 1] : -1;
}

int64_t weir__jitter_ms(int64_t delay_ms, uint32_t percent, uint64_t random)
{
    int64_t span, moved;

    WEIR_ASSERT(delay_ms >= 0 && delay_ms <= INT64_MAX / 4);
    WEIR_ASSERT(percent <= 100);
    span = delay_ms / 100 * percent + delay_ms % 100 * percent / 100;
    moved = delay_ms - span + (int64_t)(random % (2 * (uint64_t)span + 1));
    return moved > 0 || delay_ms == 0 ? moved : 1;
}
