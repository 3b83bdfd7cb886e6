/* SPDX-License-Identifier: MIT */
#include "adapters/cli/screen.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

void weir__screen_size(size_t *ret_lines, size_t *ret_width)
{
    struct winsize size = {0};
    bool is_terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    const char *columns = getenv("COLUMNS");
    long width = columns != NULL ? strtol(columns, NULL, 10) : 0;

    *ret_lines = size.ws_row > 0 ? size.ws_row : 24;
    if (width > 0)
        *ret_width = (size_t)width;
    else if (is_terminal)
        *ret_width = size.ws_col > 0 ? size.ws_col : 80;
    else
        *ret_width = SIZE_MAX;
}

bool weir__screen_is_there(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) == 1 &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

void weir__screen_frame(struct weir__screen *screen)
{
    if (!screen->is_open) /* it, no cursor, and lines are cut, not wrapped */
        (void)printf("\033[?1049h\033[?25l\033[?7l");
    screen->is_open = true;
    (void)printf("\033[H\033[J");
}

void weir__screen_close(struct weir__screen *screen)
{
    if (!screen->is_open)
        return;
    (void)printf("\033[?7h\033[?25h\033[?1049l");
    (void)fflush(stdout); /* what cannot be written is told at the end */
    screen->is_open = false;
}
