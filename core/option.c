/* SPDX-License-Identifier: MIT */
#include "core/option.h"

#include <string.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/ladder.h"
#include "core/text.h"

enum { WORKER_MAX = 40, BOUND_CAP = 24, PATTERN_MAX = 128, RATE_MAX = 1000000 };

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS  "0123456789"

#define NAME(set, name) #name,
static const char *const kinds[] = {WEIR__KIND_MAP(NAME)};
#undef NAME

unsigned weir__kind_named(const char *name)
{
    for (unsigned i = 0; i < WEIR__KINDS; i++)
        if (strcmp(kinds[i], name) == 0)
            return 1U << i;
    return 0;
}

void weir__kinds_list(unsigned set, char buf[64])
{
    size_t len = 0;

    WEIR_ASSERT(set > 0 && set <= WEIR__KINDS_ALL);
    for (unsigned i = 0; i < WEIR__KINDS; i++) {
        const char *gap = len == 0 ? "" : set >> i == 1 ? " or " : ", ";

        if ((set >> i & 1) == 0)
            continue;
        for (const char *at = gap; *at != '\0'; at++)
            buf[len++] = *at;
        for (const char *at = kinds[i]; *at != '\0'; at++)
            buf[len++] = *at;
    }
    buf[len] = '\0';
}

bool weir__option_is_number(const struct weir__option *option)
{
    return option->form >= WEIR__OPTION_SWITCH;
}

/* A bound as one would write it. */
static const char *bound(const struct weir__option *option, int64_t value,
                         char buf[BOUND_CAP])
{
    const char *unit = "";
    struct weir_error text;

    if (option->form == WEIR__OPTION_DURATION) {
        (void)weir__duration_format(value, buf);
        return buf;
    }
    if (option->form == WEIR__OPTION_PERCENT)
        unit = "%";
    if (option->form == WEIR__OPTION_SIZE && value % (1 << 20) == 0) {
        value >>= 20;
        unit = "MiB";
    }
    (void)weir__error_set(&text, WEIR_OK, "%lld%s", (long long)value, unit);
    memcpy(buf, text.text, BOUND_CAP - 1); /* it is shorter */
    buf[BOUND_CAP - 1] = '\0';
    return buf;
}

/* `what` is wrong with the value; the bounds say what to write. */
static int refuse(const struct weir__option *option, const char *text,
                  const char *what, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    char min[BOUND_CAP];
    char max[BOUND_CAP];

    return weir__error_set(
        err, WEIR_EINVAL, "%s: \"%s\" %s: write %s to %s%s%s", option->name,
        weir__text_quote(weir__slice_str(text), quote), what,
        bound(option, option->min, min), bound(option, option->max, max),
        option->word == NULL ? "" : ", or ",
        option->word == NULL ? "" : option->word);
}

/* Decimal digits; what does not fit becomes INT64_MAX, beyond every bound. */
static bool read_digits(const char *text, size_t len, int64_t *ret_value)
{
    int64_t value = 0;

    for (size_t i = 0; i < len; i++) {
        int64_t digit = text[i] - '0';

        if (text[i] < '0' || text[i] > '9')
            return false;
        value =
            value > (INT64_MAX - digit) / 10 ? INT64_MAX : value * 10 + digit;
    }
    *ret_value = value;
    return len > 0;
}

/* "10", "10%", "10 %" */
static bool read_percent(const char *text, int64_t *ret_value)
{
    size_t len = strspn(text, DIGITS);
    const char *rest = text + len;

    return (*rest == '\0' || strcmp(rest, "%") == 0 ||
            strcmp(rest, " %") == 0) &&
           read_digits(text, len, ret_value);
}

/* Digits and one of `units`, each with a blank behind it? Then a parser that
 * refuses it does so because it is too large. */
static bool has_unit(const char *text, const char *units)
{
    size_t digits = strspn(text, DIGITS);
    size_t len = strlen(text + digits);

    while (digits > 0 && *units != '\0') {
        size_t unit_len = strcspn(units, " ");

        if (unit_len == len && memcmp(units, text + digits, len) == 0)
            return true;
        units += unit_len + 1;
    }
    return false;
}

static bool read_size(const char *text, int64_t *ret_value)
{
    if (weir__size_parse(weir__slice_str(text), ret_value, NULL) == WEIR_OK)
        return true;
    *ret_value = INT64_MAX;
    return has_unit(text, " KiB MiB GiB ");
}

static bool read_duration(const char *text, int64_t *ret_value)
{
    if (weir__duration_parse(weir__slice_str(text), ret_value, NULL) == WEIR_OK)
        return true;
    *ret_value = INT64_MAX;
    return has_unit(text, "ms s m h d w ");
}

/* Reads the quantity; names what is wrong with it. */
static bool read_quantity(const struct weir__option *option, const char *text,
                          int64_t *ret_value, const char **ret_what)
{
    switch (option->form) {
    case WEIR__OPTION_COUNT:
    case WEIR__OPTION_LIMIT:
        *ret_what = "is not a number of decimal digits";
        return read_digits(text, strlen(text), ret_value);
    case WEIR__OPTION_PERCENT:
        *ret_what = "is not a percentage";
        return read_percent(text, ret_value);
    case WEIR__OPTION_SIZE:
        *ret_what = "is not a size";
        return read_size(text, ret_value);
    case WEIR__OPTION_DURATION:
        *ret_what = has_unit(text, " ")
                        ? "has no unit (ms, s, m, h, d, w)"
                        : "is not a duration (digits and ms, s, m, h, d or w)";
        return read_duration(text, ret_value);
    case WEIR__OPTION_TEXT:
    case WEIR__OPTION_WORKER:
    case WEIR__OPTION_KIND:
    case WEIR__OPTION_TOPIC:
    case WEIR__OPTION_LADDER:
    case WEIR__OPTION_PATHS:
    case WEIR__OPTION_PAIRS:
    case WEIR__OPTION_GROUPS:
    case WEIR__OPTION_CHOSEN:
    case WEIR__OPTION_FIELD:
    case WEIR__OPTION_RATE:
    case WEIR__OPTION_SWITCH:
    case WEIR__OPTION_CHOICE:
    case WEIR__OPTION_DURABILITY:
    case WEIR__OPTION_UNTIL:
        break;
    }
    WEIR_UNREACHABLE("only quantities come here");
}

static int read_choice(const struct weir__option *option, const char *text,
                       int64_t *ret_value, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    size_t len = strlen(text);
    const char *words =
        option->form == WEIR__OPTION_SWITCH ? "no|yes" : option->word;
    const char *word = words;
    int64_t place = 0;

    for (;;) {
        size_t here = strcspn(word, "|");

        if (here == len && memcmp(word, text, len) == 0) {
            *ret_value = place;
            return WEIR_OK;
        }
        if (word[here] == '\0')
            break;
        word += here + 1;
        place++;
    }
    return weir__error_set(
        err, WEIR_EINVAL, "%s: \"%s\" is none of these: write one of %s",
        option->name, weir__text_quote(weir__slice_str(text), quote), words);
}

/* `word`, or `word` and ":N"; false: neither. */
static bool read_servers(const char *text, const char *word, int64_t *ret_count)
{
    size_t len = strlen(word);

    if (strncmp(text, word, len) != 0)
        return false;
    return text[len] == '\0' ||
           (text[len] == ':' &&
            read_digits(text + len + 1, strlen(text + len + 1), ret_count));
}

/* A count beyond the bounds is refused with the others. */
static int read_durability(const struct weir__option *option, const char *text,
                           int64_t *ret_value, struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    int64_t replicas = 1, disks = 0;

    if (strcmp(text, "server") == 0) {
        *ret_value = WEIR__DURABILITY_SERVER;
        return WEIR_OK;
    }
    if (read_servers(text, "replica", &replicas) && replicas >= 1 &&
        replicas <= option->max) {
        *ret_value = WEIR__DURABILITY_SERVER + replicas;
        return WEIR_OK;
    }
    if (read_servers(text, "fsync", &disks) && disks <= option->max) {
        *ret_value = WEIR__DURABILITY_FSYNC + disks;
        return WEIR_OK;
    }
    return weir__error_set(
        err, WEIR_EINVAL,
        "%s: \"%s\" is none of these: write server, replica, replica:1 to "
        "replica:%lld, fsync, or fsync:0 to fsync:%lld",
        option->name, weir__text_quote(weir__slice_str(text), quote),
        (long long)option->max, (long long)option->max);
}

static int read_number(const struct weir__option *option, const char *text,
                       int64_t *ret_value, struct weir_error *err)
{
    const char *what = NULL;
    int64_t value = 0;

    if (option->form == WEIR__OPTION_SWITCH ||
        option->form == WEIR__OPTION_CHOICE)
        return read_choice(option, text, ret_value, err);
    if (option->form == WEIR__OPTION_DURABILITY)
        return read_durability(option, text, ret_value, err);
    if (!read_quantity(option, text, &value, &what))
        return refuse(option, text, what, err);
    if (value < option->min || value > option->max)
        return refuse(option, text, "is out of bounds", err);
    *ret_value = value;
    return WEIR_OK;
}

static int read_until(const struct weir__option *option, const char *text,
                      int64_t *ret_value, struct weir_error *err)
{
    struct weir__option duration = *option;

    if (strcmp(text, "until-done") == 0) {
        *ret_value = WEIR__UNTIL_DONE;
        return WEIR_OK;
    }
    if (strcmp(text, "until-start") == 0) {
        *ret_value = WEIR__UNTIL_START;
        return WEIR_OK;
    }
    duration.form = WEIR__OPTION_DURATION;
    duration.word = "until-start or until-done";
    return read_number(&duration, text, ret_value, err);
}

static int check_kind(const struct weir__option *option, const char *text,
                      struct weir_error *err)
{
    char list[64], quote[WEIR__TEXT_QUOTE_CAP];

    if (weir__kind_named(text) != 0)
        return WEIR_OK;
    weir__kinds_list(WEIR__KINDS_ALL, list);
    return weir__error_set(
        err, WEIR_EINVAL, "%s: \"%s\" is not a kind: write %s", option->name,
        weir__text_quote(weir__slice_str(text), quote), list);
}

static int check_worker(const struct weir__option *option, const char *text,
                        struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    size_t len = strlen(text);

    if (len <= WORKER_MAX && strspn(text, LETTERS DIGITS "._-") == len)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "%s: \"%s\" does not name a worker: write 1 to %d letters, digits and "
        ". _ -",
        option->name, weir__text_quote(weir__slice_str(text), quote),
        WORKER_MAX);
}

static int check_pair(const struct weir__option *option, const char *text,
                      struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    const char *equals = strchr(text, '=');

    if (equals != NULL && equals > text)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "%s: \"%s\" has no %s: write key=value, as in \"timeout=5s\"",
        option->name, weir__text_quote(weir__slice_str(text), quote),
        equals == NULL ? "=" : "key before the =");
}

/* Its length without a weight; 0: that is none. */
static size_t weighed_len(const char *text, size_t len)
{
    size_t name = len;

    while (name > 0 && strchr(DIGITS, text[name - 1]) != NULL)
        name--;
    if (name == len || name < 2 || text[name - 1] != ':')
        return len;
    return len - name > 3 || text[name] == '0' ? 0 : name - 1;
}

/* Letters of a group's name, an asterisk at its end. */
static bool is_pattern(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] > '~' || text[i] == '{' ||
            text[i] == '}' || (text[i] == '*' && i + 1 < len))
            return false;
    return len > 0 && len <= PATTERN_MAX;
}

/* Patterns of a text, one after the other; false: there are no more. */
static bool next_pattern(struct weir_slice *at)
{
    const char *text = (const char *)at->ptr + at->len;

    text += strspn(text, " ");
    *at = weir__slice_of(text, strcspn(text, " "));
    return at->len > 0;
}

/* Does `pattern` match all that `other` matches? */
static bool covers(struct weir_slice pattern, struct weir_slice other)
{
    if (pattern.ptr[pattern.len - 1] != '*')
        return weir__slice_equal(pattern, other);
    return other.len >= pattern.len - 1 &&
           memcmp(pattern.ptr, other.ptr, pattern.len - 1) == 0;
}

/* Is all that `some` matches behind a ! as well? */
static bool is_left_out(const char *text, struct weir_slice some)
{
    struct weir_slice at = weir__slice_of(text, 0);

    while (next_pattern(&at))
        if (at.ptr[0] == '!' &&
            covers((struct weir_slice){at.ptr + 1, at.len - 1}, some))
            return true;
    return false;
}

static bool leaves_all_out(const char *text)
{
    struct weir_slice at = weir__slice_of(text, 0);
    bool has_some = false;

    while (next_pattern(&at)) {
        if (at.ptr[0] == '!')
            continue;
        if (!is_left_out(text, at))
            return false;
        has_some = true;
    }
    return has_some || is_left_out(text, weir__slice_str("*"));
}

static int check_chosen(const struct weir__option *option, const char *text,
                        struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    struct weir_slice at = weir__slice_of(text, 0);

    while (next_pattern(&at)) {
        size_t skip = at.ptr[0] == '!';

        if (!is_pattern((const char *)at.ptr + skip, at.len - skip))
            return weir__error_set(
                err, WEIR_EINVAL,
                "%s: \"%s\" is no pattern of groups: write a group or its "
                "beginning and *, and ! in front of those that are left to "
                "other workers, as in \"vip-*\" or \"!vip-*\"",
                option->name, weir__text_quote(at, quote));
    }
    if (leaves_all_out(text))
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: \"%s\" leaves out every group that it "
                               "names: write another pattern",
                               option->name,
                               weir__text_quote(weir__slice_str(text), quote));
    return WEIR_OK;
}

static int check_groups(const struct weir__option *option, const char *text,
                        struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    const char *at = text;

    while (*at != '\0') {
        size_t len = strcspn(at, " ");

        if (len > 0 && !is_pattern(at, weighed_len(at, len)))
            return weir__error_set(
                err, WEIR_EINVAL,
                "%s: \"%s\" is no pattern of groups: write a group or its "
                "beginning and *, and maybe :WEIGHT of 1 to 999, as in "
                "\"game-1\" or \"vip-*:4\"",
                option->name,
                weir__text_quote((struct weir_slice){(const uint8_t *)at, len},
                                 quote));
        at += len + (at[len] == ' ');
    }
    return WEIR_OK;
}

/* "body", or names and positions behind it, none of them empty. */
static int check_field(const struct weir__option *option, const char *text,
                       struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    size_t len = strlen(text);

    if (strncmp(text, "body", 4) == 0 && (text[4] == '.' || len == 4) &&
        text[len - 1] != '.' && strstr(text, "..") == NULL)
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "%s: \"%s\" is no place in the body: write body and names or "
        "positions behind it, as in \"body.order\" or \"body.items.0.sku\"",
        option->name, weir__text_quote(weir__slice_str(text), quote));
}

/* The number that begins the text, from 1 to `most`; it is skipped. */
static bool take_number(const char **text, int64_t most)
{
    size_t len = strspn(*text, DIGITS);
    int64_t value = 0;

    if (!read_digits(*text, len, &value) || value < 1 || value > most)
        return false;
    *text += len;
    return true;
}

/* "100/s", "6/10s", "100/s burst 20"; scripts/lib/limits.lua reads the same. */
static bool is_rate(const char *text)
{
    static const char burst[] = " burst ";

    if (!take_number(&text, RATE_MAX) || *text++ != '/')
        return false;
    if (strspn(text, DIGITS) > 0 && !take_number(&text, RATE_MAX))
        return false;
    if (strspn(text, "smhdw") == 0)
        return false;
    text += strncmp(text, "ms", 2) == 0 ? 2 : 1;
    if (*text == '\0')
        return true;
    if (strncmp(text, burst, sizeof(burst) - 1) != 0)
        return false;
    text += sizeof(burst) - 1;
    return take_number(&text, RATE_MAX) && *text == '\0';
}

static int check_rate(const struct weir__option *option, const char *text,
                      struct weir_error *err)
{
    char quote[WEIR__TEXT_QUOTE_CAP];

    if (is_rate(text))
        return WEIR_OK;
    return weir__error_set(
        err, WEIR_EINVAL,
        "%s: \"%s\" is no rate: write a number, / and one of ms, s, m, h, d, "
        "w, "
        "and maybe how many may gather, as in \"100/s\", \"6/10s\" or "
        "\"100/s burst 20\" (numbers up to %d), or none",
        option->name, weir__text_quote(weir__slice_str(text), quote), RATE_MAX);
}

int weir__option_check(const struct weir__option *option, const char *text,
                       struct weir_error *err)
{
    struct weir_slice slice = weir__slice_str(text);
    struct weir__ladder ladder;
    struct weir_error why = {0};

    if (slice.len == 0)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: \"\" says nothing: write a value, or "
                               "leave the option out",
                               option->name);
    if ((option->form == WEIR__OPTION_TEXT ||
         option->form == WEIR__OPTION_FIELD ||
         option->form == WEIR__OPTION_GROUPS ||
         option->form == WEIR__OPTION_CHOSEN ||
         option->form == WEIR__OPTION_RATE) &&
        option->max > 0 && slice.len > (size_t)option->max)
        return weir__error_set(err, WEIR_EINVAL,
                               "%s: %zu bytes are too long: write at most %lld",
                               option->name, slice.len, (long long)option->max);
    if (option->form == WEIR__OPTION_KIND)
        return check_kind(option, text, err);
    if (option->form == WEIR__OPTION_WORKER)
        return check_worker(option, text, err);
    if (option->form == WEIR__OPTION_PAIRS)
        return check_pair(option, text, err);
    if (option->form == WEIR__OPTION_GROUPS)
        return check_groups(option, text, err);
    if (option->form == WEIR__OPTION_CHOSEN)
        return check_chosen(option, text, err);
    if (option->form == WEIR__OPTION_FIELD)
        return check_field(option, text, err);
    if (option->form == WEIR__OPTION_RATE)
        return check_rate(option, text, err);
    if (option->form == WEIR__OPTION_TOPIC &&
        weir__topic_check(slice, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "%s: %s", option->name,
                               why.text);
    if (option->form == WEIR__OPTION_LADDER &&
        weir__ladder_parse(slice, &ladder, &why) < 0)
        return weir__error_set(err, WEIR_EINVAL, "%s", why.text);
    return WEIR_OK;
}

int weir__option_read(const struct weir__option *option, const char *text,
                      int64_t *ret_value, struct weir_error *err)
{
    if (option->word != NULL && option->form != WEIR__OPTION_CHOICE &&
        strcmp(text, option->word) == 0) {
        *ret_value = option->word_value;
        return WEIR_OK;
    }
    if (option->form == WEIR__OPTION_UNTIL)
        return read_until(option, text, ret_value, err);
    if (weir__option_is_number(option))
        return read_number(option, text, ret_value, err);
    *ret_value = 0;
    return weir__option_check(option, text, err);
}
