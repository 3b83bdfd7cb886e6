-- SPDX-License-Identifier: MIT
-- A node is a range of slots of one pack, and always one of the nodes of the
-- pack's tree: the root holds all slots, and lo..hi splits after the largest
-- power of two below its size. Its name is the pack's 12 characters, then lo
-- and hi as two characters each out of '0'..'?', so that names sort by slot.
local call = redis.call
local byte, char, sub = string.byte, string.char, string.sub
local floor, min = math.floor, math.min

local function node_name(seq, lo, hi)
  return seq .. char(48 + floor(lo / 16), 48 + lo % 16,
                     48 + floor(hi / 16), 48 + hi % 16)
end

local function node_bounds(node)
  local lo1, lo0, hi1, hi0 = byte(node, 13, 16)
  return (lo1 - 48) * 16 + lo0 - 48, (hi1 - 48) * 16 + hi0 - 48
end

-- How many slots the left child of lo..hi has.
local function left_size(lo, hi)
  local size = 1
  while size * 2 < hi - lo + 1 do size = size * 2 end
  return size
end

-- Append score, name of the largest nodes below lo..hi that cover its slots
-- without those in `without`.
local function carve(list, score, seq, lo, hi, without)
  local count = 0
  for slot = lo, hi do
    if without[slot] then count = count + 1 end
  end
  if count == hi - lo + 1 then return end
  if count == 0 then
    list[#list + 1] = score
    list[#list + 1] = node_name(seq, lo, hi)
    return
  end
  local half = left_size(lo, hi)
  carve(list, score, seq, lo, lo + half - 1, without)
  carve(list, score, seq, lo + half, hi, without)
end

-- Numbers beyond 14 digits lose their end in `..`.
local function digits(number) return string.format('%.0f', number) end

-- call(command, key, ...) with a list of any length, 1,000 elements at a time.
local function call_list(command, key, list)
  for from = 1, #list, 1000 do
    call(command, key, unpack(list, from, min(from + 999, #list)))
  end
end
