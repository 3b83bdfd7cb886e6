-- SPDX-License-Identifier: MIT
-- One job in a pack of its own becomes claimable, or is handed to a worker that
-- offers itself. A server that rests between two jobs spends more on the memory
-- of a script than on the commands: the usual way calls no function, and those
-- for the rest are made when they are needed.
--
-- In scope are the keys and arguments of add_one.lua, its `time`, `now`,
-- `now_text`, `seq`, `revision`, `last` and `known` (of which three fields will
-- do where `own` is ''), lone_rare.lua, and `next_added`: what the count of
-- those added comes to, nil if nobody knows. Without a `call_slot` nothing is
-- kept for a repeat, and the job is handed to nobody. Sets `refused`: nil where
-- the job was added, what add tells of it (0, 256, -1), or the other kind of
-- the topic; and may leave the loop that it stands in: a function with all of
-- these in scope would cost as much as some of the commands.
refused = nil
-- As types.lua says. Of a job that only has to wait less is undone than looked
-- at, but where the topic is new.
if call_slot or not known[1] then call('ZCARD', wait) end
if known[1] ~= kind then
  refused = known[1] or rare().topic_kind(meta, ids, kind)
  if refused ~= kind then break end
  refused = nil
end
local due = now
if when ~= 'r0' then -- what nearly all say, which is now
  due = tonumber(string.sub(when, 2))
  if string.byte(when) == 114 then due = due + now end
  if due < now then due = now end
end
local is_full = false
if known[2] then
  local lib = rare()
  is_full = lib.room_left(meta, lib.number_of(known[2], math.huge)) < 1
end

local is_known = id ~= '' and call('HSETNX', ids, id, seq) == 0
if is_known and
   rare().is_lost(string.sub(wait, 1, -5), call('HGET', ids, id), id) then
  call('HSET', ids, id, seq)
  is_known = false
end
if is_known then
  refused = 0
elseif is_full then
  refused = 256
elseif not call('SET', key, pack, 'NX') then
  refused = -1
end
if refused and refused ~= 0 and id ~= '' then call('HDEL', ids, id) end
if last and not refused then
  call('HSET', seen, call_slot, number)
elseif call_slot then
  rare().note_said(seen, call_slot, number, { refused and 0, refused }, now)
end
if refused then break end

local node, due_text = seq .. '0000', now_text
if due > now then -- as digits() of number.lua has it
  due_text = string.format('%d%07d', due / 1e7, due % 1e7)
end
if not call_slot then
  local is_new = redis.pcall('ZADD', wait, due_text, node)
  if is_new ~= 1 and is_new ~= 0 then -- of another type
    call('DEL', key)
    if id ~= '' then call('HDEL', ids, id) end
    call('ZADD', wait, due_text, node) -- ends the script
  end
end

local added = redis.pcall('HINCRBY', meta, 'added', '1')
if added ~= next_added and (type(added) ~= 'number' or
   not (added > -2 ^ 45 and added < 2 ^ 45)) then
  rare().increment(meta, 'added', 1)
end

local lease_ms, offer, since, worker
if known[4] and own ~= '' and known[6] == own and not known[5] and
   due <= now and #(known[7] or '') < 14 and
   string.find(known[7] or '', '^[1-9]%d*$') then
  lease_ms, offer, since, worker = string.match(known[4],
                                                '^(%d+) (%d+) (%d+) (.+)$')
end
if worker then
  local head = call('ZRANGE', wait, '0', '0', 'WITHSCORES')
  local mixed = known[8] == '2' and
                call('ZRANGEBYSCORE', wait, '35184372088832',
                     string.format('%.0f', 2 ^ 45 + now), 'LIMIT', '0', '1')
  if tonumber(head[2] or 'inf') <= now or mixed and mixed[1] or
     type(redis.pcall('ZCARD', run)) ~= 'number' or
     type(redis.pcall('ZCARD', lease)) ~= 'number' then
    worker = nil
  end
end
if worker then
  local time_us = time[1] * 1000000 + time[2]
  local token = string.format('%.0f', call('HINCRBY', meta, 'claimed', '1'))
  local told = string.format('%s %s %s %.0f %.0f %.0f %s %.0f %s ', topic, node,
                             token, due, time_us, time_us - since, offer,
                             revision or 0, own)
  call('HDEL', meta, 'offer')
  local channel = string.match(wait, '^[^{]*') .. 'wake:' .. worker
  local received = redis.pcall('PUBLISH', channel, told .. pack)
  if type(received) == 'number' and received > 0 then
    call('ZADD', run, token, node)
    call('ZADD', lease, string.format('%.0f', now + lease_ms), token)
    local taken = { node, due, '@' .. worker, now, tonumber(lease_ms) }
    redis.pcall('HSET', held, token, cmsgpack.pack(taken)) -- held.lua
    redis.pcall('ZREM', idle, worker)
    break
  end
  rare().increment(meta, 'returned', 1)
end

if call_slot then call('ZADD', wait, due_text, node) end

-- The worker that would sleep longest, where it has nothing in hand.
local sleeper = redis.pcall('ZRANGE', idle, '-1', '-1', 'WITHSCORES')
if sleeper[2] then
  local at, is_woken = tonumber(sleeper[2]), false
  if at > due then
    call('ZREM', idle, sleeper[1])
    local channel = string.match(wait, '^[^{]*') .. 'wake:' .. sleeper[1]
    local received = redis.pcall('PUBLISH', channel,
                                 due > now and topic or topic .. ' ' .. seq)
    is_woken = type(received) == 'number' and received > 0
  end
  if not is_woken and at + 2 ^ 45 > due then -- another one, see wake.lua
    rare().wake_one(idle, topic, due, due <= now and seq)
  end
end
