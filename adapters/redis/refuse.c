/* SPDX-License-Identifier: MIT */
#include "adapters/redis/refuse.h"

int weir__refuse_add(struct weir__store_topic *topic,
                     const struct weir__new_job *job, weir_added_fn fn,
                     void *arg)
{
    (void)topic;
    (void)job;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_show(struct weir__store_topic *topic, struct weir_slice id,
                      weir_show_fn fn, void *arg)
{
    (void)topic;
    (void)id;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_remove(struct weir__store_topic *topic, struct weir_slice id,
                        weir_delete_fn fn, void *arg)
{
    (void)topic;
    (void)id;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_reschedule(struct weir__store_topic *topic,
                            const struct weir__reschedule *what,
                            weir_reschedule_fn fn, void *arg)
{
    (void)topic;
    (void)what;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_count(struct weir__store_topic *topic, struct weir_slice id,
                       weir_count_fn fn, void *arg)
{
    (void)topic;
    (void)id;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_purge(struct weir__store_topic *topic, enum weir__purge what,
                       weir_count_fn fn, void *arg)
{
    (void)topic;
    (void)what;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_dead(struct weir__store_topic *topic, size_t limit,
                      weir_show_fn fn, void *arg)
{
    (void)topic;
    (void)limit;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_list(struct weir__store_topic *topic,
                      enum weir_job_state state, size_t limit, weir_show_fn fn,
                      void *arg)
{
    (void)topic;
    (void)state;
    (void)limit;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_pause(struct weir__store_topic *topic, bool is_paused,
                       weir_code_fn fn, void *arg)
{
    (void)topic;
    (void)is_paused;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_set(struct weir__store_topic *topic,
                     const struct weir__setting *settings, size_t count,
                     weir_code_fn fn, void *arg)
{
    (void)topic;
    (void)settings;
    (void)count;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_settings(struct weir__store_topic *topic, weir_setting_fn fn,
                          void *arg)
{
    (void)topic;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_kind(struct weir__store_topic *topic, weir_kind_fn fn,
                      void *arg)
{
    (void)topic;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_stats(struct weir__store_topic *topic, weir_stats_fn fn,
                       void *arg)
{
    (void)topic;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}

int weir__refuse_topics(struct weir__store *store, weir_topics_fn fn, void *arg)
{
    (void)store;
    (void)fn;
    (void)arg;
    return WEIR_EKIND;
}
