-- SPDX-License-Identifier: MIT
-- settle: batches come back as a whole: what is done or dropped is
-- gone, what is left goes back to the head of its group.
--
-- KEYS  rot hot lease out meta idle options ttl, then for each batch: the list
--       of its group, its own; absent
-- ARGV  topic, then for each batch: group, token, 1 if it has a lease, ms until
--       the group's next turn, events that are done, failed, too old, retried,
--       snoozed, all, -1 (every event goes back as it was) or how many go back,
--       those
-- Reply { place of a batch from 0, ... }: those that were somebody else's by
--       then, nothing was done with them; after a blank string drops as
--       (place, how many) by overflow.
--#include number
--#include group
--#include bounds
--#include wake
--#include parts
--#include full
local rot, hot, lease, out, meta, idle, options, ttl = unpack(KEYS, 1, 8)
local topic = ARGV[1]
local now = now_ms()
local known = call('HMGET', meta, 'bounds', 'parts')
local bounds = read_bounds(options, known[1])
parts = known[2] and parts_of(known[2])
local reply, drops, sums, first = {}, {}, {}, nil

local function add_up(field, by)
  if by ~= 0 then sums[field] = (sums[field] or 0) + by end
end

-- Returns how many events went back.
local function give_back(at, list, batch, number)
  if number ~= 0 then needs_no_room(lease) end -- what lies in `batch` goes
  if number > 0 then
    push_back(list, { unpack(ARGV, at + 11, at + 10 + number) })
  elseif number < 0 then
    number = tonumber(ARGV[at + 9])
    if call('EXISTS', batch) == 0 then
      number = 0 -- somebody deleted it
    elseif call('EXISTS', list) == 0 then
      call('RENAME', batch, list)
    else
      push_back(list, call('LRANGE', batch, 0, -1))
    end
  end
  if ARGV[at + 2] == '1' then call('DEL', batch) end
  return number
end

-- Groups whose state is to be written, all at once in the end.
local freed, cleared, ended_ttls = {}, {}, {}
local turns = { [rot] = {}, [hot] = {} }

-- The group is free: what waits in it has its turn again. True if it has a
-- state.
local function enter(group, list, ended, left, wait_ms)
  local waiting = call('LLEN', list)
  if waiting == 0 then
    if bounds.ttl > 0 then ended_ttls[#ended_ttls + 1] = group end
    return
  end
  if ended > 0 or wait_ms > 0 then
    local state = { '~', ended, left, digits(now + wait_ms) }
    call('HSET', out, group, table.concat(state, ' '))
  end
  local due = now + wait_ms
  if wait_ms == 0 and waiting < bounds.batch then due = now + bounds.linger end
  local entries = turns[heat(bounds, group) and hot or rot]
  entries[#entries + 1] = digits(parts and parts.score(group, due) or due)
  entries[#entries + 1] = group
  if parts then parts.note_due(group, due) end
  first = min(first or due, due)
  return ended > 0 or wait_ms > 0
end

local function settle(index, at, list, batch, token, ended, left)
  local group, is_leased = ARGV[at], ARGV[at + 2] == '1'
  if is_leased and token ~= ARGV[at + 1] then
    reply[#reply + 1] = index
    return
  end
  local all = tonumber(ARGV[at + 9])
  local back = give_back(at, list, batch, tonumber(ARGV[at + 10]))
  local over = back > 0 and shorten(bounds, list) or 0
  if over > 0 then
    drops[#drops + 1] = index
    drops[#drops + 1] = over
  end
  for i, field in ipairs({ 'done', 'failed', 'age', 'retried', 'snoozed' }) do
    add_up(field, tonumber(ARGV[at + 3 + i]))
  end
  add_up('overflow', over)
  if is_leased then add_up('running', -all) end
  add_up('waiting', back - over)
  if not is_leased and token and token ~= '~' then
    return -- leased by a worker that takes leases: its turn will come
  end
  if not is_leased then
    call('ZREM', rot, group)
    call('ZREM', hot, group)
  end
  freed[#freed + 1] = group
  left = left - (all - back)
  if left <= 0 then
    ended, left = 0, 0
  elseif ended > 1 and back < all then
    ended = 1 -- what it was blamed for went with the one that is gone
  end
  local has_state = enter(group, list, ended, left, tonumber(ARGV[at + 3]))
  if is_leased and not has_state then cleared[#cleared + 1] = group end
end

local groups, at = {}, 2
--#include args
for index = 1, (#KEYS - 8) / 2 do
  groups[index] = ARGV[at]
  local wrong = bad_word('whether it is leased', ARGV[at + 2], '0 1') or
                bad_number('the pause in ms', ARGV[at + 3], 0, MOST_MS)
  for i = at + 4, at + 9 do
    wrong = wrong or bad_number('a count of events', ARGV[i], 0, MOST_JOBS)
  end
  wrong = wrong or bad_number('how many events go back', ARGV[at + 10], -1,
                              #ARGV - at - 10)
  if wrong then return wrong end
  at = at + 11 + max(tonumber(ARGV[at + 10]), 0)
end
local states = call('HMGET', out, unpack(groups))
at = 2
for index = 0, #groups - 1 do
  if not pcall(settle, index, at, KEYS[9 + 2 * index], KEYS[10 + 2 * index],
               read_state(states[index + 1])) then
    reply[#reply + 1] = index -- a list of it is of another type
  end
  at = at + 11 + max(tonumber(ARGV[at + 10]), 0)
end
for key, entries in pairs(turns) do -- until then they are leased
  if #entries > 0 then call('ZADD', key, unpack(entries)) end
end
if #freed > 0 then call('ZREM', lease, unpack(freed)) end
if #cleared > 0 then call('HDEL', out, unpack(cleared)) end
if #ended_ttls > 0 then call('ZREM', ttl, unpack(ended_ttls)) end
for field, by in pairs(sums) do increment(meta, field, by) end
if parts then
  parts.wake(idle, topic)
elseif first then
  wake_one(idle, topic, first)
end
if #drops > 0 then
  reply[#reply + 1] = ''
  for i = 1, #drops do reply[#reply + 1] = drops[i] end
end
return reply
