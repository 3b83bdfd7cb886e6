/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLI_COUNTERS_H
#define WEIR_CLI_COUNTERS_H

#include "core/error.h"

#include <weir/weir.h>

/* Log what the topic's handler counted, as "TOPIC counters: sent=12 retried=3",
 * in as many lines as it takes. Nothing of a topic that is not served. */
void weir__counters_log(struct weir_reactor *reactor, const char *topic,
                        const struct weir__log *log);

#endif
