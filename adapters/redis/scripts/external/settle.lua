-- SPDX-License-Identifier: MIT
-- settle: verdicts for entries of a list or a stream, in one atomic step.
-- Each counts only while its entry is under its token, so repeating a call
-- changes nothing. All lists are msgpack, flat, or '' when empty.
--
-- KEYS  meta wait run lease held past dead auto, the list or stream,
--       packs... for other topics, absent; then relay where there are such
-- ARGV  1 group ('': a list), 2 '1': delete entries of the stream when done
--       3 most dead entries
--       4 done   [ token, id, ... ]
--       5 auto   [ token, how many, ... ] done, of those that are not kept
--       6 others [ token, id, what, delay ms, past, bytes, 1 if not kept, ... ]
--                what: r retry, s snooze, d dead, e expired, b give back;
--                bytes '': they are kept or in the stream; of what dies
--                there they are kept then
--       7 moves  packs (outbox.lua) of others, counted from 1, that become jobs
--                of other topics
-- Reply { settled, refused, how many entries the outbox has (0: none of these),
--         name and entry of each pack in it, how many dead entries went where
--         some did }; { -1 } a pack was not staged: nothing was done
--#include node
--#include number
--#include due
--#include outbox
--#include dead
--#include full
--#include types
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local meta, wait, run, lease, held, past, dead, auto, source =
  unpack(KEYS, 1, 9)
local group = ARGV[1]
--#include args
--#include verdicts
local function list_of(arg)
  local list = arg ~= '' and cmsgpack.unpack(arg) or {}
  return type(list) == 'table' and list or { false }
end
local done, autos, others = list_of(ARGV[4]), list_of(ARGV[5]), list_of(ARGV[6])
local flat_moves = list_of(ARGV[7])
local wrong = too_few(9, 7)
if wrong then return wrong end
wrong = wrong_entries(done, autos, others, flat_moves)
if wrong then return redis.error_reply('ERR ' .. wrong) end
wrong = bad_number('the number of dead entries', ARGV[3], 0, 2 ^ 32)
if wrong then return wrong end
local moves, lacks_some, outbox = read_moves(flat_moves, function(source)
  return others[7 * source - 6]
end)
if lacks_some then return { -1 } end
local is_moved = {}
for _, move in ipairs(moves) do
  for _, from in ipairs(move.sources) do is_moved[from] = true end
end

if #others > 0 then
  needs_zsets(wait, lease, dead)
  needs_hashes(meta, held, past)
end
if group ~= '' then call('XLEN', source) end -- an error where it is none

local settled, refused, tokens = 0, 0, {}
local finished, entries, deaths, histories, bytes, acks = {}, {}, {}, {}, {}, {}
local count = { done = 0, retried = 0, snoozed = 0, failed = 0, expired = 0 }

local function of_list(list, step)
  local ids, scores = {}, {}
  for i = 1, #list, step do ids[#ids + 1] = list[i + 1] end
  for from = 1, #ids, 1000 do
    local part = call('ZMSCORE', run, unpack(ids, from, min(from + 999, #ids)))
    for i = 1, #part do scores[from + i - 1] = part[i] end
  end
  return ids, scores
end

local function take(token, score)
  local is_ours = tonumber(score or -1) == token
  if is_ours then settled = settled + 1 else refused = refused + 1 end
  if is_ours then tokens[token] = true end
  return is_ours
end

-- What is not kept on the server is only counted.
local function take_auto(token, jobs)
  local left = number_of(call('HGET', auto, digits(token)))
  local taken = min(left, jobs)
  if left > jobs then
    needs_no_room(run)
    increment(auto, digits(token), -jobs)
  elseif left > 0 then
    call('HDEL', auto, digits(token))
  end
  settled, refused = settled + taken, refused + jobs - taken
  tokens[token] = true
  return taken
end

local ids, scores = of_list(done, 2)
for i, id in ipairs(ids) do
  if take(done[2 * i - 1], scores[i]) then
    finished[#finished + 1] = id
    count.done = count.done + 1
  end
end
for i = 1, #autos, 2 do
  count.done = count.done + take_auto(autos[i], autos[i + 1])
end

local function write_back(at, id, what, delay, history, body)
  local due = now
  if what ~= 'b' then
    due = due + delay
    histories[#histories + 1], histories[#histories + 2] = id, history
  end
  entries[#entries + 1], entries[#entries + 2] = due, id
  if body ~= '' then bytes[#bytes + 1], bytes[#bytes + 2] = id, body end
end

-- An entry of the stream as weir__external_read_body reads it.
local function entry_bytes(id)
  local entry = call('XRANGE', source, id, id)[1]
  local fields = entry and entry[2] or { 'body', '' }
  if #fields == 2 and fields[1] == 'body' then return fields[2] end
  local parts = { '\223' .. struct.pack('>I4', #fields / 2) }
  for i, text in ipairs(fields) do parts[i + 1] = cmsgpack.pack(text) end
  return table.concat(parts)
end

local function bury(id, history, body)
  if body == '' and group ~= '' then body = entry_bytes(id) end
  deaths[#deaths + 1], deaths[#deaths + 2] = now, id
  histories[#histories + 1], histories[#histories + 2] = id, history
  if body ~= '' then bytes[#bytes + 1], bytes[#bytes + 2] = id, body end
  acks[#acks + 1] = id
end

local names = { r = 'retried', s = 'snoozed', d = 'failed', e = 'expired' }
ids, scores = of_list(others, 7)
local leaving, late = {}, {}
for i, id in ipairs(ids) do
  local at = 7 * i - 6
  local token, what = others[at], others[at + 2]
  local is_auto = others[at + 6] == 1
  local ok
  if is_auto then ok = take_auto(token, 1) == 1
  else ok = take(token, scores[i]) end
  if ok then
    if names[what] then count[names[what]] = count[names[what]] + 1 end
    if is_moved[i] or what == 'e' then
      finished[#finished + 1] = id
    else
      leaving[#leaving + 1] = id
      if what == 'd' then
        bury(id, others[at + 4], others[at + 5])
      else
        write_back(at, id, what, others[at + 3], others[at + 4],
                   others[at + 5])
      end
    end
  else
    late[i] = true
  end
end

local reply = { settled, refused, 0 }
for _, move in ipairs(moves) do
  reply[#reply + 1] = record(outbox, move, late, now)
end
if outbox then reply[3] = outbox.length end

call_list('ZREM', run, finished)
call_list('HDEL', held, finished)
call_list('HDEL', past, finished)
call_list('ZREM', run, leaving)
call_list('ZADD', wait, entries)
call_list('ZADD', dead, deaths)
call_list('HSET', past, histories)
call_list('HSET', held, bytes)
if group ~= '' then
  for _, id in ipairs(finished) do acks[#acks + 1] = id end
  for from = 1, #acks, 1000 do
    local to = min(from + 999, #acks)
    call('XACK', source, group, unpack(acks, from, to))
    if ARGV[2] == '1' then call('XDEL', source, unpack(acks, from, to)) end
  end
end
for token in pairs(tokens) do
  local number = digits(token)
  if call('ZCOUNT', run, number, number) == 0 and
     call('HEXISTS', auto, number) == 0 then
    call('ZREM', lease, number)
  end
end
for name, jobs in pairs(count) do
  increment(meta, name, jobs)
end

local evicted = drop_oldest(meta, dead, tonumber(ARGV[3]), held, past)
if evicted > 0 then reply[#reply + 1] = evicted end
return reply
