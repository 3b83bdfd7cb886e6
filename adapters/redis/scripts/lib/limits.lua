-- SPDX-License-Identifier: MIT
-- How many jobs of a topic may start and run, over all of its workers. `limits`
-- in `meta` has the options `rate`, `parallel`, `key_rate`, `key_parallel` and
-- `ageing` (in ms) as they hold, with a | between. `bucket` has two times in
-- us: when all tokens of the rate will be back, for when the last one who waits
-- was told to come, and the last claim that found half of its tokens there
-- (tokens.lua).
--#include rate
local SOON_US, FAR_US = 1000, 1e5

-- What holds: what a worker says (`own`; nil: nothing), which is what is stored
-- in front of its configuration where it knows what is (`is_current`). Who does
-- not is held to its own where nobody says others.
local function limits_by(meta, known, own, is_current)
  if not is_current then
    known = known or own
  elseif own and own ~= (known or '') then
    --#include rated
    note_rated(meta, known, own)
    if own == '' then
      call('HDEL', meta, 'limits')
    else
      call('HDEL', meta, 'offer') -- none is handed over
      redis.pcall('HSET', meta, 'limits', own) -- a full server, too: full.lua
    end
    known = own
  end
  return known ~= '' and known or nil
end

-- How many jobs may start (`room`): so many tokens and places are there.
-- `running` tells how many run, if it is called.
local function read_limits(meta, limits, time_us, running)
  local rate, parallel = string.match(limits, '^([^|]*)|(%d*)')
  local limit = { tokens = math.huge, places = math.huge }
  limit.step, limit.burst = read_rate(rate or '')
  if limit.step then
    local all = limit.step * limit.burst
    local full, visit, high = string.match(call('HGET', meta, 'bucket') or '',
                                           '^(%d+) (%d+) ?(%d*)$')
    limit.visit, limit.high = tonumber(visit or 0), tonumber(high or '') or 0
    full = math.max(tonumber(full or 0), time_us)
    -- A clock that was set back stops nothing for long, nor does another rate.
    limit.is_ahead = full > time_us + all
    limit.full = math.min(full, time_us + all)
    local left = (time_us + all - limit.full) / limit.step
    limit.tokens = math.floor(left + 1e-6)
  end
  if number_of(parallel) > 0 then
    limit.places = math.max(number_of(parallel) - running(), 0)
  end
  limit.room = math.min(limit.tokens, limit.places)
  return limit
end

local function keep_bucket(meta, limit)
  redis.pcall('HSET', meta, 'bucket',
              string.format('%.0f %.0f %.0f', limit.full, limit.visit,
                            limit.high))
end

-- So many start. Returns when the next one of those may that are due at
-- `due_ms` (nil: none are), in us; nil: none may before another one ends.
-- Behind that whether it waits for a token: who comes for that (`comes`) is not
-- to be woken before. All come for one that is far; of others each has its own.
local function start_after(meta, limit, jobs, due_ms, time_us, comes)
  if limit.step and (jobs > 0 or limit.is_ahead) then
    limit.full = limit.full + jobs * limit.step
    if limit.tokens * 2 >= limit.burst then limit.high = time_us end
    keep_bucket(meta, limit)
  end
  if not due_ms or limit.places <= jobs then return nil, false end
  if limit.tokens > jobs then return due_ms * 1000, false end
  local token = math.ceil(limit.full - (limit.burst - 1) * limit.step)
  if due_ms * 1000 >= token then return due_ms * 1000, false end
  if comes and limit.step < FAR_US then
    local own = limit.visit + math.max(limit.step, SOON_US)
    limit.visit = math.min(math.max(own, token), token + FAR_US)
    keep_bucket(meta, limit)
    token = math.ceil(limit.visit)
  end
  return token, true
end
