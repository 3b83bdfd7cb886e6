-- SPDX-License-Identifier: MIT
-- list: entries of one state. Those that nobody took yet have no id in a
-- list.
--
-- KEYS  meta wait run held past dead, the list or stream
-- ARGV  group ('': a list), state (scheduled, ready, running, dead), most,
--       the end that a list is taken from: 'right', else left
-- Reply { kind ('' = no such topic), id, ms, past, bytes or { field, ... }, ...
--         } until the reply is full
--#include lag
--#include number
--#include entry
--#include fit
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local meta, wait, run, held, past, dead, source = unpack(KEYS)
local group, state, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
local reply = { call('HGET', meta, 'kind') or '' }
ask_bodies(most)

local function body_of(id)
  local bytes = call('HGET', held, id)
  if bytes or group == '' or not is_entry(id) then return bytes or '' end
  local entry = call('XRANGE', source, id, id)[1]
  return entry and entry[2] or ''
end

local function give(id, ms, body)
  if is_full() then return end
  local last = #reply
  reply[last + 1], reply[last + 2] = id, ms
  reply[last + 3] = fit(call('HGET', past, id) or '')
  reply[last + 4] = fit(body or body_of(id))
end

local function give_all(found)
  for i = 1, #found, 2 do give(found[i], number_of(found[i + 1])) end
end

local function give_untaken(count)
  if group == '' then
    for _, bytes in ipairs(read_end(source, 0, count, ARGV[4] == 'right')) do
      give('~', now, bytes)
    end
    return
  end
  local info = external_group(source, group)
  local from = info and info['last-delivered-id'] or '0-0'
  if call('EXISTS', source) == 0 then return end
  for _, entry in ipairs(call('XRANGE', source, from, '+', 'COUNT',
                              count + 1)) do
    if entry[1] ~= from and #reply < 1 + 4 * most then
      give(entry[1], tonumber(string.match(entry[1], '^%d+')), entry[2])
    end
  end
end

if state == 'scheduled' then
  give_all(call('ZRANGEBYSCORE', wait, '(' .. now, '+inf', 'WITHSCORES',
                'LIMIT', 0, most))
elseif state == 'running' then
  for _, id in ipairs(call('ZRANGE', run, 0, most - 1)) do give(id, -1) end
elseif state == 'dead' then
  give_all(call('ZRANGE', dead, 0, most - 1, 'WITHSCORES'))
else
  give_all(call('ZRANGEBYSCORE', wait, '-inf', now, 'WITHSCORES', 'LIMIT', 0,
                most))
  local left = most - (#reply - 1) / 4
  if left > 0 then give_untaken(left) end
end
return reply
