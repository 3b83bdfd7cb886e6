/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/external/private.h"
#include "core/assert.h"
#include "core/mem.h"
#include "core/text.h"

/* Entries in one state: first where these are, then a page at a time. What is
 * ready has two parts: what came back and is due, then what nobody took. */

enum { HEAD = 2, FIELDS = 5, PAGE = 500, SCORE_CAP = 32 };

struct listing {
    struct weir__request request; /* first */
    struct weir__external_topic *topic;
    struct weir__external_place at;
    enum weir_job_state state;
    size_t left;
    /* The next page is behind this one of the state, or of its part. */
    bool is_untaken;
    char score[SCORE_CAP]; /* "": the first */
    uint8_t member[WEIR_MAX_ID + 1];
    size_t member_len;
    weir_show_fn fn;
    void *arg;
};

static void finish(struct listing *listing, int code)
{
    listing->fn(code, NULL, listing->arg);
    weir__mem_free(listing);
}

/* --- places --------------------------------------------------------------- */

/* STATE, "n" for what nobody took or "w", SCORE, ":", the bytes of the member
 * in hexadecimal digits. */
static struct weir_slice put_place(const struct listing *listing,
                                   char place[WEIR_MAX_PLACE + 1])
{
    int len =
        snprintf(place, WEIR_MAX_PLACE + 1, "%d%c%s:", (int)listing->state,
                 listing->is_untaken ? 'n' : 'w', listing->score);

    WEIR_ASSERT(len > 0 &&
                (size_t)len + 2 * listing->member_len <= WEIR_MAX_PLACE);
    for (size_t i = 0; i < listing->member_len; i++, len += 2)
        (void)snprintf(place + len, 3, "%02x", listing->member[i]); /* fits */
    return weir__slice_of(place, (size_t)len);
}

static bool read_member(struct listing *listing, const char *text, size_t len)
{
    if (len % 2 > 0 || len / 2 > sizeof(listing->member))
        return false;
    for (size_t i = 0; i < len / 2; i++) {
        int high = weir__hex_digit(text[2 * i]);
        int low = weir__hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        listing->member[i] = (uint8_t)(high * 16 + low);
    }
    listing->member_len = len / 2;
    return true;
}

static bool read_place(struct listing *listing, struct weir_slice text)
{
    char copy[WEIR_MAX_PLACE + 1] = "";
    size_t len;

    if (text.len == 0)
        return true;
    if (text.len < 2 || text.len > WEIR_MAX_PLACE ||
        memchr(text.ptr, '\0', text.len) != NULL)
        return false;
    memcpy(copy, text.ptr, text.len);
    len = strspn(copy + 2, "0123456789.e+-");
    listing->is_untaken = copy[1] == 'n' && listing->state == WEIR_JOB_READY;
    if (copy[0] != '0' + (int)listing->state ||
        (copy[1] != 'w' && !listing->is_untaken) || len == 0 ||
        len >= SCORE_CAP || copy[2 + len] != ':')
        return false;
    memcpy(listing->score, copy + 2, len);
    return read_member(listing, copy + 3 + len, text.len - 3 - len);
}

/* Behind an entry. No member of a sorted set comes between its bytes and these,
 * but where they are cut, which none of ours are. */
static void go_behind(struct listing *listing, struct weir_slice id,
                      struct weir_slice score)
{
    bool is_cut = id.len > WEIR_MAX_ID;

    WEIR_ASSERT(score.len < SCORE_CAP);
    memcpy(listing->score, score.ptr, score.len);
    listing->score[score.len] = '\0';
    listing->member_len = is_cut ? WEIR_MAX_ID : id.len;
    memcpy(listing->member, id.ptr, listing->member_len);
    if (!listing->is_untaken)
        listing->member[listing->member_len++] = is_cut ? 0xff : 0;
}

/* --- a page --------------------------------------------------------------- */

static bool show(struct listing *listing, const struct redisReply *reply,
                 size_t at)
{
    struct weir_job_info info = {.state = listing->state};
    struct weir__external_entry entry = {0};
    struct weir__record record = {0};
    struct weir__buf bytes = {0};
    struct weir_slice past, score;
    char place[WEIR_MAX_PLACE + 1];

    if (!weir__reply_str(reply, at, &info.id) ||
        !weir__reply_int(reply, at + 1, &info.due_ms) ||
        !weir__reply_str(reply, at + 2, &past) ||
        !weir__reply_str(reply, at + 4, &score) || score.len >= SCORE_CAP)
        return false;
    go_behind(listing, info.id, score);
    info.place = put_place(listing, place);
    if (!weir__id_is_sound(info.id))
        info.id = weir__slice_str("unreadable");
    weir__external_read_past(past, &record, NULL);
    (void)weir__external_read_body(listing->topic, &bytes,
                                   reply->element[at + 3], listing->at.body,
                                   &entry); /* its text, if it is no value */
    info.counters = record.counters;
    info.added_ms = weir__external_added_ms(listing->topic, info.id);
    info.reason = record.reason;
    info.error = record.error;
    if (!bytes.failed) {
        info.body = weir__slice_of(bytes.ptr + entry.body_at, entry.body_len);
        listing->fn(WEIR_OK, &info, listing->arg);
    }
    weir__buf_fini(&bytes);
    listing->left--;
    return true;
}

static void send_page(struct listing *listing);

static void on_page(struct weir__request *request, int code,
                    const struct redisReply *reply)
{
    struct listing *listing = (struct listing *)request; /* its first member */
    struct weir_slice kind;
    int64_t has_more = 0;

    weir__topic_log_error(&listing->topic->base, "list", code, reply);
    if (code == WEIR_OK && (!weir__reply_str(reply, 0, &kind) ||
                            !weir__reply_int(reply, 1, &has_more)))
        code = WEIR_ESERVER;
    for (size_t at = HEAD;
         code == WEIR_OK && listing->left > 0 && at + FIELDS <= reply->elements;
         at += FIELDS)
        if (!show(listing, reply, at))
            code = WEIR_ESERVER;
    if (code == WEIR_OK && listing->left > 0 && has_more == 0 &&
        listing->state == WEIR_JOB_READY && !listing->is_untaken) {
        listing->is_untaken = true;
        listing->score[0] = '\0';
        listing->member_len = 0;
        has_more = 1;
    }
    if (code == WEIR_OK && listing->left > 0 && has_more != 0)
        send_page(listing);
    else
        finish(listing, code);
}

static void send_page(struct listing *listing)
{
    struct weir__place *at = listing->topic->base.place;
    const size_t most = listing->left < PAGE ? listing->left : PAGE;
    struct weir__buf bytes = {0};

    listing->request.done = on_page;
    weir__resp_eval(&bytes, &weir__script_external_list, 7, 6);
    weir__prefix_keys(&bytes, &listing->topic->base.prefix,
                      "meta wait run held past dead");
    weir__resp_str(&bytes, listing->at.key);
    weir__resp_str(&bytes, listing->at.group);
    weir__resp_str(&bytes, listing->is_untaken
                               ? "untaken"
                               : weir_job_state_name(listing->state));
    weir__resp_str(&bytes, listing->score);
    weir__resp_bytes(&bytes,
                     weir__slice_of(listing->member, listing->member_len));
    weir__resp_int(&bytes, (int64_t)most);
    weir__resp_str(&bytes, weir__external_end(listing->at.is_right));
    weir__place_send(at, &bytes, &weir__script_external_list,
                     WEIR__SEND_AGAIN | weir__send_bodies(most),
                     &listing->request);
    weir__place_flush(at);
}

static void on_found(struct weir__request *request, int code,
                     const struct redisReply *reply)
{
    struct listing *listing = (struct listing *)request; /* its first member */

    code = weir__external_found(listing->topic, code, reply, &listing->at);
    if (code == WEIR_OK && listing->left > 0)
        send_page(listing);
    else
        finish(listing, code);
}

int weir__external_list(struct weir__store_topic *topic,
                        const struct weir__list *what, weir_show_fn fn,
                        void *arg)
{
    struct listing *listing = weir__mem_new(sizeof(*listing));

    if (listing == NULL)
        return WEIR_ENOMEM;
    listing->topic = weir__external_topic_of(topic);
    listing->state = what->state;
    listing->left = what->limit;
    listing->fn = fn;
    listing->arg = arg;
    if (!read_place(listing, what->after)) {
        weir__mem_free(listing);
        return WEIR_EINVAL;
    }
    listing->request.done = on_found;
    weir__external_find(listing->topic, &listing->request);
    return WEIR_OK;
}
