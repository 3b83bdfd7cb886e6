/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CLUSTER_SLOT_H
#define WEIR_CLUSTER_SLOT_H

/* In which of a cluster's slots a key is. Pure arithmetic. */

#include <weir/base.h>

enum { WEIR__CLUSTER_SLOTS = 16384 };

/* Of any key: what stands in its first braces counts alone, if it is not
 * empty. */
uint16_t weir__cluster_slot(struct weir_slice key);

/* Of all keys "PREFIX:{topic}:..."; a name has no braces. */
uint16_t weir__cluster_slot_of_topic(struct weir_slice topic);

#endif
