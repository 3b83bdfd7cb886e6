-- SPDX-License-Identifier: MIT
-- mend: look through a part of a key for what was lost with its pack or record
-- (lost.lua), for weir doctor.
--
-- KEYS  wait run ids meta dead rec due of absent
-- ARGV  1 to remove what was lost, 0 to count it; what to look through:
--         wait, of, due or ids, then a cursor, which begins with 0;
--         or packs, then names of packs: is any slot of it in a node?
-- Reply { next cursor, 0 at the end, how many were lost };
--       { -1, kind } when the topic is of another kind
--#include node
--#include number
--#include mixed
--#include pack
--#include suspect
--#include slot
local wait, run, ids, meta, dead, rec, due_key, of = unpack(KEYS)
local mends, what, cursor = ARGV[1] == '1', ARGV[2], ARGV[3]
--#include args
local wrong = too_few(8, 3) or
              bad_word('whether it mends', ARGV[1], '0 1') or
              bad_word('what to look through', what, 'wait of due ids packs') or
              #ARGV > 18 and
              redis.error_reply('ERR there are more than 16 packs')
if not wrong and what ~= 'packs' and
   (#(cursor or '') > 19 or not string.find(cursor or '', '^%d+$')) then
  wrong = redis.error_reply('ERR the cursor is not 1 to 19 digits')
end
if wrong then return wrong end
local known = call('HMGET', meta, 'kind', 'mark', 'mixed_mark', 'laned_mark')
if known[1] and known[1] ~= 'delay' then return { -1, known[1] } end
local prefix = sub(wait, 1, -5)
local MOST = 64 -- members in a step, as far as the server heeds that
local packs, lost, count = {}, {}, 0

local function pack_of(seq)
  packs[seq] = packs[seq] or read_pack(prefix .. 'p:' .. seq)
  return packs[seq]
end

local function is_gone(seq) return pack_of(seq).last < 0 end

-- A job that waits was lost with its pack: it counts as claimed and settled.
local function lose_node(node, score)
  local lo, hi = node_bounds(node)
  if not lo or not is_gone(sub(node, 1, 12)) then return end
  local region = region_of(score)
  local mark = region == 0 and known[2] or region == MIXED and known[3] or
               known[4]
  lost[#lost + 1] = node
  if not mends then return end
  local jobs = hi - lo + 1
  for _, name in ipairs({ 'claimed', 'settled', 'lost' }) do
    increment(meta, name, jobs)
  end
  if score - region < number_of(mark, -1) + 1 then
    increment(meta, 'ready', -jobs)
  end
end

-- Where an id is, no job may be: its pack, its record or its node was lost.
local function lose_id(id, place)
  if #id == 65 then return end -- topic.lua
  if place == 'D' then
    if call('HEXISTS', rec, id) == 0 then
      lost[#lost + 1] = id
      if mends then call('ZREM', dead, id) end
    end
    return
  end
  if #place ~= 12 then return end
  local pack = pack_of(place)
  if pack.last < 0 then
    lost[#lost + 1] = id
  elseif not find_slot(wait, run, place, pack.last, slots_with(pack, id)) then
    lost[#lost + 1] = id
    if mends and slots_with(pack, id)[1] then
      note_gone(prefix .. 'p:' .. place, pack, 1, due_key)
    end
  end
end

-- Neither this node nor one below it waits or runs.
local function is_nowhere(seq, lo, hi)
  local names = {}
  local function add(lo, hi)
    names[#names + 1] = node_name(seq, lo, hi)
    if lo == hi then return end
    local half = left_size(lo, hi)
    add(lo, lo + half - 1)
    add(lo + half, hi)
  end
  add(lo, hi)
  for _, key in ipairs({ wait, run }) do
    for _, score in ipairs(call('ZMSCORE', key, unpack(names))) do
      if score then return false end
    end
  end
  return true
end

local function lose_pack(seq)
  local key = prefix .. 'p:' .. seq
  local last = #seq == 12 and pack_of(seq).last or -1
  -- A pack that is staged has a time to live.
  if last < 0 or call('PTTL', key) ~= -1 or not is_nowhere(seq, 0, last) then
    return
  end
  count = count + 1
  if mends then
    call('UNLINK', key)
    redis.pcall('HDEL', due_key, seq)
  end
end

if what == 'packs' then
  for i = 3, #ARGV do lose_pack(ARGV[i]) end
  return { 0, count }
end
local keys = { wait = wait, of = of, due = due_key, ids = ids }
local found
if what == 'wait' then
  found = call('ZSCAN', wait, cursor, 'COUNT', digits(MOST))
else
  found = call('HSCAN', keys[what], cursor, 'COUNT', digits(MOST))
end
for i = 1, #found[2], 2 do
  local name, value = found[2][i], found[2][i + 1]
  if what == 'wait' then
    lose_node(name, tonumber(value))
  elseif what == 'ids' then
    lose_id(name, value)
  elseif #name == 12 and is_gone(name) then
    lost[#lost + 1] = name
  end
end
if mends then
  if what == 'wait' then call_list('ZREM', wait, lost)
  else call_list('HDEL', keys[what], lost) end
end
local reply = { found[1], #lost }
tell_aside(meta, reply)
return reply
