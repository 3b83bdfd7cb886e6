/* SPDX-License-Identifier: MIT */
#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/visible.h"

#define DAY_MS          ((int64_t)86400000)
#define DURATION_MAX_MS (3650 * DAY_MS)

enum { ID_MAX = 128, TOPIC_MAX = 40, QUOTE_MAX = 48 };

struct unit {
    const char *name;
    int64_t factor;
};

/* Largest first, as they are written; formatting takes the first that divides,
 * behind weeks. */
static const struct unit durations[] = {
    {"w", 7 * DAY_MS}, {"d", DAY_MS}, {"h", 3600000},
    {"m", 60000},      {"s", 1000},   {"ms", 1},
};

static const struct unit sizes[] = {
    {"GiB", (int64_t)1 << 30},
    {"MiB", (int64_t)1 << 20},
    {"KiB", (int64_t)1 << 10},
    {"", 1},
};

enum {
    DURATION_COUNT = sizeof(durations) / sizeof(durations[0]),
    SIZE_COUNT = sizeof(sizes) / sizeof(sizes[0])
};

struct weir_slice weir__slice_str(const char *text)
{
    return weir__slice_of(text, text == NULL ? 0 : strlen(text));
}

size_t weir__slice_hash(struct weir_slice slice)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

    for (size_t i = 0; i < slice.len; i++)
        hash = (hash ^ slice.ptr[i]) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32);
}

bool weir__slice_equal(struct weir_slice one, struct weir_slice other)
{
    return one.len == other.len &&
           (one.len == 0 || memcmp(one.ptr, other.ptr, one.len) == 0);
}

const char *weir__text_quote(struct weir_slice text,
                             char buf[WEIR__TEXT_QUOTE_CAP])
{
    size_t len = weir__visible_take(&text, buf, QUOTE_MAX + 1);

    memcpy(buf + len, "...", text.len > 0 ? 4 : 0);
    return buf;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* Reads the digits that `text` begins with; returns how many. What does not
 * fit becomes INT64_MAX, which is beyond every bound here. */
static size_t read_digits(struct weir_slice text, int64_t *ret_number)
{
    int64_t number = 0;
    size_t i = 0;

    for (; i < text.len && is_digit(text.ptr[i]); i++) {
        int64_t digit = text.ptr[i] - '0';

        number =
            number > (INT64_MAX - digit) / 10 ? INT64_MAX : number * 10 + digit;
    }
    *ret_number = number;
    return i;
}

/* Takes digits and one of `units` off `text` and adds what they say; false when
 * something else is there. What does not fit becomes INT64_MAX. Returns the
 * place behind the unit, where smaller ones are. */
static size_t take_quantity(struct weir_slice *text, const struct unit *units,
                            size_t unit_count, int64_t *quantity)
{
    int64_t number = 0, factor;
    size_t len = read_digits(*text, &number), unit = 0;
    struct weir_slice name = weir__slice_of(text->ptr + len, 0);

    if (len == 0)
        return 0;
    while (len + name.len < text->len && !is_digit(name.ptr[name.len]))
        name.len++;
    while (unit < unit_count &&
           !weir__slice_equal(name, weir__slice_str(units[unit].name)))
        unit++;
    if (unit == unit_count)
        return 0;
    factor = units[unit].factor;
    WEIR_ASSERT(factor > 0 && *quantity >= 0);
    number = number > INT64_MAX / factor ? INT64_MAX : number * factor;
    *quantity = *quantity > INT64_MAX - number ? INT64_MAX : *quantity + number;
    *text = weir__slice_of(name.ptr + name.len, text->len - len - name.len);
    return unit + 1;
}

static bool read_duration(struct weir_slice text, int64_t *ret_ms)
{
    size_t first = 0, taken;
    int64_t ms = 0;

    do {
        taken = take_quantity(&text, durations + first, DURATION_COUNT - first,
                              &ms);
        first += taken;
    } while (taken > 0 && text.len > 0);
    *ret_ms = ms;
    return taken > 0;
}

int weir__duration_parse(struct weir_slice text, int64_t *ret_ms,
                         struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    int64_t ms = 0;

    if (!read_duration(text, &ms))
        return weir__error_set(err, WEIR_EINVAL,
                               "\"%s\" is not a duration: write digits and one "
                               "of ms, s, m, h, d, w, for example 15s or 1h30m",
                               weir__text_quote(text, quote));
    if (ms > DURATION_MAX_MS)
        return weir__error_set(err, WEIR_EINVAL,
                               "duration \"%s\" is longer than 3650d",
                               weir__text_quote(text, quote));
    *ret_ms = ms;
    return WEIR_OK;
}

size_t weir__duration_format(int64_t ms, char buf[24])
{
    size_t unit = DURATION_COUNT - 1;
    int len;

    for (size_t i = 1; ms != 0 && i < unit; i++)
        if (ms % durations[i].factor == 0)
            unit = i;
    len = snprintf(buf, 24, "%" PRId64 "%s", ms / durations[unit].factor,
                   durations[unit].name);
    WEIR_ASSERT(len > 0 && len < 24);
    return (size_t)len;
}

int weir__size_parse(struct weir_slice text, int64_t *ret_bytes,
                     struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    struct weir_slice rest = text;
    int64_t bytes = 0;

    if (take_quantity(&rest, sizes, SIZE_COUNT, &bytes) == 0 || rest.len > 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "\"%s\" is not a size: write digits, with KiB, "
                               "MiB or GiB behind them if you like",
                               weir__text_quote(text, quote));
    if (bytes == INT64_MAX)
        return weir__error_set(err, WEIR_EINVAL, "size \"%s\" is too large",
                               weir__text_quote(text, quote));
    *ret_bytes = bytes;
    return WEIR_OK;
}

static bool is_id_byte(uint8_t byte)
{
    return byte >= 0x21 && byte <= 0x7E && byte != '{' && byte != '}';
}

/* A-Z a-z 0-9 . _ : - as bits. */
static bool is_topic_byte(uint8_t byte)
{
    const uint64_t below_64 = UINT64_C(0x07ff600000000000);
    const uint64_t above = UINT64_C(0x07fffffe87fffffe);

    return byte < 128 &&
           ((byte < 64 ? below_64 : above) >> (byte & 63) & 1) != 0;
}

struct grammar {
    const char *what;
    size_t len_max;
    bool (*allows)(uint8_t byte);
    const char *alphabet;
};

static const struct grammar id_grammar = {
    "id", ID_MAX, is_id_byte, "printable ASCII without blanks and braces"};

static const struct grammar group_grammar = {
    "group", ID_MAX, is_id_byte, "printable ASCII without blanks and braces"};

static const struct grammar topic_grammar = {"topic", TOPIC_MAX, is_topic_byte,
                                             "letters, digits and . _ : -"};

static int check(const struct grammar *grammar, struct weir_slice text,
                 struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    if (text.len == 0)
        return weir__error_set(err, WEIR_EINVAL, "%s is empty", grammar->what);
    if (text.len > grammar->len_max)
        return weir__error_set(
            err, WEIR_EINVAL,
            "%s \"%s\" has %zu bytes; at most %zu are allowed", grammar->what,
            weir__text_quote(text, quote), text.len, grammar->len_max);
    for (size_t i = 0; i < text.len; i++)
        if (!grammar->allows(text.ptr[i]))
            return weir__error_set(
                err, WEIR_EINVAL,
                "%s \"%s\" is not allowed at byte %zu: use %s", grammar->what,
                weir__text_quote(text, quote), i + 1, grammar->alphabet);
    return WEIR_OK;
}

static bool fits(const struct grammar *grammar, struct weir_slice text)
{
    return text.len > 0 && text.len <= grammar->len_max;
}

/* is_id_byte of eight bytes at once. While all are below 0x80 no sum carries
 * into the next byte, and bit 7 of each tells. */
static bool are_eight_id_bytes(const uint8_t *at)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    uint64_t bytes, bad;

    memcpy(&bytes, at, sizeof(bytes));
    bad = bytes | ~(bytes + (0x80 - 0x21) * each) | (bytes + each);
    bad |= ~((bytes ^ '{' * each) + 0x7F * each);
    bad |= ~((bytes ^ '}' * each) + 0x7F * each);
    return (bad & 0x80 * each) == 0;
}

/* Every job comes by here. */
static bool are_id_bytes(struct weir_slice text)
{
    size_t i = 0;

    if (text.len < 8) {
        while (i < text.len && is_id_byte(text.ptr[i]))
            i++;
        return i == text.len;
    }
    while (i + 8 <= text.len && are_eight_id_bytes(text.ptr + i))
        i += 8;
    return i + 8 > text.len && are_eight_id_bytes(text.ptr + text.len - 8);
}

bool weir__id_is_sound(struct weir_slice id)
{
    return fits(&id_grammar, id) && id.ptr[0] != '!' && are_id_bytes(id);
}

bool weir__group_is_sound(struct weir_slice group)
{
    return fits(&group_grammar, group) && are_id_bytes(group);
}

int weir__id_check_any(struct weir_slice id, struct weir_error *err)
{
    int rc = check(&id_grammar, id, err);

    if (rc < 0)
        return rc;
    if (id.ptr[0] == '!')
        return weir__error_set(err, WEIR_EINVAL, "an id does not begin with !");
    return WEIR_OK;
}

int weir__id_check(struct weir_slice id, struct weir_error *err)
{
    int rc = weir__id_check_any(id, err);

    if (rc < 0)
        return rc;
    if (id.ptr[0] == '@')
        return weir__error_set(
            err, WEIR_EINVAL, "an id does not begin with @: weir's own ids do");
    return WEIR_OK;
}

int weir__group_check(struct weir_slice group, struct weir_error *err)
{
    return check(&group_grammar, group, err);
}

/* Every job that is added comes by here. */
int weir__topic_check(struct weir_slice topic, struct weir_error *err)
{
    size_t i = 0;

    while (i < topic.len && is_topic_byte(topic.ptr[i]))
        i++;
    if (i == topic.len && fits(&topic_grammar, topic))
        return WEIR_OK;
    return check(&topic_grammar, topic, err);
}

int weir__hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}
