-- SPDX-License-Identifier: MIT
-- While a claim is leased `held` has for its token when its nodes were due, as
-- msgpack: { node, due ms, node, due ms, ..., @WORKER, ms of the claim, ms of
-- its lease }; -1 if its due time was lost (mixed.lua). What comes back is one
-- of these nodes or a part of one. It tells when jobs are late and too old, who
-- has them since when, and how long a lease can be (honest.lua). Where the key
-- is of another type it is done without.
local function note_held(held, token, nodes)
  redis.pcall('HSET', held, token, cmsgpack.pack(nodes))
end

local function forget_held(held, token) redis.pcall('HDEL', held, token) end

-- A function that says when a node of this claim was due, `now` where nothing
-- tells it, -1 if it was lost, whether it was claimed with others of its pack,
-- and whether it is known here. Behind that the time of the claim in ms and the
-- worker; nil: nothing tells it.
local function read_held(held, token, now)
  local bytes = redis.pcall('HGET', held, token)
  local flat = type(bytes) == 'string' and table_of(bytes) or {}
  local by_pack, since, worker = {}, nil, nil
  for i = 1, #flat - 1, 2 do
    local name, due = flat[i], tonumber(flat[i + 1])
    local lo, hi = node_bounds(type(name) == 'string' and name or '')
    if type(name) == 'string' and byte(name) == 64 then -- '@'
      since, worker = due, sub(name, 2)
    elseif lo and due then
      local seq = sub(name, 1, 12)
      by_pack[seq] = by_pack[seq] or {}
      due = due < 0 and -1 or min(bounded_score(due), now)
      table.insert(by_pack[seq], { lo, hi, due })
    end
  end
  return function(name, lo, hi)
    for _, node in ipairs(by_pack[sub(name, 1, 12)] or {}) do
      if node[1] <= lo and hi <= node[2] then
        return node[3], node[1] < node[2], true
      end
    end
    return now, lo < hi, false
  end, since, worker
end
