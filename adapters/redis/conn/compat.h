/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_COMPAT_H
#define WEIR_CONN_COMPAT_H

/* hiredis 0.14 and 1.x through what they have in common; the differences that
 * remain are named here and nowhere else. */

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/sds.h>

/* Set by CMake where hiredis_ssl was found. */
#ifndef WEIR__HIREDIS_TLS
#    define WEIR__HIREDIS_TLS 0
#endif
#if WEIR__HIREDIS_TLS
#    include <hiredis/hiredis_ssl.h>
#endif

/* Among them, WEIR__HIREDIS_ROOT: the task of the reply as a whole. */
#if HIREDIS_MAJOR >= 1
typedef size_t weir__array_len;
#    define WEIR__HIREDIS_RESP3        1
#    define WEIR__HIREDIS_ROOT(reader) ((reader)->task[0])
#else
typedef int weir__array_len;
#    define WEIR__HIREDIS_RESP3        0
#    define WEIR__HIREDIS_ROOT(reader) (&(reader)->rstack[0])
#endif

#endif
