/* SPDX-License-Identifier: MIT */
#ifndef WEIR_HEADER_H
#define WEIR_HEADER_H

/* What a job's header may be. Pure functions. */

#include <weir/job.h>

/* Of a header's name, in whatever case. */
bool weir__header_has_name(const struct weir_header *header,
                           struct weir_slice name);

/* NULL: none of them has this name. */
const struct weir_header *weir__header_find(const struct weir_header *headers,
                                            size_t count,
                                            struct weir_slice name);

/* Those of a job to add. WEIR_EINVAL with a sentence. */
int weir__headers_check(const struct weir_header *headers, size_t count,
                        struct weir_error *err);

/* The same of one that a server or another program wrote: what is none is shown
 * to nobody. */
bool weir__header_is_sound(const struct weir_header *header);

#endif
