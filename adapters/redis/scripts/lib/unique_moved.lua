-- SPDX-License-Identifier: MIT
-- Of a holder of a unique key that is not in its first pack any more
-- (unique.lua): it was written anew, maybe beside others.
local function moved()
  --#include node
  --#include mixed
  --#include pack
  --#include named

  -- When the job in a slot was added, as records say it that were written anew.
  local function added_at(key, header_len, last, slot)
    local OPTIONS_MOST = 65536
    local at = call('GETRANGE', key, digits(header_len + 4 * slot),
                    digits(header_len + 4 * slot + 7))
    if #at < 8 then return nil end
    local from, to = struct.unpack('<I4I4', at)
    local base = header_len + 4 * (last + 2)
    local record = call('GETRANGE', key, digits(base + from),
                        digits(base + min(to, from + OPTIONS_MOST) - 1))
    local told = { pcall(cmsgpack.unpack_limit, record, 7, 1) }
    return told[1] and type(told[9]) == 'table' and told[9].added_ms
  end

  -- Is the holder in this pack, or another job that has its id by now? Adds its
  -- slot, the pack and the node in which it waits, if it does, to the entry.
  local function is_there(entry, place)
    local key = prefix .. 'p:' .. place
    local pack = read_pack(key)
    local lo, mid, hi = byte(call('GETRANGE', key, '5', '7'), 1, 3)
    for i, name in ipairs(hi and pack.ids or {}) do
      local header_len = lo + mid * 256 + hi * 65536
      if name == entry.id and added_at(key, header_len, pack.last, i - 1) ==
                              named_ms(entry.seq) then
        entry.place, entry.pack, entry.slot = place, pack, i - 1
        return true
      end
    end
    return false
  end

  local function find_node(entry, key)
    local lo, hi = 0, entry.pack.last
    while true do
      local node = node_name(entry.place, lo, hi)
      local score = call('ZSCORE', key, node)
      if score or lo == hi then return score and node, score end
      local half = left_size(lo, hi)
      if entry.slot < lo + half then hi = lo + half - 1 else lo = lo + half end
    end
  end

  -- What is left of the node stays. Returns whether the job was counted as
  -- ready.
  local function remove(entry)
    local score = tonumber(entry.score)
    local region = score >= LANED and LANED or score >= MIXED and MIXED or 0
    local number = score - region
    local due = floor(number)
    local mark = known[region == 0 and 4 or region == MIXED and 5 or 7]
    local mark_end = number_of(mark, -1) + 1
    local lo, hi = node_bounds(entry.node)
    local own, rest = { [entry.slot] = true }, {}
    local times = region == MIXED and lo < hi and
                  read_table(call('HGET', due_key, entry.place), hi)
    if times then
      due = due_at(times, entry.slot)
      spread(rest, times, entry.place, lo, hi, own, number - due, mark_end)
    else
      if region == MIXED and is_undated(number, hi - lo + 1) then
        score = region + due + LOST_DUE
      end
      carve(rest, score, entry.place, lo, hi, own)
    end
    local lane = region == LANED and
                 redis.pcall('HGET', prefix .. 'of', entry.place)
    if type(lane) == 'string' then -- what is left of the node stays in it
      --#include lanes
      local enter, parts = lane_entrance(prefix, meta, now), rest
      rest = {}
      for i = 2, #parts, 2 do enter(rest, parts[i], due, number - due, lane) end
      --#include lane_left
      leave_wait(prefix, { entry.node }, { [entry.place] = lane })
    end
    call('ZREM', wait, entry.node)
    if rest[1] then call('ZADD', wait, unpack(rest)) end
    if note_gone(prefix .. 'p:' .. entry.place, entry.pack, 1, due_key) and
       lane then
      call('HDEL', prefix .. 'of', entry.place)
    end
    return due < mark_end
  end
  return { is_there = is_there, find_node = find_node, remove = remove }
end
