/* SPDX-License-Identifier: MIT */
#include "core/follow.h"

#include <string.h>

#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

static struct weir_slice text_of(const char *text)
{
    return text == NULL ? (struct weir_slice){0} : weir__slice_str(text);
}

static struct weir_slice keep(uint8_t **to, struct weir_slice slice)
{
    struct weir_slice kept = {*to, slice.len};

    if (slice.len == 0)
        return (struct weir_slice){0};
    memcpy(*to, slice.ptr, slice.len);
    *to += slice.len;
    return kept;
}

int weir__follow_add(struct weir__follows *follows, struct weir_slice topic,
                     const struct weir_follow *job, struct weir_slice headers)
{
    struct weir_slice id = text_of(job->id), url = text_of(job->url);
    struct weir_slice retry = text_of(job->retry);
    size_t bytes =
        topic.len + id.len + url.len + retry.len + headers.len + job->body.len;
    struct weir__follow *follow;
    uint8_t *to;

    if (follows->count == WEIR__FOLLOWS_MAX ||
        bytes > WEIR__FOLLOW_BYTES_MAX - follows->bytes)
        return WEIR_EFULL;
    follow = weir__mem_new(sizeof(*follow) + bytes);
    if (follow == NULL)
        return WEIR_ENOMEM;
    to = follow->bytes;
    follow->topic = keep(&to, topic);
    follow->id = keep(&to, id);
    follow->record.url = keep(&to, url);
    follow->record.retry = keep(&to, retry);
    follow->record.headers = keep(&to, headers);
    follow->record.body = keep(&to, job->body);
    follow->record.ttl_ms = job->ttl_ms;
    follow->delay_ms = job->delay_ms;
    follow->at_ms = job->at_ms;
    if (follows->last == NULL)
        follows->first = follow;
    else
        follows->last->next = follow;
    follows->last = follow;
    follows->count++;
    follows->bytes += bytes;
    return WEIR_OK;
}

void weir__follows_fini(struct weir__follows *follows)
{
    while (follows->first != NULL) {
        struct weir__follow *follow = follows->first;

        follows->first = follow->next;
        weir__mem_free(follow);
    }
    *follows = (struct weir__follows){0};
}
