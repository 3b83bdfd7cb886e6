-- SPDX-License-Identifier: MIT
-- push: append messages.
--
-- KEYS  fifo ids meta options idle
-- ARGV  topic, kind, own delay in ms (-1: none), then for each message id
--       ('' = make one), record, bytes of its body
-- Reply { 1, id, ... } where a number takes the place of a message that was
--       refused: 1 too large, 2 too many wait; or { -1, kind }
--#include message
--#include number
--#include topic
--#include wake
--#include queue
--#include max_body

local fifo, ids, meta, options, idle = unpack(KEYS)
--#include args
local stored = call('HGET', meta, 'kind')
if stored and stored ~= ARGV[2] then return { -1, stored } end
local wrong = too_few(5, 3) or
              bad_word('the kind', ARGV[2], 'sync concurrent') or
              bad_number('the delay in ms', ARGV[3], -1, MOST_MS)
for i = 4, #ARGV, 3 do
  wrong = wrong or bad_number('the bytes of a body', ARGV[i + 2], 0, 2 ^ 32) or
          (#ARGV[i] > 128 or not string.find(ARGV[i], '^[!-z|~]*$')) and
          redis.error_reply('ERR an id is none') or nil
end
if wrong then return wrong end
stored = topic_kind(meta, ids, ARGV[2])
if stored ~= ARGV[2] then return { -1, stored } end
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local due = now + delay_of(options, meta, ARGV[3])
local most = max_body(call('HGET', options, 'max_body'))
local room = number_of(call('HGET', meta, 'max_pending'), math.huge) -
             call('LLEN', fifo)
local reply, added = { 1 }, {}
-- Made ids must not come twice: where the number is none, from the time on.
local stored_count = call('HGET', meta, 'added')
local count = number_of(stored_count or 0, due)
for i = 4, #ARGV, 3 do
  if tonumber(ARGV[i + 2]) > most then
    reply[#reply + 1] = 1
  elseif #added >= room then
    reply[#reply + 1] = 2
  else
    count = count + 1
    local id = ARGV[i]
    if id == '' then id = string.format('@%015.0f', count) end
    added[#added + 1] = message_of(id, due, now, ARGV[i + 1])
    reply[#reply + 1] = id
  end
end
if #added > 0 then
  call('RPUSH', fifo, unpack(added))
  call('HSET', meta, 'added', string.format('%.0f', count))
  for _ = 1, #added do
    if not wake_one(idle, ARGV[1], due) then break end
  end
end
return reply
