/* SPDX-License-Identifier: MIT */
#include "core/assert.h"
#include "core/lane.h"
#include "core/mem.h"
#include "core/text.h"

/* Counters of handlers: on the loop's thread those of the lane, on others those
 * of the thread run. */

/* Made at the first count. Without memory what is counted is lost. */
static struct weir__tally *open_tally(struct weir__tally **tally)
{
    if (*tally == NULL)
        *tally = weir__mem_new(sizeof(**tally));
    return *tally;
}

/* Said once for the lane: `before` is what it had refused already. */
static void warn_refused(const struct weir__lane *lane, int before)
{
    const struct weir__tally *tally = lane->tally;
    char quoted[WEIR__TEXT_QUOTE_CAP];

    if (before != 0 || tally->refused == 0)
        return;
    (void)weir__text_quote(weir__slice_str(tally->refused_name), quoted);
    if (tally->refused == WEIR_EFULL)
        weir__log(lane->reactor->options.log, WEIR_LEVEL_WARN,
                  "%s: counter \"%s\" is ignored, a handler has %d at most",
                  lane->name, quoted, WEIR__TALLY_MAX);
    else
        weir__log(lane->reactor->options.log, WEIR_LEVEL_WARN,
                  "%s: counter \"%s\" is ignored, a name is 1 to %d of a-z 0-9 "
                  "and _",
                  lane->name, quoted, WEIR__TALLY_NAME);
}

void weir__run_count(struct weir_job *job, const char *name, uint64_t by)
{
    struct weir__run *run = weir__run_of(job);
    struct weir__lane *lane = run->lane;
    int before;

    WEIR_ASSERT(name != NULL);
    if (run->thread_run != NULL) {
        if (open_tally(&run->thread_run->tally) != NULL)
            weir__tally_add(run->thread_run->tally, name, by);
        return;
    }
    if (open_tally(&lane->tally) == NULL)
        return;
    before = lane->tally->refused;
    weir__tally_add(lane->tally, name, by);
    warn_refused(lane, before);
}

void weir__lane_counted(struct weir__lane *lane,
                        const struct weir__tally *counted)
{
    int before;

    if (open_tally(&lane->tally) == NULL)
        return;
    before = lane->tally->refused;
    weir__tally_merge(lane->tally, counted);
    warn_refused(lane, before);
}
