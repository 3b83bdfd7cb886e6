-- SPDX-License-Identifier: MIT
-- Jobs that were claimed and did not start give their tokens of `rate` and
-- `key_rate` back. A full bucket gains nothing. So what it gained since the
-- claim is taken off, unless it was less than half full: else more could start
-- at once than `burst`. A claim from before the rate was another one gives none
-- back: what it used, if any, were tokens of that (rated.lua).
--
-- `spared` are { node, token of its claim, jobs, name of its lane or nil }. A
-- node that `held` does not have used none. Returns workers that wait for a
-- token, which nothing else wakes, and whether the turn of a key has come. In
-- scope are node.lua, number.lua and held.lua.
local function give_tokens(meta, held, idle, spared, time)
  --#include rate
  --#include laned
  local known = call('HMGET', meta, 'limits', 'bucket', 'paused', 'rated')
  local rate, key_rate = string.match(known[1] or '', '^([^|]*)|[^|]*|?([^|]*)')
  local step, burst = read_rate(rate or '')
  local key_step, key_burst = read_rate(key_rate or '')
  if not step and not key_step then return {}, false end
  local rated = number_of(known[4]) -- tokens of another rate
  local prefix = string.match(KEYS[1], '^.*}:')
  local time_us, is_due = time[1] * 1000000 + time[2], false

  local claims, old = {}, 0
  for _, job in ipairs(spared) do
    local node, token, count, lane = unpack(job)
    local claim = claims[token]
    if not claim then
      local due_of, since = read_held(held, digits(token), 0)
      claim = { due_of = due_of, since_us = (since or 0) * 1000, jobs = 0,
                keys = {} }
      claims[token] = claim
    end
    local _, _, used_one = claim.due_of(node, node_bounds(node))
    local key = lane and sub(lane, 2) or ''
    if token <= rated then
      old = old + 1
    elseif used_one then
      claim.jobs = claim.jobs + count
      claim.keys[key] = (claim.keys[key] or 0) + count
    end
  end

  -- How much earlier a bucket is full, in us. It was not half full at a claim
  -- since `high_us`.
  local function worth(claim, count, step, burst, high_us)
    local gained = math.max(time_us - claim.since_us, 0)
    if claim.since_us > high_us then
      gained = min(gained, math.max(count - burst / 2, 0) * step)
    end
    return math.max(count * step - gained, 0)
  end

  local function give_to_key(claim, key, count)
    local full = tonumber(call('HGET', prefix .. 'rates', key) or 'nan')
    if not key_step or key == '' or full ~= full then return end
    full = full - worth(claim, count, key_step, key_burst, math.huge)
    call('HSET', prefix .. 'rates', key, digits(floor(math.max(full, 0))))
    local now = floor(time_us / 1000)
    for level = 0, BLOCKED - 1 do
      local at = tonumber(call('ZSCORE', prefix .. 'turns', level .. key) or 0)
      if at < BLOCKED * LEVEL and at > level * LEVEL + now then
        call('ZADD', prefix .. 'turns', digits(level * LEVEL + now),
             level .. key)
        is_due = true
      end
    end
  end

  local full, visit, high = string.match(known[2] or '', '^(%d+) (%d+) ?(%d*)$')
  local jobs = 0
  for _, claim in pairs(claims) do
    if step and full then
      full = full - worth(claim, claim.jobs, step, burst, tonumber(high) or 0)
    end
    jobs = jobs + claim.jobs
    for key, count in pairs(claim.keys) do give_to_key(claim, key, count) end
  end
  if not step or not full then return {}, is_due end
  redis.pcall('HSET', meta, 'bucket', -- a full server, too: full.lua
              string.format('%.0f %s %s', floor(math.max(full, 0)), visit,
                            high))
  if known[3] then return {}, is_due end -- who resumes it tells them
  return redis.pcall('ZRANGEBYSCORE', idle, '-inf', '-inf', 'LIMIT', '0',
                     digits(math.max(#spared - old, jobs))), is_due
end
