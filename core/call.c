/* SPDX-License-Identifier: MIT */
#include "core/call.h"

#include <string.h>

#include "core/assert.h"
#include "core/lane.h"

/* Append what fits. */
static void put(char *to, size_t cap, const char *text)
{
    size_t at = strlen(to), len = strlen(text);

    WEIR_ASSERT(at < cap);
    if (len > cap - 1 - at)
        len = cap - 1 - at;
    memcpy(to + at, text, len); /* zeroed behind it */
}

static void put_who(const struct weir__call *call, char *who, size_t cap)
{
    if (call->what != NULL) {
        put(who, cap, call->what);
        put(who, cap, " of ");
    }
    if (call->handler != NULL)
        put(who, cap, call->handler);
    else
        put(who, cap, call->what == NULL ? "the handler" : "the program");
}

void weir__call_copy(const struct weir__call *call, struct weir__held *ret_held)
{
    const struct weir__run *run = call->run;

    *ret_held = (struct weir__held){0};
    put_who(call, ret_held->who, sizeof(ret_held->who));
    if (call->topic != NULL)
        put(ret_held->topic, sizeof(ret_held->topic), call->topic);
    if (run == NULL)
        return;
    WEIR_ASSERT(run->id.len <= sizeof(ret_held->id));
    ret_held->began_ns = run->started_ns;
    ret_held->id_len = run->id.len;
    memcpy(ret_held->id, run->id.ptr, run->id.len);
}

/* `fields` are two. */
static struct weir_log_line line_of(const struct weir__held *held,
                                    int64_t held_ns,
                                    struct weir_log_field *fields)
{
    fields[0] = (struct weir_log_field){"handler", held->who, 0};
    fields[1] = (struct weir_log_field){"held_ms", NULL, held_ns / WEIR__MS_NS};
    return (struct weir_log_line){
        .level = WEIR_LEVEL_WARN,
        .topic = held->topic[0] == '\0' ? NULL : held->topic,
        .id = {held->id, held->id_len},
        .event = "held",
        .fields = fields,
        .field_count = 2,
    };
}

void weir__held_log(const struct weir__held *held, const struct weir__log *log,
                    int64_t held_ns)
{
    struct weir_log_field fields[2];
    const struct weir_log_line about = line_of(held, held_ns, fields);

    weir__log_about(log, &about,
                    "%s has held the loop for %lld s, and nothing else runs",
                    held->who, (long long)(fields[1].number / 1000));
}

void weir__held_log_ended(const struct weir__held *held,
                          const struct weir__log *log, int64_t held_ns,
                          int64_t most_ms)
{
    struct weir_log_field fields[2];
    const struct weir_log_line about = line_of(held, held_ns, fields);

    weir__log_about(log, &about,
                    "%s held the loop for %lld ms, and nothing else could run "
                    "(block_warn is %lld ms)",
                    held->who, (long long)fields[1].number, (long long)most_ms);
}
