-- SPDX-License-Identifier: MIT
-- What a topic's options say to those who run its jobs, with the defaults of
-- core/options.h. It needs duration.lua.
local function read_settings(options)
  local names = { 'lease', 'timeout', 'ttl', 'max_crashes', 'max_dead',
                  'on_dead', 'retry', 'retry_jitter' }
  local stored, found = redis.call('HMGET', options, unpack(names)), {}
  for i = 1, #names do found[names[i]] = stored[i] or '' end
  local jitter = string.match(found.retry_jitter, '^(%d+)%%?$')
  return {
    lease_ms = read_ms(found.lease) or 5000,
    timeout_ms = read_ms(found.timeout) or 30000,
    ttl_ms = read_ms(found.ttl) or 0,
    max_crashes = tonumber(found.max_crashes) or 3,
    max_dead = tonumber(found.max_dead) or 10000,
    has_on_dead = found.on_dead ~= '' and found.on_dead ~= 'none',
    retry = found.retry,
    jitter = math.min(tonumber(jitter or '0'), 50),
  }
end
