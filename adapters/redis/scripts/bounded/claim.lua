-- SPDX-License-Identifier: MIT
-- claim: take batches of events of the groups whose turn it is.
--
-- A script declares its keys, but whose turn it is only the server knows. So a
-- call takes from groups that an earlier one offered, and offers the next ones.
-- What is offered is kept for that worker for HOLD ms (and longer where groups
-- linger), then anybody's. Groups whose lease or ttl ended are offered as well:
-- what is to be done with them is done when they come back as candidates.
--
-- KEYS  rot hot lease out meta idle options ttl, then for each candidate: its
--       list, the list of its leased batch; absent
-- ARGV  topic, kind, room, lease ms (0: none), worker ('' = do not register as
--       idle) and, behind a blank each, its patterns of `groups`, 1 if it is
--       registered, 2 more if it has jobs in hand, 4 if these patterns are new
--       and 8 if there are some, how many groups to offer, bounds of this
--       worker ('': none), which server answers (server.lua), candidates
-- Reply { time in us, us until there is more to do (0: now, -1: nothing
--         waits), revision of the stored options * 2 (+ 1 if paused), how
--         many were ever added, offered groups, batches, drops, and what was
--         set aside, if anything (number.lua) }
--       a batch: { group, token, ended leases, events }
--       a drop: { group, 'overflow' or 'ttl', how many }
--       { -1, kind } when the topic is of another kind.
--#include number
--#include server
--#include group
--#include bounds
--#include fit
--#include wake
--#include event
--#include parts
--#include full
--#include types
local rot, hot, lease, out, meta, idle, options, ttl = unpack(KEYS, 1, 8)
local room, lease_ms, offers = tonumber(ARGV[3]), tonumber(ARGV[4]),
                               tonumber(ARGV[7])
local worker, flags = ARGV[5], tonumber(ARGV[6])
local own, FIRST = ARGV[9], 10 -- the first candidate
local HOLD, MOST, MOST_ENDED = 50, 1000, 255
local now, time_us = now_ms()

local known = call('HMGET', meta, 'paused', 'revision', 'bounds', 'kind',
                   'added', 'server', 'parts', 'waiting')
if known[4] and known[4] ~= ARGV[2] then return { -1, known[4] } end
--#include args
local wrong = too_few(math.max(2 * #ARGV - 10, 8), 9) or
              bad_word('the kind', ARGV[2], 'bounded') or
              bad_number('the room', ARGV[3], 0, MOST_JOBS) or
              bad_number('the lease in ms', ARGV[4], 0, HOUR_MS) or
              bad_number('the sixth argument', ARGV[6], 0, 15) or
              bad_number('the number of groups', ARGV[7], 0, MOST_JOBS) or
              bad_server(own)
if wrong then return wrong end
if ARGV[8] ~= '' and not string.find(ARGV[8], BOUNDS_FORM) then
  return redis.error_reply('ERR the bounds are none')
end
if not known[4] then
  --#include topic
  known[4] = topic_kind(meta, nil, ARGV[2])
  if known[4] ~= ARGV[2] then return { -1, known[4] } end
end
needs_no_room(lease)
local grace = 0 -- until then no lease ends
if known[6] ~= own then
  grace = meet_server(meta, lease, 'claimed', known[6], own, lease_ms, now)
end
local revision, added = number_of(known[2]) * 2, number_of(known[5])
if ARGV[8] ~= '' and known[3] ~= ARGV[8] then
  known[3] = ARGV[8]
  call('HSET', meta, 'bounds', ARGV[8])
end
if known[1] then -- asleep until it is resumed, whatever is added
  if worker ~= '' then fall_asleep(idle, worker, '-inf') end
  return { time_us, -1, revision + 1, added, {}, {}, {} }
end

local is_unsorted = false
if known[7] or flags >= 8 then
  parts = parts_of(known[7] or '')
  is_unsorted = parts.open(known[7], worker, meta, { rot, hot }, now)
  if is_unsorted == nil then
    return redis.error_reply('ERR groups: the workers of this topic name ' ..
                             'more than 250 patterns: name fewer')
  end
end

local bounds = read_bounds(options, known[3])
local offered, batches, drops, taken_jobs, rest = {}, {}, {}, 0, {}
-- With a group that is due come those whose linger is nearly over, so that not
-- each of many groups has a claim of its own.
local early = min(floor(bounds.linger / 8), 250)

local function rotation(group) return heat(bounds, group) and hot or rot end

local function drop(group, reason, number)
  if number == 0 then return end
  drops[#drops + 1] = { group, reason, number }
  increment(meta, reason, number)
  increment(meta, 'waiting', -number)
end

-- The lease of a batch ended: it goes back to the head of its group. The first
-- time nobody knows who is to blame, later only one whose start was noted.
local function expire(group, list, batch, ended, left, started)
  local events = call('LLEN', batch)
  if ended == 0 or started == 1 then ended = min(ended + 1, MOST_ENDED) end
  if call('EXISTS', list) == 0 and events > 0 then
    call('RENAME', batch, list)
  elseif events > 0 then
    push_back(list, call('LRANGE', batch, 0, -1))
    call('DEL', batch)
  end
  call('ZREM', lease, group)
  increment(meta, 'crashed', events)
  increment(meta, 'waiting', events)
  increment(meta, 'running', -events)
  local over = shorten(bounds, list)
  drop(group, 'overflow', over)
  left = max(left, events)
  if bounds.mode == 0 then left = max(left - over, 0) end
  if left == 0 then ended = 0 end
  call('HSET', out, group, table.concat({ '~', ended, left, 0 }, ' '))
  local score = parts and parts.score(group, now) or now
  call('ZADD', rotation(group), digits(score), group)
  return ended, left
end

local function forget(group)
  call('ZREM', rot, group)
  call('ZREM', hot, group)
  call('HDEL', out, group)
  call('ZREM', ttl, group)
end

-- Events of an idle group are too old to be worth anything. `deadline` counts
-- from the first of them; what came later prolongs it here, not at each add.
local function is_stale(group, list, deadline)
  if bounds.ttl == 0 then return false end
  local left = tonumber(deadline or 0) - now
  if left >= 0 and left <= bounds.ttl + 1000 then return false end
  local newest = call('LINDEX', list, -1)
  if not newest or #newest < 9 then return false end
  local until_ms = min(added_ms(newest), now) + bounds.ttl
  if until_ms < now then return true end
  call('ZADD', ttl, digits(until_ms), group)
  return false
end

-- A batch whose state was lost with `out` goes back.
local function give_back(list, batch, events)
  push_back(list, call('LRANGE', batch, 0, events - 1))
  call('LTRIM', batch, events, -1)
  increment(meta, 'waiting', events)
  increment(meta, 'running', -events)
end

-- What is taken is noted for all groups at once, in the end.
local function take(group, list, batch, size, ended, left)
  size = min(size, room - taken_jobs)
  local events, given = read_fitting(list, 0, size)
  if #events == 0 then return forget(group) end
  if is_full() then size = #events end
  local is_all = #events < size or call('LLEN', list) == size
  if lease_ms == 0 then
    if is_all then call('DEL', list) else call('LTRIM', list, size, -1) end
  elseif not is_all or call('RENAMENX', list, batch) == 0 then
    local before = call('RPUSH', batch, unpack(events)) - #events
    if is_all then call('DEL', list) else call('LTRIM', list, size, -1) end
    if before > 0 then give_back(list, batch, before) end
  end
  taken_jobs = taken_jobs + #events
  batches[#batches + 1] = { group, taken_jobs, ended, given, left, is_all }
end

local function note_batches()
  local names, leases, states, left_over = {}, {}, {}, {}
  local token = increment(meta, 'claimed', taken_jobs, first_token(now)) -
                taken_jobs
  for i, taken in ipairs(batches) do
    local group = taken[1]
    taken[2] = digits(token + taken[2])
    names[i] = group
    leases[2 * i - 1], leases[2 * i] = digits(now + lease_ms), group
    states[2 * i - 1] = group
    states[2 * i] = table.concat({ taken[2], taken[3], taken[5], 0,
                                   digits(lease_ms) }, ' ')
    if not taken[6] then left_over[#left_over + 1] = group end
    taken[5], taken[6] = nil, nil
  end
  increment(meta, 'waiting', -taken_jobs)
  call('ZREM', rot, unpack(names))
  call('ZREM', hot, unpack(names)) -- also where `hot` names it no more
  if lease_ms > 0 then
    increment(meta, 'running', taken_jobs)
    call('ZADD', lease, unpack(leases))
    call('HSET', out, unpack(states))
    return
  end
  call('HDEL', out, unpack(names))
  for _, group in ipairs(left_over) do
    local score = parts and parts.score(group, now) or now
    call('ZADD', rotation(group), digits(score), group)
  end
end

-- Is there anything to do with the group? Returns the ended leases and suspects
-- if it may be served.
local function look(group, list, batch, state, deadline)
  local token, ended, left, last = read_state(state)
  ended = min(ended, MOST_ENDED)
  if token and token ~= '~' then
    if grace > 0 or tonumber(call('ZSCORE', lease, group) or 0) >= now then
      if bounds.ttl > 0 then -- looked at again a little later
        call('ZADD', ttl, 'XX', 'GT', digits(now + 1000), group)
      end
      return
    end
    ended, left = expire(group, list, batch, ended, left, last)
    last = 0
  end
  if is_stale(group, list, deadline) then
    drop(group, 'ttl', call('LLEN', list))
    call('DEL', list)
    return forget(group)
  end
  if token == '~' and last > now then -- nothing hurries a retry
    local score = parts and parts.score(group, last) or last
    call('ZADD', rotation(group), 'XX', digits(score), group)
    return
  end
  return ended, left
end

local function try(group, list, batch, state, deadline)
  local ended, left = look(group, list, batch, state, deadline)
  if not ended then return end
  if parts and not parts.is_own(group) then return parts.note_others(group) end
  local size = 1
  if ended == 0 then
    size = min(bounds.batch * (heat(bounds, group) or 1), MOST)
  end
  if taken_jobs >= room or is_full() or
     taken_jobs > 0 and room - taken_jobs < size and
     room - taken_jobs < min(call('LLEN', list), bounds.batch) then
    rest[#rest + 1] = group
    return
  end
  take(group, list, batch, size, ended, left)
end

if #ARGV >= FIRST then
  needs_zsets(rot, hot)
  local states = call('HMGET', out, unpack(ARGV, FIRST))
  local deadlines = {}
  if bounds.ttl > 0 then
    deadlines = call('ZMSCORE', ttl, unpack(ARGV, FIRST))
  end
  for i = 1, #ARGV - FIRST + 1 do
    local group = ARGV[FIRST + i - 1]
    if not pcall(try, group, KEYS[2 * i + 7], KEYS[2 * i + 8], states[i],
                 deadlines[i]) then -- a list of it is of another type
      set_aside = set_aside + 1
      forget(group)
    end
  end
end
if #batches > 0 then note_batches() end

-- Offer groups, each once: what was left over, ended leases, ended ttls, then
-- hot and other groups by turns.
local seen, kept = {}, { [rot] = {}, [hot] = {} }
local function offer(group, key)
  if seen[group] then return end
  seen[group] = true
  offered[#offered + 1] = group
  if not key then return end
  local entries = kept[key]
  local at = now + HOLD + early
  entries[#entries + 1] = digits(parts and parts.score(group, at) or at)
  entries[#entries + 1] = group
end

local function offer_due(key, most)
  if most <= 0 then return end
  for _, group in ipairs(call('ZRANGEBYSCORE', key, '-inf', '(' .. digits(now),
                              'LIMIT', 0, most)) do
    local token = key == ttl or read_state(call('HGET', out, group))
    if token == '~' then -- nothing of it is leased
      call('ZREM', lease, group)
      set_aside = set_aside + 1
    else
      if not token then -- lost: what it has goes back, as of another claim
        call('HSET', out, group, '0 0 0 0')
      end
      offer(group)
    end
  end
end

local function offer_turns(most)
  if most <= 0 then return end
  local up_to, plain, heated = digits(now), nil, nil
  if parts then
    plain, heated = parts.due(rot, early, most), parts.due(hot, early, most)
  else
    if early > 0 and (call('ZCOUNT', rot, '-inf', up_to) > 0 or
                      call('ZCOUNT', hot, '-inf', up_to) > 0) then
      up_to = digits(now + early)
    end
    plain = call('ZRANGEBYSCORE', rot, '-inf', up_to, 'LIMIT', 0, most)
    heated = call('ZRANGEBYSCORE', hot, '-inf', up_to, 'LIMIT', 0, most)
  end
  local ends = #offered + most
  for i = 1, most do
    if plain[i] and #offered < ends then offer(plain[i], rot) end
    if heated[i] and #offered < ends then offer(heated[i], hot) end
  end
end

if offers > 0 then
  for i = 1, min(#rest, offers) do offer(rest[i], rotation(rest[i])) end
  if grace == 0 then offer_due(lease, min(offers - #offered, 4)) end
  if bounds.ttl > 0 then offer_due(ttl, min(offers - #offered, 4)) end
  offer_turns(offers - #offered)
  for key, entries in pairs(kept) do
    -- Where `hot` was changed it may still be on the other rotation.
    if #entries > 0 then call('ZADD', key, 'XX', unpack(entries)) end
  end
end

-- The next thing to happen here.
local asleep = taken_jobs == 0 and #offered == 0 and not is_unsorted
local wake_at, due_at
local function ripen(key, by, least)
  local head = call('ZRANGE', key, '0', '0', 'WITHSCORES')
  if head[1] then
    wake_at = min(wake_at or math.huge, max(tonumber(head[2]) + by, least or 0))
  end
end
local function find_next()
  wake_at = nil
  if parts then
    wake_at = parts.first_turn()
  else
    ripen(rot, 0)
    ripen(hot, 0)
  end
  due_at = wake_at
  ripen(lease, 1, grace)
  if bounds.ttl > 0 then ripen(ttl, 1) end
end
find_next()
-- The first one may be too far ahead, or others behind it.
local far = now + max(bounds.linger, lease_ms) + 2000
if asleep and (now % 8 == 0 or (wake_at or 0) > far) or now % 64 == 0 then
  --#include heal_groups
  find_next()
end
if asleep and not wake_at and number_of(known[8]) > 0 then
  redis.pcall('HSETNX', meta, 'strayed', '0') -- adds look (stray_groups.lua)
end
if is_unsorted then wake_at = now end
if asleep and worker ~= '' then
  fall_asleep(idle, worker, wake_at, floor(flags / 2) % 2 == 1)
elseif not asleep then -- what it leaves is for the next worker
  if flags % 2 == 1 then call('ZREM', idle, worker) end
  if parts then
    parts.note_heads(taken_jobs >= room)
  elseif due_at and (due_at <= now or taken_jobs >= room) then
    wake_one(idle, ARGV[1], max(due_at, now))
  end
end
if parts then -- what it was woken for may be others' now
  if floor(flags / 4) % 2 == 1 then parts.note_others() end
  parts.wake(idle, ARGV[1])
end
local next_us = wake_at and us_until(wake_at, time_us) or -1
local reply = { time_us, next_us, revision, added, offered, batches, drops }
tell_aside(meta, reply)
return reply
