-- SPDX-License-Identifier: MIT
-- settle: verdicts for the slots of many nodes, in one atomic step. A slot is
-- settled only if a node below the one named still lies under its token, so
-- repeating a call changes nothing.
--
-- A source names one slot of one of the nodes: (node - 1) * 256 + slot, nodes
-- counted from 1. All lists are msgpack, flat, or '' when empty.
--
-- KEYS  run lease ids meta wait dead rec idle held due, old packs..., new
--       packs..., absent; then relay where a new pack is for another topic
-- ARGV  1 topic
--       2 nodes  [ key, node, token, header length, slots, ... ]
--                slots: one byte for each slot, '' = all slots of the node.
--                The key + OF_MIXED: the pack is mixed (mixed.lua). Where the
--                node is a small part of its pack, in the place of the header
--                length the ids of the node's slots, or the one. Header length
--                0: the pack is gone, and these jobs were lost with it
--       3 back   [ node, token, due ms, slots, ... ] what was not started: it
--                returns to `wait`, after the verdicts. Of a mixed pack the
--                due time + MIXED; slots of a node that has several return as
--                the table says
--       4 closed [ token, ... ] claims that end if nothing is left of them
--       5 moves  [ key, jobs, header length, when (due.lua), form, sources,
--                target, ... ] new packs, staged as for add. Form 0: snoozes,
--                1: retries, 2: new jobs, each added with the verdict of its
--                source, 3: dead jobs; 4 more: it ends with the token of its
--                first source, else it is another producer's. Target '': here,
--                unless the id of a new job exists. Else it is [ topic, kind,
--                call slot, number, second pack ], and the pack lies in the
--                outbox: an entry of `relay` says where it goes
--                (store/outbox.h). In the place of a key and a header length
--                there may be the record and the id of one job of form 0 or
--                1: its pack is made here
--       6 ends   [ source, id, record, ... ] for the dead; record '': expired,
--                only counted
--       7 most dead jobs
--       8 where there is one behind it: sources that did not start, whose
--                claim used a token for nothing (tokens.lua); of what goes back
--                BACK + (entry - 1) * 256 + slot
--       the last, 8 or 9: 1: jobs whose new pack was not staged are left out,
--                and with them those that share a pack with one; 2 more:
--                `parallel` of the topic bounds how many run, and who waits
--                for that is woken; 4 more: some jobs are of lanes
--                (lanes.lua), as they may be where `meta` has `lanes`; 0 or
--                absent: none of it
-- Reply { settled, node, slot, ... }: the pairs, nodes counted from 0, are
--       refused: expired, deleted or settled before, or the new pack has the
--       name of another. With 256 added to the slot: left out, still under its
--       token. Last come the pairs -1, n where the ids of n new jobs exist;
--       -2, name and entry of each pack in the outbox; -3, how many entries
--       that has; -4, how many dead jobs went.
--       { -1 } a new pack was not staged: nothing was done.
--#include node
--#include number
--#include suspect
--#include mixed
--#include held
--#include due
--#include outbox
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local run, lease, ids, meta, wait, dead, rec, idle = unpack(KEYS, 1, 8)
local held, due_key, OF_MIXED = KEYS[9], KEYS[10], 65536
local function list_of(arg) -- a table where finish.lua made it
  if arg == '' then return {} end
  local list = type(arg) == 'table' and arg or cmsgpack.unpack(arg)
  return type(list) == 'table' and list
end
local topic, nodes, back = ARGV[1], list_of(ARGV[2]), list_of(ARGV[3])
local closed, flat_moves = list_of(ARGV[4]), list_of(ARGV[5])
local ends, most_dead = list_of(ARGV[6]), tonumber(ARGV[7])
local flags = tonumber(ARGV[9] or ARGV[8] or 0)
local unstarted = ARGV[9] and list_of(ARGV[8])
if not (due_key and nodes and back and closed and flat_moves and ends and
        most_dead and most_dead >= 0 and most_dead <= 2 ^ 32 and
        most_dead % 1 == 0 and (unstarted or not ARGV[9]) and
        flags and flags >= 0 and flags <= 7 and flags % 1 == 0) then
  --#include args
  return bad_number('the number of dead jobs', ARGV[7], 0, 2 ^ 32) or
         bad_number('the last argument', ARGV[9] or ARGV[8], 0, 7) or
         too_few(10, 7) or
         redis.error_reply('ERR the lists are no msgpack arrays')
end
for _, token in ipairs(closed) do
  if type(token) ~= 'number' or
     not (token >= 0 and token <= MOST_STORED and token % 1 == 0) then
    return redis.error_reply('ERR a closed claim is no token')
  end
end
if nodes ~= ARGV[2] and ARGV[3] .. ARGV[5] .. ARGV[6] ~= '' then
  --#include verdicts
  local wrong = wrong_lists(nodes, back, flat_moves, ends)
  if wrong then return redis.error_reply('ERR ' .. wrong) end
end
local BACK = 2 ^ 20
for i = 1, unstarted and table.maxn(unstarted) or 0 do
  local source = unstarted[i]
  if type(source) ~= 'number' or
     not (source >= 0 and source < 2 * BACK and source % 1 == 0) then
    return redis.error_reply('ERR what did not start is no source')
  end
end
local leaves_out = flags % 2 == 1
local prefix, laned = sub(wait, 1, -5), {}
local lanes -- of lanes.lua; nil: no job is of one
if flags >= 4 then
  --#include lanes
  look_at_lanes(prefix)
  lanes = { of = lanes_of, leave = leave_lane,
            enter = lane_entrance(prefix, meta, now) }
end

for m = 1, lanes and 0 or #flat_moves, 7 do
  if byte(flat_moves[m + 3]) == 108 and flat_moves[m + 6] == '' then -- 'l'
    call('ZCARD', prefix .. 'turns') -- as types.lua says
    call('HLEN', prefix .. 'of')
    break
  end
end
for m = 1, #flat_moves, 7 do
  local record, jobs, id = unpack(flat_moves, m, m + 2)
  if type(record) == 'string' then
    --#include lone_pack
    local head, header_len = lone_head(id, #record)
    local key, seq
    local serial = time[2] % 1000 * 8192 + m
    repeat
      --#include lone_name
      key = sub(wait, 1, -5) .. 'p:' .. seq
      serial = serial + 1
    until call('SET', key, head .. record, 'NX', 'PX', '60000')
    KEYS[key] = key
    flat_moves[m], flat_moves[m + 2] = key, header_len
  end
end
local moves, lacks_some, outbox = read_moves(flat_moves, function(source)
  return nodes[floor(source / 256) * 5 + 3]
end)
if lacks_some and not leaves_out then return { -1 } end
local keeps_id, left_out = nil, lacks_some and {}
local taken -- sources whose new pack is permanent, by a repeat's own or not
for _, move in ipairs(moves) do
  if not move.is_there then
    for _, source in ipairs(move.sources) do left_out[source] = true end
  elseif not move.is_new then
    taken = taken or {}
    for _, source in ipairs(move.sources) do taken[source] = true end
  end
  if move.form < 2 then
    keeps_id = keeps_id or {}
    for _, source in ipairs(move.sources) do keeps_id[source] = true end
  end
end
for e = 1, #ends, 3 do
  keeps_id = keeps_id or {}
  keeps_id[ends[e]] = ends[e + 1] -- not that of its pack, where that is none
end

-- A pack comes once, with all of its jobs.
local is_closed = not left_out
while not is_closed do
  is_closed = true
  for _, move in ipairs(moves) do
    local count = 0
    for _, source in ipairs(move.sources) do
      if left_out[source] then count = count + 1 end
    end
    if count > 0 and count < move.jobs then
      is_closed = false
      for _, source in ipairs(move.sources) do left_out[source] = true end
    end
  end
end

-- First decide, without writing anything.
local reply, settled, lost, refused = { 0 }, 0, 0, {}
local to_remove, to_keep, to_unindex = {}, {}, {}
local FEW, whole = 8, {} -- larger nodes that go with all of their ids
local packs = {}
local parts, to_carve = {}, {} -- by name: the slots that go, or 'whole'

local function read_pack(key, header_len)
  local header = call('GETRANGE', key, '0', digits(header_len - 1))
  if #header < 8 then return { gone = 0, was = 0, last = 0, is_lost = true } end
  local _, _, last, gone = byte(header, 1, 4)
  local names = header_len > 8 and table_of(header, 8) or nil
  return { gone = gone, was = gone, last = last, names = names }
end

-- The pack of a node, and the ids of its slots: nil where weir made them. With
-- `told`, which is these ids or the length of the header.
local function pack_of(name, number, told)
  local key = KEYS[number % OF_MIXED]
  local pack, has_told = packs[key], type(told) ~= 'number'
  if not pack then
    pack = read_pack(key, has_told and 8 or math.max(told, 8))
    packs[key] = pack
  elseif not has_told and told > 8 and not pack.names then
    pack.names = read_pack(key, told).names
  end
  pack.is_mixed = pack.is_mixed or number > OF_MIXED
  if not has_told then return pack, pack.names end
  local names, lo = {}, node_bounds(name)
  if type(told) == 'string' then told = { told } end
  for i = 1, #told do names[lo + i] = told[i] end
  return pack, names
end

-- The pack of a source is gone, so its id was free (lost.lua): another job has
-- it by now.
local function is_anothers(source, id)
  local at = floor(source / 256) * 5
  local pack = packs[KEYS[nodes[at + 1] % OF_MIXED]]
  local place = pack and pack.is_lost and call('HGET', ids, id)
  return place and place ~= sub(nodes[at + 2], 1, 12)
end

local function refuse(index, slot)
  refused[(index - 1) * 256 + slot] = true
  reply[#reply + 1] = index - 1
  reply[#reply + 1] = slot
end

-- Of these slots (nil: all) those that are not taken. They cannot be settled
-- and run again: what a repeat settled before is not in `run`.
local function refuse_taken(index, lo, hi, slots)
  local rest = {}
  for slot = lo, hi do
    if not slots or slots[slot] then
      local is_taken = taken[(index - 1) * 256 + slot]
      if is_taken then refuse(index, slot) else rest[slot] = true end
    end
  end
  return rest
end

-- lo..hi is in `run` under the right token: settle all of its slots, or those
-- in `slots`, but for what an entry before this one settles.
local function settle_node(index, name, lo, hi, slots, score)
  local at, base = index * 5 - 4, (index - 1) * 256
  local pack, names = pack_of(nodes[at + 1], nodes[at], nodes[at + 3])
  local part, last, count = parts[name], #to_unindex, 0
  if taken then slots = refuse_taken(index, lo, hi, slots) end
  if not slots and not part and not keeps_id and not pack.is_lost and
     hi - lo >= FEW then -- the usual case
    count = hi - lo + 1
    if names then whole[#whole + 1] = { names, lo + 1, hi + 1 } end
  else
    for slot = lo, hi do
      if slots and not slots[slot] then
        -- it stays
      elseif part == 'whole' or part and part[slot] then
        refuse(index, slot)
      else
        count = count + 1
        if part then part[slot] = true end
        local id = names and names[slot + 1]
        local kept = keeps_id and keeps_id[base + slot]
        if type(id) == 'string' and kept ~= true and kept ~= id and
           not (pack.is_lost and is_anothers(base + slot, id)) then
          last = last + 1
          to_unindex[last] = id
        end
      end
    end
  end
  if count == 0 then return end
  settled, pack.gone = settled + count, pack.gone + count
  if nodes[at + 3] == 0 then lost = lost + count end
  if part then return end
  parts[name] = slots or 'whole'
  to_remove[#to_remove + 1] = name
  if slots then to_carve[#to_carve + 1] = { name, lo, hi, score } end
end

-- The node is not under its token as a whole: part of it was deleted or settled
-- meanwhile, or the lease is lost. Look for what is left below it, but not
-- where no slot is to be settled: a node that is settled slot by slot comes
-- here each time.
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
for i = 2, #nodes, 5 do
  local told = nodes[i + 2]
  if type(told) == 'number' and
     not (told >= 0 and told <= 2 ^ 24 and told % 1 == 0) then
    return redis.error_reply('ERR a header length is none')
  end
  node_names[#node_names + 1] = nodes[i]
end
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
local kept = {} -- of nodes of lanes
for _, node in ipairs(to_carve) do
  local name, lo, hi, score = unpack(node)
  local from = #to_keep + 1
  carve(to_keep, score, sub(name, 1, 12), lo, hi, parts[name])
  if lanes then kept[name] = { unpack(to_keep, from) } end
end

-- A tick goes on while its schedule does and the index names its pack: after
-- `ids` was lost a schedule may have two. Others end, and make no job.
local strays = 0
for _, move in ipairs(moves) do
  local first = nodes[floor(move.sources[1] / 256) * 5 + 2]
  local is_of_tick = false
  if move.form == 0 then
    --#include is_tick
    is_of_tick = is_tick(first)
  end
  for _, source in ipairs(is_of_tick and move.sources or {}) do
    local at, slot = floor(source / 256) * 5, source % 256
    local seq = sub(nodes[at + 2], 1, 12)
    local _, names = pack_of(nodes[at + 2], nodes[at + 1], nodes[at + 4])
    local id = names and names[slot + 1]
    local place = type(id) == 'string' and call('HGET', ids, id)
    local schedule = type(id) == 'string' and
                     redis.pcall('HGET', prefix .. 'cron', sub(id, 1, -6))
    if type(id) == 'string' and not refused[source] and
       type(schedule) ~= 'table' and
       (place and place ~= seq or sub(schedule or '', 1, 1) ~= 'A') then
      refused[source], strays = true, strays + 1
      if place == seq then to_unindex[#to_unindex + 1] = id end
    end
  end
end

-- Then write: what goes first, what moves afterwards.
if #back > 0 or #moves > 0 or #ends > 0 then
  --#include types
  needs_zsets(wait, lease, dead)
  needs_hashes(ids, meta, rec, due_key)
end
call_list('ZREM', run, to_remove)
call_list('ZADD', run, to_keep)
local is_freed = false
local function leave(node, rest)
  local lane = laned[sub(node, 1, 12)]
  if not lane then return end
  is_freed = lanes.leave(prefix, node, lane, now, rest) or is_freed
end
if lanes then
  laned = lanes.of(prefix, node_names)
  for _, node in ipairs(to_remove) do leave(node, kept[node]) end
end
for _, node in ipairs(whole) do
  local names, from, to = unpack(node)
  local reply = redis.pcall('HDEL', ids, unpack(names, from, to))
  if type(reply) ~= 'number' then -- some are no text
    for i = from, to do
      if type(names[i]) == 'string' then
        to_unindex[#to_unindex + 1] = names[i]
      end
    end
  end
end
call_list('HDEL', ids, to_unindex)
local ended = {}
for key, pack in pairs(packs) do
  if pack.gone > pack.last then
    call('DEL', key)
    if pack.is_mixed then redis.pcall('HDEL', due_key, sub(key, -12)) end
    if lanes then ended[#ended + 1] = sub(key, -12) end
  elseif pack.gone > pack.was then
    call('SETRANGE', key, '3', char(pack.gone))
  end
end
call_list('HDEL', prefix .. 'of', ended)
increment(meta, 'settled', settled - strays)
increment(meta, 'delrun', strays)

-- What was not started returns under its due time. Who had started a suspect
-- did not die with it.
local returned, returned_due = 0, nil
if #back > 0 then
  local mark = call('HMGET', meta, 'mark', 'mixed_mark', 'laned_mark')
  local mark_end, mixed_end, laned_end = number_of(mark[1], -1) + 1,
                                         number_of(mark[2], -1) + 1,
                                         number_of(mark[3], -1) + 1
  if lanes then
    --#include full
    needs_no_room(prefix .. 'turns')
    local nodes = {}
    for b = 1, #back, 4 do nodes[#nodes + 1] = back[b] end
    for seq, lane in pairs(lanes.of(prefix, nodes)) do laned[seq] = lane end
  end
  -- Returns how many are below the mark.
  local function give_back(list, name, under, due, slots, source)
    local seq, wanted, below = sub(name, 1, 12), {}, 0
    local lo, hi = node_bounds(name)
    local region = due >= MIXED and MIXED or 0
    due = due - region
    local entry = region > 0 and lo < hi and
                  read_table(call('HGET', due_key, seq), hi)
    local is_ripe = due < (region > 0 and mixed_end or mark_end)
    for i = 1, #slots do wanted[byte(slots, i)] = true end
    local function put(from, to, ended, stays, count)
      if laned[seq] then
        local parts = {}
        carve(parts, 0, seq, from, to, stays)
        for i = 2, #parts, 2 do
          lanes.enter(list, parts[i], due, ended / 128, laned[seq])
        end
        if due < laned_end then below = below + count end
      elseif entry then
        below = below + spread(list, entry, seq, from, to, stays, ended / 128,
                               mixed_end)
      else
        if region > 0 and lo < hi and ended == 0 then
          ended = LOST_DUE * 128
        end
        carve(list, region + suspect_score(due, ended), seq, from, to, stays)
        if is_ripe then below = below + count end
      end
      returned = returned + count
    end
    local function descend(from, to)
      local node = node_name(seq, from, to)
      local score = call('ZSCORE', run, node)
      score = score and tonumber(score)
      if score and floor(score) == under then
        local goes, stays, count = {}, {}, 0
        for slot = from, to do
          local list_of_slot = (slots == '' or wanted[slot]) and goes or stays
          list_of_slot[slot] = true
          if list_of_slot == goes then count = count + 1 end
        end
        if count == 0 then return end
        local left = {}
        put(from, to, suspicion(score), stays, count)
        carve(left, score, seq, from, to, goes)
        call('ZREM', run, node)
        call_list('ZADD', run, left)
        leave(node, left)
        returned_due = min(returned_due or math.huge, due)
      elseif from < to then
        local half = left_size(from, to)
        descend(from, from + half - 1)
        descend(from + half, to)
      else
        refused[source + from] = true
      end
    end
    descend(lo, hi)
    return below
  end

  local entries, early = {}, 0
  for b = 1, #back, 4 do
    early = early +
            give_back(entries, back[b], back[b + 1], back[b + 2], back[b + 3],
                      BACK + (b - 1) * 64)
  end
  call_list('ZADD', wait, entries)
  increment(meta, 'returned', returned)
  increment(meta, 'ready', early)
end
local waiting
if unstarted then
  --#include deleted
  --#include tokens
  local spared, absent, is_due = {}, {}, nil
  for _, source in ipairs(unstarted) do
    local list, at = nodes, floor(source / 256) * 5 + 2
    if source >= BACK then
      list, at = back, floor((source - BACK) / 256) * 4 + 1
    end
    local seq, token, slot = sub(list[at] or '', 1, 12), list[at + 1],
                             source % 256
    local node = node_name(seq, slot, slot)
    if token and refused[source] then
      absent[token] = absent[token] or {}
      table.insert(absent[token], node)
    elseif token then
      spared[#spared + 1] = { node, token, 1, laned[seq] }
    end
  end
  for token, names in pairs(absent) do
    local deleted = take_deleted(held, digits(token), names)
    for i = 1, #deleted, 2 do
      local lane = deleted[i + 1] ~= 0 and deleted[i + 1] or nil
      spared[#spared + 1] = { sub(deleted[i], 2), token, 1, lane }
    end
  end
  if spared[1] then
    waiting, is_due = give_tokens(meta, held, idle, spared, time)
    is_freed = is_freed or is_due
  end
end
for _, token in ipairs(closed) do
  local left = call('ZCOUNT', run, digits(token), '(' .. digits(token + 1))
  if left == 0 then
    call('ZREM', lease, digits(token))
    forget_held(held, digits(token))
  end
end

local entries, tables, first, duplicates = {}, {}, nil, 0
local COUNTERS = { [0] = 'snoozed', [1] = 'retried', [2] = 'added' }

-- Jobs of this topic.
local function enter_pack(move)
  local fields, gone, count = {}, nil, 0
  local names = move.header_len > 8 and
                table_of(call('GETRANGE', move.key, '8',
                              digits(move.header_len - 1)))
  for slot = 0, move.jobs - 1 do
    local is_gone = refused[move.sources[slot + 1]]
    local id = not is_gone and names and names[slot + 1]
    if type(id) == 'string' and move.form == 2 then
      is_gone = call('HSETNX', ids, id, move.seq) == 0
      if is_gone then
        --#include lost
        is_gone = not is_lost(prefix, call('HGET', ids, id), id)
        duplicates = duplicates + (is_gone and 1 or 0)
        if not is_gone then call('HSET', ids, id, move.seq) end
      end
    elseif type(id) == 'string' and
           is_anothers(move.sources[slot + 1], id) then
      is_gone, lost = true, lost + 1
    elseif type(id) == 'string' then
      fields[#fields + 1] = id
      fields[#fields + 1] = move.seq
    end
    if is_gone then
      gone = gone or {}
      gone[slot] = true
      count = count + 1
    end
  end
  if count == move.jobs then
    call('DEL', move.key)
    return
  end
  call('PERSIST', move.key)
  if gone then call('SETRANGE', move.key, '3', char(count)) end
  if #fields > 0 then call('HSET', ids, unpack(fields)) end
  increment(meta, COUNTERS[move.form], move.jobs - count)
  local due = enter(entries, move.seq, move.jobs, move.when, now, gone, tables)
  first = min(first or due, due)
end

local recorded = {}
for _, move in ipairs(moves) do
  if move.target then
    local entry, jobs = record(outbox, move, refused, now)
    recorded[#recorded + 1] = entry
    if move.form == 3 then increment(meta, 'failed', jobs) end
  elseif move.is_new then
    enter_pack(move)
  end
end
call_list('ZADD', wait, entries)
if tables[1] then
  call_list('HSET', due_key, tables)
  call('HSET', meta, 'mixed', '2')
end

local deaths, expired = {}, 0
for e = 1, #ends, 3 do
  local id, record = ends[e + 1], ends[e + 2]
  if refused[ends[e]] then
    -- it is somebody else's now
  elseif is_anothers(ends[e], id) then
    lost = lost + 1
  elseif record == '' then
    call('HDEL', ids, id)
    expired = expired + 1
  else
    deaths[#deaths + 1], deaths[#deaths + 2] = id, record
  end
end
increment(meta, 'lost', lost)
increment(meta, 'expired', expired)
increment(meta, 'failed', #deaths / 2)
local evicted = 0
if #deaths > 0 then
  --#include dead
  evicted = keep_dead(ids, meta, dead, rec, now, deaths, most_dead)
end
if returned_due then first = min(first or returned_due, returned_due) end
if flags % 4 >= 2 and settled + returned > 0 then
  --#include ready
  if has_ready(wait, now) then first = min(first or now, now) end
end
if is_freed then first = min(first or now, now) end
if first or waiting then
  --#include wake
  if first then wake_one(idle, topic, first) end
  for _, worker in ipairs(waiting or {}) do
    call('ZREM', idle, worker)
    publish(worker, topic)
  end
end
local DUPLICATES, ENTRY, LENGTH, EVICTED = -1, -2, -3, -4
reply[1] = settled
if duplicates > 0 then
  reply[#reply + 1] = DUPLICATES
  reply[#reply + 1] = duplicates
end
for _, entry in ipairs(recorded) do
  reply[#reply + 1] = ENTRY
  reply[#reply + 1] = entry
end
if #recorded > 0 then
  reply[#reply + 1] = LENGTH
  reply[#reply + 1] = outbox.length
end
if evicted > 0 then
  reply[#reply + 1] = EVICTED
  reply[#reply + 1] = evicted
end
return reply
