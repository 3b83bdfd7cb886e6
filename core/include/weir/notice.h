/* SPDX-License-Identifier: MIT */
#ifndef WEIR_NOTICE_H
#define WEIR_NOTICE_H

/* For hosts that would have to ask again and again: to be told once that there
 * is room for more jobs, that what was added is answered, or that what ran is
 * settled. On the loop's thread. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Runs once, from a later turn of the loop, behind the callbacks of what it
 * waited for. WEIR_ECANCELED: the reactor was freed before. */
typedef void (*weir_notice_fn)(int code, void *arg);

/* After WEIR_EFULL: have `fn` called when the topic's server has answered so
 * much that 16 MiB at most wait for it. It comes without a connection, too:
 * what waits fails then, in its time. Nothing is said of max_pending, and of
 * groups that are full. WEIR_EINVAL (name), WEIR_ENOMEM, WEIR_ECANCELED. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_when_room(struct weir_reactor *reactor, const char *topic,
                       weir_notice_fn fn, void *arg);

/* Count jobs that are added from now on. Adds that nobody waits for in this way
 * are not counted, and cost nothing. WEIR_ENOMEM, WEIR_ECANCELED. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_count_added(struct weir_reactor *reactor);

/* Have `fn` called when each job is answered that was added since the last such
 * call, or since weir_reactor_count_added; those of weir_reactor_submit count
 * from when the loop has taken them. `code`: WEIR_OK: the server has all of
 * them (WEIR_EEXISTS is as good); else the first other code that one of them
 * got. WEIR_EINVAL (they are not counted), WEIR_ENOMEM, WEIR_ECANCELED. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_when_added(struct weir_reactor *reactor, weir_notice_fn fn,
                        void *arg);

/* Have `fn` called when the server has answered each verdict that was there by
 * the end of this turn; that of the handler that calls this is one. What it
 * refused is counted in weir_totals. Without a connection that may take for
 * ever. WEIR_ENOMEM, WEIR_ECANCELED. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_when_settled(struct weir_reactor *reactor, weir_notice_fn fn,
                          void *arg);

#ifdef __cplusplus
}
#endif
#endif
