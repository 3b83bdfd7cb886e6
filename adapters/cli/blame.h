/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_BLAME_H
#define WEIR_CLI_BLAME_H

/* Commands that load plugins share their process with them. Where a plugin
 * crashes it, or ends it with exit(), the command still dies, but says who it
 * was: "weir: PLUGIN crashed: Segmentation fault". It is found on the stack. */

struct weir_reactor;

/* For the rest of the process. A sanitizer's own report stays. */
void weir__blame_listen(void);

/* The same as a line of the log, with the topic and the job that the reactor
 * runs. Borrowed until NULL takes its place. */
void weir__blame_worker(const struct weir_reactor *reactor);

#endif
