-- SPDX-License-Identifier: MIT
-- poll: what a worker asks each second. Its consumers that hold parked
-- messages live on; what dead ones held goes back to the head.
--
-- KEYS  fifo parked alive meta ids idle absent
-- ARGV  kind, worker, lease ms, own delay in ms (-1: none), which server
--       answers (server.lua), then index and name of each consumer that holds
--       a parked message
-- Reply { 1, revision of the stored options * 2 (+ 1 if paused), length of the
--         queue, index of a consumer that lost its message, ... }, or
--       { -1, kind } when the topic is of another kind
--#include message
--#include number
--#include server
--#include topic
--#include full
--#include wake
local fifo, parked, alive, meta, ids, idle = unpack(KEYS)
--#include args
local stored = call('HGET', meta, 'kind')
if stored and stored ~= ARGV[1] then return { -1, stored } end
local wrong = too_few(6, 5) or
              bad_word('the kind', ARGV[1], 'sync concurrent') or
              bad_number('the lease in ms', ARGV[3], 0, HOUR_MS) or
              bad_number('the delay in ms', ARGV[4], -1, MOST_MS) or
              bad_server(ARGV[5])
for i = 6, #ARGV, 2 do
  wrong = wrong or too_few(6, i + 1) or
          bad_number('the index of a consumer', ARGV[i], 0, MOST_JOBS)
end
if wrong then return wrong end
stored = topic_kind(meta, ids, ARGV[1])
if stored ~= ARGV[1] then return { -1, stored } end
needs_no_room(alive)
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
if tonumber(ARGV[4]) >= 0 and call('HGET', meta, 'delay') ~= ARGV[4] then
  call('HSET', meta, 'delay', digits(tonumber(ARGV[4])))
end

local options, grace = call('HMGET', meta, 'paused', 'revision', 'server'), 0
if options[3] ~= ARGV[5] then
  grace = meet_server(meta, alive, 'claimed', options[3], ARGV[5],
                      tonumber(ARGV[3]), now)
end
local found, waiting, lost = {}, call('LLEN', fifo), {}
local running = call('HLEN', parked)
for i = 6, #ARGV, 2 do -- first: who asks lives, however late
  -- A consumer that has a message and is not in `alive` was lost there.
  if call('ZSCORE', alive, ARGV[i + 1]) or
     call('HEXISTS', parked, ARGV[i + 1]) == 1 then
    call('ZADD', alive, now + ARGV[3], ARGV[i + 1])
  else
    lost[#lost + 1] = tonumber(ARGV[i])
  end
end
if running > call('ZCARD', alive) then
  --#include heal_parked
  heal_parked(parked, alive, now)
end
--#include longest
--#include honest
note_length(meta, tonumber(ARGV[3]))
heal_leases(alive, now, tonumber(ARGV[3]), function() return longest(meta) end)
local dead = grace > 0 and {} or
             call('ZRANGEBYSCORE', alive, '-inf', '(' .. now, 'LIMIT', 0, 100)
for _, owner in ipairs(dead) do
  local message = call('HGET', parked, owner)
  if message then found[#found + 1] = message end
  call('HDEL', parked, owner)
  call('ZREM', alive, owner)
end
table.sort(found, function(a, b) return due_of(a) > due_of(b) end)
for _, message in ipairs(found) do call('LPUSH', fifo, message) end
increment(meta, 'crashed', #found)

local reply = { 1, number_of(options[2]) * 2 + (options[1] and 1 or 0),
                waiting + #found }
if options[1] then fall_asleep(idle, ARGV[2], '-inf') end
for _, index in ipairs(lost) do reply[#reply + 1] = index end
return reply
