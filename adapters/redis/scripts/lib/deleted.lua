-- SPDX-License-Identifier: MIT
-- Jobs of a claim are deleted while it is leased. If such a job did not start,
-- its token comes back with the verdict that says so (tokens.lua): until then
-- `held` has !NODE and the job's lane, or 0, in front of the nodes. It needs
-- number.lua. `nodes` are of one slot each, `lanes` are names by packs.
local function note_deleted(held, token, nodes, lanes)
  local bytes, marked = redis.pcall('HGET', held, token), {}
  local flat = type(bytes) == 'string' and table_of(bytes) or {}
  if not flat[1] then return end
  for i, node in ipairs(nodes) do
    marked[2 * i - 1], marked[2 * i] = '!' .. node, lanes[sub(node, 1, 12)] or 0
  end
  for _, value in ipairs(flat) do marked[#marked + 1] = value end
  redis.pcall('HSET', held, token, cmsgpack.pack(marked))
end

-- Nodes of those that were deleted, and their lanes, which come back once.
local function take_deleted(held, token, nodes)
  local bytes = redis.pcall('HGET', held, token)
  local flat = type(bytes) == 'string' and table_of(bytes) or {}
  local wanted, taken, left = {}, {}, {}
  for _, node in ipairs(nodes) do wanted['!' .. node] = true end
  for i = 1, #flat, 2 do
    local list = wanted[flat[i]] and taken or left
    list[#list + 1], list[#list + 2] = flat[i], flat[i + 1]
  end
  if taken[1] then redis.pcall('HSET', held, token, cmsgpack.pack(left)) end
  return taken
end
