/* SPDX-License-Identifier: MIT */
#ifndef WEIR_ASSERT_H
#define WEIR_ASSERT_H

/* Assertions, on in every build: they catch errors that only weir's own code
 * can make. Never for what a server, a payload or a user can cause. The
 * expression has no side effects. */

/* Writes the text to stderr and aborts. */
_Noreturn void weir__assert_failed(const char *file, int line, const char *fn,
                                   const char *expression);

#define WEIR_ASSERT(expression) \
    ((expression)               \
         ? (void)0              \
         : weir__assert_failed(__FILE__, __LINE__, __func__, #expression))

/* For a place that cannot be reached; `why` says what broke if it is. */
#define WEIR_UNREACHABLE(why) \
    weir__assert_failed(__FILE__, __LINE__, __func__, why)

#endif
