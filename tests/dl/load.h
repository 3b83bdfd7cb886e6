/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_LOAD_H
#define WEIR_TEST_LOAD_H

/* Loading the plugins that were made for tests, and opening instances. */

#include "adapters/dl/loader.h"

/* The path of a test plugin, valid until the next call. */
const char *path_of(const char *name);

/* A test plugin that is expected to load. */
struct weir__plugin_file load(const char *name);

/* What instances of open_with are given as host. */
extern const struct weir_host test_host;

/* weir__instance_open for the topic "mail" with up to four options, the rest
 * NULL. */
int open_with(const struct weir__plugin_file *file,
              const char *const options[4], struct weir__instance *ret_instance,
              struct weir_error *err);

#endif
