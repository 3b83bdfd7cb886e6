-- SPDX-License-Identifier: MIT
-- stats: counts of a topic. Nothing is counted by scanning, except `ready`:
-- `mark` is the time up to which due nodes are counted in it, each node passes
-- the mark once, and every transition of a node below it adjusts `ready`. One
-- call looks at a bounded number of nodes. Topics of other kinds keep something
-- else there, and are left as they are.
--
-- KEYS  wait meta dead, and relay or nothing
-- ARGV  most nodes to look at
-- Reply { name, value, ... }: time in ms, kind ('' = no such topic), paused (1
--         or 0), waiting (ready or not), ready, running, dead, relaying, exact
--         (1 if ready is complete), totals; aside comes last where something
--         was set aside (number.lua)
--#include node
--#include number
local time = call('TIME')
-- The current millisecond is still being written to.
local now = time[1] * 1000 + floor(time[2] / 1000) - 1
local wait, meta, dead, relay = unpack(KEYS)
local most_nodes = tonumber(ARGV[1])

local total = {}
local fields = { 'added', 'claimed', 'settled', 'retried', 'snoozed', 'failed',
                 'expired', 'returned', 'crashed', 'dropped', 'delwait',
                 'delrun', 'ready', 'mark', 'requeued' }
for i, value in ipairs(call('HMGET', meta, unpack(fields))) do
  total[fields[i]] = number_of(value, fields[i] == 'mark' and -1 or 0)
end
local options = call('HMGET', meta, 'kind', 'paused')

local complete, ready = 1, total.ready
if options[1] == 'delay' and now > total.mark then
  local from, stop = digits(total.mark + 1), now
  local due = call('ZRANGEBYSCORE', wait, from, '(' .. digits(now + 1),
                   'WITHSCORES', 'LIMIT', 0, most_nodes)
  if #due == 2 * most_nodes then -- up to the last ms that was seen whole
    local last = floor(tonumber(due[#due]))
    complete, stop = 0, last - 1
    if stop <= total.mark then -- one ms holds more: take all of it
      stop = last
      due = call('ZRANGEBYSCORE', wait, from, '(' .. digits(stop + 1),
                 'WITHSCORES')
    end
  end
  local jobs, foreign = 0, {}
  for i = 1, #due, 2 do
    if tonumber(due[i + 1]) < stop + 1 then
      local lo, hi = node_bounds(due[i])
      if lo then
        jobs = jobs + hi - lo + 1
      else
        foreign[#foreign + 1] = due[i]
      end
    end
  end
  -- A server that is full or a replica keeps no mark, and tells all the same.
  if type(redis.pcall('HSET', meta, 'mark', digits(stop))) == 'number' then
    increment(meta, 'ready', jobs)
    call_list('ZREM', wait, foreign)
    set_aside = set_aside + #foreign
  end
  ready = ready + jobs
end

local moved = total.retried + total.snoozed
local waiting = total.added + moved + total.returned + total.requeued -
                total.claimed - total.delwait
local running = total.claimed - total.settled - total.returned - total.delrun
local done = total.settled - moved - total.failed - total.expired
local reply = {
  'time', now + 1,
  'kind', options[1] or '',
  'paused', options[2] and 1 or 0,
  'waiting', waiting,
  'ready', ready,
  'running', running,
  'dead', call('ZCARD', dead),
  'relaying', relay and call('HLEN', relay) or 0,
  'exact', complete,
  'added', total.added,
  'done', done,
  'retried', total.retried,
  'failed', total.failed,
  'expired', total.expired,
  'crashed', total.crashed,
  'dropped', total.dropped + set_aside,
}
if set_aside > 0 then reply[#reply + 1] = 'aside' end
tell_aside(meta, reply)
return reply
