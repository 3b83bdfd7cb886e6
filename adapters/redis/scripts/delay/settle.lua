-- SPDX-License-Identifier: MIT
-- settle: verdicts for the slots of many nodes, in one atomic step. A slot is
-- settled only if a node below the one named still lies under its token, so
-- repeating a call changes nothing.
--
-- A source names one slot of one of the nodes: (node - 1) * 256 + slot, nodes
-- counted from 1. All lists are msgpack, flat, or '' when empty.
--
-- KEYS  run lease ids meta wait dead rec idle, old packs..., new packs...; then
--       wait ids meta idle of each other topic that takes new jobs, and with
--       burials those of the topic that takes them
-- ARGV  1 topic
--       2 nodes  [ key, node, token, header length, slots, ... ]
--                slots: one byte for each slot, '' = all slots of the node
--       3 back   [ node, token, due ms, slots, ... ] what was not started: it
--                returns to `wait`, after the verdicts
--       4 closed [ token, ... ] claims that end if nothing is left of them
--       5 moves  [ key, jobs, header length, when (due.lua), form, sources,
--                ... ] new packs, staged as for add. Form 0: snoozes, 1:
--                retries, 2: new jobs, each added with the verdict of its
--                source unless its id exists
--       6 ends   [ source, id, record, ... ] for the dead; record '': expired,
--                only counted
--       7 most dead jobs
--       8 burials [ key, key, jobs, header length, sources, ... ] or absent:
--                dead jobs that become ready in another topic of this kind:
--                the same jobs staged as a pack with their ids and as one
--                without, for those whose id exists there
--       9 that topic, 10 its kind; '' for 8 to 10 is absent, too
--      11 '1': jobs whose new pack was not staged are left out; or absent, ''
--      12 aways [ key, jobs, header length, when, topic, sources, ... ] or
--                absent: new jobs of other topics, staged there, added as those
--                of moves are. Where one of these topics does not take all that
--                a source adds to it, none of the source's new jobs is added,
--                and what names the source + 2^20 in moves, ends and burials
--                comes instead of its verdict; else that is left out
--      13 topics [ name, number of the first of its keys, ... ] for aways, which
--                count them from 1
--      14 their kind
-- Reply { settled, node, slot, ... }: the pairs, nodes counted from 0, are
--       refused: expired, deleted or settled before. With 256 added to the
--       slot: left out, still under its token. Last come the pair -1, n where
--       the ids of n new jobs exist, and -2, topic (of another kind) or -3,
--       topic (as many jobs wait as may) where one does not take new jobs.
--       { -1 } a new pack was not staged: nothing was done.
--#include node
--#include number
--#include suspect
--#include due
--#include topic
--#include wake
--#include room
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local run, lease, ids, meta, wait, dead, rec, idle = unpack(KEYS, 1, 8)
local topic, most_dead = ARGV[1], tonumber(ARGV[7])
local function list_of(arg) return arg ~= '' and cmsgpack.unpack(arg) or {} end
local nodes, back, closed =
  list_of(ARGV[2]), list_of(ARGV[3]), list_of(ARGV[4])
local moves, ends = list_of(ARGV[5]), list_of(ARGV[6])
local burials = ARGV[8] and list_of(ARGV[8]) or {}

local INSTEAD = 2 ^ 20
local left_out
local function leave_out(sources)
  if ARGV[11] ~= '1' then return false end
  left_out = left_out or {}
  for _, source in ipairs(sources) do left_out[source % INSTEAD] = true end
  return true
end

-- A new pack without a time to live was made permanent by this very call when
-- it came the first time.
local is_new, keeps_id = {}, nil
for m = 1, #moves, 6 do
  local ttl = call('PTTL', KEYS[moves[m]])
  if ttl == -2 and not leave_out(moves[m + 5]) then return { -1 } end
  is_new[m] = ttl >= 0
  if moves[m + 4] ~= 2 then
    keeps_id = keeps_id or {}
    for _, source in ipairs(moves[m + 5]) do keeps_id[source] = true end
  end
end
for e = 1, #ends, 3 do
  keeps_id = keeps_id or {}
  keeps_id[ends[e]] = ends[e + 1] -- not that of its pack, where that is none
end
local is_dug = {}
for b = 1, #burials, 5 do
  local named = call('PTTL', KEYS[burials[b]])
  local made = call('PTTL', KEYS[burials[b + 1]])
  if (named == -2 or made == -2) and not leave_out(burials[b + 4]) then
    return { -1 }
  end
  is_dug[b] = named >= 0 and made >= 0
end

-- Which topics take what: what each source adds to one of them, all or nothing.
local aways, topics = {}, {}
local is_sent, unmet, refusals = {}, nil, {}

local function look_at_topic(number)
  local meta = KEYS[topics[2 * number] + 2]
  local known, left = call('HMGET', meta, 'kind', 'max_pending'), nil
  local reason = -3
  if known[1] and known[1] ~= ARGV[14] then
    left, reason = 0, -2
  elseif known[2] then
    left = room_left(meta, number_of(known[2], math.huge))
  end
  if not left then return end
  local wanted, order = {}, {}
  for a = 1, #aways, 6 do
    for _, source in ipairs(aways[a + 4] == number and aways[a + 5] or {}) do
      if not wanted[source] then order[#order + 1] = source end
      wanted[source] = (wanted[source] or 0) + 1
    end
  end
  for _, source in ipairs(order) do
    if wanted[source] <= left then
      left = left - wanted[source]
    else
      unmet = unmet or {}
      unmet[source] = true
      if keeps_id and keeps_id[source + INSTEAD] then keeps_id[source] = true end
      refusals[number] = refusals[number] or { reason }
      table.insert(refusals[number], source)
    end
  end
end

if (ARGV[12] or '') ~= '' then
  aways, topics = cmsgpack.unpack(ARGV[12]), cmsgpack.unpack(ARGV[13])
  for a = 1, #aways, 6 do
    local ttl = call('PTTL', KEYS[aways[a]])
    if ttl == -2 and not leave_out(aways[a + 5]) then return { -1 } end
    is_sent[a] = ttl >= 0
  end
  for number = 1, #topics / 2 do look_at_topic(number) end
end

-- First decide, without writing anything.
local reply, settled, refused = { 0 }, 0, {}
local to_remove, to_keep, to_unindex = {}, {}, {}
local packs = {}
local parts, to_carve = {}, {} -- by name: the slots that go, or 'whole'

local function pack_of(key, header_len)
  local pack = packs[key]
  if pack then return pack end
  local header = call('GETRANGE', key, 0, header_len - 1)
  if #header < 8 then
    pack = { gone = 0, was = 0, last = 0 }
  else
    local _, _, last, gone = byte(header, 1, 4)
    pack = { gone = gone, was = gone, last = last }
    if header_len > 8 then _, pack.names = cmsgpack.unpack_one(header, 8) end
  end
  packs[key] = pack
  return pack
end

local function refuse(index, slot)
  refused[(index - 1) * 256 + slot] = true
  reply[#reply + 1] = index - 1
  reply[#reply + 1] = slot
end

-- lo..hi is in `run` under the right token: settle all of its slots, or those
-- in `slots`, but for what an entry before this one settles.
local function settle_node(index, name, lo, hi, slots, score)
  local at, base = index * 5 - 4, (index - 1) * 256
  local pack, part = pack_of(KEYS[nodes[at]], nodes[at + 3]), parts[name]
  local names, last, count = pack.names, #to_unindex, 0
  if not slots and not part and not keeps_id then -- the usual case
    count = hi - lo + 1
    for slot = lo, names and hi or -1 do
      to_unindex[last + slot - lo + 1] = names[slot + 1]
    end
  else
    for slot = lo, hi do
      if slots and not slots[slot] then
        -- it stays
      elseif part == 'whole' or part and part[slot] then
        refuse(index, slot)
      else
        count = count + 1
        if part then part[slot] = true end
        local name = names and names[slot + 1]
        local kept = keeps_id and keeps_id[base + slot]
        if name and kept ~= true and kept ~= name then
          last = last + 1
          to_unindex[last] = name
        end
      end
    end
  end
  if count == 0 then return end
  settled, pack.gone = settled + count, pack.gone + count
  if part then return end
  parts[name] = slots or 'whole'
  to_remove[#to_remove + 1] = name
  if slots then to_carve[#to_carve + 1] = { name, lo, hi, score } end
end

-- The node is not under its token as a whole: part of it was deleted or settled
-- meanwhile, or the lease is lost. Look for what is left below it, but not where
-- no slot is to be settled: a node that is settled slot by slot comes here each
-- time.
local function settle_below(index, name, token, lo, hi, slots, alive)
  local seq, first, last = sub(name, 1, 12), lo, hi
  while slots and first < hi and not slots[first] do first = first + 1 end
  while slots and last > first and not slots[last] do last = last - 1 end
  local function wants(from, to)
    for slot = math.max(from, first), min(to, last) do
      if not slots or slots[slot] then return true end
    end
  end
  local function descend(from, to)
    if not wants(from, to) then return end
    local below = node_name(seq, from, to)
    local score = alive and call('ZSCORE', run, below)
    score = score and tonumber(score)
    if score and floor(score) == token then
      settle_node(index, below, from, to, slots, score)
      return
    end
    if alive and from < to then
      local half = left_size(from, to)
      descend(from, from + half - 1)
      descend(from + half, to)
      return
    end
    for slot = from, to do
      if not slots or slots[slot] then refuse(index, slot) end
    end
  end
  descend(lo, hi)
end

-- The slots of lo..hi to be settled: those of `slots`, nil for all, that are
-- not left out.
local function all_but_left_out(index, lo, hi, slots)
  local rest, base = {}, (index - 1) * 256
  for slot = lo, hi do
    if left_out[base + slot] then
      refused[base + slot] = true -- in packs that are staged, too
      reply[#reply + 1] = index - 1
      reply[#reply + 1] = slot + 256
    elseif not slots or slots[slot] then
      rest[slot] = true
    end
  end
  return rest
end

local node_names = {}
for i = 2, #nodes, 5 do node_names[#node_names + 1] = nodes[i] end
local scores = node_names[1] and call('ZMSCORE', run, unpack(node_names))
for index, name in ipairs(node_names) do
  local token, listed = nodes[index * 5 - 2], nodes[index * 5]
  local score = scores[index] and tonumber(scores[index])
  local lo, hi = node_bounds(name)
  local slots
  if listed ~= '' then
    slots = {}
    for i = 1, #listed do slots[byte(listed, i)] = true end
  end
  if left_out then slots = all_but_left_out(index, lo, hi, slots) end
  if score and floor(score) == token then
    settle_node(index, name, lo, hi, slots, score)
  else
    local alive = call('ZSCORE', lease, digits(token))
    settle_below(index, name, token, lo, hi, slots, alive)
  end
end
for _, node in ipairs(to_carve) do
  local name, lo, hi, score = unpack(node)
  carve(to_keep, score, sub(name, 1, 12), lo, hi, parts[name])
end

for a = 1, #aways, 6 do
  for _, source in ipairs(aways[a + 5]) do
    if refused[source] or not (unmet and unmet[source]) then
      refused[source + INSTEAD] = true
    end
  end
end

-- Then write: what goes first, what moves afterwards.
call_list('ZREM', run, to_remove)
call_list('ZADD', run, to_keep)
call_list('HDEL', ids, to_unindex)
for key, pack in pairs(packs) do
  if pack.gone > pack.last then
    call('DEL', key)
  elseif pack.gone > pack.was then
    call('SETRANGE', key, 3, char(pack.gone))
  end
end
tally(meta, 'settled', settled)

-- What was not started returns under its due time. Who had started a suspect
-- did not die with it.
local returned, returned_due = 0, nil
local function give_back(list, name, under, due, slots)
  local seq, wanted = sub(name, 1, 12), {}
  for i = 1, #slots do wanted[byte(slots, i)] = true end
  local function descend(from, to)
    local below = node_name(seq, from, to)
    local score = call('ZSCORE', run, below)
    score = score and tonumber(score)
    if score and floor(score) == under then
      local goes, stays = {}, {}
      for slot = from, to do
        local list_of_slot = (slots == '' or wanted[slot]) and goes or stays
        list_of_slot[slot] = true
      end
      if not next(goes) then return end
      local left = {}
      carve(list, suspect_score(due, (suspicion(score))), seq, from, to, stays)
      carve(left, score, seq, from, to, goes)
      call('ZREM', run, below)
      call_list('ZADD', run, left)
      for _ in pairs(goes) do returned = returned + 1 end
      returned_due = min(returned_due or due, due)
    elseif from < to then
      local half = left_size(from, to)
      descend(from, from + half - 1)
      descend(from + half, to)
    end
  end
  descend(node_bounds(name))
end

if #back > 0 then
  local entries, early = {}, 0
  local mark_end = number_of(call('HGET', meta, 'mark'), -1) + 1
  for b = 1, #back, 4 do
    local before = returned
    give_back(entries, back[b], back[b + 1], back[b + 2], back[b + 3])
    if back[b + 2] < mark_end then early = early + returned - before end
  end
  call_list('ZADD', wait, entries)
  tally(meta, 'returned', returned)
  tally(meta, 'ready', early)
end
for _, token in ipairs(closed) do
  local left = call('ZCOUNT', run, digits(token), '(' .. digits(token + 1))
  if left == 0 then call('ZREM', lease, digits(token)) end
end

local here, twins = { ids = ids, meta = meta, entries = {} }, 0
local COUNTERS = { [0] = 'snoozed', [1] = 'retried', [2] = 'added' }
local function move(place, key, jobs, header_len, when, form, sources)
  local seq, fields, gone, count = sub(key, -12), {}, nil, 0
  local names = header_len > 8 and
                cmsgpack.unpack(call('GETRANGE', key, 8, header_len - 1))
  for slot = 0, jobs - 1 do
    local is_gone = refused[sources[slot + 1]]
    if unmet and form == 2 and unmet[sources[slot + 1]] then is_gone = true end
    if not is_gone and names and form == 2 then
      is_gone = call('HSETNX', place.ids, names[slot + 1], seq) == 0
      if is_gone then twins = twins + 1 end
    elseif not is_gone and names then
      fields[#fields + 1] = names[slot + 1]
      fields[#fields + 1] = seq
    end
    if is_gone then
      gone = gone or {}
      gone[slot] = true
      count = count + 1
    end
  end
  if count == jobs then
    call('DEL', key)
    return
  end
  call('PERSIST', key)
  if gone then call('SETRANGE', key, 3, char(count)) end
  if #fields > 0 then call('HSET', place.ids, unpack(fields)) end
  tally(place.meta, COUNTERS[form], jobs - count)
  local due = enter(place.entries, seq, jobs, when, now, gone)
  if not place.first or due < place.first then place.first = due end
end
for m = 1, #moves, 6 do
  if is_new[m] then
    move(here, KEYS[moves[m]], moves[m + 1], moves[m + 2], moves[m + 3],
         moves[m + 4], moves[m + 5])
  end
end
call_list('ZADD', wait, here.entries)

for number = 1, #topics / 2 do
  local key = topics[2 * number]
  local place = { ids = KEYS[key + 1], meta = KEYS[key + 2], entries = {} }
  for a = 1, #aways, 6 do
    if is_sent[a] and aways[a + 4] == number then
      move(place, KEYS[aways[a]], aways[a + 1], aways[a + 2], aways[a + 3], 2,
           aways[a + 5])
    end
  end
  if place.first then
    topic_kind(place.meta, place.ids, ARGV[14])
    call_list('ZADD', KEYS[key], place.entries)
    wake_one(KEYS[key + 3], topics[2 * number - 1], place.first)
  end
end

local failed, expired = 0, 0
local places, deaths, records = {}, {}, {} -- of those that die
local function die(id, record)
  local last = 2 * failed
  places[last + 1], places[last + 2] = id, 'D'
  deaths[last + 1], deaths[last + 2] = now, id
  records[last + 1], records[last + 2] = id, record
  failed = failed + 1
end
for e = 1, #ends, 3 do
  local id, record = ends[e + 1], ends[e + 2]
  if refused[ends[e]] then
    -- it is somebody else's now
  elseif record == '' then
    call('HDEL', ids, id)
    expired = expired + 1
  else
    die(id, record)
  end
end

-- Keep those slots of a staged pack that are not in `out`.
local function keep(list, pack, jobs, out, out_count)
  if out_count == jobs then
    call('DEL', pack)
    return
  end
  call('PERSIST', pack)
  if out_count > 0 then call('SETRANGE', pack, 3, char(out_count)) end
  enter(list, sub(pack, -12), jobs, 'r0', now, out_count > 0 and out)
end

local function bury(named, made, jobs, header_len, sources, target)
  local names = cmsgpack.unpack(call('GETRANGE', named, 8, header_len - 1))
  local seq, not_named, not_made = sub(named, -12), {}, {}
  local twins, buried = 0, 0
  for slot = 0, jobs - 1 do
    local is_ours = not refused[sources[slot + 1]]
    if is_ours and
       call('HSETNX', target.ids, names[slot + 1], seq) == 1 then
      buried = buried + 1
      not_made[slot] = true
    else
      not_named[slot] = true
      not_made[slot] = not is_ours or nil
      if is_ours then twins = twins + 1 end
    end
  end
  keep(target.entries, named, jobs, not_named, jobs - buried)
  keep(target.entries, made, jobs, not_made, jobs - twins)
  return buried + twins
end

-- That topic is of another kind: they stay here. Offsets of records are behind
-- the header.
local function stay(named, made, jobs, header_len, sources)
  local names = cmsgpack.unpack(call('GETRANGE', named, 8, header_len - 1))
  local base = header_len + 4 * (jobs + 1)
  local offsets = call('GETRANGE', named, header_len, base - 1)
  local function offset(slot)
    local b0, b1, b2, b3 = byte(offsets, 4 * slot + 1, 4 * slot + 4)
    return base + b0 + b1 * 256 + b2 * 65536 + b3 * 16777216
  end
  for slot = 0, jobs - 1 do
    if not refused[sources[slot + 1]] then
      die(names[slot + 1],
          call('GETRANGE', named, offset(slot), offset(slot + 1) - 1))
    end
  end
  call('DEL', named, made)
end

if #burials > 0 then
  local target = { entries = {} }
  target.wait, target.ids = KEYS[#KEYS - 3], KEYS[#KEYS - 2]
  target.meta, target.idle = KEYS[#KEYS - 1], KEYS[#KEYS]
  local fits = topic_kind(target.meta, target.ids, ARGV[10]) == ARGV[10]
  local buried = 0
  for b = 1, #burials, 5 do
    local named, made = KEYS[burials[b]], KEYS[burials[b + 1]]
    local jobs, header_len = burials[b + 2], burials[b + 3]
    if not is_dug[b] then
      -- a repeat
    elseif fits then
      buried = buried + bury(named, made, jobs, header_len, burials[b + 4],
                             target)
    else
      stay(named, made, jobs, header_len, burials[b + 4])
    end
  end
  if buried > 0 then
    call_list('ZADD', target.wait, target.entries)
    tally(target.meta, 'added', buried)
    tally(meta, 'failed', buried)
    wake_one(target.idle, ARGV[9], now)
  end
end
tally(meta, 'expired', expired)
if failed > 0 then
  call_list('HSET', ids, places)
  call_list('ZADD', dead, deaths)
  call_list('HSET', rec, records)
  tally(meta, 'failed', failed)
  local over = call('ZCARD', dead) - most_dead
  if over > 0 then
    local oldest, dropped = call('ZPOPMIN', dead, min(over, 1000)), {}
    for i = 1, #oldest, 2 do dropped[#dropped + 1] = oldest[i] end
    call('HDEL', ids, unpack(dropped))
    call('HDEL', rec, unpack(dropped))
    tally(meta, 'dropped', #dropped)
  end
end
if returned_due and (not here.first or returned_due < here.first) then
  here.first = returned_due
end
if here.first then wake_one(idle, topic, here.first) end
reply[1] = settled
if twins > 0 then
  reply[#reply + 1] = -1
  reply[#reply + 1] = twins
end
for number = 1, #topics / 2 do
  local list = refusals[number] or {}
  for i = 2, #list do
    if not refused[list[i]] then -- it would have been added
      reply[#reply + 1] = list[1]
      reply[#reply + 1] = topics[2 * number - 1]
      break
    end
  end
end
return reply
