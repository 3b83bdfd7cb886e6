/* SPDX-License-Identifier: MIT */
#ifndef WEIR_BENCH_HTML_H
#define WEIR_BENCH_HTML_H

/* Texts in HTML. */

#include <stdio.h>

/* Between tags and in attributes. */
void bench_html_text(FILE *file, const char *text);

/* "<tag>text</tag>"; the tag may have attributes. */
void bench_html_put(FILE *file, const char *tag, const char *text);

/* A command line, as a shell reads it. */
void bench_html_command(FILE *file, char *const *argv);

#endif
