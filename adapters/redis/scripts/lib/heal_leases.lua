-- SPDX-License-Identifier: MIT
-- Each claim that has jobs is in `lease`. If it was lost there, its jobs would
-- run for ever: such a claim ends when the longest default lease
-- (core/options.h) is over. `claims` are members of `lease`, 1,000 at most. A
-- full server or a replica keeps none.
local function heal_lost_leases(lease, now, claims)
  local DEFAULT_MS = 5000
  if not claims[1] then return end
  local ends = redis.pcall('ZMSCORE', lease, unpack(claims))
  for i, claim in ipairs(claims) do
    if ends[i] == false then
      redis.pcall('ZADD', lease, string.format('%.0f', now + DEFAULT_MS), claim)
    end
  end
end

-- The claims of up to 256 members of `run`, whose scores begin with them.
local function some_claims(run)
  local some, claims = redis.pcall('ZRANDMEMBER', run, '256', 'WITHSCORES'), {}
  for i = 2, #some, 2 do
    claims[i / 2] = string.format('%.0f', math.floor(tonumber(some[i])))
  end
  return claims
end
