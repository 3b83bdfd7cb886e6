/* SPDX-License-Identifier: MIT */
#include "core/handler_counters.h"

#include <string.h>

#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* On the loop's thread a handler counts in the counters of its lane, on other
 * threads in those of its thread run. */

static bool is_name(const char *name)
{
    size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return len > 0 && len <= WEIR__COUNTER_NAME && name[len] == '\0';
}

/* Only the first refusal is kept. */
static void refuse(struct weir__handler_counters *counters, int code,
                   const char *name)
{
    size_t len = strlen(name);

    if (counters->refused != 0)
        return;
    if (len > WEIR__COUNTER_NAME)
        len = WEIR__COUNTER_NAME;
    counters->refused = code;
    memcpy(counters->refused_name, name, len);
}

/* Where the name is, or belongs. */
static size_t place_of(const struct weir__handler_counters *counters,
                       const char *name, bool *ret_is_there)
{
    size_t low = 0, high = counters->count;

    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = strcmp(counters->entries[mid].name, name);

        if (order == 0) {
            *ret_is_there = true;
            return mid;
        }
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    *ret_is_there = false;
    return low;
}

void weir__handler_counters_add(struct weir__handler_counters *counters,
                                const char *name, uint64_t by)
{
    struct weir__handler_counter *entry;
    bool is_there;
    size_t at = place_of(counters, name, &is_there);

    entry = counters->entries + at;
    if (is_there) {
        entry->value += by;
        return;
    }
    if (!is_name(name)) {
        refuse(counters, WEIR_EINVAL, name);
        return;
    }
    if (counters->count == WEIR__COUNTERS_MAX) {
        refuse(counters, WEIR_EFULL, name);
        return;
    }
    memmove(entry + 1, entry, (counters->count - at) * sizeof(*entry));
    memcpy(entry->name, name, strlen(name) + 1);
    entry->value = by;
    counters->count++;
}

/* Add all of `from`. */
static void merge(struct weir__handler_counters *counters,
                  const struct weir__handler_counters *from)
{
    for (size_t i = 0; i < from->count; i++)
        weir__handler_counters_add(counters, from->entries[i].name,
                                   from->entries[i].value);
    if (from->refused != 0)
        refuse(counters, from->refused, from->refused_name);
}

/* Made at the first count. Without memory counters are lost. */
static struct weir__handler_counters *
open_counters(struct weir__handler_counters **counters)
{
    if (*counters == NULL)
        *counters = weir__mem_new(sizeof(**counters));
    return *counters;
}

/* One warning for a lane: `before` is the code of an earlier refusal, or 0. */
static void warn_refused(const struct weir__lane *lane, int before)
{
    const struct weir__handler_counters *counters = lane->counters;
    char quoted[WEIR__TEXT_QUOTE_CAP];

    if (before != 0 || counters->refused == 0)
        return;
    (void)weir__text_quote(weir__slice_str(counters->refused_name), quoted);
    if (counters->refused == WEIR_EFULL)
        weir__log(lane->reactor->options.log, WEIR_LEVEL_WARN,
                  "%s: counter \"%s\" is ignored, a handler has %d at most",
                  lane->name, quoted, WEIR__COUNTERS_MAX);
    else
        weir__log(lane->reactor->options.log, WEIR_LEVEL_WARN,
                  "%s: counter \"%s\" is ignored, a name is 1 to %d of a-z 0-9 "
                  "and _",
                  lane->name, quoted, WEIR__COUNTER_NAME);
}

void weir__run_count(struct weir_job *job, const char *name, uint64_t by)
{
    struct weir__run *run = weir__run_of(job);
    struct weir__lane *lane = run->lane;
    int before;

    WEIR_ASSERT(name != NULL);
    if (run->thread_run != NULL) {
        if (open_counters(&run->thread_run->counters) != NULL)
            weir__handler_counters_add(run->thread_run->counters, name, by);
        return;
    }
    if (open_counters(&lane->counters) == NULL)
        return;
    before = lane->counters->refused;
    weir__handler_counters_add(lane->counters, name, by);
    warn_refused(lane, before);
}

void weir__lane_add_counters(struct weir__lane *lane,
                             const struct weir__handler_counters *from)
{
    int before;

    if (open_counters(&lane->counters) == NULL)
        return;
    before = lane->counters->refused;
    merge(lane->counters, from);
    warn_refused(lane, before);
}
