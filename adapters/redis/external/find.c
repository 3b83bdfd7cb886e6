/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/external/private.h"
#include "core/text.h"

/* Where the entries are. A program that only adds or looks has no options of
 * its own: it takes those that are stored with the topic, or what a worker that
 * serves it left in `meta`. */

/* Reply { kind, key stored, group stored, key served, group served }. */
void weir__external_find(struct weir__external_topic *topic,
                         struct weir__request *request)
{
    struct weir__buf bytes = {0};

    weir__resp_eval(&bytes, &weir__script_external_find, 2, 0);
    weir__prefix_keys(&bytes, &topic->base.prefix, "meta options");
    weir__redis_send(topic->base.store, &bytes, &weir__script_external_find,
                     WEIR__SEND_AGAIN, request);
}

static void choose(char *to, const char *served, const struct redisReply *reply,
                   size_t at, const char *usual)
{
    struct weir_slice text = weir__slice_str(usual), found;

    if (weir__reply_str(reply, at + 2, &found) && found.len > 0)
        text = found;
    if (weir__reply_str(reply, at, &found) && found.len > 0)
        text = found;
    if (served[0] != '\0')
        text = weir__slice_str(served);
    if (text.len > WEIR__SOURCE_MAX)
        text.len = WEIR__SOURCE_MAX;
    memcpy(to, text.ptr, text.len);
    to[text.len] = '\0';
}

int weir__external_found(const struct weir__external_topic *topic, int code,
                         const struct redisReply *reply,
                         struct weir__external_place *ret_place)
{
    const char *kind = topic->is_stream ? "stream" : "list";
    struct weir_slice stored;

    if (code != WEIR_OK)
        return code;
    if (!weir__reply_str(reply, 0, &stored))
        return WEIR_ESERVER;
    choose(ret_place->key, topic->base.options->key, reply, 1,
           topic->base.name);
    choose(ret_place->group, topic->base.options->group, reply, 2,
           topic->is_stream ? "weir" : "");
    if (!topic->is_stream)
        ret_place->group[0] = '\0';
    if (stored.len == 0)
        return WEIR_ENOTFOUND;
    return weir__slice_equal(stored, weir__slice_str(kind)) ? WEIR_OK
                                                            : WEIR_EKIND;
}
