-- SPDX-License-Identifier: MIT
-- After `meta` was lost: count what the topic holds and take over its options.
-- Totals begin again and a pause ends, so `restored` keeps when this was, for
-- weir doctor. Tokens go on above all that were given out.
local function restore_meta(prefix, kind)
  local MOST = 4096 -- nodes or groups: a few ms
  local meta, time = prefix .. 'meta', redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local fields = { restored = now }

  local function jobs_in(key)
    local jobs = 0
    for _, node in ipairs(redis.pcall('ZRANGE', key, '0', MOST - 1)) do
      local high, low, high_end, low_end = string.byte(node, 13, 16)
      if #node == 16 then -- else somebody else wrote it
        jobs = jobs + math.max(
          (high_end - high) * 16 + low_end - low + 1, 0)
      end
    end
    return jobs
  end

  local function events_in(part, groups, step)
    local events = 0
    for i = 1, #groups, step do
      local length = redis.pcall('LLEN', prefix .. part .. groups[i])
      events = events + (type(length) == 'number' and length or 0)
    end
    return events
  end

  local waiting, running = 0, 0
  if kind == 'delay' then
    waiting, running = jobs_in(prefix .. 'wait'), jobs_in(prefix .. 'run')
    local top = redis.pcall('ZRANGE', prefix .. 'wait', '-1', '-1',
                            'WITHSCORES')[2]
    top = tonumber(top or 0)
    fields.mixed = top >= 2 ^ 45 and 2 or nil
    fields.lanes = top >= 3 * 2 ^ 44 and 1 or nil
  elseif kind == 'bounded' then
    local out = redis.pcall('HRANDFIELD', prefix .. 'out', MOST,
                            'WITHVALUES')
    for _, key in ipairs({ 'rot', 'hot' }) do
      waiting = waiting + events_in('g:', redis.pcall(
        'ZRANGE', prefix .. key, '0', MOST - 1), 1)
    end
    running = events_in('l:', out, 2)
    for i = 1, #out, 2 do
      local is_turned = redis.pcall('ZSCORE', prefix .. 'rot', out[i]) or
                        redis.pcall('ZSCORE', prefix .. 'hot', out[i])
      if not is_turned then
        waiting = waiting + events_in('g:', { out[i] }, 1)
      end
    end
    fields.waiting, fields.running = waiting, running
  elseif kind == 'sync' or kind == 'concurrent' then
    waiting = redis.pcall('LLEN', prefix .. 'fifo')
    running = redis.pcall('HLEN', prefix .. 'parked')
  end
  -- As first_token of server.lua.
  local token = math.min((now - 1577836800000) * 32, 2 ^ 45 - 2 ^ 40) + 2 ^ 26
  fields.claimed, fields.token, fields.returned = token, token, token - running
  fields.added = waiting + running
  local stored = redis.pcall('HGETALL', prefix .. 'options')
  if #stored > 0 then fields.revision = time[1] - 1577836800 end
  for name, value in pairs(fields) do
    redis.call('HSET', meta, name, string.format('%.0f', value))
  end

  -- As set.lua keeps them.
  local LIMITS = { rate = 1, parallel = 2, key_rate = 3, key_parallel = 4,
                   ageing = 5 }
  local parts = { '', '', '', '', '' }
  for i = 1, #stored, 2 do
    local name, value = stored[i], stored[i + 1]
    if name == 'max_pending' and tonumber(value) then
      redis.call('HSET', meta, name, value)
    elseif name == 'ageing' then
      --#include duration
      parts[5] = string.format('%.0f', read_ms(value) or 60000)
    elseif LIMITS[name] and value ~= 'none' then
      parts[LIMITS[name]] = value
    end
  end
  local limits = string.gsub(table.concat(parts, '|'), '|||$', '')
  if limits ~= '|' then redis.call('HSET', meta, 'limits', limits) end
end
