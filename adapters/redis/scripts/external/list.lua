-- SPDX-License-Identifier: MIT
-- list: a page of the entries in one state, from a place on. Those that nobody
-- took yet have no id in a list.
--
-- KEYS  meta wait run held past dead, the list or stream
-- ARGV  group ('': a list), state (scheduled, ready, untaken, running, dead),
--       score and member of the place ('' and '': the first), most, the end
--       that a list is taken from: 'right', else left. Of what is untaken the
--       score is how many of the list are passed, and the member the entry
--       before those of the stream.
-- Reply { kind ('' = no such topic), 1 = there are more, id, ms, past, bytes or
--         { field, ... }, score, ... } until the reply is full
--#include lag
--#include number
--#include entry
--#include fit
--#include rank
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta, wait, run, held, past, dead, source = unpack(KEYS)
local group, state, score, member = unpack(ARGV)
local most = tonumber(ARGV[5])
local reply = { call('HGET', meta, 'kind') or '', 0 }
local given = 0
ask_bodies(most)

local function body_of(id)
  local bytes = call('HGET', held, id)
  if bytes or group == '' or not is_entry(id) then return bytes or '' end
  local entry = call('XRANGE', source, id, id)[1]
  return entry and entry[2] or ''
end

local function give(id, ms, body, at)
  local last = #reply
  reply[last + 1], reply[last + 2] = id, ms
  reply[last + 3] = fit(call('HGET', past, id) or '')
  reply[last + 4], reply[last + 5] = fit(body), at
  given = given + 1
end

-- Some of `size` members that have the state.
local function give_ranks(key, from, size)
  local to = math.min(from + most, size) - 1
  local found = to < from and {} or
                call('ZRANGE', key, from, to, 'WITHSCORES')
  for i = 1, #found, 2 do
    if is_full() then break end
    local ms = key == run and -1 or number_of(found[i + 1])
    give(found[i], ms, body_of(found[i]), found[i + 1])
  end
  reply[2] = from + given < size and 1 or 0
end

local function give_of_list(from)
  local found = read_end(source, from, most, ARGV[6] == 'right')
  for i, bytes in ipairs(found) do
    if is_full() then break end
    give('@', now, bytes, tostring(from + i))
  end
  reply[2] = (given < #found or given == most) and 1 or 0
end

local function give_of_stream(from)
  if call('EXISTS', source) == 0 then return end
  local found = call('XRANGE', source, from, '+', 'COUNT', most + 1)
  reply[2] = #found > most and 1 or 0
  for _, entry in ipairs(found) do
    local id = entry[1]
    if is_full() or given == most then
      reply[2] = 1
      return
    end
    if id ~= from then
      give(id, tonumber(string.match(id, '^%d+')), entry[2], '0')
    end
  end
end

if state == 'untaken' and group == '' then
  give_of_list(tonumber(score) or 0)
elseif state == 'untaken' then
  local info = member == '' and external_group(source, group)
  give_of_stream(is_entry(member) and member or
                 info and info['last-delivered-id'] or '0-0')
else
  local key = state == 'running' and run or state == 'dead' and dead or wait
  local ripe = key == wait and call('ZCOUNT', wait, '-inf', now) or 0
  local from = state == 'scheduled' and ripe or 0
  if score ~= '' then from = rank_of(key, score, member) end
  give_ranks(key, from, state == 'ready' and ripe or call('ZCARD', key))
end
return reply
