/* SPDX-License-Identifier: MIT */
#include "adapters/cli/followed.h"

#include "adapters/cli/output.h"
#include "adapters/json/json.h"
#include "core/text.h"

static size_t count_of(const struct weir_trial *trial)
{
    return trial == NULL ? 0 : weir_trial_follow_count(trial);
}

void weir__followed_print(const struct weir_trial *trial)
{
    for (size_t i = 0; i < count_of(trial); i++) {
        const struct weir_trial_follow *follow = weir_trial_follow_at(trial, i);
        char delay[24];

        (void)weir__duration_format(follow->delay_ms, delay);
        weir__print("adds     %s %s in %s: ", follow->topic,
                    follow->id[0] == '\0' ? "(made id)" : follow->id, delay);
        weir__print_text(weir__slice_str(follow->json));
        (void)printf("\n");
    }
}

static bool put_body(struct json_object *object, const char *json)
{
    struct json_object *body = NULL;
    struct weir__buf value = {0};
    int rc = weir__json_to_msgpack(weir__slice_str(json), &value, NULL);

    if (rc == WEIR_OK)
        rc = weir__json_from_msgpack(weir__buf_slice(&value), &body);
    weir__buf_fini(&value);
    if (rc < 0)
        return false;
    return body == NULL ? weir__json_put_null(object, "body")
                        : weir__json_put(object, "body", body);
}

static struct json_object *follow_json(const struct weir_trial_follow *follow)
{
    struct json_object *object = json_object_new_object();
    bool has_id = follow->id[0] != '\0';

    if (object != NULL &&
        weir__json_put(object, "topic",
                       weir__text_json(weir__slice_str(follow->topic))) &&
        (has_id ? weir__json_put(object, "id",
                                 weir__text_json(weir__slice_str(follow->id)))
                : weir__json_put_null(object, "id")) &&
        weir__json_put(object, "delay_ms",
                       json_object_new_int64(follow->delay_ms)) &&
        put_body(object, follow->json))
        return object;
    (void)json_object_put(object);
    return NULL;
}

struct json_object *weir__followed_json(const struct weir_trial *trial)
{
    struct json_object *array = json_object_new_array();

    for (size_t i = 0; array != NULL && i < count_of(trial); i++) {
        struct json_object *object =
            follow_json(weir_trial_follow_at(trial, i));

        if (object != NULL && json_object_array_add(array, object) == 0)
            continue;
        (void)json_object_put(object);
        (void)json_object_put(array);
        return NULL;
    }
    return array;
}
