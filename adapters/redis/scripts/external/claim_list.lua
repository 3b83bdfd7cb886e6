-- SPDX-License-Identifier: MIT
-- claim_list: take entries from a plain list under a new lease, those that
-- weir holds back first once they are due. What is taken is kept in `held`
-- until it is settled; with auto-ack it is gone, only how many are out is kept.
-- One that is too large to be given is kept even so, with the dead.
--
-- KEYS  meta wait run lease held past auto, the list, absent
-- ARGV  kind, room (0: only look), lease ms, revision of the stored options
--       that the worker knows, name of the list if it is not the topic's, 1
--       for auto-ack, which server answers (server.lua), the end that the list
--       is taken from: 'right', else left; how bodies are read, '' for auto
-- Reply { time in us, token, us until there is more to do (0: now, -1: nothing
--         waits), entries, revision * 2 (+ 1 if paused),
--         id, bytes, past, due ms, ..., and what was set aside, if anything
--         (number.lua) }; past is '-' where nothing is kept
--       { -1, kind } when the topic is of another kind: nothing was done.
--       Where the revision is another one nothing is taken.
--#include number
--#include server
--#include past
--#include full
--#include types
--#include external
--#include fit
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local keys = { meta = KEYS[1], wait = KEYS[2], run = KEYS[3], lease = KEYS[4],
               held = KEYS[5], past = KEYS[6], auto = KEYS[7] }
local list, room = KEYS[8], tonumber(ARGV[2])
local ended = external_begin(keys.meta, ARGV[1], ARGV[7], ARGV[2], ARGV[3])
if ended then return ended end
local options = call('HMGET', keys.meta, 'paused', 'revision', 'key',
                     'server', 'end', 'body')
if (options[3] or '') ~= ARGV[5] or (options[5] or '') ~= ARGV[8] or
   (options[6] or '') ~= ARGV[9] then
  call('HSET', keys.meta, 'key', ARGV[5], 'end', ARGV[8], 'body', ARGV[9])
end
external_meet(keys, options[4], ARGV[7], tonumber(ARGV[3]), now)
external_expire(keys, now)

local out = {}
local reply, is_last = external_reply(keys, time, options, room, ARGV[4])
if is_last then return reply end

local due = call('ZRANGEBYSCORE', keys.wait, '-inf', digits(now), 'WITHSCORES',
                 'LIMIT', 0, room)
if call('LLEN', list) > 0 or due[1] then
  needs_zsets(keys.run, keys.lease)
  needs_hashes(keys.held, keys.past, keys.auto)
end
local lost = 0
-- Entries `from` to `to` of those that are due; the others wait on.
local function give_due(from, to)
  local ids, given = {}, {}
  for i = from, to do ids[#ids + 1] = due[2 * i - 1] end
  local bytes = call('HMGET', keys.held, unpack(ids))
  local past = call('HMGET', keys.past, unpack(ids))
  for i, id in ipairs(ids) do
    if is_full() then break end
    given[i] = id
    if bytes[i] and #id <= 1024 then
      local last = #reply
      reply[last + 1], reply[last + 2] = id, fit(bytes[i])
      reply[last + 3] = fit(past[i] or '')
      reply[last + 4] = number_of(due[2 * (from + i - 1)])
      out[#out + 1] = id
    else -- its bytes were lost, or it is no entry of this list
      if string.find(id, '^@%d+$') then
        lost = lost + 1
      else
        set_aside = set_aside + 1
      end
      call('HDEL', keys.held, id)
      call('HDEL', keys.past, id)
    end
  end
  call('ZREM', keys.wait, unpack(given))
end
for from = 1, #due / 2, 128 do
  if is_full() then break end
  give_due(from, min(from + 127, #due / 2))
end

local kept = #out
local is_right = ARGV[8] == 'right'
local taken, given = read_fitting(list, 0, room - kept, is_right)
if #taken > 0 then
  if is_right then call('LTRIM', list, 0, -1 - #taken)
  else call('LTRIM', list, #taken, -1) end
  local last = increment(keys.meta, 'taken', #taken, now) - #taken
  local held = {}
  for i = 1, #taken do
    local id, behind = string.format('@%016.0f', last + i), #reply
    local is_gone = ARGV[6] == '1' and given[i] == taken[i]
    reply[behind + 1], reply[behind + 2] = id, given[i]
    reply[behind + 3], reply[behind + 4] = is_gone and '-' or '', now
    if not is_gone then
      out[#out + 1] = id
      held[#held + 1], held[#held + 2] = id, taken[i]
    end
  end
  call_list('HSET', keys.held, held)
end

local count = kept + #taken
if count > 0 then
  reply[2], reply[4] = external_lease(keys, out, count, now, ARGV[3]), count
  if #out < count then call('HSET', keys.auto, reply[2], count - #out) end
end
reply[3] = external_next_us(keys, time, ARGV[3], count)
increment(keys.meta, 'lost', lost)
tell_aside(keys.meta, reply)
return reply
