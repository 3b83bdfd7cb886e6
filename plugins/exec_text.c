/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

/* --- output --------------------------------------------------------------- */

/* How many bytes a character has that begins so; 0: none does. */
static size_t length_of(char first)
{
    unsigned char byte = (unsigned char)first;

    if (byte < 0x80)
        return 1;
    if (byte < 0xc0 || byte >= 0xf8)
        return 0;
    return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* A terminal obeys it, or it ends or turns the text around it. */
static bool is_hidden(uint32_t code)
{
    return (code >= 0x80 && code < 0xa0) || code == 0x61c || code == 0x200e ||
           code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069);
}

/* The bytes of the first character, 0 when that is none or hidden. */
static size_t shown(const char *text, size_t len)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t wanted = length_of(*text);
    uint32_t code;

    if (wanted < 2 || wanted > len)
        return wanted == 1 ? 1 : 0;
    code = (unsigned char)*text & (0x7fU >> wanted);
    for (size_t i = 1; i < wanted; i++) {
        unsigned char byte = (unsigned char)text[i];

        if ((byte & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (byte & 0x3f);
    }
    if (code < least[wanted] || code > 0x10ffff ||
        (code >= 0xd800 && code <= 0xdfff) || is_hidden(code))
        return 0;
    return wanted;
}

void exec_clean(char *text, size_t len)
{
    for (size_t at = 0, got = 0; at < len; at += got) {
        if ((unsigned char)text[at] < ' ' || text[at] == 0x7f)
            text[at] = ' ';
        got = shown(text + at, len - at);
        if (got == 0) {
            text[at] = '?';
            got = 1;
        }
    }
}

size_t exec_whole(const char *text, size_t len)
{
    for (size_t back = 1; back <= 3 && back <= len; back++) {
        size_t wanted = length_of(text[len - back]);

        if (wanted > 0)
            return wanted > back ? len - back : len;
    }
    return len;
}

/* --- words ---------------------------------------------------------------- */

/* Where the words go: first the pointers, then their bytes. */
struct words {
    char **list; /* NULL: only counting */
    size_t count;
    char *to;
};

static void put(struct words *words, char c)
{
    if (words->list != NULL)
        *words->to = c;
    words->to++;
}

/* After an opening quote; NULL: it is not closed. */
static const char *quoted(const char *from, char quote, struct words *words)
{
    for (; *from != quote; from++) {
        if (*from == '\0')
            return NULL;
        if (quote == '"' && *from == '\\' && from[1] != '\0' &&
            strchr("\"\\$`", from[1]) != NULL)
            from++;
        put(words, *from);
    }
    return from + 1;
}

/* One word; NULL: a quote is not closed, or a backslash ends the text. */
static const char *word(const char *from, struct words *words)
{
    while (from != NULL && *from != '\0' && strchr(" \t\n", *from) == NULL) {
        if (*from == '\'' || *from == '"') {
            from = quoted(from + 1, *from, words);
            continue;
        }
        if (*from == '\\')
            from++;
        if (*from == '\0')
            return NULL;
        put(words, *from++);
    }
    put(words, '\0');
    return from;
}

static bool split(const char *from, struct words *words)
{
    for (;;) {
        from += strspn(from, " \t\n");
        if (*from == '\0')
            return true;
        if (words->list != NULL)
            words->list[words->count] = words->to;
        words->count++;
        from = word(from, words);
        if (from == NULL)
            return false;
    }
}

char **exec_split(const char *text, const char **ret_fault)
{
    /* No word is longer than it is written, but for its NUL. */
    size_t most = strlen(text) + 1, bytes = 2 * most;
    struct words words = {NULL, 0, NULL};

    words.list = malloc((most + 1) * sizeof(*words.list) + bytes);
    if (words.list == NULL) {
        *ret_fault = "needs more memory than there is";
        return NULL;
    }
    words.to = (char *)(words.list + most + 1);
    *ret_fault = NULL;
    if (!split(text, &words))
        *ret_fault = "has a quote that is not closed, or ends in a backslash";
    else if (words.count == 0 || *words.list[0] == '\0')
        *ret_fault = "names no command";
    if (*ret_fault != NULL) {
        free(words.list);
        return NULL;
    }
    words.list[words.count] = NULL;
    return words.list;
}
