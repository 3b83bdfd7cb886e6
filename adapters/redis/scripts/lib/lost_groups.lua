-- SPDX-License-Identifier: MIT
-- Events that a bounded topic counts as waiting or running are lost if no group
-- has them: they went with `g:GROUP` or `l:GROUP`, or with the keys that name
-- groups. `lost` counts them. A full server or a replica keeps nothing of that.
-- In scope is bounded/stats.lua.
local function lose_groups()
  local _, lease, rot, hot = unpack(KEYS)
  local out = string.sub(meta, 1, -5) .. 'out'
  count.lost = number_of(call('HGET', meta, 'lost'))
  local function is_there(key) return redis.pcall('EXISTS', key) ~= 0 end
  local has_turns = count.waiting == 0 or is_there(rot) or is_there(hot)
  if has_turns and count.running == 0 or options[1] ~= 'bounded' or
     is_there(lease) then
    return
  end

  local leased, held = {}, {}
  local states = redis.pcall('HGETALL', out)
  for i = 1, #states, 2 do
    local list = read_state(states[i + 1]) == '~' and held or leased
    list[#list + 1] = states[i]
  end
  --#include heal_leases
  heal_lost_leases(lease, now, function() return leased end)
  if leased[1] then return end

  local function lose(name)
    local jobs = count[name]
    if jobs == 0 or type(redis.pcall('HINCRBY', meta, 'lost', jobs)) ~= 'number'
    then
      return
    end
    increment(meta, name, -jobs)
    count.lost, count[name] = count.lost + jobs, 0
  end
  lose('running')
  if has_turns then return end
  for _, group in ipairs(held) do
    redis.pcall('ZADD', rot, string.format('%.0f', now), group)
  end
  if not held[1] then lose('waiting') end
end
