-- SPDX-License-Identifier: MIT
-- cron: schedules of a topic, each with its tick (tick.lua): set or delete one,
-- let it rest or go on, or tell them all. The caller has read where the index
-- says that the tick is, and names that pack.
--
-- KEYS  wait run ids meta idle due cron, the tick's pack (any key where it has
--       none), absent
-- ARGV  topic, set|delete|pause|resume, name, place of the tick ('': none); and
--       to set: AT, RECORD. Or: topic, list; or topic, mend, which ticks come
--       at once (mend_ticks): all, odd, or soon: odd, unless that was just done
-- Reply { 'moved' } the index has changed, ask again | { 'kind', kind } the
--       topic is of another one | { 'none' } there is no such schedule |
--       { 'taken' } a job has the tick's id | { 'full' } there are MOST |
--       { 'same' } or { 'done' }; of list { 'list', time in ms, ticks that were
--       made anew, name, value, ... }, the values as in `cron`, but for N (see
--       mend_ticks); of mend the same, without names and values
--#include node
--#include number
--#include mixed
--#include pack
--#include suspect
--#include slot
--#include lost
--#include tick
local wait, run, ids, meta, idle, due_key, cron, pack_key = unpack(KEYS)
local topic, verb, name, seq, at, record = unpack(ARGV)
local MOST = 1024
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
--#include args
local wrong = too_few(8, 2) or
              bad_word('the verb', verb, 'set delete pause resume list mend') or
              verb == 'mend' and
              bad_word('which ticks come', name, 'all odd soon') or
              verb == 'set' and bad_number('AT', at, 0, MOST_MS)
if wrong then return wrong end
if #topic > 40 or not string.find(topic, '^[%w._:-]+$') then
  return redis.error_reply('ERR the topic is none')
end
if verb == 'set' and
   (#name > 128 or not string.find(name, '^[!-~]+$') or
    not string.find(sub(record, at + 1),
                    '^' .. string.rep(string.rep('%d', 13) .. ' ', 5))) then
  return redis.error_reply('ERR the name or the record of the tick is none')
end
local kind = call('HGET', meta, 'kind')
if kind and kind ~= 'delay' then return { 'kind', kind } end
find_lost_ticks(cron)
local SOON_MS = 8000
if verb == 'mend' then
  local mended = call('HGET', meta, 'mended')
  if name == 'soon' and math.abs(now - number_of(mended)) < SOON_MS then
    return { 'list', now, 0 }
  end
  mended = mend_ticks(topic, cron, now, name == 'all')
  redis.pcall('HSET', meta, 'mended', digits(now)) -- a full server, too
  return { 'list', now, mended }
elseif verb == 'list' then
  local mended, all = mend_ticks(topic, cron, now)
  return all.err and all or { 'list', now, mended, unpack(all) }
end

local id = name .. '@next'
if (call('HGET', ids, id) or '') ~= seq then return { 'moved' } end
local stored = call('HGET', cron, name)
local state, from, old_at, old = read_schedule(stored)
if not state and stored and (verb == 'delete' or verb == 'set') then
  state = find_tick(name) and 'A' or 'P' -- of one that cannot be read
end
if verb ~= 'set' and not state then return { 'none' } end
if seq ~= '' and (not state or state == 'P' and verb == 'resume') and
   not is_lost(sub(wait, 1, -5), seq, id) then
  return { 'taken' }
end
if verb == 'set' and not state and call('HLEN', cron) >= MOST then
  return { 'full' }
end

-- Its verdict, where it runs, is refused then, with the job that it adds. What
-- has its id while the schedule rests is somebody's job.
local function remove_tick()
  if seq == '' or state ~= 'A' then return end
  local pack = read_pack(pack_key)
  local job = find_slot(wait, run, seq, pack.last, slots_with(pack, id),
                        due_key)
  if job then
    local left = take_out(meta, seq, job)
    if #left > 0 then call('ZADD', job.key, unpack(left)) end
    note_gone(pack_key, pack, 1, due_key)
    increment(meta, job.runs and 'delrun' or 'delwait', 1)
  end
  call('HDEL', ids, id)
end

local wants = verb == 'set' and (state or 'A') or verb == 'resume' and 'A' or
              verb == 'pause' and 'P' or ''
local tick = nil
if state == 'A' then tick = find_tick(name) end
if verb == 'set' and
   not (state and tonumber(at) == old_at and record == old) then
  from, old_at, old = now, tonumber(at), record
elseif state == wants and (wants ~= 'A' or tick ~= nil) then
  if tick then hasten_tick(topic, tick, now) end
  return { 'same' }
end
--#include types
needs_zsets(wait, run)
needs_hashes(ids, meta, cron)
remove_tick()
if wants == '' then
  call('HDEL', cron, name)
else
  call('HSET', cron, name,
       string.format('%s %.0f %d ', wants, from, old_at) .. old)
end
increment(meta, 'ticks', (wants == 'A' and 1 or 0) - (state == 'A' and 1 or 0))
if wants == 'A' then
  local added = add_tick(topic, name, from, old_at, old, now)
  if type(added) == 'table' then return added end
end
return { 'done' }
