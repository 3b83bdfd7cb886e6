/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "adapters/msgpack/record.h"
#include "adapters/redis/classic/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* How messages end. Done ones that were not parked ended when they were taken:
 * nothing is sent. */

static void on_settled(int code, const struct redisReply *reply, void *arg)
{
    struct weir__consumer *consumer = arg;
    struct weir__classic_topic *topic = consumer->topic;
    int64_t is_mine = 1;

    if (code == WEIR_OK && !weir__reply_int(reply, 0, &is_mine))
        code = WEIR_ESERVER;
    if (code == WEIR_ECANCELED)
        return; /* the store is being closed */
    if (code != WEIR_OK) {
        weir__consumer_lost(consumer, "settle", code, reply);
    } else {
        weir__asker_tell(consumer->message->run.asker,
                         is_mine == 0 ? WEIR_ENOTFOUND : WEIR_OK);
        weir__consumer_forget(consumer);
        weir__consumer_next(consumer);
    }
    if (code != WEIR_OK || is_mine == 0)
        weir__topic_log_loss(&topic->base, WEIR__LOSS_VERDICTS, 1,
                             (struct weir_slice){0});
    if (topic->base.user != NULL)
        topic->base.store->events.settled(topic->base.user, 1, is_mine == 0);
}

/* The beginning of the command; id and what to store follow. */
static void begin_settle(struct weir__buf *buf,
                         const struct weir__consumer *consumer,
                         const char *what)
{
    const struct weir__classic_topic *topic = consumer->topic;

    weir__resp_eval(buf, &weir__script_classic_settle, 7, 6);
    weir__prefix_keys(buf, &topic->base.prefix,
                      "fifo parked alive meta options idle absent");
    weir__resp_str(buf, topic->base.name);
    weir__resp_str(buf, consumer->message->is_parked ? consumer->owner : "");
    weir__resp_str(buf, what);
    weir__resp_int(buf, weir__classic_delay_ms(topic));
}

/* Where it is parked a repeated call finds that it has been settled. */
static unsigned flags_of(const struct weir__consumer *consumer)
{
    return consumer->message->is_parked ? WEIR__SEND_AGAIN : WEIR__SEND_ONCE;
}

/* --- verdicts ------------------------------------------------------------- */

static const char *word_of(const struct weir__run *run)
{
    switch (run->outcome) {
    case WEIR__OUTCOME_DONE:
        return "done";
    case WEIR__OUTCOME_RETRY:
        return "retry";
    case WEIR__OUTCOME_SNOOZE:
        return "snooze";
    case WEIR__OUTCOME_DEAD:
        return weir__slice_equal(run->record.reason, weir__slice_str("expired"))
                   ? "expire"
                   : "fail";
    case WEIR__OUTCOME_RETURN:
    case WEIR__OUTCOME_TAKEN:
    case WEIR__OUTCOME_NONE:
    default:
        WEIR_UNREACHABLE("this outcome is not sent as a verdict");
    }
}

static void send_verdict(struct weir__consumer *consumer)
{
    const struct weir__run *run = &consumer->message->run;
    struct weir__buf bytes = {0}, record = {0}, attempts = {0};
    struct weir__record again = run->record;

    weir__consumer_state(consumer, WEIR__CONSUMER_SETTLING);
    begin_settle(&bytes, consumer, word_of(run));
    weir__resp_bytes(&bytes, run->id);
    if (run->outcome == WEIR__OUTCOME_RETRY ||
        run->outcome == WEIR__OUTCOME_SNOOZE) {
        weir__attempts_note(consumer->topic->base.store, run, 0, &again,
                            &attempts);
        weir__record_write(&record, &again);
        weir__buf_fini(&attempts);
    }
    weir__resp_bytes(&bytes, weir__buf_slice(&record));
    bytes.failed = bytes.failed || record.failed;
    weir__buf_fini(&record);
    weir__consumer_send(consumer, &bytes, &weir__script_classic_settle,
                        flags_of(consumer), on_settled);
}

void weir__classic_settle(struct weir__store_topic *base, struct weir__run *run)
{
    struct weir__classic_topic *topic = weir__classic_topic_of(base);
    struct weir__message *message = run->batch;
    struct weir__consumer *consumer = message->consumer;

    WEIR_ASSERT(consumer->message == message);
    WEIR_ASSERT(consumer->state == WEIR__CONSUMER_OUT);
    if (run->outcome == WEIR__OUTCOME_RETURN) {
        weir__consumer_state(consumer, WEIR__CONSUMER_BACK);
        topic->has_backs = true;
        weir__topic_mark(&topic->base);
    } else if (run->outcome == WEIR__OUTCOME_TAKEN ||
               (run->outcome == WEIR__OUTCOME_DONE && !message->is_parked)) {
        weir__asker_tell(run->asker, WEIR_OK);
        weir__consumer_forget(consumer);
        weir__consumer_next(consumer);
    } else {
        send_verdict(consumer);
    }
}

/* --- giving back ---------------------------------------------------------- */

static int newest_first(const void *left, const void *right)
{
    struct weir__consumer *const *one = left, *const *other = right;
    uint64_t a = (*one)->message->run.token, b = (*other)->message->run.token;

    return (a < b) - (a > b);
}

static void send_back(struct weir__consumer *consumer)
{
    const struct weir__message *message = consumer->message;
    unsigned flags = flags_of(consumer);
    struct weir__buf bytes = {0};
    int rc;

    weir__consumer_state(consumer, WEIR__CONSUMER_SETTLING);
    begin_settle(&bytes, consumer, "back");
    weir__resp_str(&bytes, "");
    weir__resp_bytes(&bytes, weir__slice_of(message->bytes, message->len));
    rc = weir__place_command(consumer->topic->base.place, &bytes,
                             &weir__script_classic_settle, flags, on_settled,
                             consumer);
    if (rc < 0)
        weir__consumer_lost(consumer, "settle", rc, NULL);
}

/* One after the other on one connection, which keeps their order. */
void weir__classic_flush_backs(struct weir__classic_topic *topic)
{
    struct weir__consumer **backs;
    size_t count = 0;

    if (!topic->has_backs)
        return;
    backs = weir__mem_grow(NULL, topic->consumer_count, sizeof(backs[0]));
    if (backs == NULL)
        return; /* the next flush tries again */
    topic->has_backs = false;
    for (size_t i = 0; i < topic->consumer_count; i++)
        if (topic->consumers[i]->state == WEIR__CONSUMER_BACK)
            backs[count++] = topic->consumers[i];
    qsort(backs, count, sizeof(backs[0]), newest_first);
    for (size_t i = 0; i < count; i++)
        send_back(backs[i]);
    weir__mem_free(backs);
}
