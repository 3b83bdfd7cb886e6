-- SPDX-License-Identifier: MIT
-- pull: claim jobs and tell what they are, in one call, for workers that know
-- neither packs nor records. What must not run ends here: a job that expired,
-- cannot be read, or was running too often when its worker died. Verdicts come
-- back by finish.lua.
--
-- KEYS  wait run lease ids meta idle held due dead rec options started absent;
--       those of packs are made up here, as push.lua does
-- ARGV  1 room: most jobs, 1 to 1,024
--       2 worker ('' = it is not woken)
--       3 what it has in hand: 0 nothing, 1 jobs, 2 a suspect among them: no
--         other one comes
--       4 which server answers (server.lua), '': asked here
-- Reply { time in us, token, us until there is more to do (0: now, -1: nothing
--         waits), revision of the options, 1 if the topic is paused, lease in
--         ms, timeout in ms, 1 if the job is a suspect: it comes alone, and its
--         start is noted, { job, ... } }
--       A job is { handle, id, body, facts }: facts are msgpack, an array of
--         due ms, attempt, failures, timeouts, crashes, snoozes, options, and
--         when it was added in ms
--       { -1, kind } when the topic is of another kind: nothing was done.
--#include node
--#include number
--#include server
--#include suspect
--#include mixed
--#include held
--#include wake
--#include full
--#include types
--#include duration
--#include settings
--#include topic_keys
local MOST_BYTES = 4 * 1024 * 1024
local LEFT_MS = 5000 -- for which others have what is left to them
local room, worker, in_hand, own = unpack(ARGV)

local wrong = wrong_call(worker)
if not wrong and (#room > 4 or not string.find(room, '^%d+$') or
                  tonumber(room) < 1 or tonumber(room) > 1024) then
  wrong = 'the room is not 1 to 1024'
elseif not wrong and not string.find(in_hand or '', '^[012]$') then
  wrong = 'the third argument is not 0, 1 or 2'
elseif not wrong and (#ARGV ~= 4 or #own > 40 or
                      not string.find(own, '^%x* ?%d*$')) then
  wrong = 'the server is not hexadecimal digits, or more arguments came'
end
if wrong then return redis.error_reply('ERR ' .. wrong) end

local wait, run, _, _, _, _, _, _, dead, rec, options, started = unpack(KEYS)
local settings = read_settings(options)
if settings.has_on_dead then
  return redis.error_reply('ERR the topic has on_dead: weir itself serves it')
end
needs_zsets(dead)
needs_hashes(rec, started)
if own == '' then
  local info = redis.pcall('INFO', 'server')
  own = type(info) == 'string' and
        string.match(info, '\nrun_id:(%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x)') or ''
end

local function claim(KEYS, ARGV)
  --#include delay/claim
end
local NO_OFFER = nil
local claimed = claim(KEYS, {
  room, digits(settings.lease_ms), room, worker, in_hand == '0' and '1' or '3',
  'delay', own, NO_OFFER, in_hand == '2' and 'none' or 'alone'
})
if #claimed == 2 then return claimed end
local time_us, token, next_us, count, state = unpack(claimed, 1, 5)
local now = floor(time_us / 1000)
local reply = { time_us, token, next_us, floor(state / 2), state % 2,
                settings.lease_ms, settings.timeout_ms, 0, {} }
local jobs, weight = reply[9], 0
if next_us == 0 and count == 0 and in_hand == '2' then
  reply[3] = 100000 -- only suspects are due
elseif count == tonumber(room) then
  reply[3] = 0 -- nobody wakes it before it has asked again
end

if count == 0 then return reply end

--#include record
-- What a claim says of a node: state, whether its pack is mixed, and when a
-- slot is due.
local function read_claimed(told, lo)
  if told == '' then return 0, true, function() return now end end
  if type(told) == 'number' then
    local is_mixed = told >= MIXED * 256
    if is_mixed then told = told - MIXED * 256 end
    local due = floor(told / 256)
    return told % 256, is_mixed, function() return due end
  end
  local entry = { bytes = sub(told, 2), from = number_at(told, 2),
                  base = number_at(told, 8) }
  return byte(told), true, function(slot) return due_at(entry, slot - lo) end
end

local packs = {}
local function pack_at(seq)
  packs[seq] = packs[seq] or string.find(seq, '^[%w_-]+$') and
               open_pack(pack_key(seq), true) or { state = 'gone' }
  return packs[seq]
end

-- The lists of a settle call.
local keys = settle_keys()
local places, nodes, ends, back = {}, {}, {}, {}

-- Some slots of a node end.
local function end_slots(node, is_mixed, header_len, slots)
  local seq = sub(node, 1, 12)
  if not places[seq] then
    keys[#keys + 1] = pack_key(seq)
    places[seq] = #keys
  end
  local at = #nodes
  nodes[at + 1] = places[seq] + (is_mixed and 65536 or 0)
  nodes[at + 2], nodes[at + 3], nodes[at + 4] = node, token, header_len
  nodes[at + 5] = slots
end

-- Some slots of a node return, due at `due` unless their table says when.
local function put_back(node, is_mixed, due, slots)
  local at = #back
  back[at + 1], back[at + 2], back[at + 4] = node, token, slots
  back[at + 3] = due + (is_mixed and MIXED or 0)
end

local EMPTY = { 0, 0, 0, 0, 0, raw = '', body = '\192' }

-- Why a job must not run; nil: it may. A record that expired is not kept.
local function fate(record, id, due, ended, told)
  local ttl = record.options and record.options.ttl_ms or settings.ttl_ms
  if record == EMPTY or not id or told == '' then return 'malformed' end
  if ttl > 0 and now - due > ttl then return 'expired' end
  if ended > settings.max_crashes then return 'crashed' end
end

-- Of jobs that never ran and have no options of their own: by due time and when
-- their pack was added.
local new_facts = {}
local function facts_of(record, due, ended, added)
  local runs = record[1] + record[2] + record[3] + record[4] + record[5]
  local is_new = record.raw == '' and runs + ended == 0
  local known = is_new and new_facts[due]
  if known and known.added == added then return known.text end
  local own = record.options or {}
  local text = '\152' .. cmsgpack.pack(
    due, record[1], record[2], record[3], record[4] + ended, record[5]) ..
    (record.raw ~= '' and record.raw or '\192') ..
    cmsgpack.pack(own.added_ms or added)
  if is_new then new_facts[due] = { added = added, text = text } end
  return text
end

-- Keys take turns: of the jobs in a row that have keys and one priority each
-- key has one, then each has another one. `lanes` are priorities and keys of
-- jobs by their numbers.
local function order_by_turns(lanes)
  local order, row, stop, counts, is_ordered = {}, 0, 0, {}, true
  for i = 1, #jobs do
    local lane = lanes[i] or {}
    if not lane.key or lane.level ~= counts.level then
      row, counts = stop, { level = lane.key and lane.level }
    end
    local count = lane.key and counts[lane.key] or 0
    order[i] = { row + count, i, jobs[i] }
    if lane.key then counts[lane.key] = count + 1 end
    stop = math.max(stop, row + count + 1)
    is_ordered = is_ordered and (i == 1 or order[i - 1][1] <= row + count)
  end
  if is_ordered then return end
  table.sort(order, function(one, other)
    if one[1] ~= other[1] then return one[1] < other[1] end
    return one[2] < other[2]
  end)
  for i = 1, #jobs do jobs[i] = order[i][3] end
end

local lanes = {}
local claim_text = digits(token) .. ' '
local function tell(node, slot, due, ended, record, id, is_made, is_mixed)
  local handle = claim_text .. node .. ' ' .. slot .. ' ' ..
                 digits(due + (is_mixed and MIXED or 0)) .. ' ' .. ended ..
                 (is_made and ' ' or ' ' .. id)
  local pack = pack_at(sub(node, 1, 12))
  pack.added = pack.added or named_ms(sub(node, 1, 12))
  jobs[#jobs + 1] = { handle, id, record.body,
                      facts_of(record, due, ended, pack.added) }
  local own = record.options
  if own and own.key then
    lanes[#jobs] = { key = '=' .. own.key, level = own.priority or 3 }
  end
  weight = weight + #record.body + #record.raw + 2 * #id + 200
end

local function open_node(node, told)
  local lo, hi = node_bounds(node)
  local state, is_mixed, due_of = read_claimed(told, lo)
  local ended, seq = floor(state / 2), sub(node, 1, 12)
  if weight >= MOST_BYTES and told ~= '' then
    put_back(node, is_mixed, due_of(lo), '')
    reply[3] = 0
    return
  end
  local pack, ending = pack_at(seq), {}
  if pack.state == 'gone' then -- a client cannot help it
    end_slots(node, is_mixed, 0, '')
    return
  end
  -- What a later weir wrote is for others: in a while, so that it does not come
  -- here again at once. Many slots of a mixed pack wait for the lease to end.
  local function leave(slots)
    if not is_mixed or lo == hi then
      put_back(node, is_mixed, now + LEFT_MS, slots)
    end
  end
  if pack.state == 'newer' then return leave('') end
  local record_at = not pack.state and records_of(pack, lo, hi)
  local base = #nodes / 5 * 256
  for slot = lo, hi do
    local record = record_at and read_record(record_at(slot)) or EMPTY
    if record == 'newer' then
      leave(char(slot))
    else
      local id, is_made = nil, true
      if record_at then id, is_made = id_of(pack, seq, slot) end
      local due = due_of(slot)
      local why = fate(record, id, due, ended, told)
      if why then
        id = id or '@' .. seq .. string.format('%02x', slot)
        local at = #ends
        ending[#ending + 1] = char(slot)
        ends[at + 1], ends[at + 2], ends[at + 3] = base + slot, id, ''
        if why ~= 'expired' then
          --#include crashes
          local crashes = crashes_of(started, seq, slot, ended)
          ends[at + 3] = write_anew(record, seq, ended, crashes,
                                    { reason = why }, now)
        end
      else
        tell(node, slot, due, ended, record, id, is_made, is_mixed)
        if ended > 0 then reply[8] = 1 end
      end
    end
  end
  if ending[1] then
    end_slots(node, is_mixed, pack.header_len or 8, table.concat(ending))
  end
end

for i = 6, #claimed - 1, 2 do open_node(claimed[i], claimed[i + 1]) end
if next(lanes) then order_by_turns(lanes) end
if nodes[1] or back[1] then
  local function settle(KEYS, ARGV)
    --#include due
    --#include outbox
    --#include delay/settle
  end
  keys[#keys + 1] = KEYS[13]
  local known = redis.call('HMGET', KEYS[5], 'limits', 'lanes')
  local wakes = digits((known[1] and 2 or 0) + (known[2] and 4 or 0))
  if known[1] then reply[3] = 0 end -- places are free again
  local lists = { string.match(wait, '{(.*)}'), nodes, back, { token }, {},
                  ends, settings.max_dead, wakes }
  if known[1] then -- none of these started
    local unstarted = {}
    local function note(base, node, slots)
      local lo, hi = node_bounds(node)
      for slot = lo, slots == '' and hi or -1 do
        unstarted[#unstarted + 1] = base + slot
      end
      for i = 1, #slots do
        unstarted[#unstarted + 1] = base + byte(slots, i)
      end
    end
    for i = 1, #nodes, 5 do
      note(floor(i / 5) * 256, nodes[i + 1], nodes[i + 4])
    end
    for i = 1, #back, 4 do
      note(2 ^ 20 + floor(i / 4) * 256, back[i], back[i + 3])
    end
    table.insert(lists, 8, unstarted)
  end
  settle(keys, lists)
end
if reply[8] == 1 then
  local function start(KEYS, ARGV)
    --#include delay/start
  end
  start({ run, started }, { claimed[6], digits(token), worker })
end
return reply
