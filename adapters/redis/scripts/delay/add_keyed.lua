-- SPDX-License-Identifier: MIT
-- add_keyed: jobs with unique keys (unique.lua), or of lanes (lanes.lua),
-- become claimable, one after the other in the order in which they come, each
-- in a pack of its own.
--
-- KEYS  wait ids meta idle seen unique due absent, pack...
-- ARGV  topic, kind, call slot, number, then for each job: id ('': weir made
--       it), pack ('': it was staged, as for add), when (due.lua: r, a or l),
--       key, rule ('' both: it has no unique key)
-- Reply as of add, but of each job that was not added come three: which one,
--       counted from 0, what is told of slot 0, or 512: its key is held; and
--       the id of who holds it, else ''. -3: its id, time, key or rule is none
local call = redis.call
local byte, sub, find = string.byte, string.sub, string.find
local floor = math.floor
--#include number
--#include call_slot
--#include wake
local wait, ids, meta, idle, seen, unique, due_key = unpack(KEYS, 1, 7)
local topic, kind, call_slot, number = unpack(ARGV, 1, 4)
local FIRST_PACK, FIRST_ARG, EACH = 9, 5, 5
local jobs = (#ARGV - FIRST_ARG + 1) / EACH
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local prefix = sub(wait, 1, -5)

--#include call_of_add
if jobs < 1 or jobs % 1 ~= 0 or not KEYS[FIRST_PACK + jobs - 1] then
  return redis.error_reply('ERR there are not as many jobs as keys of packs')
end

-- What was staged and is not added.
local function unstage(i)
  local key = KEYS[FIRST_PACK + i]
  if ARGV[FIRST_ARG + EACH * i + 1] == '' and call('PTTL', key) >= 0 then
    call('DEL', key)
  end
end

local known = call('HMGET', meta, 'kind', 'revision', 'max_pending', 'mark',
                   'mixed_mark', 'lanes', 'laned_mark', 'lost')
local said = said_before(seen, call_slot, number, whole)
if said then
  for i = 0, jobs - 1 do unstage(i) end
  local reply = { 0, unpack(said) }
  if said[2] == NOT_STORED then reply[4] = '' end
  if known[2] then reply[#reply + 1] = number_of(known[2]) end
  return reply
end
if known[1] and known[1] ~= kind then return { -1, known[1] } end
if kind ~= 'delay' then
  return redis.error_reply('ERR unique keys are for topics of the kind delay')
end
if not known[1] then
  --#include topic
  local stored = topic_kind(meta, ids, kind)
  if stored ~= kind then return { -1, stored } end
end
call('ZCARD', wait) -- as types.lua says; the first job asks the others
call('HLEN', due_key)

--#include unique
--#include lane_when
local function read_job(i)
  local id, pack, when, key, rule = unpack(ARGV, FIRST_ARG + EACH * i,
                                           FIRST_ARG + EACH * i + EACH - 1)
  local pack_key, due, lane = KEYS[FIRST_PACK + i], nil, nil
  local seq = sub(pack_key, -12)
  if #when < 15 and find(when, '^[ra]%-?%d+$') then
    due = tonumber(sub(when, 2)) + (byte(when) == 114 and now or 0)
  elseif byte(when) == 108 then -- 'l'
    due, lane = lane_when(when, now)
  end
  local is_made = id == ''
  if is_made then
    id = '@' .. seq .. '00'
  elseif #id > 128 or not find(id, '^["-z|~][!-z|~]*$') or
         key ~= '' and byte(id) == 64 then -- what is restored has made ones
    due = nil
  end
  if key .. rule ~= '' then
    rule = read_rule(rule)
    if not rule or #key < 1 or #key > 2048 then return nil end
    is_made = false
  else
    rule = nil
  end
  if not due then return nil end
  if due < now then due = now end
  return { id = id, is_made = is_made, seq = seq, pack = pack,
           pack_key = pack_key, due = due, lane = lane, key = key, rule = rule,
           first = now }
end

local reply = { 0 }
for i = 0, jobs - 1 do
  local job, what, holder = read_job(i), -3, nil
  if job and job.rule then
    what, holder = add_under_key(job)
  elseif job then
    what = add_alone(job)
  end
  if what then
    unstage(i)
    local last = #reply
    reply[last + 1], reply[last + 2], reply[last + 3] = i, what, holder or ''
  end
end
note_said(seen, call_slot, number, { unpack(reply, 2) }, now)
end_adding(topic)
reply[1] = added
if known[2] then reply[#reply + 1] = number_of(known[2]) end
return reply
