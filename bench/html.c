/* SPDX-License-Identifier: MIT */
#include "bench/html.h"

#include <string.h>

static void put_letter(FILE *file, char letter)
{
    switch (letter) {
    case '<':
        (void)fputs("&lt;", file);
        break;
    case '>':
        (void)fputs("&gt;", file);
        break;
    case '&':
        (void)fputs("&amp;", file);
        break;
    case '"':
        (void)fputs("&quot;", file);
        break;
    default:
        (void)fputc(letter, file);
    }
}

void bench_html_text(FILE *file, const char *text)
{
    for (; *text != '\0'; text++)
        put_letter(file, *text);
}

void bench_html_put(FILE *file, const char *tag, const char *text)
{
    (void)fprintf(file, "<%s>", tag);
    bench_html_text(file, text);
    (void)fprintf(file, "</%.*s>", (int)strcspn(tag, " "), tag);
}

/* In single quotes where it has to be. */
static void put_word(FILE *file, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789%+,-./:=@_";

    if (word[0] != '\0' && word[strspn(word, plain)] == '\0') {
        bench_html_text(file, word);
        return;
    }
    (void)fputc('\'', file);
    for (; *word != '\0'; word++) {
        if (*word == '\'')
            (void)fputs("'\\'", file);
        put_letter(file, *word);
    }
    (void)fputc('\'', file);
}

void bench_html_command(FILE *file, char *const *argv)
{
    const char *slash = strrchr(argv[0], '/');

    put_word(file, slash != NULL ? slash + 1 : argv[0]);
    for (argv++; *argv != NULL; argv++) {
        (void)fputc(' ', file);
        put_word(file, *argv);
    }
}
