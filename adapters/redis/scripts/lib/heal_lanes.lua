-- SPDX-License-Identifier: MIT
-- Where `lane:NAME`, `turns` or `of` was lost, nodes stay in `wait` that no
-- claim finds. If the first node there that belongs to a lane (`head`, with its
-- score) is such a node, the first 256 go back into their lanes, and those of
-- which no lane is known wait as jobs without one. In scope are node.lua,
-- number.lua and stats.lua.
local function heal_lanes(prefix, head)
  local MOST = 256
  --#include lanes
  local function is_found(node)
    local name = lanes_of(prefix, { node })[sub(node, 1, 12)]
    return name and
           type(redis.pcall('ZSCORE', prefix .. 'lane:' .. name,
                            node)) == 'string' and
           type(redis.pcall('ZSCORE', prefix .. 'turns', name)) == 'string'
  end
  if not node_bounds(head[1]) or is_found(head[1]) then return end

  local left = call('ZRANGEBYSCORE', wait, digits(LANED), '+inf', 'WITHSCORES',
                    'LIMIT', '0', digits(MOST))
  local names, entries, early = {}, {}, 0
  for i = 1, #left, 2 do names[#names + 1] = left[i] end
  local known = lanes_of(prefix, names)
  local enter = lane_entrance(prefix, meta, now)
  for i = 1, #left, 2 do
    local due, name = left[i + 1] - LANED, known[sub(left[i], 1, 12)]
    local lo, hi = node_bounds(left[i])
    if lo and name then
      enter(entries, left[i], floor(due), due - floor(due), name)
    elseif lo then
      entries[#entries + 1], entries[#entries + 2] = due, left[i]
      early = early + (hi - lo + 1) * ((due < total.mark + 1 and 1 or 0) -
                                       (due < total.laned_mark + 1 and 1 or 0))
    end
  end
  call_list('ZADD', wait, entries)
  increment(meta, 'ready', early)
  ready = ready + early
end
