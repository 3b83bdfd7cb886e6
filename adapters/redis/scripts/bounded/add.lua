-- SPDX-License-Identifier: MIT
-- add: add events to groups of a bounded topic.
--
-- KEYS  rot hot out meta idle options seen ttl, then for each group: its list
-- ARGV  topic, kind, call slot, number, then for each group: its name, how many
--       events, those
-- Reply { mode, place of a group from 0, how many events were dropped there,
--         ... }: 0 the oldest ones there, 1 the last ones of the call, 2 they
--         were refused. A repeat is answered alike, and '' comes last.
--         { -1, kind } when the topic is of another kind, { -4, '' } when
--         nothing of the call is stored (call_slot.lua).
--#include number
--#include group
--#include bounds
--#include wake
--#include parts
--#include call_slot
local rot, hot, out, meta, idle, options, seen, ttl = unpack(KEYS, 1, 8)
local topic, kind, call_slot, number = unpack(ARGV, 1, 4)
local now = now_ms()

--#include call_of_add
--#include args
local wrong, at = too_few(9, 6), 5
for _ = 9, #KEYS do
  wrong = wrong or bad_number('how many events a group gets', ARGV[at + 1], 0,
                              #ARGV - at - 1)
  if wrong then return wrong end
  at = at + 2 + ARGV[at + 1]
end
if ARGV[at] then
  return redis.error_reply('ERR there are fewer keys than groups')
end

local known = call('HMGET', meta, 'kind', 'bounds', 'parts', 'strayed')
if known[1] and known[1] ~= kind then return { -1, known[1] } end
wrong = bad_word('the kind', kind, 'bounded')
if wrong then return wrong end
if not known[1] then
  --#include topic
  known[1] = topic_kind(meta, nil, kind)
  if known[1] ~= kind then return { -1, known[1] } end
end

local said = said_before(seen, call_slot, number, whole)
if said then
  if said[2] == NOT_STORED then return { NOT_STORED, '' } end
  said[1] = said[1] or 0
  said[#said + 1] = ''
  return said
end

local bounds = read_bounds(options, known[2])
parts = known[3] and parts_of(known[3])
local reply = { bounds.mode }
local added, dropped, waiting = 0, 0, 0
local fresh, full, strays = {}, {}, {}

local function push(index, at, events)
  local list, group = KEYS[index], ARGV[at]
  local fit, over, len, before = events, 0, nil, nil
  if bounds.mode > 0 then
    before = call('LLEN', list)
    fit = min(events, max(bounds.length - before, 0))
    over = events - fit
  end
  len = before
  if fit > 0 then
    len = call('RPUSH', list, unpack(ARGV, at + 2, at + 1 + fit))
    before = len - fit
    if bounds.mode == 0 and len > bounds.length then
      over = len - bounds.length
      call('LTRIM', list, over, -1)
    end
    if before == 0 then
      fresh[#fresh + 1] = group
      fresh[group] = min(len, bounds.length)
    elseif bounds.linger > 0 and before < bounds.batch and
           len >= bounds.batch then
      full[#full + 1] = group
    end
  end
  if (known[4] or now % 64 == 0) and events > 0 and before > 0 then
    strays[#strays + 1] = { group, before } -- its turn may have been lost
  end
  added = added + (bounds.mode == 2 and fit or events)
  waiting = waiting + fit - (bounds.mode == 0 and over or 0)
  if bounds.mode < 2 then dropped = dropped + over end
  if over > 0 then
    reply[#reply + 1] = index - 9
    reply[#reply + 1] = over
  end
end

-- A key of another type is told in the end: the other groups get theirs, and
-- the next add looks whether a group has no turn because of that.
local failure = nil
local function attempt(...)
  local result = redis.pcall(...)
  if type(result) == 'table' and result.err then failure = result end
  return result
end
at = 5
for index = 9, #KEYS do
  local events = tonumber(ARGV[at + 1])
  local is_list, why = pcall(push, index, at, events)
  if not is_list then failure = why end
  at = at + 2 + events
end

-- Groups that had nothing enter a rotation, unless they are leased.
local first = nil
if #fresh > 0 then
  local states = attempt('HMGET', out, unpack(fresh))
  local plain, heated, ttls = {}, {}, {}
  local full_due, due_later = digits(now), digits(now + bounds.linger)
  local deadline = digits(now + bounds.ttl)
  for i, group in ipairs(fresh) do
    ttls[2 * i - 1], ttls[2 * i] = deadline, group
    if not states[i] then
      local is_full = fresh[group] >= bounds.batch
      local entries = heat(bounds, group) and heated or plain
      local score = is_full and full_due or due_later
      if parts then
        local due = is_full and now or now + bounds.linger
        parts.note_due(group, due)
        score = digits(parts.score(group, due))
      end
      entries[#entries + 1] = score
      entries[#entries + 1] = group
      first = is_full and now or first or now + bounds.linger
    end
  end
  if #plain > 0 then attempt('ZADD', rot, 'NX', unpack(plain)) end
  if #heated > 0 then attempt('ZADD', hot, 'NX', unpack(heated)) end
  if bounds.ttl > 0 then attempt('ZADD', ttl, 'GT', unpack(ttls)) end
end

-- Those that fill a batch now linger no longer.
if #full > 0 then
  local states = attempt('HMGET', out, unpack(full))
  for i, group in ipairs(full) do
    if not states[i] then
      local key = heat(bounds, group) and hot or rot
      local score = parts and parts.score(group, now) or now
      attempt('ZADD', key, 'XX', 'LT', digits(score), group)
      if parts then parts.note_due(group, now) end
      first = now
    end
  end
end

if strays[1] then
  --#include stray_groups
  local is_sound, count = pcall(put_strays, strays)
  if not is_sound then failure = count elseif count > 0 then first = now end
end

increment(meta, 'added', added)
increment(meta, 'waiting', waiting)
increment(meta, 'overflow', dropped)
if not failure then
  note_said(seen, call_slot, number, #reply > 1 and reply or {}, now)
end
if parts then
  parts.wake(idle, topic)
elseif first then
  wake_one(idle, topic, first)
end
if failure then
  redis.pcall('HSETNX', meta, 'strayed', '0')
  error(failure, 0)
end
return reply
