-- SPDX-License-Identifier: MIT
-- stats: counts of a topic. Nothing is counted by scanning, except `ready`:
-- `mark` is the time up to which due nodes are counted in it, each node passes
-- the mark once, and every transition of a node below it adjusts `ready`. One
-- call looks at a bounded number of nodes.
--
-- KEYS  wait meta dead
-- ARGV  most nodes to look at
-- Reply { time in ms, kind ('' = no such topic), 1 if paused, waiting, ready,
--         running, dead, 1 if ready is complete, added, done, retried, failed,
--         expired, crashed, dropped }
--#include node
local time = call('TIME')
-- The current millisecond is still being written to.
local now = time[1] * 1000 + floor(time[2] / 1000) - 1
local wait, meta, dead = unpack(KEYS)
local most_nodes = tonumber(ARGV[1])

local count = {}
local fields = { 'added', 'claimed', 'settled', 'retried', 'snoozed', 'failed',
                 'expired', 'returned', 'crashed', 'dropped', 'delwait',
                 'delrun', 'ready', 'mark', 'requeued' }
for i, value in ipairs(call('HMGET', meta, unpack(fields))) do
  count[fields[i]] = tonumber(value or (fields[i] == 'mark' and -1 or 0))
end
local options = call('HMGET', meta, 'kind', 'paused')

local complete, ready = 1, count.ready
if options[1] and now > count.mark then
  local from, stop = digits(count.mark + 1), now
  local due = call('ZRANGEBYSCORE', wait, from, '(' .. digits(now + 1),
                   'WITHSCORES', 'LIMIT', 0, most_nodes)
  if #due == 2 * most_nodes then -- up to the last ms that was seen whole
    local last = floor(tonumber(due[#due]))
    complete, stop = 0, last - 1
    if stop <= count.mark then -- one ms holds more: take all of it
      stop = last
      due = call('ZRANGEBYSCORE', wait, from, '(' .. digits(stop + 1),
                 'WITHSCORES')
    end
  end
  local jobs = 0
  for i = 1, #due, 2 do
    if tonumber(due[i + 1]) < stop + 1 then
      local lo, hi = node_bounds(due[i])
      jobs = jobs + hi - lo + 1
    end
  end
  -- A server that is full or a replica keeps no mark, and tells all the same.
  if type(redis.pcall('HSET', meta, 'mark', digits(stop))) == 'number' and
     jobs > 0 then
    call('HINCRBY', meta, 'ready', jobs)
  end
  ready = ready + jobs
end

local moved = count.retried + count.snoozed
local waiting = count.added + moved + count.returned + count.requeued -
                count.claimed - count.delwait
local running = count.claimed - count.settled - count.returned - count.delrun
local done = count.settled - moved - count.failed - count.expired
return { now + 1, options[1] or '', options[2] and 1 or 0, waiting, ready,
         running, call('ZCARD', dead), complete, count.added, done,
         count.retried, count.failed, count.expired, count.crashed,
         count.dropped }
