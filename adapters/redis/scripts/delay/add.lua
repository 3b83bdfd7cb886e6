-- SPDX-License-Identifier: MIT
-- add: packs of new jobs become claimable, in one atomic step.
--
-- Each pack was staged before by SET pack bytes NX PX: the server hashes every
-- byte of a string that enters Lua, so bodies stay outside. PERSIST makes a
-- pack permanent.
--
-- KEYS  wait ids meta idle seen, pack...; then due, without which no pack is
--       mixed: its slots are added as nodes of their own; then absent where
--       packs are of lanes
-- ARGV  topic, kind, call slot, number, then for each pack: jobs, header
--       length, when (due.lua). One more where an outbox sends one pack on:
--       slots to leave out, one byte each. Such a pack comes whole where there
--       is room for one job. Or '@@', which no outbox sends: jobs are restored,
--       and ids may be some that weir made; behind that where a producer adds
--       again: slots to leave out, as pairs of a byte for the pack from 0 and
--       one for the slot
-- Reply { added, pack, slot, pack, slot, ... }; the pairs name what was not
--       added, packs counted from 0: a slot whose id exists already; 256 +
--       slot: as many jobs wait as may; slot -1: this pack is in use already;
--       -2: not staged; -3: it is none: its ids are not one str for each job,
--       or one cannot be an id (of bytes that none may have not all are looked
--       for), or what the arguments say of it cannot be; -4, of pack 0: nothing
--       of the call is stored (call_slot.lua). Where options are stored their
--       revision comes last. A repeat is answered with the same
--       pairs, and added 0. { -1, kind } when the topic is of another kind,
--       { -2 } when as many jobs wait as may and an outbox sends, an error
--       where topic, kind or number are none: nothing was done.
--#include node
--#include number
--#include mixed
--#include due
--#include wake
--#include room
--#include call_slot
--#include lost
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local wait, ids, meta, idle = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local seen, first_pack, first_arg = KEYS[5], 6, 5
local topic, kind, call_slot, number = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local find, prefix = string.find, sub(wait, 1, -5)
local packs = floor((#ARGV - first_arg + 1) / 3)
local last_pack = first_pack + packs - 1
local due_key = KEYS[last_pack + 1]
local sent_on = ARGV[first_arg + 3 * packs]
local takes_made = sent_on ~= nil
local leaves = ARGV[first_arg + 3 * packs + 1]
if sent_on == '@@' then sent_on = nil end

local function unstage()
  for index = first_pack, last_pack do
    if call('PTTL', KEYS[index]) >= 0 then call('DEL', KEYS[index]) end
  end
end

--#include call_of_add
if packs < 1 or not KEYS[last_pack] or leaves and sent_on then
  return redis.error_reply('ERR there are not as many packs as arguments say')
end
-- Only they tell a repeat from a call of another client with these names; an
-- outbox sends its entry again on purpose.
if #number < #whole + 2 and byte(call_slot) ~= 33 then
  return redis.error_reply('ERR the number of the call lacks a point and ' ..
                           'random digits')
end
local known = call('HMGET', meta, 'kind', 'max_pending', 'revision')

local said = said_before(seen, call_slot, number, whole)
if said then
  unstage() -- it was staged again, too
  local reply = { 0, unpack(said) }
  if known[3] then reply[#reply + 1] = number_of(known[3]) end
  return reply
end

if known[1] and known[1] ~= kind then return { -1, known[1] } end
if kind ~= 'delay' then
  return redis.error_reply('ERR packs are for topics of the kind delay')
end
call('ZCARD', wait) -- as types.lua says
if not known[1] then
  --#include topic
  local stored = topic_kind(meta, ids, kind)
  if stored ~= kind then return { -1, stored } end
end

-- How many more jobs may wait; nil: no bound.
local left = known[2] and
             math.max(room_left(meta, number_of(known[2], math.huge)), 0)

if sent_on and left then
  if left == 0 then
    unstage()
    return { -2 }
  end
  left = nil
end
local none = {}
local outs = none -- slots to leave out, of each pack
if leaves or sent_on then
  outs = {}
  local all = leaves or string.gsub(sent_on, '.', '\0%0')
  for i = 1, #all - 1, 2 do
    local index, slot = byte(all, i, i + 1)
    local out = outs[index] or {}
    outs[index] = out
    if slot < (tonumber(ARGV[first_arg + 3 * index]) or 0) then
      out[slot] = true
    end
  end
end

--#include when
-- The ids of a pack, what the index has of them, and whether each is to be
-- looked at; nil where they are none.
-- Looking for a byte costs one pass of memchr over all ids: what is left over,
-- workers see. Behind the ids comes the first offset, which is 0.
local function read_ids(key, jobs, header_len)
  local header, at = redis.pcall('GETRANGE', key, '0', header_len), 10
  if header.err then return end
  local form, high, low = byte(header, 9, 11)
  header_len = tonumber(header_len)
  if form == 220 and low then form, at = 144 + high * 256 + low, 12 end
  if form ~= 144 + jobs or find(header, '\0', at, true) ~= header_len + 1 or
     find(header, '\n', at, true) or find(header, '\r', at, true) or
     find(header, '\27', at, true) then
    return
  end
  -- These no id may have, or begin with; a length may be one of them. Jobs of
  -- other topics and restored ones bring ids that weir made, with @.
  local is_odd = find(header, ' ', at, true) or find(header, '{', at, true) or
                 find(header, '}', at, true) or find(header, '!', at, true) or
                 find(header, '\t', at, true) or
                 find(header, '\127', at, true) or
                 not takes_made and find(header, '@', at, true)
  local ok, last, names = pcall(cmsgpack.unpack_one, header, 8)
  if not ok or last ~= header_len then return end
  local known = redis.pcall('HMGET', ids, unpack(names, 1, jobs))
  if known.err then -- some ids are no text, or the index is no hash
    call('DEL', key)
    call('HLEN', ids)
    return
  end
  for i = 1, jobs do
    if known[i] and is_lost(prefix, known[i], names[i]) then
      known[i] = false
    end
  end
  -- A str of more than 31 bytes begins with one of these.
  return names, known, is_odd or header_len > 136 + jobs and
         (find(header, '\217', at, true) or find(header, '\218', at, true) or
          find(header, '\219', at, true))
end

local function is_id(name)
  return #name <= 128 and (takes_made or byte(name) ~= 64) and
         find(name, '^[^!{}%c\128-\255 ][^{}%c\128-\255 ]*$')
end

-- Point the ids of a pack at it. Returns the set of slots whose id exists
-- already (in the index or earlier in this pack) and its size; nil, 0 if none.
-- An error where they are none, before anything is written.
local function index_ids(names, known, is_odd, seq, jobs)
  local fields, last, refused, count = {}, 0, nil, 0
  for i = 1, jobs do
    if known[i] then
      refused = refused or {}
      refused[i - 1] = true
      count = count + 1
    else
      local name = names[i]
      if is_odd and not is_id(name) then error() end
      fields[last + 1], fields[last + 2] = name, seq
      last = last + 2
    end
  end
  if last == 0 or call('HSET', ids, unpack(fields)) * 2 == last then
    return refused, count
  end
  -- An id comes twice in this pack: the first one counts.
  local seen = {}
  refused = refused or {}
  for slot = 0, jobs - 1 do
    local name = names[slot + 1]
    if not refused[slot] then
      if seen[name] then
        refused[slot] = true
        count = count + 1
      end
      seen[name] = true
    end
  end
  return refused, count
end

-- Refuse the last slots of a pack until `left` are not refused.
local function refuse_rest(names, jobs, refused, count)
  local full = {}
  refused = refused or {}
  for slot = jobs - 1, 0, -1 do
    if jobs - count <= left then break end
    if not refused[slot] then
      refused[slot], full[slot] = true, true
      count = count + 1
      if names then call('HDEL', ids, names[slot + 1]) end
    end
  end
  return refused, count, full
end

-- Packs may be mixed where a worker that knows them has claimed from the topic,
-- or nobody has: others would leave them to one that comes later.
local tables, mixed
for index = 0, packs - 1 do
  local when = ARGV[first_arg + 3 * index + 2]
  if byte(when) == 108 then -- 'l'; as types.lua says
    call('ZCARD', sub(wait, 1, -5) .. 'turns')
    call('HLEN', sub(wait, 1, -5) .. 'of')
  end
  if due_key and not tables and find(when, '^[st]') then
    mixed = call('HMGET', meta, 'mixed', 'claimed')
    if not mixed[1] and mixed[2] then break end
    tables = {}
    call('HLEN', due_key) -- as types.lua says
  end
end

local reply, added, entries, first = { 0 }, 0, {}, nil
for index = 0, packs - 1 do
  local key, arg = KEYS[first_pack + index], first_arg + 3 * index
  local jobs, header_len = tonumber(ARGV[arg]), tonumber(ARGV[arg + 1])
  local seq, when = sub(key, -12), ARGV[arg + 2]
  local out = outs[index] or none
  local why, refused, count, names = nil, nil, 0, nil
  if not (jobs and jobs >= 1 and jobs <= 256 and jobs % 1 == 0 and
          header_len and header_len >= 8 and is_when(when, jobs)) then
    why = -3
  elseif call('PERSIST', key) == 0 then
    why = call('EXISTS', key) == 1 and -1 or -2
  elseif header_len > 8 then
    local ok, known, is_odd
    names, known, is_odd = read_ids(key, jobs, ARGV[arg + 1])
    for slot in pairs(names and out or none) do known[slot + 1] = true end
    ok, refused, count = pcall(index_ids, names, known, is_odd, seq, jobs)
    if not ok then
      why = -3
      call('DEL', key)
    end
  elseif out ~= none then
    refused = {}
    for slot in pairs(out) do refused[slot], count = true, count + 1 end
  end
  if why then
    reply[#reply + 1] = index
    reply[#reply + 1] = why
  else
    local full
    if left then
      if jobs - count > left then
        refused, count, full = refuse_rest(names, jobs, refused, count)
      end
      left = left - (jobs - count)
    end
    if refused then
      for slot = 0, jobs - 1 do
        if refused[slot] and not out[slot] then
          reply[#reply + 1] = index
          reply[#reply + 1] = full and full[slot] and slot + 256 or slot
        end
      end
    end
    if count == jobs then
      call('DEL', key)
    else
      if count > 0 then call('SETRANGE', key, 3, char(count)) end
      local due = enter(entries, seq, jobs, when, now, refused, tables)
      if not first or due < first then first = due end
      added = added + jobs - count
    end
  end
end

-- What an outbox sends keeps its number, and is staged again.
if not sent_on or reply[3] ~= -2 then
  note_said(seen, call_slot, number, { unpack(reply, 2) }, now)
end
if added > 0 then
  reply[1] = added
  call_list('ZADD', wait, entries)
  if tables then
    call_list('HSET', due_key, tables)
    if mixed[1] ~= '2' then call('HSET', meta, 'mixed', '2') end
  end
  increment(meta, 'added', added)
  local lone = packs == 1 and first <= now and
               byte(ARGV[first_arg + 2]) ~= 108 -- 'l': another one may be first
  wake_one(idle, topic, first, lone and sub(KEYS[first_pack], -12))
end
if known[3] then reply[#reply + 1] = number_of(known[3]) end
return reply
