-- SPDX-License-Identifier: MIT
-- pause: give out no more jobs of the topic, or give them out again; then every
-- worker that sleeps is woken.
--
-- KEYS  ids meta idle
-- ARGV  topic, kind ('': any; a topic that is made is a delay topic then),
--       1 to pause or 0 to resume
-- Reply { 1 }, or { -1, kind } when the topic is of another kind: nothing was
--       done
local call = redis.call
--#include topic
--#include wake
--#include full
local ids, meta, idle = unpack(KEYS)
local topic, kind = ARGV[1], ARGV[2]
--#include args
local wrong = too_few(3, 3) or
              kind ~= '' and bad_word('the kind', kind, KINDS) or
              bad_word('what to do', ARGV[3], '0 1')
if wrong then return wrong end
local stored = topic_kind(meta, ids, kind ~= '' and kind or 'delay')
if kind ~= '' and stored ~= kind then return { -1, stored } end
if ARGV[3] == '1' then
  needs_no_room(idle)
  call('HSET', meta, 'paused', 1)
  return { 1 }
end
local workers = call('ZRANGE', idle, 0, 999)
if call('HDEL', meta, 'paused') == 1 then
  for _, worker in ipairs(workers) do
    call('ZREM', idle, worker)
    publish(worker, topic)
  end
end
return { 1 }
