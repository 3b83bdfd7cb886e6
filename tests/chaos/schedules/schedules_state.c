/* SPDX-License-Identifier: MIT */
#include "core/text.h"
#include "tests/chaos/schedules/schedules_run.h"

/* All that is on the server: where each id stands and since when, the schedules
 * in the records of ticks, those in the hash `cron`, and what is counted. What
 * stands there under no id of the model's is in the sums. */

static const char script[] =
    "local call, g = redis.call, 'weir:{t}:' "
    "local stands, slots = {}, 0 "
    "for _, key in ipairs({ 'wait', 'run' }) do "
    "  local nodes = call('ZRANGE', g .. key, 0, -1, 'WITHSCORES') "
    "  for i = 1, #nodes, 2 do "
    "    local seq, score = nodes[i]:sub(1, 12), tonumber(nodes[i + 1]) "
    "    local a, b, c, d = nodes[i]:byte(13, 16) "
    "    local lo, hi = a * 16 + b - 816, c * 16 + d - 816 "
    "    local due "
    "    if score >= 2 ^ 45 then "
    "      score = score - 2 ^ 45 "
    "      due = lo < hi and call('HGET', g .. 'due', seq) "
    "    end "
    "    for slot = lo, hi do "
    "      if due then "
    "        local f0, f1, b0, b1 = struct.unpack('<I4I2I4I2', due) "
    "        local more = struct.unpack('<I4', due, 13 + 4 * slot) "
    "        score = math.max(f0 + f1 * 2 ^ 32, b0 + b1 * 2 ^ 32 + more) "
    "      end "
    "      stands[seq .. slot] = "
    "        ('%s %.0f'):format(key, math.floor(score)) "
    "      slots = slots + 1 "
    "    end "
    "  end "
    "end "
    "local out, packs, left = {}, {}, 0 "
    "local function slots_of(place) "
    "  local bytes, slots = call('GET', g .. 'p:' .. place) or '', {} "
    "  if bytes:byte(5) == 1 then "
    "    for i, id in ipairs(({ cmsgpack.unpack_one(bytes, 8) })[2]) do "
    "      slots[id] = stands[place .. i - 1] or slots[id] "
    "    end "
    "  end "
    "  packs[place] = slots "
    "  return slots "
    "end "
    "local function look(id) "
    "  local place = call('HGET', g .. 'ids', id) "
    "  if not place or place == 'D' then return place and 'dead' or 'none' end "
    "  return (packs[place] or slots_of(place))[id] or 'no slot' "
    "end "
    "for i = 2, #ARGV do out[#out + 1] = ARGV[i] .. ' ' .. look(ARGV[i]) end "
    "for i = 0, ARGV[1] - 1 do "
    "  out[#out + 1] = call('HGET', g .. 'cron', 's' .. i) or 'none' "
    "end "
    "for _, key in ipairs(call('KEYS', g .. 'p:*')) do "
    "  if call('PTTL', key) < 0 then "
    "    local last, gone = call('GETRANGE', key, 2, 3):byte(1, 2) "
    "    left = left + last + 1 - gone "
    "  end "
    "end "
    "local n = {} "
    "for i, name in ipairs({ 'ticks', 'added', 'snoozed', 'returned', "
    "                        'claimed', 'settled', 'delwait', 'delrun' }) do "
    "  n[i] = tonumber(call('HGET', g .. 'meta', name) or 0) "
    "end "
    "out[#out + 1] = ('ids %d, stand %d, in packs %d, dead %d, ticks %d, ' .. "
    "                 'added %d, waiting %d, running %d'):format( "
    "  math.max(call('HLEN', g .. 'ids'), 1) - 1, slots, left, "
    "  call('ZCARD', g .. 'dead'), n[1], n[2], "
    "  n[2] + n[3] + n[4] - n[5] - n[7], n[5] - n[6] - n[4] - n[8]) "
    "return table.concat(out, '\\n')";

static void say_job(struct text *text, const struct sched_job *job)
{
    if (job->state == DEAD)
        text_format(text, "%s dead\n", job->id);
    else if (job->state == RUNS)
        text_format(text, "%s run %llu\n", job->id,
                    (unsigned long long)job->token);
    else
        text_format(text, "%s wait %lld\n", job->id, (long long)job->due_ms);
}

static void say_schedule(struct text *text,
                         const struct sched_schedule *schedule)
{
    struct weir__buf record = {0};
    size_t at;

    if (schedule->state == 0) {
        text_str(text, "none\n");
        return;
    }
    at = sched_write_record(&sched_whats[schedule->what], &record);
    text_format(text, "%c %lld %zu ", schedule->state,
                (long long)schedule->from_ms, at);
    text_bytes(text, record.ptr, record.len);
    text_str(text, "\n");
    weir__buf_fini(&record);
}

void sched_check_state(struct sched_run *run)
{
    const struct sched_model *model = &run->model;
    size_t in[DEAD + 1] = {0}, ticks = 0;

    for (size_t i = 0; i < model->top; i++)
        in[model->jobs[i].state]++;
    call_command(&run->caller, "EVAL", 3 + model->top - in[GONE]);
    call_str(&run->caller, script);
    call_int(&run->caller, 0);
    call_int(&run->caller, NAMES);
    for (size_t i = 0; i < model->top; i++) {
        if (model->jobs[i].state == GONE)
            continue;
        call_str(&run->caller, model->jobs[i].id);
        say_job(&run->wanted, &model->jobs[i]);
    }
    call_queue(&run->caller);
    for (size_t i = 0; i < NAMES; i++) {
        say_schedule(&run->wanted, &model->schedules[i]);
        ticks += model->schedules[i].state == 'A';
    }
    text_format(&run->wanted,
                "ids %zu, stand %zu, in packs %zu, dead %zu, ticks %zu, "
                "added %lld, waiting %zu, running %zu",
                in[WAITS] + in[RUNS] + in[DEAD], in[WAITS] + in[RUNS],
                in[WAITS] + in[RUNS], in[DEAD], ticks, model->added, in[WAITS],
                in[RUNS]);
    sched_check(run, "the state");
}
