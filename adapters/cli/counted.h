/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_COUNTED_H
#define WEIR_CLI_COUNTED_H

/* What handlers counted, as commands show it. */

#include <weir/weir.h>

#include "core/error.h"

/* Log "TOPIC counters: sent=12 retried=3", in as many lines as it takes;
 * nothing for a topic without counters, or that is not served. */
void weir__counted_log(const struct weir_reactor *reactor, const char *topic,
                       const struct weir__log *log);

#endif
