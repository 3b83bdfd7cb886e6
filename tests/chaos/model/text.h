/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_TEXT_H
#define WEIR_TEST_TEXT_H

/* Text that grows. A zeroed struct is empty. Without memory the test ends. */

#include <stddef.h>

#include <weir/base.h>

struct text {
    char *ptr; /* NULL while nothing was added, else NUL-terminated */
    size_t len, cap;
};

void text_clear(struct text *text);
void text_free(struct text *text);
const char *text_of(const struct text *text); /* never NULL */

void text_add(struct text *text, const void *bytes, size_t len);

/* What is neither printable nor a line feed becomes hexadecimal digits: "\0d".
 */
void text_bytes(struct text *text, const void *bytes, size_t len);

void text_str(struct text *text, const char *str);
void text_int(struct text *text, long long value);
void text_format(struct text *text, const char *format, ...) WEIR_PRINTF(2, 3);

#endif
