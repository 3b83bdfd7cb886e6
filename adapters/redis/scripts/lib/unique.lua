-- SPDX-License-Identifier: MIT
-- Jobs under a key, of which one at a time may be there. The hash `unique` has
-- for a key who took it last, its holder:
--   at 1   1    the holder has the key: d while it is there and not dead, s
--               while it waits, t until a time, whatever becomes of it
--   at 3   12   its first pack
--   at 16  16   ms when a t ends, else 0
--   at 33  16   ms when the first one was added of those that took each other's
--               place, this one last
--   at 50  16   ms when it is due
--   at 67  16   ms when this one was added
--   at 84       its id
-- So much keeps the hash a table from its first entry on. Nothing happens to an
-- entry when its job ends: who comes next looks whether it holds. What can hold
-- no more is removed by and by.
--
-- A rule is what a job says of its key: reject, replace, debounce or throttle,
-- a blank, and until-done, until-start or ms; of debounce then maybe a blank
-- and the most ms that it may be put off.
--
-- In scope are number.lua, wake.lua, `call`, `sub`, the keys `wait`, `ids`,
-- `meta`, `idle`, `unique`, `due_key`, what they begin with (`prefix`), `now`,
-- and of `meta` the fields kind, revision, max_pending, mark, mixed_mark,
-- lanes, laned_mark (`known`). Packs of holders are not declared, as those of
-- push.lua.
--#include laned
--#include lost
--#include unique_moved
call('ZCARD', prefix .. 'turns') -- as types.lua says
call('HLEN', prefix .. 'of')
local HELD = 512 -- what is told of a job whose key another one has
local LOOK = 2 -- entries for each new one
local left -- how many more jobs may wait; nil: no bound
if known[3] then
  --#include room
  left = room_left(meta, number_of(known[3], math.huge))
end
local added, deleted, unready, grown, first_due, first_seq = 0, 0, 0, 0
local rules, moved_lib = {}, nil

local function of_moved()
  moved_lib = moved_lib or moved()
  return moved_lib
end

local function read_rule(text)
  if rules[text] then return rules[text] end
  local mode, hold, most = string.match(text, '^(%l+) ([%w-]+) ?(%d*)$')
  local form = hold == 'until-done' and 'd' or hold == 'until-start' and 's'
  local ms = not form and #(hold or '') < 15 and
             string.find(hold or '', '^%d+$') and tonumber(hold)
  if not (form or ms) or #most > 14 or
     not (mode == 'reject' or mode == 'replace' or mode == 'debounce' or
          mode == 'throttle' and ms) then
    return nil
  end
  rules[text] = { mode = mode, form = form or 't', ms = ms,
                  most = tonumber(most) }
  return rules[text]
end

local function read_entry(text)
  if not text or #text < 84 or not string.find(text, '^[dst] ') then
    return nil
  end
  return { form = sub(text, 1, 1), seq = sub(text, 3, 14),
           till = number_of(sub(text, 16, 31)),
           first = number_of(sub(text, 33, 48)),
           due = number_of(sub(text, 50, 65)),
           added = number_of(sub(text, 67, 82)), id = sub(text, 84) }
end

-- That of a holder that is added now.
local function write_entry(form, seq, till, first, due, id)
  return string.format('%s %s %09d%07d %09d%07d %09d%07d %09d%07d %s', form,
                       seq, till / 1e7, till % 1e7, first / 1e7, first % 1e7,
                       due / 1e7, due % 1e7, now / 1e7, now % 1e7, id)
end

-- Is the holder there, and not dead?
local function is_there(entry)
  local place = call('HGET', ids, entry.id)
  if not place or place == 'D' then return false end
  if place ~= entry.seq then return of_moved().is_there(entry, place) end
  if is_lost(prefix, place, entry.id) then return false end
  entry.place = place
  return true
end

-- Has a job the id?
local function is_taken(id)
  local place = call('HGET', ids, id)
  return place and not is_lost(prefix, place, id)
end

-- Does it wait? Adds its node and the score of that.
local function waits(entry)
  if not entry.place and not is_there(entry) then return false end
  if entry.pack then
    entry.node, entry.score = of_moved().find_node(entry, wait)
  else
    entry.node = entry.seq .. '0000'
    entry.score = call('ZSCORE', wait, entry.node)
  end
  return entry.score
end

local function runs(entry)
  local run = prefix .. 'run'
  if entry.pack then return of_moved().find_node(entry, run) end
  return call('ZSCORE', run, entry.node)
end

local function holds(entry)
  if entry.form == 't' then return now < entry.till end
  if not is_there(entry) then return false end
  if entry.form == 'd' and not known[8] then return true end
  -- Of a topic that lost jobs not all that have a pack are to be found.
  return waits(entry) or entry.form == 'd' and runs(entry)
end

-- Delete a holder that waits.
local function remove(entry)
  local was_ready
  if entry.pack then
    was_ready = of_moved().remove(entry)
  else
    local score, mark = tonumber(entry.score), known[4]
    if score >= LANED then score, mark = score - LANED, known[7] end
    was_ready = score < number_of(mark, -1) + 1
    call('ZREM', wait, entry.node)
    call('DEL', prefix .. 'p:' .. entry.seq)
  end
  local lane = known[6] and not entry.pack and
               call('HGET', prefix .. 'of', entry.seq)
  if lane then
    --#include lane_left
    leave_wait(prefix, { entry.node }, { [entry.seq] = lane })
    call('HDEL', prefix .. 'of', entry.seq)
  end
  call('HDEL', ids, entry.id)
  deleted = deleted + 1
  if was_ready then unready = unready + 1 end
end

-- A throttled job is due one window behind the one before it. One whose time
-- has not come yet gives its place, and its time, to the next one, unless that
-- is due later by itself. A job that moved had its time once. Scores of mixed
-- nodes and of lanes are multiples of 2^44 above the due time.
local function throttle(job, entry)
  if not entry then return job.due end
  local score, at = waits(entry), entry.due
  if score and not entry.pack then at = floor(tonumber(score)) % 2 ^ 44 end
  if now < at and not score then return math.max(job.due, at) end
  if now < at and job.due <= at then return at, entry end
  return math.max(job.due, at + job.rule.ms)
end

-- When a job is due under its key, and whose place it takes; nil: it may not be
-- added. `entry` is of who holds the key, if anybody does.
local function decide(job, entry)
  local rule, due = job.rule, job.due
  if rule.mode == 'throttle' then return throttle(job, entry) end
  if entry and (rule.mode == 'reject' or not waits(entry)) then return nil end
  if rule.mode == 'debounce' and rule.most then
    due = math.min(due, math.max(now, (entry or job).first + rule.most))
  end
  return due, entry
end

-- Put a job where it goes: what add.lua tells of it where it cannot be.
local function place(job)
  if job.pack == '' and call('PERSIST', job.pack_key) == 0 then
    return call('EXISTS', job.pack_key) == 1 and -1 or -2
  elseif job.pack ~= '' and not call('SET', job.pack_key, job.pack, 'NX') then
    return -1
  end
end

local enter_lane
local function enter_job(job, due)
  local entries = { digits(due), job.seq .. '0000' }
  if job.lane then
    --#include lanes
    enter_lane = enter_lane or lane_entrance(prefix, meta, now)
    entries = {}
    enter_lane(entries, job.seq .. '0000', due, 0, job.lane)
  end
  if not job.is_made then call('HSET', ids, job.id, job.seq) end
  call('ZADD', wait, unpack(entries))
  added = added + 1
  if not first_due or due < first_due then first_due = due end
  first_seq = added == 1 and not job.lane and job.seq or nil
end

-- Add a job that has no unique key. Returns as add_under_key.
local function add_alone(job)
  if not job.is_made and is_taken(job.id) then return 0 end
  if left and left < 1 then return 256 end
  local what = place(job)
  if what then return what end
  left = left and left - 1
  enter_job(job, job.due)
end

-- The holder of a key; nil: the key is free. Its times are counted from now if
-- it took the key while the clock was ahead, and for longer than a small step.
local function read_holder(key)
  local entry = read_entry(call('HGET', unique, key))
  local ahead = entry and entry.added - now or 0
  if ahead < 1000 then return entry end
  entry.first = math.min(entry.first, now)
  entry.due = math.max(entry.due - ahead, 0)
  entry.till = math.max(entry.till - ahead, 0)
  call('HSET', unique, key, write_entry(entry.form, entry.seq, entry.till,
                                        entry.first, entry.due, entry.id))
  return entry
end

-- Add a job: `id`, `seq`, `pack` and the `pack_key` where it goes ('': it is
-- there, staged), `due`, which is not in the past, `key`, `rule`, and `first`,
-- which is now. Returns nothing, or what is told of it: 0, 256, -1, -2 as
-- add.lua has it, or HELD and the id of the holder.
local function add_under_key(job)
  if is_taken(job.id) then return 0 end
  local entry = read_holder(job.key)
  if entry and not holds(entry) then entry = nil end
  local due, before = decide(job, entry)
  if not due then return HELD, entry.id end
  if left and left < 1 and not before then return 256 end
  local rule, till, seq = job.rule, 0, job.seq
  local what = place(job)
  if what then return what end
  if before then
    remove(before)
  elseif left then
    left = left - 1
  end
  if rule.form == 't' then
    till = (rule.mode == 'throttle' and due or now) + rule.ms
  end
  grown = grown +
          call('HSET', unique, job.key,
               write_entry(rule.form, seq, till, before and before.first or now,
                           due, job.id))
  enter_job(job, due)
end

-- Some entries, by chance: a key that nobody takes again does not stay.
local function look_around()
  local some = call('HRANDFIELD', unique, -LOOK * grown - 1, 'WITHVALUES')
  local asked, keys, over = {}, {}, {}
  for i = 1, #some, 2 do
    local text = some[i + 1]
    if #text < 84 or sub(text, 1, 1) == 't' and
                     number_of(sub(text, 16, 31)) <= now then
      over[#over + 1] = some[i]
    elseif sub(text, 1, 1) ~= 't' then
      asked[#asked + 1], keys[#keys + 1] = sub(text, 84), some[i]
    end
  end
  local known = asked[1] and call('HMGET', ids, unpack(asked)) or {}
  for i = 1, #keys do
    if not known[i] then over[#over + 1] = keys[i] end
  end
  if over[1] then call('HDEL', unique, unpack(over)) end
end

-- Behind the last one.
local function end_adding(topic)
  if added > 0 then
    increment(meta, 'added', added)
    increment(meta, 'delwait', deleted)
    increment(meta, 'ready', -unready)
    wake_one(idle, topic, first_due, first_due <= now and first_seq)
  end
  look_around()
end
