-- SPDX-License-Identifier: MIT
-- The error in the lists of a settle call, or nil. A nil in one
-- does not end it here. Needs node.lua, number.lua and lane_when.lua.
--#include when
local function is_whole(value, least, most)
  return type(value) == 'number' and value >= least and value <= most and
         value % 1 == 0
end

local function are_texts(...)
  for i = 1, select('#', ...) do
    if type(select(i, ...)) ~= 'string' then return false end
  end
  return true
end

local NO_MOVE = 'a move is not key, jobs, header length, when, form, ' ..
                'sources and target' -- or `relay` is not the last key
local function is_move(most_source, key, jobs, header_len, when, form, sources,
                       target)
  if not is_whole(jobs, 1, 256) or not is_whole(form, 0, 7) or
     type(when) ~= 'string' or not is_when(when, jobs) or
     type(sources) ~= 'table' or #sources ~= jobs then
    return false
  end
  for _, source in ipairs(sources) do
    if not is_whole(source, 0, most_source) then return false end
  end
  if type(key) == 'string' then -- a record and an id
    return jobs == 1 and form < 2 and are_texts(header_len) and
           #header_len > 0 and #header_len <= 128 and target == ''
  end
  return is_whole(key, 1, #KEYS) and is_whole(header_len, 8, 2 ^ 24) and
         (target == '' and form % 4 < 3 or
          type(target) == 'table' and are_texts(unpack(target, 1, 3)) and
          is_whole(target[4], 0, 2 ^ 53) and
          string.sub(KEYS[#KEYS], -6) == ':relay')
end

local function wrong_lists(nodes, back, moves, ends)
  local most_source = #nodes / 5 * 256 - 1
  for i = 1, table.maxn(nodes), 5 do
    local key, node, token, told, slots = unpack(nodes, i, i + 4)
    if not is_whole(key, 1, 2 ^ 17) or not KEYS[key % 65536] or
       not are_texts(node, slots) or
       not node_bounds(node) or not is_whole(token, 0, MOST_STORED) or
       not (type(told) == 'string' or type(told) == 'table' or
            is_whole(told, 0, 2 ^ 24)) then
      return 'a node is not key, node, token, header length or ids, and slots'
    end
  end
  for i = 1, table.maxn(back), 4 do
    local node, token, due, slots = unpack(back, i, i + 3)
    if not are_texts(node, slots) or not node_bounds(node) or
       not is_whole(token, 0, MOST_STORED) or
       not is_whole(due, 0, 2 * MOST_STORED) then
      return 'what goes back is not node, token, ms and slots'
    end
  end
  for i = 1, table.maxn(moves), 7 do
    if not is_move(most_source, unpack(moves, i, i + 6)) then
      return NO_MOVE
    end
  end
  for i = 1, table.maxn(ends), 3 do
    if not is_whole(ends[i], 0, most_source) or
       not are_texts(ends[i + 1], ends[i + 2]) or ends[i + 1] == '' then
      return 'a dead job is not source, id and record'
    end
  end
end

-- The same of entries of a list or a stream.
local function wrong_entries(done, autos, others, moves)
  for i = 1, table.maxn(done), 2 do
    if not is_whole(done[i], 0, MOST_STORED) or not are_texts(done[i + 1]) then
      return 'what is done is not token and id'
    end
  end
  for i = 1, table.maxn(autos), 2 do
    if not is_whole(autos[i], 0, MOST_STORED) or
       not is_whole(autos[i + 1], 0, 1e6) then
      return 'what is not kept is not token and how many'
    end
  end
  for i = 1, table.maxn(others), 7 do
    local token, id, what, delay = unpack(others, i, i + 3)
    local past, bytes, is_auto = unpack(others, i + 4, i + 6)
    if not is_whole(token, 0, MOST_STORED) or not is_whole(delay, 0, 1e13) or
       not are_texts(id, what, past, bytes) or
       not string.find(what, '^[rsdeb]$') or not is_whole(is_auto, 0, 1) then
      return 'a verdict is not token, id, what, ms, past, bytes and 0 or 1'
    end
  end
  for i = 1, table.maxn(moves), 7 do
    if not is_move(#others / 7, unpack(moves, i, i + 6)) then
      return NO_MOVE
    end
  end
end
