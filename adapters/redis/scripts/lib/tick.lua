-- SPDX-License-Identifier: MIT
-- The tick of a schedule is a job with the id NAME@next. The hash `cron` has
-- for each NAME `A FROM AT RECORD`, or P in front where it is paused and has no
-- tick: RECORD is the tick's, in which from byte AT on stand three times of 13
-- digits: FROM, since when the schedule counts, up to when its times are over,
-- and the time of the last job it made (core/schedule.h). `ticks` in `meta`
-- counts the first ones.

-- WEIR__AHEAD_MS of core/schedule.h.
local AHEAD_MS = 40

-- Have the tick of a schedule come at once. Its times are over up to now, and
-- those for which the tick before may have made a job ahead.
-- False: a job has its id. Ticks of one call have names of their own: since 7.2
-- the time stands still meanwhile.
local names_tried = 0
local function add_tick(topic, name, from, at, record, now)
  --#include lone_rare
  --#include lone_pack
  local wait, ids, meta, idle = KEYS[1], KEYS[3], KEYS[4], KEYS[5]
  local kind, own, revision, last = 'delay', '', false, nil
  local seen, call_slot, number, run, lease, held -- no repeat, no hand-over
  local now_text = string.format('%.0f', now)
  local id, when = name .. '@next', 'a' .. now_text
  local time = call('TIME')
  local known = { call('HGET', meta, 'kind') } -- max_pending is for jobs
  record = string.sub(record, 1, at) ..
           string.format('%013.0f %013.0f %013d ', from, now + AHEAD_MS, 0) ..
           string.sub(record, at + 43)
  local pack = lone_head(id, #record) .. record
  for _ = 0, 9 do
    names_tried = names_tried + 1
    local seq, serial = nil, time[2] % 1000 * 8192 + names_tried
    --#include lone_name
    local key = string.sub(wait, 1, -5) .. 'p:' .. seq
    local refused, next_added
    repeat
      --#include lone
    until true
    if refused ~= -1 then return not refused end
  end
  return redis.error_reply('ERR no name is free, ask again')
end

-- A, FROM, AT and RECORD, or nothing where that is none.
local function read_schedule(value)
  local state, from, at, rest = string.match(value or '',
                                             '^([AP]) (%d+) (%d+) ()')
  if not rest then return nil end
  return state, tonumber(from), tonumber(at), string.sub(value, rest)
end

-- Each schedule has its tick again. Returns how many had none.
local function mend_ticks(topic, cron, ids, now)
  local all, count = redis.pcall('HGETALL', cron), 0
  for i = 1, #all, 2 do
    local state, from, at, record = read_schedule(all[i + 1])
    if state == 'A' and
       redis.call('HEXISTS', ids, all[i] .. '@next') == 0 and
       add_tick(topic, all[i], from, at, record, now) == true then
      count = count + 1
    end
  end
  return count
end
