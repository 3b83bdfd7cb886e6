-- SPDX-License-Identifier: MIT
-- A time that lies further ahead than the rule of its key allows was stored
-- while the clock was ahead. Scripts read what is due, so nothing else would
-- look at it before its time. SLACK_MS is for small steps of the clock.
local SLACK_MS, MOST_LOOKED = 1000, 16
local LONGEST_MS = 3600000 -- core/options.h: lease

-- Members and scores from `from` up to `to`, MOST_LOOKED at most. Where there
-- are more, each call looks at others.
local function some_beyond(key, from, to, now)
  local count = redis.call('ZCOUNT', key, from, to)
  if count == 0 then return {} end
  local skip = now % math.max(count - MOST_LOOKED + 1, 1)
  return redis.call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT',
                    digits(skip), digits(MOST_LOOKED))
end

-- A lease ends its length after now, or earlier. The worker of one that ends
-- later may be dead, and its jobs would wait until then. Such a lease ends its
-- length after now: a worker that lives renews it before. `own_ms` is the
-- length of the caller's leases; `length_of` tells that of a member's in ms,
-- nil: it is not known. Returns when the first one ends that was changed; nil:
-- none was.
local function heal_leases(lease, now, own_ms, length_of)
  local some = some_beyond(lease, '(' .. digits(now + own_ms + SLACK_MS),
                           '+inf', now)
  local first
  for i = 1, #some, 2 do
    local length = tonumber(length_of(some[i])) or LONGEST_MS
    local ends = now + math.max(math.min(length, LONGEST_MS), own_ms)
    if tonumber(some[i + 1]) > ends + SLACK_MS then
      redis.call('ZREM', lease, '') -- as full.lua says
      redis.call('ZADD', lease, 'XX', digits(ends), some[i])
      first = math.min(first or ends, ends)
    end
  end
  return first
end
