/* SPDX-License-Identifier: MIT */
#include "core/follow.h"

#include <string.h>

#include "core/assert.h"
#include "core/keys.h"
#include "core/mem.h"
#include "core/text.h"

static struct weir_slice keep(uint8_t **to, struct weir_slice slice)
{
    struct weir_slice kept = {*to, slice.len};

    if (slice.len == 0)
        return (struct weir_slice){0};
    memcpy(*to, slice.ptr, slice.len);
    *to += slice.len;
    return kept;
}

static size_t bytes_of(const struct weir__follow *job)
{
    return job->topic.len + job->id.len + job->record.url.len +
           job->record.retry.len + job->record.headers.len +
           job->record.key.len + job->record.body.len;
}

int weir__follow_put(struct weir__follows *follows,
                     const struct weir__follow *job)
{
    size_t bytes = bytes_of(job);
    struct weir__follow *follow;
    uint8_t *to;

    if (follows->count == WEIR__FOLLOWS_MAX ||
        bytes > WEIR__FOLLOW_BYTES_MAX - follows->bytes)
        return WEIR_EFULL;
    follow = weir__mem_new(sizeof(*follow) + bytes);
    if (follow == NULL)
        return WEIR_ENOMEM;
    to = follow->bytes;
    follow->topic = keep(&to, job->topic);
    follow->id = keep(&to, job->id);
    follow->record.url = keep(&to, job->record.url);
    follow->record.retry = keep(&to, job->record.retry);
    follow->record.headers = keep(&to, job->record.headers);
    follow->record.key = keep(&to, job->record.key);
    follow->record.body = keep(&to, job->record.body);
    follow->record.ttl_ms = job->record.ttl_ms;
    follow->record.priority = job->record.priority;
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

int weir__follow_add(struct weir__follows *follows, struct weir_slice topic,
                     const struct weir_follow *job, struct weir_slice headers)
{
    struct weir__follow follow = {
        .topic = topic,
        .id = weir__slice_str(job->id),
        .record = {.retry = weir__slice_str(job->retry),
                   .ttl_ms = job->ttl_ms,
                   .url = weir__slice_str(job->url),
                   .headers = headers,
                   .key = weir__slice_str(job->key),
                   .body = job->body},
        .delay_ms = job->delay_ms,
        .at_ms = job->at_ms,
    };

    (void)weir__priority_read("", job->priority, &follow.record.priority,
                              NULL); /* it was checked */
    return weir__follow_put(follows, &follow);
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
