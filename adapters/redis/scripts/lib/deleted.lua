-- SPDX-License-Identifier: MIT
-- Jobs of a claim are deleted while it is leased. If such a job did not start,
-- its token comes back with the verdict that says so (tokens.lua): until then
-- `held` has !NODE, 0 for its slot, in front of the nodes. It needs number.lua.
local function note_deleted(held, token, nodes)
  local bytes, marked = redis.pcall('HGET', held, token), {}
  local flat = type(bytes) == 'string' and table_of(bytes) or {}
  if not flat[1] then return end
  for _, node in ipairs(nodes) do
    marked[#marked + 1], marked[#marked + 2] = '!' .. node, 0
  end
  for _, value in ipairs(flat) do marked[#marked + 1] = value end
  redis.pcall('HSET', held, token, cmsgpack.pack(marked))
end

-- False: it was not deleted, or its token came back before.
local function take_deleted(held, token, node)
  local bytes = redis.pcall('HGET', held, token)
  local flat = type(bytes) == 'string' and table_of(bytes) or {}
  for i = 1, #flat - 1, 2 do
    if flat[i] == '!' .. node then
      table.remove(flat, i)
      table.remove(flat, i)
      redis.pcall('HSET', held, token, cmsgpack.pack(flat))
      return true
    end
  end
  return false
end
