-- SPDX-License-Identifier: MIT
-- purge: delete whole groups, and name the next ones.
--
-- KEYS  rot hot lease out meta ttl, then for each group: its list, the list of
--       its leased batch; absent
-- ARGV  kind, most groups to name, groups
-- Reply { deleted events, groups..., and what was set aside, if anything
--         (number.lua) }; { -1 } when there is no such topic, or
--       { -2, kind } when it is of another kind.
--#include number
--#include group
local rot, hot, lease, out, meta, ttl = unpack(KEYS, 1, 6)
local stored = call('HGET', meta, 'kind')
if not stored then return { -1 } end
if stored ~= ARGV[1] then return { -2, stored } end
--#include args
local wrong = too_few(2 * #ARGV + 2, 2) or
              bad_number('the number of groups', ARGV[2], 0, MOST_JOBS)
if wrong then return wrong end
local deleted, most = 0, tonumber(ARGV[2])

-- What is no list goes, too.
local function length_of(list)
  local length = redis.pcall('LLEN', list)
  return type(length) == 'number' and length or 0
end

for i = 3, #ARGV do
  local group, list, batch = ARGV[i], KEYS[2 * i + 1], KEYS[2 * i + 2]
  local waiting, running = length_of(list), length_of(batch)
  call('DEL', list, batch)
  call('ZREM', rot, group)
  call('ZREM', hot, group)
  call('ZREM', lease, group)
  call('ZREM', ttl, group)
  call('HDEL', out, group)
  increment(meta, 'waiting', -waiting)
  increment(meta, 'running', -running)
  deleted = deleted + waiting + running
end
local reply = { deleted }
for _, key in ipairs({ rot, hot, lease }) do
  for _, group in ipairs(call('ZRANGE', key, 0, most - 1)) do
    reply[#reply + 1] = group
  end
end
tell_aside(meta, reply)
return reply
