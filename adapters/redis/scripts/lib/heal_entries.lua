-- SPDX-License-Identifier: MIT
-- The hash `held` of a list has each entry that waits, runs or is dead. An
-- entry that is none of these was lost with `wait`, `run` or `dead`: it waits
-- again, or is dead again if `past` says of what. In scope is external/stats.
local function heal_entries(prefix)
  --#include past
  local held, past = prefix .. 'held', prefix .. 'past'
  local kept = redis.pcall('HLEN', held)
  if type(kept) ~= 'number' or
     kept <= call('ZCARD', wait) + call('ZCARD', run) + call('ZCARD', dead) then
    return
  end
  for _, id in ipairs(redis.pcall('HRANDFIELD', held, '256')) do
    if string.find(id, '^@%d+$') and not (call('ZSCORE', wait, id) or
        call('ZSCORE', run, id) or call('ZSCORE', dead, id)) then
      local reason = read_past(redis.pcall('HGET', past, id))[8]
      redis.pcall('ZADD', reason == '' and wait or dead, digits(now), id)
    end
  end
end
