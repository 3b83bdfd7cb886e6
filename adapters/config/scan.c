/* SPDX-License-Identifier: MIT */
#include "adapters/config/scan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/text.h"

enum { CHUNK = 16 * 1024 };

/* The byte `ahead` bytes on; past the end there are only newlines. */
static char peek(const struct weir__scan *s, size_t ahead)
{
    return s->source.len - s->at > ahead ? (char)s->source.ptr[s->at + ahead]
                                         : '\n';
}

static void keep(struct weir__scan *s, char byte)
{
    weir__buf_append(&s->text, &byte, 1);
}

static void refuse(struct weir__scan *s, const char *sentence)
{
    (void)weir__error_set(&s->why, WEIR_EINVAL, "%s", sentence);
    s->token = WEIR__TOKEN_BAD;
}

static bool is_word_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || strchr("._:/%@~-", byte) != NULL;
}

static void read_word(struct weir__scan *s)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    bool is_plain = true;

    for (; strchr(" \t\r\n{}=,\"'#", peek(s, 0)) == NULL; s->at++) {
        is_plain = is_plain && is_word_byte(peek(s, 0));
        keep(s, peek(s, 0));
    }
    if (is_plain)
        return;
    (void)weir__error_set(
        &s->why, WEIR_EINVAL, "%s is not understood: write it in quotes",
        weir__text_quote(weir__slice_of(s->text.ptr, s->text.len), quote));
    s->token = WEIR__TOKEN_BAD;
}

static void read_double(struct weir__scan *s)
{
    for (s->at++; peek(s, 0) != '"'; s->at++) {
        char byte = peek(s, 0), next = peek(s, 1);

        if (byte == '\n' || (byte == '\\' && next == '\n')) {
            refuse(s, "a text is not closed: write \" at its end, on the same "
                      "line");
            return;
        }
        if (byte == '$' && next == '{') {
            refuse(s, "\"${\" is not replaced here: write the value itself, or "
                      "the text in single quotes");
            return;
        }
        if (byte == '\\' && next != '\\' && next != '"') {
            refuse(s, "after a \\ in double quotes only \\ or \" may stand: "
                      "write \\\\ for one \\");
            return;
        }
        if (byte == '\\')
            s->at++;
        keep(s, peek(s, 0));
    }
    s->at++;
}

static void read_single(struct weir__scan *s)
{
    for (s->at++; peek(s, 0) != '\''; s->at++) {
        char next = peek(s, 1);

        if (peek(s, 0) == '\n') {
            refuse(s, "a text is not closed: write ' at its end, on the same "
                      "line");
            return;
        }
        if (peek(s, 0) == '\\' && (next == '\\' || next == '\''))
            s->at++;
        keep(s, peek(s, 0));
    }
    s->at++;
}

static void pass_line(struct weir__scan *s)
{
    while (peek(s, 0) != '\n')
        s->at++;
}

/* False: it is not closed. */
static bool pass_block(struct weir__scan *s)
{
    for (s->at += 2; s->at < s->source.len; s->at++) {
        if (peek(s, 0) == '*' && peek(s, 1) == '/') {
            s->at += 2;
            return true;
        }
        s->at_line += peek(s, 0) == '\n';
    }
    return false;
}

/* Blanks and comments. */
static void pass_gap(struct weir__scan *s)
{
    while (s->at < s->source.len) {
        char byte = peek(s, 0);

        s->line = s->at_line;
        if (byte == '#' || (byte == '/' && peek(s, 1) == '/')) {
            pass_line(s);
        } else if (byte == '/' && peek(s, 1) == '*') {
            if (!pass_block(s))
                refuse(s, "a comment is not closed: write */ at its end");
        } else if (strchr(" \t\r\n", byte) != NULL) {
            s->at_line += byte == '\n';
            s->at++;
        } else {
            return;
        }
    }
}

static void read_token(struct weir__scan *s)
{
    static const char signs[] = "{}=,";
    char byte = peek(s, 0);
    const char *sign = strchr(signs, byte);

    if (byte == '"') {
        read_double(s);
    } else if (byte == '\'') {
        read_single(s);
    } else if (sign == NULL) {
        read_word(s);
    } else {
        s->token = (enum weir__token)(WEIR__TOKEN_OPEN + (sign - signs));
        keep(s, byte);
        s->at++;
    }
}

void weir__scan_next(struct weir__scan *s)
{
    if (s->token == WEIR__TOKEN_END)
        return;
    s->token = WEIR__TOKEN_TEXT;
    s->text.len = 0;
    s->line = s->at_line;
    pass_gap(s);
    if (s->token == WEIR__TOKEN_TEXT && s->at == s->source.len)
        s->token = WEIR__TOKEN_END;
    else if (s->token == WEIR__TOKEN_TEXT)
        read_token(s);
    if (s->token == WEIR__TOKEN_BAD)
        pass_line(s);
    keep(s, '\0');
    if (s->text.failed)
        s->token = WEIR__TOKEN_END;
}

const char *weir__scan_text(const struct weir__scan *s)
{
    WEIR_ASSERT(s->text.len > 0);
    return (const char *)s->text.ptr;
}

void weir__scan_fini(struct weir__scan *s)
{
    weir__buf_fini(&s->source);
    weir__buf_fini(&s->text);
}

/* --- the file ------------------------------------------------------------ */

/* Refuses control bytes, but for what editors leave behind: carriage returns at
 * the end of lines. */
static int check_bytes(struct weir__scan *s)
{
    for (; s->at < s->source.len; s->at++) {
        uint8_t byte = s->source.ptr[s->at];

        if (byte == '\n')
            s->at_line++;
        else if ((byte < 0x20 && byte != '\t' &&
                  (byte != '\r' || peek(s, 1) != '\n')) ||
                 byte == 0x7F) {
            s->line = s->at_line;
            return weir__error_set(&s->why, WEIR_EINVAL,
                                   "byte 0x%02X has no place in a "
                                   "configuration: remove it",
                                   byte);
        }
    }
    return WEIR_OK;
}

static int read_file(struct weir__scan *s, FILE *file)
{
    size_t count = 0;

    do {
        uint8_t *room = weir__buf_reserve(&s->source, CHUNK);

        if (room == NULL)
            return weir__error_set(&s->why, WEIR_ENOMEM, "out of memory");
        count = fread(room, 1, CHUNK, file);
        s->source.len += count;
    } while (count == CHUNK && s->source.len <= WEIR__CONFIG_MAX);
    if (ferror(file) != 0)
        return weir__error_set(&s->why, WEIR_ESYSTEM,
                               "cannot be read (%s): name a readable file",
                               strerror(errno));
    if (s->source.len > WEIR__CONFIG_MAX)
        return weir__error_set(&s->why, WEIR_ETOOBIG,
                               "has more than 1 MiB: is it a configuration of "
                               "weir?");
    return WEIR_OK;
}

int weir__scan_open(struct weir__scan *s, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat at;
    int rc;

    if (file == NULL)
        return weir__error_set(&s->why, WEIR_ESYSTEM,
                               "cannot be read (%s): name a readable file",
                               strerror(errno));
    if (fstat(fileno(file), &at) == 0 && S_ISREG(at.st_mode) &&
        (at.st_mode & S_IWOTH) != 0)
        rc = weir__error_set(&s->why, WEIR_EINVAL,
                             "everybody may write to it: look at what it says, "
                             "then chmod o-w it");
    else
        rc = read_file(s, file);
    (void)fclose(file); /* it was only read */
    if (rc < 0)
        return rc;
    s->at_line = 1;
    if (s->source.len >= 3 && memcmp(s->source.ptr, "\xEF\xBB\xBF", 3) == 0)
        memset(s->source.ptr, ' ', 3); /* the mark of byte order */
    rc = check_bytes(s);
    if (rc < 0)
        return rc;
    s->at = 0;
    s->at_line = 1;
    weir__scan_next(s);
    return WEIR_OK;
}

const char *weir__scan_instead(enum weir__token token)
{
    switch (token) {
    case WEIR__TOKEN_OPEN:
        return "write { behind a section's name, or behind the = of a list";
    case WEIR__TOKEN_CLOSE:
        return "write a value before it";
    case WEIR__TOKEN_EQUALS:
        return "write = between an option's name and its value";
    case WEIR__TOKEN_COMMA:
        return "write , between the texts of a list, within { and }";
    case WEIR__TOKEN_TEXT:
    case WEIR__TOKEN_BAD:
    case WEIR__TOKEN_END:
        break;
    }
    return "write , between the texts of a list, and } behind them";
}
