-- SPDX-License-Identifier: MIT
-- What lanes.lua and unique.lua have of a topic that holds no jobs.
local function unlink_keys(prefix)
  local function unlink_lanes(names)
    for _, name in ipairs(names) do
      redis.call('UNLINK', prefix .. 'lane:' .. name,
                 prefix .. 'on:' .. string.sub(name, 2))
    end
  end
  unlink_lanes(redis.pcall('ZRANGE', prefix .. 'turns', 0, -1))
  unlink_lanes(redis.pcall('HVALS', prefix .. 'of'))
  redis.call('UNLINK', prefix .. 'turns', prefix .. 'of', prefix .. 'rates',
             prefix .. 'unique')
end
