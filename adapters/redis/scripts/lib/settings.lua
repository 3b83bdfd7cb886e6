-- SPDX-License-Identifier: MIT
-- What a topic's options say to those who run its jobs, with the defaults of
-- core/options.h. It needs
-- duration.lua and number.lua.
local function read_settings(options)
  local names = { 'lease', 'timeout', 'ttl', 'max_crashes', 'max_dead',
                  'on_dead', 'retry', 'retry_jitter' }
  local stored, found = redis.call('HMGET', options, unpack(names)), {}
  for i = 1, #names do found[names[i]] = stored[i] or '' end
  local jitter = string.match(found.retry_jitter, '^(%d+)%%?$')
  return {
    lease_ms = math.min(read_ms(found.lease) or 5000, 3600000),
    timeout_ms = read_ms(found.timeout) or 30000,
    ttl_ms = read_ms(found.ttl) or 0,
    max_crashes = tonumber(found.max_crashes) or 3,
    max_dead = math.max(number_of(found.max_dead, 10000), 0),
    has_on_dead = found.on_dead ~= '' and found.on_dead ~= 'none',
    retry = found.retry,
    jitter = math.min(tonumber(jitter or '0'), 50),
  }
end
