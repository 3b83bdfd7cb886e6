-- SPDX-License-Identifier: MIT
-- Nodes that waited in lanes (lanes.lua) and are not in `wait` any more. A lane
-- goes with the last one, or claims would look into it for nothing. `lanes` are
-- names by packs, as lanes_of tells them. It needs number.lua.
local function leave_wait(prefix, nodes, lanes)
  local by_lane, over = {}, {}
  for _, node in ipairs(nodes) do
    local name = lanes[string.sub(node, 1, 12)]
    if name then
      by_lane[name] = by_lane[name] or {}
      table.insert(by_lane[name], node)
    end
  end
  for name, left in pairs(by_lane) do
    local lane = prefix .. 'lane:' .. name
    for from = 1, #left, 1000 do -- whatever type the key has
      redis.pcall('ZREM', lane, unpack(left, from, math.min(from + 999, #left)))
    end
    if redis.call('EXISTS', lane) == 0 then over[#over + 1] = name end
  end
  call_list('ZREM', prefix .. 'turns', over)
end
