/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_SCREEN_H
#define WEIR_CLI_SCREEN_H

/* The terminal at stdout: how large it is, and its alternate screen, on which
 * frames take each other's place and which leaves no trace. */

#include <stdbool.h>
#include <stddef.h>

/* Zeroed: closed. */
struct weir__screen {
    bool is_open;
};

/* Lines and characters a line. $COLUMNS counts before the terminal. A file has
 * lines of any length. 24 and 80 where a terminal does not tell. */
void weir__screen_size(size_t *ret_lines, size_t *ret_width);

/* Whether stdout is a terminal that has one; TERM is none or not "dumb". */
bool weir__screen_is_there(void);

/* Begin a frame, on the alternate screen: what is printed from now on. */
void weir__screen_frame(struct weir__screen *screen);

/* Back to what was there before; open or not. */
void weir__screen_close(struct weir__screen *screen);

#endif
