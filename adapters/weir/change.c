/* SPDX-License-Identifier: MIT */
#include "adapters/weir/facade.h"

#include <string.h>

#include "core/mem.h"
#include "core/text.h"

/* Changes of what is served, all or none. */

static int check_leaving(const struct weir_reactor *reactor, const char *topic,
                         struct weir_error *err)
{
    int rc = weir__topic_check(weir__slice_str(topic), err);

    if (rc < 0 || weir__reactor_serves(reactor->core, weir__slice_str(topic)))
        return rc;
    return weir__error_set(err, WEIR_ENOTFOUND, "topic %s is not served",
                           topic);
}

static int check_once(const struct weir_change *changes, size_t at,
                      struct weir_error *err)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(changes[i].topic, changes[at].topic) == 0)
            return weir__error_set(err, WEIR_EINVAL,
                                   "topic %s is given twice: change it once",
                                   changes[at].topic);
    return WEIR_OK;
}

static int prepare(struct weir_reactor *reactor,
                   const struct weir_change *changes, size_t at,
                   struct weir__prepared *ret_prepared, struct weir_error *err)
{
    const struct weir_change *change = &changes[at];
    int rc = check_once(changes, at, err);

    if (rc < 0)
        return rc;
    if (change->options == NULL)
        return check_leaving(reactor, change->topic, err);
    return weir__facade_prepare(reactor, change->topic, change->options, true,
                                ret_prepared, err);
}

static void commit(struct weir_reactor *reactor,
                   const struct weir_change *change,
                   const struct weir__prepared *prepared)
{
    if (change->options == NULL)
        weir__reactor_unserve(reactor->core, weir__slice_str(change->topic));
    else
        weir__facade_commit(reactor, prepared);
}

int weir_reactor_change(struct weir_reactor *reactor,
                        const struct weir_change *changes, size_t count,
                        size_t *ret_at, struct weir_error *err)
{
    struct weir__prepared *prepared;
    int rc = WEIR_OK;
    size_t done = 0;

    *ret_at = count;
    if (reactor->is_freed)
        return weir__error_code(err, WEIR_ECANCELED);
    prepared = weir__mem_new((count + 1) * sizeof(*prepared));
    if (prepared == NULL)
        return weir__error_code(err, WEIR_ENOMEM);
    while (rc == WEIR_OK && done < count) {
        rc = prepare(reactor, changes, done, &prepared[done], err);
        done += rc == WEIR_OK;
    }
    for (size_t i = 0; i < done; i++)
        if (rc == WEIR_OK)
            commit(reactor, &changes[i], &prepared[i]);
        else
            weir__facade_cancel(reactor, &prepared[i]);
    if (rc < 0)
        *ret_at = done;
    weir__mem_free(prepared);
    return rc;
}

/* --- what has ended ------------------------------------------------------- */

static void unlink_plugin(struct weir_reactor *reactor,
                          const struct weir__bound_plugin *bound)
{
    struct weir__bound_plugin **at = &reactor->plugins;

    while (*at != bound)
        at = &(*at)->next;
    *at = bound->next;
}

void weir__facade_ended(const char *topic, void *self, void *owner, void *arg)
{
    struct weir_reactor *reactor = arg;

    if (owner != NULL) {
        unlink_plugin(reactor, owner);
        weir__facade_close_plugin(reactor, owner);
    }
    if (reactor->ended_fn != NULL)
        reactor->ended_fn(topic, owner == NULL ? self : NULL,
                          reactor->ended_arg);
}

void weir_reactor_on_ended(struct weir_reactor *reactor, weir_ended_fn fn,
                           void *arg)
{
    reactor->ended_fn = fn;
    reactor->ended_arg = arg;
}
