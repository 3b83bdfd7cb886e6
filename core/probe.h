/* SPDX-License-Identifier: MIT */
#ifndef WEIR_PROBE_H
#define WEIR_PROBE_H

/* Static probes for bpftrace and SystemTap, provider `weir`: a note in the
 * program and one instruction that does nothing, until somebody looks. With
 * WEIR_PROBES off, or without <sys/sdt.h>, not even that. Strings are not ended
 * by a NUL where a length follows them. docs/observe/README.md has a line for
 * each. */

#include <stdint.h> /* of what probes tell */

#ifdef WEIR__HAS_PROBES
#    include <sys/sdt.h>
#    ifdef __clang__ /* reports its macros where they are used */
#        pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#    endif
#    define WEIR__PROBE(name)              DTRACE_PROBE(weir, name)
#    define WEIR__PROBE2(name, a, b)       DTRACE_PROBE2(weir, name, a, b)
#    define WEIR__PROBE4(name, a, b, c, d) DTRACE_PROBE4(weir, name, a, b, c, d)
#else
#    define WEIR__PROBE(name)              ((void)0)
#    define WEIR__PROBE2(name, a, b)       ((void)0)
#    define WEIR__PROBE4(name, a, b, c, d) ((void)0)
#endif

#endif
