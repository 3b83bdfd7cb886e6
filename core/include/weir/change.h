/* SPDX-License-Identifier: MIT */
#ifndef WEIR_CHANGE_H
#define WEIR_CHANGE_H

/* Changing what a reactor serves while it works, for programs that read their
 * configuration again. */

#include <weir/weir.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a topic is to be served from now on. */
struct weir_change {
    const char *topic;
    /* As for weir_reactor_serve. With none of function, plugin and table the
     * handler that serves the topic stays, with what it was opened with. NULL:
     * the topic is served no longer. */
    const struct weir_topic_options *options;
};

/* Change what is served: topics come, go, get another handler or other options;
 * all as `changes` say, or nothing where one is wrong. Of a topic that goes
 * nothing is claimed any more, what has not begun is given back, what runs ends
 * as it would have, for as long as that takes. A handler that is replaced ends
 * the jobs that it began, the next one has those after them; options hold for
 * all at once. A plugin is opened anew, beside the instance before.
 *
 * Errors: those of weir_reactor_serve, but WEIR_EEXISTS; WEIR_ENOTFOUND also
 * for a topic that is not served and would go, or keep its handler; WEIR_EINVAL
 * also for a topic given twice, and another kind for one that is served.
 * `*ret_at` is the place of the change that is wrong, from 0; `count`: none in
 * particular. BLOCKS as weir_reactor_serve does. */
WEIR_API WEIR_MUST_CHECK int
weir_reactor_change(struct weir_reactor *reactor,
                    const struct weir_change *changes, size_t count,
                    size_t *ret_at, struct weir_error *err);

/* Called each time a handler has ended that was replaced, or whose topic went:
 * its last job was answered, no thread is in it, a plugin's instance is closed.
 * `self` is what a function was given, NULL of plugins and tables. From a turn
 * of its own; not where the reactor is freed before. `fn` may be NULL; a second
 * call replaces it. */
typedef void (*weir_ended_fn)(const char *topic, void *self, void *arg);
WEIR_API void weir_reactor_on_ended(struct weir_reactor *reactor,
                                    weir_ended_fn fn, void *arg);

#ifdef __cplusplus
}
#endif

#endif
