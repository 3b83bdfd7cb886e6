/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "exec_stream.h"

/* Reads the line that a child answers with. Lenient: what is no answer of ours
 * does not become one by stricter rules for what is skipped. */

enum { DEPTH_MAX = 32, KEY_CAP = 16 };

struct scan {
    const char *at, *end;
};

/* --- JSON ----------------------------------------------------------------- */

static char peek(struct scan *scan)
{
    while (scan->at < scan->end && memchr(" \t\r", *scan->at, 3) != NULL)
        scan->at++;
    return scan->at < scan->end ? *scan->at : '\0';
}

static bool take(struct scan *scan, char sign)
{
    if (sign == '\0' || peek(scan) != sign)
        return false;
    scan->at++;
    return true;
}

/* The four digits of an escape. */
static bool hex(struct scan *scan, uint32_t *ret_code)
{
    uint32_t code = 0;

    if (scan->end - scan->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        static const char digits[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = memchr(digits, *scan->at++, sizeof(digits) - 1);

        if (digit == NULL)
            return false;
        code = code << 4 | ((uint32_t)(digit - digits) & 15);
    }
    *ret_code = code;
    return true;
}

/* Behind `\u`; half of a pair becomes '?'. */
static bool code_point(struct scan *scan, uint32_t *ret_code)
{
    uint32_t low;

    if (!hex(scan, ret_code))
        return false;
    if (*ret_code < 0xd800 || *ret_code > 0xdfff)
        return true;
    if (*ret_code >= 0xdc00 || scan->end - scan->at < 6 ||
        scan->at[0] != '\\' || scan->at[1] != 'u') {
        *ret_code = '?';
        return true;
    }
    scan->at += 2;
    if (!hex(scan, &low))
        return false;
    *ret_code = low < 0xdc00 || low > 0xdfff
                    ? '?'
                    : 0x10000 + ((*ret_code & 0x3ff) << 10) + (low & 0x3ff);
    return true;
}

/* A text that is cut at its end. */
struct cut {
    char *bytes;
    size_t len, cap;
};

static void put(struct cut *text, uint32_t byte)
{
    if (text->len < text->cap)
        text->bytes[text->len++] = (char)(byte & 0xff);
}

static void put_code(struct cut *text, uint32_t code)
{
    if (code < 0x80) {
        put(text, code);
        return;
    }
    if (code < 0x800) {
        put(text, 0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            put(text, 0xe0 | code >> 12);
        } else {
            put(text, 0xf0 | code >> 18);
            put(text, 0x80 | (code >> 12 & 0x3f));
        }
        put(text, 0x80 | (code >> 6 & 0x3f));
    }
    put(text, 0x80 | (code & 0x3f));
}

static bool escape(struct scan *scan, struct cut *text)
{
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *name;
    uint32_t code;

    if (scan->at == scan->end)
        return false;
    if (*scan->at == 'u') {
        scan->at++;
        if (!code_point(scan, &code))
            return false;
        put_code(text, code);
        return true;
    }
    name = memchr(names, *scan->at++, sizeof(names) - 1);
    if (name == NULL)
        return false;
    put(text, (unsigned char)meant[name - names]);
    return true;
}

/* Up to `cap` bytes and a NUL. */
static bool string(struct scan *scan, char *to, size_t cap)
{
    struct cut text = {to, 0, cap};

    if (!take(scan, '"'))
        return false;
    while (scan->at < scan->end && *scan->at != '"') {
        unsigned char c = (unsigned char)*scan->at++;

        if (c != '\\')
            put(&text, c);
        else if (!escape(scan, &text))
            return false;
    }
    to[text.len] = '\0';
    return take(scan, '"');
}

/* A number without an exponent; what is behind its point is left out. */
static bool number(struct scan *scan, int64_t *ret_value)
{
    bool is_negative = take(scan, '-');
    int64_t value = 0;

    if (peek(scan) < '0' || peek(scan) > '9')
        return false;
    for (; scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9';
         scan->at++) {
        if (value > (INT64_MAX - 9) / 10)
            return false;
        value = value * 10 + (*scan->at - '0');
    }
    if (take(scan, '.'))
        while (scan->at < scan->end && *scan->at >= '0' && *scan->at <= '9')
            scan->at++;
    *ret_value = is_negative ? -value : value;
    return peek(scan) == ',' || peek(scan) == '}';
}

/* Of any type, to the sign that ends it. */
static bool skip_value(struct scan *scan)
{
    char none[1];
    int depth = 0;

    for (;;) {
        char sign = peek(scan);

        if (sign == '\0' || depth > DEPTH_MAX)
            return false;
        if (depth == 0 && (sign == ',' || sign == '}'))
            return true;
        if (sign == '"' && !string(scan, none, 0))
            return false;
        if (sign == '"')
            continue;
        depth += (sign == '{' || sign == '[') - (sign == '}' || sign == ']');
        scan->at++;
    }
}

/* --- answers -------------------------------------------------------------- */

/* The members, as they are written. */
struct members {
    char verdict[KEY_CAP + 1];
    char *reason;
    size_t reason_cap;
    int64_t run, delay_ms;
    bool has_verdict, has_delay;
};

static bool is_null(struct scan *scan)
{
    if (peek(scan) != 'n' || scan->end - scan->at < 4 ||
        memcmp(scan->at, "null", 4) != 0)
        return false;
    scan->at += 4;
    return true;
}

static bool member(struct scan *scan, struct members *members)
{
    char key[KEY_CAP + 1];

    if (!string(scan, key, KEY_CAP) || !take(scan, ':'))
        return false;
    if (is_null(scan))
        return true;
    if (strcmp(key, "run") == 0)
        return number(scan, &members->run) && members->run > 0;
    if (strcmp(key, "verdict") == 0) {
        members->has_verdict = true;
        return string(scan, members->verdict, KEY_CAP);
    }
    if (strcmp(key, "delay_ms") == 0) {
        members->has_delay = true;
        return number(scan, &members->delay_ms) && members->delay_ms >= 0;
    }
    if (strcmp(key, "reason") == 0)
        return string(scan, members->reason, members->reason_cap);
    return skip_value(scan);
}

static bool read_members(struct scan *scan, struct members *members)
{
    if (!take(scan, '{'))
        return false;
    if (take(scan, '}'))
        return peek(scan) == '\0';
    do {
        if (!member(scan, members))
            return false;
    } while (take(scan, ','));
    return take(scan, '}') && peek(scan) == '\0';
}

static const char *decide(const struct members *members,
                          enum weir_verdict *ret_verdict)
{
    static const struct {
        const char *name;
        enum weir_verdict verdict;
    } verdicts[] = {{"done", WEIR_DONE},
                    {"retry", WEIR_RETRY},
                    {"snooze", WEIR_SNOOZE},
                    {"fail", WEIR_FAIL}};

    *ret_verdict = WEIR_RETRY;
    if (!members->has_verdict)
        return "an answer without a verdict";
    for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
        if (strcmp(members->verdict, verdicts[i].name) != 0)
            continue;
        if (verdicts[i].verdict == WEIR_SNOOZE && !members->has_delay)
            return "a snooze without delay_ms";
        *ret_verdict = verdicts[i].verdict;
        if (*ret_verdict == WEIR_RETRY && members->has_delay)
            *ret_verdict = WEIR_RETRY_AFTER;
        return NULL;
    }
    return "a verdict that is none of done, retry, snooze, fail";
}

bool exec_read_answer(const char *line, size_t len, struct answer *ret_answer)
{
    struct scan scan = {line, line + len};
    struct members members = {.reason = ret_answer->reason,
                              .reason_cap = sizeof(ret_answer->reason) - 1};
    const char *fault;

    *ret_answer->reason = '\0';
    if (!read_members(&scan, &members))
        return false;
    ret_answer->run = (uint64_t)members.run;
    ret_answer->delay_ms = members.delay_ms;
    fault = decide(&members, &ret_answer->verdict);
    if (fault != NULL) {
        (void)snprintf(ret_answer->reason, sizeof(ret_answer->reason),
                       "exec: %s", fault); /* fits */
        return true;
    }
    len = strlen(ret_answer->reason);
    ret_answer->reason[exec_whole(ret_answer->reason, len)] = '\0';
    exec_clean(ret_answer->reason, strlen(ret_answer->reason));
    return true;
}
