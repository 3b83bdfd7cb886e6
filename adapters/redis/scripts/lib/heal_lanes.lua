-- SPDX-License-Identifier: MIT
-- Where `lane:NAME`, `turns` or `of` was lost, nodes stay in `wait` that no
-- claim finds. Of 256 nodes that belong to lanes those go back into their lane;
-- nodes of which no lane is known wait as jobs without one. If there are more,
-- each call looks at others. In scope are node.lua, number.lua and stats.lua.
local function heal_lanes(prefix)
  local MOST = 256
  --#include lanes
  local count = call('ZCOUNT', wait, digits(LANED), '+inf')
  local left = call('ZRANGEBYSCORE', wait, digits(LANED), '+inf', 'WITHSCORES',
                    'LIMIT', digits(now % math.max(count - MOST + 1, 1)),
                    digits(MOST))
  local names, by_lane, is_found = {}, {}, {}
  for i = 1, #left, 2 do names[#names + 1] = left[i] end
  local known = lanes_of(prefix, names)
  for _, node in ipairs(names) do
    local name = known[sub(node, 1, 12)]
    if name then
      by_lane[name] = by_lane[name] or {}
      table.insert(by_lane[name], node)
    end
  end
  for name, nodes in pairs(by_lane) do
    local has_turn = type(redis.pcall('ZSCORE', prefix .. 'turns',
                                      name)) == 'string'
    local scores = redis.pcall('ZMSCORE', prefix .. 'lane:' .. name,
                               unpack(nodes))
    for i, node in ipairs(nodes) do is_found[node] = has_turn and scores[i] end
  end

  local entries, early = {}, 0
  local enter = lane_entrance(prefix, meta, now)
  for i = 1, #left, 2 do
    local due, name = left[i + 1] - LANED, known[sub(left[i], 1, 12)]
    local lo, hi = node_bounds(left[i])
    if lo and name and not is_found[left[i]] then
      enter(entries, left[i], floor(due), due - floor(due), name)
    elseif lo and not name then
      entries[#entries + 1], entries[#entries + 2] = due, left[i]
      early = early + (hi - lo + 1) * ((due < total.mark + 1 and 1 or 0) -
                                       (due < total.laned_mark + 1 and 1 or 0))
    end
  end
  call_list('ZADD', wait, entries)
  increment(meta, 'ready', early)
  ready = ready + early
end
