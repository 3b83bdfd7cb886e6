-- SPDX-License-Identifier: MIT
-- Events that a bounded topic counts as waiting or running are lost if no group
-- has them: they went with `g:GROUP` or `l:GROUP`, or with the keys that name
-- groups. `lost` counts them, and `strayed` those of groups that may only have
-- lost their turn (stray_groups.lua). A full server or a replica keeps nothing
-- of that. In scope is bounded/stats.lua.
local function lose_groups()
  local MOST = 256
  local _, lease, rot, hot = unpack(KEYS)
  local out = string.sub(meta, 1, -5) .. 'out'
  count.lost = number_of(call('HGET', meta, 'lost'))
  if options[1] ~= 'bounded' or count.waiting + count.running == 0 then
    return
  end
  local leased, states = {}, redis.pcall('HRANDFIELD', out, digits(MOST),
                                         'WITHVALUES')
  for i = 1, #states, 2 do
    local group = states[i]
    if read_state(states[i + 1]) ~= '~' then
      leased[#leased + 1] = group
    elseif redis.pcall('ZSCORE', rot, group) == false and
           redis.pcall('ZSCORE', hot, group) == false then
      redis.pcall('ZADD', rot, digits(now), group)
    end
  end
  --#include heal_leases
  heal_lost_leases(lease, now, leased)
  local function is_there(key) return redis.pcall('EXISTS', key) ~= 0 end
  if leased[1] or #states == 2 * MOST or is_there(lease) then return end

  local function lose(name)
    local jobs = count[name]
    if jobs == 0 or type(redis.pcall('HINCRBY', meta, 'lost', jobs)) ~= 'number'
    then
      return 0
    end
    increment(meta, name, -jobs)
    count.lost, count[name] = count.lost + jobs, 0
    return jobs
  end
  lose('running')
  if not is_there(rot) and not is_there(hot) then
    increment(meta, 'strayed', lose('waiting'))
  end
end
