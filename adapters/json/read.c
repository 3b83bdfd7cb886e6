/* SPDX-License-Identifier: MIT */
#include "adapters/json/read.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"
#include "core/utf8.h"

enum {
    DIGITS_MAX =
        15, /* of a decimal number: an exact double before it is scaled */
    SURROGATE = 0xd800,
    LOW_SURROGATE = 0xdc00,
    SURROGATE_END = 0xe000
};

/* --- refusals ------------------------------------------------------------- */

static int refuse_at(struct weir__json_read *read, const uint8_t *at,
                     const char *what)
{
    return weir__error_set(read->err, WEIR_EINVAL, "json: %s at byte %zu", what,
                           (size_t)(at - read->start) + 1);
}

int weir__json_read_refuse(struct weir__json_read *read, const char *what)
{
    bool is_end = weir__json_read_peek(read) == 0 && read->at == read->end;

    return refuse_at(read, read->at, is_end ? "unexpected end of data" : what);
}

static int out_of_memory(struct weir__json_read *read)
{
    return weir__error_set(read->err, WEIR_ENOMEM, "json: out of memory");
}

/* --- bytes ---------------------------------------------------------------- */

static size_t bytes_left(const struct weir__json_read *read)
{
    return (size_t)(read->end - read->at);
}

/* No blank is skipped. NUL, which no token contains, at the end. */
static uint8_t next_byte(const struct weir__json_read *read)
{
    return read->at < read->end ? *read->at : 0;
}

uint8_t weir__json_read_peek(struct weir__json_read *read)
{
    uint8_t byte = next_byte(read);

    while (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n') {
        read->at++;
        byte = next_byte(read);
    }
    return byte;
}

bool weir__json_read_sign(struct weir__json_read *read, char sign)
{
    if (weir__json_read_peek(read) != (uint8_t)sign)
        return false;
    read->at++;
    return true;
}

/* --- strings -------------------------------------------------------------- */

static void append_char(struct weir__buf *buf, unsigned code)
{
    uint8_t bytes[4];
    size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (size_t i = len; i > 1; i--) {
        bytes[i - 1] = (uint8_t)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    bytes[0] = (uint8_t)(len == 1 ? code : (0xf00U >> len & 0xffU) | code);
    weir__buf_append(buf, bytes, len);
}

/* Take the four digits behind "\u"; false: they are none. */
static bool take_code(struct weir__json_read *read, unsigned *ret_code)
{
    unsigned code = 0;

    if (bytes_left(read) < 6 || read->at[0] != '\\' || read->at[1] != 'u')
        return false;
    for (size_t i = 2; i < 6; i++) {
        int digit = weir__hex_digit((char)read->at[i]);

        if (digit < 0)
            return false;
        code = code * 16 + (unsigned)digit;
    }
    read->at += 6;
    *ret_code = code;
    return true;
}

/* What a backslash and this byte stand for; 0: nothing. */
static char simple_escape(uint8_t byte)
{
    static const char names[] = "\"\\/bfnrt", bytes[] = "\"\\/\b\f\n\r\t";
    const char *at = byte == '\0' ? NULL : strchr(names, byte);

    return at == NULL ? '\0' : bytes[at - names];
}

static int take_escape(struct weir__json_read *read, struct weir__buf *buf)
{
    const uint8_t *from = read->at;
    char byte = bytes_left(read) < 2 ? '\0' : simple_escape(from[1]);
    unsigned code, low = 0;

    if (byte != '\0') {
        read->at += 2;
        weir__buf_append(buf, &byte, 1);
        return WEIR_OK;
    }
    if (!take_code(read, &code))
        return refuse_at(read, from, "unknown escape");
    if (code >= SURROGATE && code < SURROGATE_END) {
        if (code >= LOW_SURROGATE || !take_code(read, &low) ||
            low < LOW_SURROGATE || low >= SURROGATE_END)
            return refuse_at(read, from, "half of a surrogate pair");
        code = 0x10000 + ((code - SURROGATE) << 10) + (low - LOW_SURROGATE);
    }
    append_char(buf, code);
    return WEIR_OK;
}

static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* Take characters that stand for themselves. */
static int take_plain(struct weir__json_read *read, struct weir__buf *buf)
{
    const uint8_t *from = read->at;

    for (;;) {
        size_t len;

        while (read->at < read->end && is_plain(*read->at))
            read->at++;
        if (read->at == read->end || *read->at < 0x80)
            break;
        len = weir__utf8_length(weir__slice_of(read->at, bytes_left(read)));
        if (len == 0)
            return refuse_at(read, read->at, "invalid UTF-8");
        read->at += len;
    }
    weir__buf_append(buf, from, (size_t)(read->at - from));
    return WEIR_OK;
}

int weir__json_read_text(struct weir__json_read *read, struct weir__buf *buf)
{
    const uint8_t *from;
    int rc = WEIR_OK;

    if (!weir__json_read_sign(read, '"'))
        return weir__json_read_refuse(read, "string expected");
    from = read->at - 1;
    while (rc == WEIR_OK) {
        rc = take_plain(read, buf);
        if (rc < 0 || next_byte(read) == '"')
            break;
        if (read->at == read->end)
            rc = refuse_at(read, from, "string without an end");
        else if (*read->at == '\\')
            rc = take_escape(read, buf);
        else
            rc = refuse_at(read, read->at, "control character in a string");
    }
    if (rc == WEIR_OK)
        read->at++;
    return rc == WEIR_OK && buf->failed ? out_of_memory(read) : rc;
}

int weir__json_read_key(struct weir__json_read *read, struct weir__buf *buf)
{
    const uint8_t *from;
    size_t at = buf->len;
    int rc;

    if (weir__json_read_peek(read) != '"')
        return weir__json_read_refuse(read,
                                      "quoted object property name expected");
    from = read->at;
    rc = weir__json_read_text(read, buf);
    if (rc < 0)
        return rc;
    if (memchr(buf->ptr + at, '\0', buf->len - at) != NULL)
        return refuse_at(read, from, "NUL in a key");
    if (!weir__json_read_sign(read, ':'))
        return weir__json_read_refuse(
            read, "object property name separator ':' expected");
    return WEIR_OK;
}

int weir__json_read_next(struct weir__json_read *read, char end,
                         bool *ret_is_last)
{
    const uint8_t *comma;

    *ret_is_last = weir__json_read_sign(read, end);
    if (*ret_is_last)
        return WEIR_OK;
    if (!weir__json_read_sign(read, ','))
        return weir__json_read_refuse(
            read, end == '}' ? "object value separator ',' expected"
                             : "array value separator ',' expected");
    comma = read->at - 1;
    if (weir__json_read_peek(read) == (uint8_t)end)
        return refuse_at(read, comma, "comma before an end");
    return WEIR_OK;
}

/* --- numbers and words ---------------------------------------------------- */

/* The parts of a number's text. */
struct number {
    struct weir_slice text;
    bool is_negative, is_integer;
    uint64_t digits; /* of all of them, as far as they fit */
    size_t count;    /* of digits that are in `digits` */
    size_t decimals; /* of these behind the point */
    bool has_more;   /* digits than fit, or an exponent */
};

/* Take one digit at least. */
static int take_digits(struct weir__json_read *read, struct number *number)
{
    const uint8_t *from = read->at;

    while (next_byte(read) >= '0' && next_byte(read) <= '9') {
        unsigned digit = *read->at - (unsigned)'0';

        if (number->digits > (UINT64_MAX - digit) / 10)
            number->has_more = true;
        if (!number->has_more) {
            number->digits = number->digits * 10 + digit;
            number->count += number->digits > 0;
        }
        read->at++;
    }
    return read->at > from ? WEIR_OK
                           : refuse_at(read, read->at, "digit expected");
}

static int take_exponent(struct weir__json_read *read, struct number *number)
{
    struct number unused = {.is_integer = false};

    number->is_integer = false;
    number->has_more = true;
    read->at++;
    if (next_byte(read) == '+' || next_byte(read) == '-')
        read->at++;
    return take_digits(read, &unused);
}

static int take_number(struct weir__json_read *read, struct number *number)
{
    const uint8_t *from = read->at, *first;
    int rc;

    *number = (struct number){.is_integer = true};
    number->is_negative = next_byte(read) == '-';
    read->at += number->is_negative;
    first = read->at;
    rc = take_digits(read, number);
    if (rc == WEIR_OK && *first == '0' && read->at - first > 1)
        return refuse_at(read, from, "number with a leading zero");
    if (rc == WEIR_OK && next_byte(read) == '.') {
        read->at++;
        first = read->at;
        number->is_integer = false;
        rc = take_digits(read, number);
        number->decimals = (size_t)(read->at - first);
    }
    if (rc == WEIR_OK && (next_byte(read) | 0x20) == 'e')
        rc = take_exponent(read, number);
    number->text = weir__slice_of(from, (size_t)(read->at - from));
    return rc;
}

/* As any locale would write it. */
static int read_decimal(const struct number *number, double *ret_value)
{
    struct weir__buf text = {0};
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before;

    weir__buf_append(&text, number->text.ptr, number->text.len);
    weir__buf_append(&text, "", 1);
    if (plain != (locale_t)0 && !text.failed) {
        before = uselocale(plain);
        *ret_value = strtod((const char *)text.ptr, NULL);
        (void)uselocale(before);
    }
    if (plain != (locale_t)0)
        freelocale(plain);
    weir__buf_fini(&text);
    return plain == (locale_t)0 || text.failed ? WEIR_ENOMEM : WEIR_OK;
}

/* Few digits and few decimals are both exact, so that the division rounds once,
 * as reading the text does. */
static int double_of(struct weir__json_read *read, const struct number *number,
                     double *ret_value)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3, 1e4,  1e5,
                                    1e6,  1e7,  1e8,  1e9, 1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15};
    double value = 0;

    if (FLT_EVAL_METHOD == 0 && !number->has_more &&
        number->count <= DIGITS_MAX && number->decimals <= DIGITS_MAX) {
        value = (double)number->digits / powers[number->decimals];
        *ret_value = number->is_negative ? -value : value;
        return WEIR_OK;
    }
    if (read_decimal(number, &value) < 0)
        return out_of_memory(read);
    if (!isfinite(value))
        return weir__error_set(
            read->err, WEIR_EINVAL, "json: %.*s is not finite",
            number->text.len < 60 ? (int)number->text.len : 60,
            (const char *)number->text.ptr);
    *ret_value = value;
    return WEIR_OK;
}

static int pack_number(struct weir__json_read *read, msgpack_packer *packer)
{
    struct number number;
    double value = 0;
    int rc = take_number(read, &number);

    if (rc < 0)
        return rc;
    if (!number.is_integer) {
        rc = double_of(read, &number, &value);
        if (rc == WEIR_OK)
            (void)msgpack_pack_double(packer, value);
        return rc;
    }
    if (number.has_more ||
        (number.is_negative && number.digits > (uint64_t)INT64_MAX + 1))
        return refuse_at(read, number.text.ptr, "integer beyond 64 bits");
    if (number.is_negative)
        (void)msgpack_pack_int64(packer, (int64_t)(0 - number.digits));
    else
        (void)msgpack_pack_uint64(packer, number.digits);
    return WEIR_OK;
}

static bool take_word(struct weir__json_read *read, const char *word)
{
    size_t len = strlen(word);

    if (bytes_left(read) < len || memcmp(read->at, word, len) != 0)
        return false;
    read->at += len;
    return true;
}

static int pack_word(struct weir__json_read *read, msgpack_packer *packer)
{
    if (take_word(read, "null"))
        (void)msgpack_pack_nil(packer);
    else if (take_word(read, "true"))
        (void)msgpack_pack_true(packer);
    else if (take_word(read, "false"))
        (void)msgpack_pack_false(packer);
    else
        return weir__json_read_refuse(read, "unexpected character");
    return WEIR_OK;
}

static int append_bytes(void *arg, const char *bytes, size_t len)
{
    weir__buf_append(arg, bytes, len);
    return 0; /* the buffer keeps the failure */
}

int weir__json_read_scalar(struct weir__json_read *read, struct weir__buf *buf)
{
    uint8_t first = weir__json_read_peek(read);
    msgpack_packer packer;
    int rc;

    msgpack_packer_init(&packer, buf, append_bytes);
    if (first == '-' || (first >= '0' && first <= '9'))
        rc = pack_number(read, &packer);
    else
        rc = pack_word(read, &packer);
    return rc == WEIR_OK && buf->failed ? out_of_memory(read) : rc;
}

/* --- the whole ------------------------------------------------------------ */

int weir__json_read_init(struct weir__json_read *read, struct weir_slice json,
                         struct weir_error *err)
{
    WEIR_ASSERT(json.ptr != NULL || json.len == 0);
    read->start = read->at = json.ptr;
    read->end = json.len == 0 ? json.ptr : json.ptr + json.len;
    read->err = err;
    if (json.len == 0)
        return weir__error_set(err, WEIR_EINVAL, "json: empty text");
    if (json.len >= 3 && memcmp(json.ptr, "\xef\xbb\xbf", 3) == 0)
        return weir__error_set(
            err, WEIR_EINVAL,
            "json: begins with a byte order mark (EF BB BF): "
            "save it as UTF-8 without one");
    return WEIR_OK;
}

int weir__json_read_end(struct weir__json_read *read)
{
    (void)weir__json_read_peek(read); /* behind the blanks */
    return read->at == read->end
               ? WEIR_OK
               : refuse_at(read, read->at, "unexpected character");
}
