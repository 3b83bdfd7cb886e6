-- SPDX-License-Identifier: MIT
-- claim_stream: take entries of a stream through its consumer group under a
-- new lease: first those that weir holds back once they are due, then new ones,
-- then what consumers of the group left behind that look dead. All workers are
-- one consumer: which of them has what is in `run`.
--
-- KEYS  meta wait run lease held past auto, the stream, absent
-- ARGV  kind, room (0: only look), lease ms, revision of the stored options
--       that the worker knows, name of the stream if it is not the topic's,
--       group, consumer, where a new group starts, claim_idle in ms, which
--       server answers (server.lua), how bodies are read, '' for auto
-- Reply { time in us, token, us until there is more to do (0: now, -1: nothing
--         waits), entries, revision * 2 (+ 1 if paused),
--         id, bytes or { field, value, ... }, past, due ms, ... }; where there
--         is no entry the group's last id comes instead. Last comes what was
--         set aside, if anything (number.lua).
--       { -1, kind } when the topic is of another kind: nothing was done.
--       Where the revision is another one nothing is taken.
--#include number
--#include server
--#include past
--#include entry
--#include full
--#include types
--#include external
--#include fit
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local keys = { meta = KEYS[1], wait = KEYS[2], run = KEYS[3], lease = KEYS[4],
               held = KEYS[5], past = KEYS[6], auto = KEYS[7] }
local stream, room = KEYS[8], tonumber(ARGV[2])
local group, consumer = ARGV[6], ARGV[7]
local idle_ms = tonumber(ARGV[9])
if not (idle_ms and idle_ms >= 0 and idle_ms <= 1e13 and idle_ms % 1 == 0) or
   ARGV[8] ~= '$' and not is_entry(ARGV[8]) and not is_entry(ARGV[8] .. '-0')
then
  return redis.error_reply('ERR claim_idle or where a group starts is none')
end
local ended = external_begin(keys.meta, ARGV[1], ARGV[10], ARGV[2], ARGV[3])
if ended then return ended end
local options = call('HMGET', keys.meta, 'paused', 'revision', 'key', 'swept',
                     'cursor', 'group', 'server', 'body')
if (options[3] or '') ~= ARGV[5] or options[6] ~= group or
   (options[8] or '') ~= ARGV[11] then
  call('HSET', keys.meta, 'key', ARGV[5], 'group', group, 'body', ARGV[11])
end
external_meet(keys, options[7], ARGV[10], tonumber(ARGV[3]), now)
external_expire(keys, now)

local out, lost = {}, 0
local reply, is_last = external_reply(keys, time, options, room, ARGV[4])
if is_last then return reply end

local function give(id, body, past, due)
  local last = #reply
  reply[last + 1], reply[last + 2] = id, fit(body)
  reply[last + 3], reply[last + 4] = fit(past or ''), due
  out[#out + 1] = id
end

-- Ours by now, and the reply is full: the next claim recalls it.
local function put_off(id, due)
  call('ZADD', keys.wait, digits(min(due, now)), id)
end

local function pending(id)
  return call('XPENDING', stream, group, id, id, 1)[1]
end

-- The group was removed, and is there again: it knows nothing of what waits,
-- and where it begins at the end it will not hear of that.
local forgets = false

-- An entry that waited: still ours, or taken over by another consumer, or gone
-- from the stream.
local function recall(id, due)
  if not is_entry(id) then
    set_aside = set_aside + 1
    call('ZREM', keys.wait, id)
    call('HDEL', keys.held, id)
    call('HDEL', keys.past, id)
    return
  end
  local bytes = call('HGET', keys.held, id)
  local past = call('HGET', keys.past, id)
  local owner = not bytes and pending(id)
  local entry = owner and owner[2] == consumer and
                call('XCLAIM', stream, group, consumer, 0, id)[1]
  if forgets and not bytes and not owner then
    entry = call('XCLAIM', stream, group, consumer, 0, id, 'FORCE')[1]
    if not entry then lost = lost + 1 end
  end
  call('ZREM', keys.wait, id)
  if bytes or entry then
    give(id, bytes or entry[2], past, due)
    return
  end
  call('HDEL', keys.past, id)
  if owner and owner[2] == consumer then
    call('XACK', stream, group, id)
    lost = lost + 1
  end
end

local function read_new(count)
  return redis.pcall('XREADGROUP', 'GROUP', group, consumer, 'COUNT', count,
                     'STREAMS', stream, '>')
end

-- Somebody may have removed the group, or the stream.
local function take_new(count)
  local found = read_new(count)
  if found and found.err and string.find(found.err, 'NOGROUP', 1, true) then
    call('XGROUP', 'CREATE', stream, group, ARGV[8], 'MKSTREAM')
    found = read_new(count)
  end
  if found and found.err then return found end
  local entries = found and found[1] and found[1][2] or {}
  for _, entry in ipairs(entries) do
    local due = tonumber(string.match(entry[1], '^%d+'))
    if is_full() then
      put_off(entry[1], due)
    elseif entry[2] then
      give(entry[1], entry[2], nil, due)
    end
  end
  if #entries > 0 then increment(keys.meta, 'taken', #entries) end
  return nil, #entries
end

-- Those that had it are blamed: it may be what they died of.
local function adopt(id, body)
  local times = pending(id)[4] - 1
  local past = cmsgpack.pack({ 0, 0, 0, times, 0, times, 0, '', '' })
  call('HSET', keys.past, id, past)
  if is_full() then return put_off(id, now) end
  give(id, body, past, now)
end

-- Look through what was not settled for long, 100 at a time.
local function take_over(count)
  local found = call('XAUTOCLAIM', stream, group, consumer, digits(idle_ms),
                     is_entry(options[5] or '') and options[5] or '0-0',
                     'COUNT', min(count, 100))
  for _, entry in ipairs(found[2]) do
    local id = entry and entry[1]
    if id and entry[2] and not call('ZSCORE', keys.run, id) and
       not call('ZSCORE', keys.wait, id) then
      adopt(id, entry[2])
    end
  end
  call('HSET', keys.meta, 'cursor', found[1])
  if found[1] == '0-0' then call('HSET', keys.meta, 'swept', now) end
end

local due = call('ZRANGEBYSCORE', keys.wait, '-inf', digits(now), 'WITHSCORES',
                 'LIMIT', 0, room)
if #due > 0 then -- somebody may have removed the group, or the stream
  needs_zsets(keys.run, keys.lease)
  call('XLEN', stream) -- an error where it is none
  local made = redis.pcall('XGROUP', 'CREATE', stream, group, ARGV[8],
                           'MKSTREAM')
  forgets = not made.err and ARGV[8] == '$'
end
for i = 1, #due, 2 do
  if is_full() then break end
  recall(due[i], number_of(due[i + 1]))
end
-- Not all at once, since a script holds in memory what it reads.
while #out < room and not is_full() do
  local most = min(room - #out, 128)
  local refused, count = take_new(most)
  if refused then return refused end
  if count < most then break end
end
if #out < room and not is_full() and
   math.abs(now - number_of(options[4])) >= 1000 then
  take_over(room - #out)
end

if #out > 0 then
  reply[2], reply[4] = external_lease(keys, out, #out, now, ARGV[3]), #out
else
  for _, info in ipairs(call('XINFO', 'GROUPS', stream)) do
    local field = {}
    for i = 1, #info, 2 do field[info[i]] = info[i + 1] end
    if field.name == group then reply[6] = field['last-delivered-id'] end
  end
end
if lost > 0 then increment(keys.meta, 'lost', lost) end
reply[3] = external_next_us(keys, time, ARGV[3], #out)
tell_aside(keys.meta, reply)
return reply
