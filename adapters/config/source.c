/* SPDX-License-Identifier: MIT */
#include "adapters/config/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/assert.h"
#include "core/text.h"

enum { CHUNK = 16 * 1024, DEPTH_MAX = 2 };

struct scan {
    struct weir__config_place place; /* its line is the one of `at` */
    uint8_t *text;                   /* ends with a newline */
    size_t len;
    size_t at;
    int depth;                /* braces open */
    int open_line[DEPTH_MAX]; /* where the outer ones were opened */
};

/* The byte `ahead` bytes on; past the end there are only newlines. */
static uint8_t peek(const struct scan *s, size_t ahead)
{
    return s->len - s->at > ahead ? s->text[s->at + ahead] : (uint8_t)'\n';
}

static int fail(const struct scan *s, const char *sentence)
{
    return weir__config_fail(&s->place, WEIR_EINVAL, "%s", sentence);
}

static bool is_word_byte(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') ||
           (byte != '\0' && strchr("._:/%@~-", byte) != NULL);
}

static bool ends_word(uint8_t byte)
{
    return strchr(" \t\n{}=,\"'#", byte) != NULL;
}

static int skip_word(struct scan *s)
{
    char quote[WEIR__TEXT_QUOTE_CAP];
    size_t start = s->at;
    bool is_plain = true;

    for (; !ends_word(peek(s, 0)); s->at++)
        is_plain = is_plain && is_word_byte(s->text[s->at]);
    WEIR_ASSERT(s->at > start);
    if (is_plain)
        return WEIR_OK;
    return weir__config_fail(
        &s->place, WEIR_EINVAL, "%s is not understood: write it in quotes",
        weir__text_quote(weir__slice_of(s->text + start, s->at - start),
                         quote));
}

static int skip_double(struct scan *s)
{
    for (s->at++; peek(s, 0) != '"'; s->at++) {
        uint8_t byte = peek(s, 0);
        uint8_t next = peek(s, 1);

        if (byte == '\n' || (byte == '\\' && next == '\n'))
            return fail(s, "a text is not closed: write \" at its end, on the "
                           "same line");
        if (byte == '$' && next == '{')
            return fail(s, "\"${\" is not replaced here: write the value "
                           "itself, or the text in single quotes");
        if (byte == '\\' && next != '\\' && next != '"')
            return fail(s, "after a \\ in double quotes only \\ or \" may "
                           "stand: write \\\\ for one \\");
        if (byte == '\\')
            s->at++;
    }
    s->at++;
    return WEIR_OK;
}

static int skip_single(struct scan *s)
{
    for (s->at++; peek(s, 0) != '\''; s->at++) {
        uint8_t next = peek(s, 1);

        if (peek(s, 0) == '\n')
            return fail(s, "a text is not closed: write ' at its end, on the "
                           "same line");
        if (peek(s, 0) == '\\' && (next == '\\' || next == '\''))
            s->at++;
    }
    s->at++;
    return WEIR_OK;
}

static void blank_line(struct scan *s)
{
    for (; peek(s, 0) != '\n'; s->at++)
        s->text[s->at] = ' ';
}

static int blank_block(struct scan *s)
{
    struct scan start = *s;

    while (peek(s, 0) != '*' || peek(s, 1) != '/' || s->at < start.at + 2) {
        if (s->at == s->len)
            return fail(&start, "a comment is not closed: write */ at its "
                                "end");
        if (s->text[s->at] == '\n')
            s->place.line++;
        s->at++;
    }
    s->at += 2;
    for (size_t i = start.at; i < s->at; i++)
        if (s->text[i] != '\n')
            s->text[i] = ' ';
    return WEIR_OK;
}

static void open_brace(struct scan *s)
{
    if (s->depth < DEPTH_MAX)
        s->open_line[s->depth] = s->place.line;
    s->depth++;
    s->at++;
}

/* One token, comment or blank; not at the end. */
static int step(struct scan *s)
{
    switch (peek(s, 0)) {
    case '"':
        return skip_double(s);
    case '\'':
        return skip_single(s);
    case '#':
        blank_line(s);
        return WEIR_OK;
    case '/':
        if (peek(s, 1) == '*')
            return blank_block(s);
        if (peek(s, 1) != '/')
            return skip_word(s);
        blank_line(s);
        return WEIR_OK;
    case '{':
        open_brace(s);
        return WEIR_OK;
    case '}':
        s->depth -= s->depth > 0;
        s->at++;
        return WEIR_OK;
    case '\n':
        s->place.line++;
        s->at++;
        return WEIR_OK;
    case ' ':
    case '\t':
    case '=':
    case ',':
        s->at++;
        return WEIR_OK;
    default:
        return skip_word(s);
    }
}

static int scan(struct scan *s)
{
    int rc = WEIR_OK;

    while (rc == WEIR_OK && s->at < s->len)
        rc = step(s);
    if (rc < 0 || s->depth == 0)
        return rc;
    s->place.line =
        s->open_line[(s->depth < DEPTH_MAX ? s->depth : DEPTH_MAX) - 1];
    return fail(s, "the { of this line is not closed: write } where its "
                   "section or list ends");
}

/* Refuses control bytes and turns what editors leave behind (the mark of byte
 * order, carriage returns) into blanks. */
static int check_bytes(struct weir__config_place place, uint8_t *text,
                       size_t len)
{
    if (len >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        memset(text, ' ', 3);
    place.line = 1;
    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\r' && i + 1 < len && text[i + 1] == '\n')
            text[i] = ' ';
        if (text[i] == '\n')
            place.line++;
        else if ((text[i] < 0x20 && text[i] != '\t') || text[i] == 0x7F)
            return weir__config_fail(&place, WEIR_EINVAL,
                                     "byte 0x%02X has no place in a "
                                     "configuration: remove it",
                                     text[i]);
    }
    return WEIR_OK;
}

static int read_file(const struct weir__config_place *place, FILE *file,
                     struct weir__buf *buf)
{
    size_t count = 0;

    do {
        uint8_t *room = weir__buf_reserve(buf, CHUNK);

        if (room == NULL)
            return weir__config_fail(place, WEIR_ENOMEM, "out of memory");
        count = fread(room, 1, CHUNK, file);
        buf->len += count;
    } while (count == CHUNK && buf->len <= WEIR__CONFIG_SOURCE_MAX);
    if (ferror(file) != 0)
        return weir__config_fail(place, WEIR_ESYSTEM,
                                 "cannot be read (%s): name a readable file",
                                 strerror(errno));
    if (buf->len > WEIR__CONFIG_SOURCE_MAX)
        return weir__config_fail(place, WEIR_ETOOBIG,
                                 "has more than 1 MiB: is it a configuration "
                                 "of weir?");
    if (buf->len == 0 || buf->ptr[buf->len - 1] != '\n')
        weir__buf_append(buf, "\n", 1);
    return buf->failed ? weir__config_fail(place, WEIR_ENOMEM, "out of memory")
                       : WEIR_OK;
}

int weir__config_source_read(const struct weir__config_place *place,
                             struct weir__buf *buf)
{
    FILE *file = fopen(place->path, "rb");
    struct scan s = {.place = *place};
    int rc;

    WEIR_ASSERT(buf->len == 0);
    if (file == NULL)
        return weir__config_fail(place, WEIR_ESYSTEM,
                                 "cannot be read (%s): name a readable file",
                                 strerror(errno));
    rc = read_file(place, file, buf);
    (void)fclose(file); /* it was only read */
    if (rc < 0)
        return rc;
    rc = check_bytes(*place, buf->ptr, buf->len);
    s.place.line = 1;
    s.text = buf->ptr;
    s.len = buf->len;
    return rc < 0 ? rc : scan(&s);
}
