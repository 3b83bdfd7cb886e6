-- SPDX-License-Identifier: MIT
-- Where a claim has no place for the length of its lease, `longest` in `meta`
-- has the longest one that a worker named, in ms, if the default is less.
local DEFAULT_MS = 5000 -- core/options.h: lease
local function note_length(meta, own_ms)
  if own_ms > DEFAULT_MS and
     own_ms > number_of(redis.call('HGET', meta, 'longest')) then
    redis.pcall('HSET', meta, 'longest', digits(own_ms)) -- a full server, too
  end
end

local function longest(meta)
  return math.max(number_of(redis.call('HGET', meta, 'longest')), DEFAULT_MS)
end
