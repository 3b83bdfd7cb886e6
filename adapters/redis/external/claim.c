/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "adapters/redis/external/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Claiming: one call of a script, whose reply brings the entries. And what is
 * done with a lease meanwhile: it is prolonged, and it is noted that a suspect
 * of it is about to run. */

enum {
    REPLY_BYTES = 4 * 1024 * 1024, /* that a claim may bring, about */
    HEAD = 5,                      /* elements before the entries */
    FIELDS = 4                     /* of an entry */
};

struct claim_request {
    struct weir__request request;
    struct weir__external_topic *topic;
    size_t room; /* 0: a look */
};

/* --- claims ------------------------------------------------------------- */

static struct weir__external_lease *
lease_new(struct weir__external_topic *topic, size_t count)
{
    struct weir__external_lease *lease =
        weir__mem_new(sizeof(*lease) + count * (sizeof(lease->entries[0]) +
                                                sizeof(lease->runs[0])));

    if (lease == NULL)
        return NULL;
    lease->topic = topic;
    lease->runs = (struct weir__run *)(void *)(lease->entries + count);
    return lease;
}

void weir__external_lease_free(struct weir__external_lease *lease)
{
    weir__lease_end(&lease->base);
    for (size_t i = 0; i < lease->count; i++)
        if (lease->runs[i].magic == WEIR__RUN_MAGIC)
            weir__run_fini(&lease->runs[i]);
    weir__buf_fini(&lease->bytes);
    weir__mem_free(lease);
}

/* --- reading the reply -------------------------------------------------- */

/* A time that only somebody else can have written is moved to a bound. */
static int64_t bounded_due(int64_t due_ms)
{
    if (due_ms < 0)
        return 0;
    return due_ms < WEIR__DUE_MAX_MS ? due_ms : WEIR__DUE_MAX_MS;
}

/* False: not an answer of the script. */
static bool read_entry(struct weir__external_lease *lease, size_t index,
                       const struct redisReply *reply)
{
    size_t at = HEAD + FIELDS * index;
    struct weir__external_entry *entry = &lease->entries[index];
    struct weir__run *run = &lease->runs[index];
    struct weir_slice id, past;

    if (!weir__reply_str(reply, at, &id) ||
        !weir__reply_str(reply, at + 2, &past) ||
        !weir__reply_int(reply, at + 3, &run->due_ms))
        return false;
    run->due_ms = bounded_due(run->due_ms);
    entry->id_at = lease->bytes.len;
    entry->id_len = id.len;
    weir__buf_append(&lease->bytes, id.ptr, id.len);
    run->is_malformed = !weir__external_read_body(
                            lease->topic, &lease->bytes, reply->element[at + 1],
                            lease->topic->base.options->body, entry) ||
                        !weir__id_is_sound(id);
    entry->is_kept = !weir__slice_equal(past, weir__slice_str("-"));
    weir__external_read_past(past, &run->record, &run->blamed);
    run->is_suspect = run->record.counters.crashes > 0;
    run->record.reason = (struct weir_slice){0}; /* of an earlier death */
    run->record.error = (struct weir_slice){0};
    return true;
}

/* The bytes do not move any more. */
static void fill_run(struct weir__external_lease *lease, size_t index)
{
    const struct weir__external_entry *entry = &lease->entries[index];
    struct weir__run *run = &lease->runs[index];
    const uint8_t *bytes = lease->bytes.ptr;
    int64_t late_us = lease->time_us - run->due_ms * 1000;

    run->job.host = &weir__host;
    run->magic = WEIR__RUN_MAGIC;
    run->batch = lease;
    run->node = (uint32_t)index;
    run->id = weir__slice_of(bytes + entry->id_at, entry->id_len);
    if (!weir__id_is_sound(run->id))
        run->id = weir__slice_str("unreadable");
    if (run->is_malformed)
        weir__topic_log_loss(&lease->topic->base, WEIR__LOSS_MALFORMED, 1,
                             run->id);
    run->record.body = weir__slice_of(bytes + entry->body_at, entry->body_len);
    run->record.added_ms = weir__external_added_ms(lease->topic, run->id);
    run->token = lease->base.token;
    run->late_us = late_us < 0 ? 0 : late_us;
    run->claimed_ns = lease->claimed_ns;
    if (index + 1 < lease->count)
        run->next = run + 1;
}

static void note_bytes(struct weir__external_topic *topic, size_t bytes,
                       size_t count)
{
    bytes = bytes / count + 1;
    if (topic->entry_bytes > bytes)
        bytes = topic->entry_bytes - (topic->entry_bytes - bytes) / 4;
    topic->entry_bytes = bytes;
}

/* NULL: out of memory, or not an answer of the script. What was claimed comes
 * back by itself. */
static struct weir__external_lease *
read_claim(struct weir__external_topic *topic, const struct redisReply *reply,
           const struct weir__claim_head *head, size_t count)
{
    struct weir__external_lease *lease = lease_new(topic, count);
    bool is_sound = true;

    if (lease == NULL)
        return NULL;
    lease->time_us = head->time_us;
    for (size_t i = 0; i < count && is_sound; i++)
        is_sound = read_entry(lease, i, reply);
    if (!is_sound || lease->bytes.failed) {
        weir__external_lease_free(lease);
        return NULL;
    }
    weir__lease_begin(&lease->base, &topic->base, head->token);
    weir__claim_note_token(&topic->base, head->token);
    lease->claimed_ns = weir__redis_now_ns(topic->base.store);
    lease->count = count;
    lease->out = count;
    for (size_t i = 0; i < count; i++)
        fill_run(lease, i);
    note_bytes(topic, lease->bytes.len, count);
    return lease;
}

/* --- the claim ---------------------------------------------------------- */

static int read_reply(struct weir__external_topic *topic,
                      const struct redisReply *reply, size_t room,
                      struct weir__claimed *claimed,
                      struct weir__external_lease **ret_claim,
                      int64_t *ret_revision)
{
    struct weir__claim_head head;
    int rc = weir__claim_read(reply, room, claimed, &head);

    if (rc != WEIR_OK)
        return rc;
    if (claimed->count > WEIR__EXTERNAL_CALL ||
        (size_t)reply->elements < HEAD + FIELDS * claimed->count)
        return WEIR_ESERVER;
    weir__topic_log_aside(&topic->base, reply, HEAD + FIELDS * claimed->count);
    *ret_revision = head.revision;
    if (claimed->count == 0)
        return WEIR_OK;
    *ret_claim = read_claim(topic, reply, &head, claimed->count);
    return *ret_claim == NULL ? WEIR_ESERVER : WEIR_OK;
}

/* In a stream others wait for what comes behind the group's last id. */
static void note_last(struct weir__external_topic *topic,
                      const struct redisReply *reply)
{
    struct weir_slice id;

    if (!topic->is_stream)
        return;
    topic->waits_after[0] = '\0';
    if (!weir__reply_str(reply, HEAD, &id) ||
        id.len >= sizeof(topic->waits_after))
        return;
    memcpy(topic->waits_after, id.ptr, id.len);
    topic->waits_after[id.len] = '\0';
}

static void deliver(struct weir__external_topic *topic,
                    const struct weir__claimed *claimed,
                    struct weir__external_lease *lease)
{
    const struct weir__store_events *events = &topic->base.store->events;

    if (topic->base.user == NULL) {
        if (lease != NULL)
            weir__external_lease_free(lease); /* its lease runs out */
        return;
    }
    events->claimed(topic->base.user, claimed);
    if (lease != NULL)
        events->arrived(topic->base.user, lease->runs, lease->count, 0);
}

static void on_claimed(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct claim_request *claim =
        (struct claim_request *)request; /* its first member */
    struct weir__external_topic *topic = claim->topic;
    struct weir__claimed claimed = {.next_due_us = -1};
    struct weir__external_lease *lease = NULL;
    size_t room = claim->room;
    int64_t revision = topic->base.revision;

    weir__mem_free(claim);
    weir__topic_log_error(&topic->base, "claim", code, reply);
    if (code == WEIR_ETOOBIG) /* they come again after their lease, by ones */
        topic->entry_bytes = REPLY_BYTES + 1;
    if (code == WEIR_OK) {
        code = read_reply(topic, reply, room, &claimed, &lease, &revision);
        if (code == WEIR_ESERVER)
            weir__topic_log_error(&topic->base, "claim", code, reply);
    }
    if (code != WEIR_OK)
        claimed = (struct weir__claimed){.next_due_us = -1};
    claimed.code = code;
    if (code == WEIR_OK && claimed.count == 0 && !claimed.is_paused &&
        room > 0 && topic->base.user != NULL &&
        revision == topic->base.revision) {
        note_last(topic, reply);
        weir__external_wait(topic);
    }
    if (revision != topic->base.revision && topic->base.user != NULL &&
        !claimed.is_paused)
        weir__topic_follow(&topic->base, revision);
    else
        deliver(topic, &claimed, lease);
}

/* There was too much in the outbox: the worker comes again a second later. */
static void on_crowded(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    const struct weir__claimed claimed = {.code = WEIR_ESERVER,
                                          .next_due_us = -1};
    struct weir__external_topic *topic =
        ((struct claim_request *)request)->topic; /* its first member */

    weir__mem_free(request);
    if (code == WEIR_OK)
        weir__relays_note_length(&topic->outbox, reply->integer);
    deliver(topic, &claimed, NULL);
}

static size_t room_of(const struct weir__external_topic *topic)
{
    size_t bytes = topic->entry_bytes > 0 ? topic->entry_bytes : 4096;
    size_t most = REPLY_BYTES / bytes + 1;

    return most < topic->base.claim.room ? most : topic->base.claim.room;
}

static void write_claim(struct weir__buf *bytes,
                        const struct weir__external_topic *topic)
{
    const struct weir__options *options = topic->base.options;
    bool is_stream = topic->is_stream;
    const char *key = weir__external_key(topic);
    const char *body = weir__external_body_names[options->body];

    weir__resp_eval(bytes,
                    is_stream ? &weir__script_external_claim_stream
                              : &weir__script_external_claim_list,
                    9, is_stream ? 11 : 9);
    weir__prefix_keys(bytes, &topic->base.prefix,
                      "meta wait run lease held past auto");
    weir__resp_str(bytes, key);
    weir__prefix_key(bytes, &topic->base.prefix, "absent");
    weir__resp_str(bytes, is_stream ? "stream" : "list");
    weir__resp_int(bytes, (int64_t)room_of(topic));
    weir__resp_int(bytes, topic->base.claim.lease_ms);
    weir__resp_int(bytes, topic->base.revision);
    weir__resp_str(bytes, strcmp(key, topic->base.name) == 0 ? "" : key);
    if (!is_stream) {
        weir__resp_int(bytes, options->auto_ack);
        weir__claim_write_server(bytes, &topic->base);
        weir__resp_str(bytes, weir__external_end(options->end == WEIR__RIGHT));
        weir__resp_str(bytes, body);
        return;
    }
    weir__resp_str(bytes, weir__external_group(topic));
    weir__resp_str(bytes, topic->consumer);
    weir__resp_str(bytes, options->start != 0 ? "$" : "0");
    weir__resp_int(bytes, options->claim_idle);
    weir__claim_write_server(bytes, &topic->base);
    weir__resp_str(bytes, body);
}

void weir__external_flush_claim(struct weir__external_topic *topic)
{
    struct weir__buf bytes = {0};
    struct claim_request *claim;

    if (!topic->base.wants_claim)
        return;
    claim = weir__mem_new(sizeof(*claim));
    if (claim == NULL) {
        weir__topic_mark(&topic->base); /* the next flush tries again */
        return;
    }
    topic->base.wants_claim = false;
    claim->request.done = on_claimed;
    claim->topic = topic;
    claim->room = topic->base.claim.room;
    weir__relays_look(&topic->outbox);
    if (weir__relays_is_full(&topic->outbox)) {
        claim->request.done = on_crowded;
        weir__relays_ask_length(&topic->outbox, &claim->request);
        return;
    }
    write_claim(&bytes, topic);
    weir__place_send(topic->base.place, &bytes,
                     topic->is_stream ? &weir__script_external_claim_stream
                                      : &weir__script_external_claim_list,
                     WEIR__SEND_HERE | weir__send_bodies(room_of(topic)),
                     &claim->request);
}

/* --- prolonging --------------------------------------------------------- */

void weir__external_renew(struct weir__renewals *renewals,
                          const struct weir__store_topic *base,
                          int64_t lease_ms)
{
    const struct weir__external_topic *topic =
        (const struct weir__external_topic *)base; /* its first member */
    const struct weir__lease *lease = base->leases;
    struct weir__buf *buf = &renewals->bytes;

    while (lease != NULL) {
        size_t count = weir__leases_count(lease, WEIR__EXTERNAL_CALL, NULL);

        weir__renewals_begin(renewals, &weir__script_external_renew);
        weir__resp_eval(buf, &weir__script_external_renew, 4, 3 + count);
        weir__prefix_keys(buf, &base->prefix, "lease run");
        weir__resp_str(buf, weir__external_key(topic));
        weir__prefix_key(buf, &base->prefix, "meta");
        weir__resp_int(buf, lease_ms);
        weir__resp_str(buf, weir__external_group(topic));
        weir__resp_str(buf, topic->consumer);
        for (; count > 0; lease = lease->next, count--)
            weir__resp_int(buf, (int64_t)lease->token);
        weir__renewals_end(renewals);
    }
}

/* --- suspects ----------------------------------------------------------- */

static void on_started(struct weir__request *request, int code,
                       const struct redisReply *reply)
{
    struct weir__external_entry *entry =
        (struct weir__external_entry *)request; /* first */
    struct weir__run *run = entry->starting;
    const struct weir__external_lease *lease = run->batch;
    struct weir__external_topic *topic = lease->topic;
    int64_t is_ours = 0;

    entry->starting = NULL;
    weir__topic_log_error(&topic->base, "start", code, reply);
    if (code == WEIR_OK && !weir__reply_int(reply, 0, &is_ours))
        code = WEIR_ESERVER;
    if (code == WEIR_OK && is_ours != 1)
        code = WEIR_ENOTFOUND;
    if (topic->base.user != NULL)
        topic->base.store->events.started(topic->base.user, run, code);
}

void weir__external_start(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__external_topic *topic = weir__external_topic_of(base);
    struct weir__external_lease *lease = run->batch;
    struct weir__external_entry *entry = &lease->entries[run->node];
    struct weir__buf bytes = {0};

    WEIR_ASSERT(run->magic == WEIR__RUN_MAGIC && lease->topic == topic);
    WEIR_ASSERT(run->is_suspect && entry->starting == NULL);
    entry->start.done = on_started;
    entry->starting = run;
    weir__resp_eval(&bytes, &weir__script_external_start, 2, 2);
    weir__prefix_keys(&bytes, &topic->base.prefix, "run past");
    weir__resp_int(&bytes, (int64_t)run->token);
    weir__resp_bytes(&bytes, run->id);
    weir__place_send(topic->base.place, &bytes, &weir__script_external_start,
                     WEIR__SEND_AGAIN, &entry->start);
}
