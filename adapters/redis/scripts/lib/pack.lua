-- SPDX-License-Identifier: MIT
-- How many slots of a pack are gone, which is the last, and its ids where it
-- has some; of one that is lost `last` is -1.
local function read_pack(key)
  local header = call('GETRANGE', key, 0, 7)
  if #header < 8 then return { gone = 0, last = -1 } end
  local _, _, last, gone, flags, len0, len1, len2 = byte(header, 1, 8)
  local pack = { gone = gone, last = last }
  if flags % 2 == 1 then
    local len = len0 + len1 * 256 + len2 * 65536
    pack.ids = table_of(call('GETRANGE', key, 8, len - 1))
  end
  return pack
end

-- More of its slots are gone; with the last one goes the pack, and what `due`
-- has of it where it is mixed. Returns whether it does.
local function note_gone(key, pack, count, due_key)
  pack.gone = pack.gone + count
  if pack.gone > pack.last then
    call('DEL', key)
    if due_key then redis.pcall('HDEL', due_key, sub(key, -12)) end
    return true
  end
  call('SETRANGE', key, 3, char(pack.gone))
  return false
end
