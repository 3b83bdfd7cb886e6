-- SPDX-License-Identifier: MIT
-- Which run of which server gave out the jobs of a topic last: `server` in
-- `meta` is its identity, and while a grace lasts a blank and the end of that;
-- `met` is when it came. One that comes behind it, from a replica or a file,
-- has not heard of everything: of claims, whose tokens must not come again, and
-- of renewals.

-- A clock that is wrong by decades leaves room for claims.
local function token_of_time(now)
  return math.min((now - 1577836800000) * 32, MOST_STORED - 2 ^ 40)
end

-- A claim says `own`: the identity that its connection was told ('': none), and
-- behind a blank, until that connection brought a token, the largest token that
-- the process was given. Where `known`, which is `server`, is something else,
-- this is called. Returns until when no lease ends, so that who lives renews
-- first; 0: they do. Tokens (`field` counts them) go on above what the process
-- was given; above those that were lost, though nobody alive has seen them: so
-- many for each ms that the server before was there, whereby one that restarts
-- each second for a year stays below MOST_STORED, near which it is a 4096th of
-- what is left; and above the time in 1/32 ms since 2020.
local function meet_server(meta, lease, field, known, own, lease_ms, now)
  local GRACE_LEAST, GRACE_MOST = 1000, 5000 -- ms
  local LOST_A_MS, LOST_LEAST, LOST_MOST = 512, 2 ^ 19, 2 ^ 26
  local id, till = string.match(known or '', '^(%x+) ?(%d*)$')
  local floor
  own, floor = string.match(own, '^(%x*) ?(%d*)$')
  till, floor = number_of(till), number_of(floor)
  local was = redis.call('HMGET', meta, field, 'met')
  local last, met = number_of(was[1]), number_of(was[2])
  local is_new = own ~= '' and own ~= id
  if is_new then
    local lost = LOST_MOST
    if met > 0 then
      lost = math.min(math.max((now - met) * LOST_A_MS, LOST_LEAST), LOST_MOST)
    end
    lost = math.floor(math.min(lost, (MOST_STORED - last) / 4096))
    floor = math.max(floor, last + lost, token_of_time(now))
  end
  if is_new or floor > last or own == id and till > 0 and till <= now then
    redis.call('ZREM', lease, '') -- as full.lua says
  end
  if floor > last then -- where jobs are counted what is skipped was given back
    redis.call('HSET', meta, field, digits(floor))
    if field == 'claimed' then increment(meta, 'returned', floor - last) end
  end
  if not is_new then
    if till > now and till <= now + GRACE_MOST then return till end
    if own == id and till > 0 then redis.call('HSET', meta, 'server', own) end
    return 0
  end
  till = 0
  if id then -- else nothing was leased, or by an older weir
    till = now + math.floor(math.min(math.max(lease_ms / 2, GRACE_LEAST),
                                     GRACE_MOST))
    own = own .. ' ' .. digits(till)
  end
  redis.call('HSET', meta, 'server', own, 'met', digits(now))
  return till
end

-- Where the counter of tokens is none they go on from here.
local function first_token(now) return token_of_time(now) + 2 ^ 26 end
