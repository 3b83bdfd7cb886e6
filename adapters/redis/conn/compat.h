/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CONN_COMPAT_H
#define WEIR_CONN_COMPAT_H

/* hiredis 0.14 and 1.x through what they have in common; the differences that
 * remain are named here and nowhere else. */

#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <hiredis/sds.h>

#if HIREDIS_MAJOR >= 1
typedef size_t weir__array_len;
#    define WEIR__HIREDIS_RESP3 1
#else
typedef int weir__array_len;
#    define WEIR__HIREDIS_RESP3 0
#endif

/* Readers with a bound for the elements of an array. */
#if HIREDIS_MAJOR > 1 || \
    (HIREDIS_MAJOR == 1 && (HIREDIS_MINOR > 0 || HIREDIS_PATCH >= 1))
#    define WEIR__HIREDIS_MAX_ELEMENTS 1
#else
#    define WEIR__HIREDIS_MAX_ELEMENTS 0
#endif

#endif
