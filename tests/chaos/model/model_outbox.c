/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "adapters/redis/pack.h"
#include "tests/chaos/model/model.h"

/* Jobs for other topics: what settle calls record of them, and what becomes of
 * those that nobody can have. */

/* As the call said it, as a time. */
static int64_t due_in(const struct model *model, const struct pack *pack,
                      unsigned slot)
{
    return pack->jobs[is_one_time(pack) ? 0 : slot].ms +
           (has_delays(pack) ? model_now_ms(model) : 0);
}

static void say_when(const struct out *out, struct text *ret_when)
{
    const struct job *jobs = out->pack->jobs;
    struct weir__buf list = {0};

    text_clear(ret_when);
    if (is_one_time(out->pack)) {
        text_format(ret_when, "a%lld", (long long)jobs[0].due_ms);
        return;
    }
    weir__pack_array(&list, out->pack->count);
    for (unsigned slot = 0; slot < out->pack->count; slot++)
        weir__pack_uint(&list, (uint64_t)jobs[slot].due_ms);
    text_str(ret_when, "q");
    text_add(ret_when, (const char *)list.ptr, list.len);
    weir__buf_fini(&list);
}

/* In the shortest form, as the server writes it. */
static void write_number(struct weir__buf *list, unsigned number)
{
    const uint8_t byte[] = {0xcc, (uint8_t)number};
    const uint8_t word[] = {0xce, (uint8_t)(number >> 24),
                            (uint8_t)(number >> 16), (uint8_t)(number >> 8),
                            (uint8_t)number};

    if (number >= 128 && number < 256)
        weir__buf_append(list, byte, sizeof(byte));
    else if (number >= 65536)
        weir__buf_append(list, word, sizeof(word));
    else
        weir__pack_uint(list, number);
}

static void write_text(struct weir__buf *list, const struct text *text)
{
    const uint8_t head[] = {0xda, (uint8_t)(text->len >> 8),
                            (uint8_t)text->len};

    if (text->len < 256) {
        weir__pack_str(list, text_of(text), text->len);
        return;
    }
    weir__buf_append(list, head, sizeof(head));
    weir__buf_append(list, text_of(text), text->len);
}

static void say_entry(struct out *out)
{
    const char topic = away_name(out->topic);
    struct weir__buf list = {0};
    uint8_t gone[SLOTS];
    char seat[24];
    size_t count = 0;

    for (unsigned slot = 0; slot < out->pack->count; slot++)
        if (out->gone[slot])
            gone[count++] = (uint8_t)slot;
    (void)snprintf(seat, sizeof(seat), "!s%u", out->seat);
    weir__pack_array(&list, 10);
    weir__pack_uint(&list, 1);
    weir__pack_str(&list, &topic, 1);
    weir__pack_str(&list, "delay", 5);
    weir__pack_str(&list, seat, strlen(seat));
    write_number(&list, out->pack->number);
    write_number(&list, out->pack->count);
    write_number(&list, out->pack->header_len);
    write_text(&list, &out->when);
    weir__pack_str(&list, gone, count);
    weir__pack_str(&list, "", 0);
    text_clear(&out->entry);
    text_add(&out->entry, (const char *)list.ptr, list.len);
    weir__buf_fini(&list);
}

static void record_pack(struct model *model, const struct settle_call *call,
                        struct out *out)
{
    out->pack->is_staged = false;
    out->count = 0;
    for (unsigned slot = 0; slot < out->pack->count; slot++) {
        out->gone[slot] = model_is_out(call, out->sources[slot]);
        out->count += !out->gone[slot];
        out->pack->jobs[slot].due_ms = due_in(model, out->pack, slot);
    }
    if (out->count == 0)
        return;
    out->is_recorded = true;
    model->relaying++;
    if (out->is_dead)
        model->count.failed += out->count;
    say_when(out, &out->when);
    say_entry(out);
}

void model_record(struct model *model, struct settle_call *call,
                  struct text *answer)
{
    char seq[SEQ_LEN + 1];
    bool has_any = false;

    for (size_t i = 0; i < call->outs; i++) {
        struct out *out = &call->out[i];

        if (!out->is_recorded)
            record_pack(model, call, out);
        if (!out->is_recorded)
            continue;
        has_any = true;
        seq_text(out->pack->number, seq);
        text_format(answer, " -2 %s", seq);
        text_bytes(answer, text_of(&out->entry), out->entry.len);
    }
    if (has_any)
        text_format(answer, " -3 %lld", model->relaying);
}

void model_sent(struct model *model, struct out *out)
{
    out->is_recorded = false;
    model->relaying--;
}

void model_undeliverable(struct model *model, struct out *out,
                         long long most_dead, struct text *answer)
{
    size_t evicted;

    for (unsigned slot = 0; slot < out->pack->count; slot++) {
        const struct job *job = &out->pack->jobs[slot];
        struct id made = {out->pack->number, slot};
        uint32_t place;

        if (out->gone[slot])
            continue;
        if (out->pack->has_ids && !model_place(model, job->id, &place))
            model_die(model, job->id, job->body);
        else
            model_die(model, made, job->body);
    }
    evicted = model_drop_oldest(model, most_dead);
    model_sent(model, out);
    text_format(answer, "(%u %zu)", out->count, evicted);
}
