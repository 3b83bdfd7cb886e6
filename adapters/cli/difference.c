/* SPDX-License-Identifier: MIT */
#include "adapters/cli/difference.h"

#include <string.h>

bool weir__is_same_text(const char *one, const char *other)
{
    return one == NULL || other == NULL ? one == other
                                        : strcmp(one, other) == 0;
}

bool weir__is_same_handler(const struct weir__service *one,
                           const struct weir__service *other)
{
    if (!weir__is_same_text(one->file, other->file) ||
        one->option_count != other->option_count)
        return false;
    for (size_t i = 0; i < one->option_count; i++)
        if (strcmp(one->options[i], other->options[i]) != 0)
            return false;
    return true;
}

/* What the file says of an option, without its name; NULL: nothing. */
static const char *said_of(const struct weir__service *service, size_t option)
{
    const char *said =
        service->section == NULL ? NULL : service->section->said[option].value;

    return said == NULL ? NULL : strchr(said, '=') + 1;
}

static void put(struct weir__buf *text, const char *word)
{
    weir__buf_append(text, word, strlen(word));
}

/* Nothing where both are the same; NULL: the default. */
static void put_pair(struct weir__buf *text, const char *name,
                     const char *before, const char *after)
{
    if (weir__is_same_text(before, after))
        return;
    put(text, text->len > 0 ? ", " : "");
    put(text, name);
    put(text, " ");
    put(text, before == NULL ? "default" : before);
    put(text, " to ");
    put(text, after == NULL ? "default" : after);
}

void weir__difference_put(struct weir__buf *text,
                          const struct weir__service *was,
                          const struct weir__service *now)
{
    for (size_t i = 0; i < WEIR__TOPIC_OPTIONS; i++)
        put_pair(text, weir__topic_options[i].name, said_of(was, i),
                 said_of(now, i));
    put_pair(text, "handler", was->file, now->file);
    if (weir__is_same_text(was->file, now->file) &&
        !weir__is_same_handler(was, now))
        put(text, text->len > 0 ? ", the handler's options"
                                : "the handler's options");
}

bool weir__is_served_alike(const struct weir__service *was,
                           const struct weir__service *now)
{
    struct weir__buf text = {0};
    bool is_so;

    weir__difference_put(&text, was, now);
    is_so = text.len == 0 && !text.failed;
    weir__buf_fini(&text);
    return is_so;
}
