-- SPDX-License-Identifier: MIT
-- bury: a job that died elsewhere is dead here, since then.
--
-- KEYS  ids meta dead rec
-- ARGV  kind, id, time of death, record
-- Reply 1; 0: a job of this id is there already; { -1, kind } when the topic is
--       of another kind: nothing was done
--#include types
local call = redis.call
--#include topic
--#include lost
--#include args
local wrong = too_few(4, 4)
if wrong then return wrong end
local ids, meta, dead, rec = unpack(KEYS)
local kind, id, died, record = unpack(ARGV)
if #id > 128 or not string.find(id, '^[!-z|~]+$') then
  return redis.error_reply('ERR the id is none')
end
if not string.find(died, '^%d+$') or #died > 13 then
  return redis.error_reply('ERR the time of death is none')
end
needs_hashes(ids, rec)
needs_zsets(dead)
if kind ~= 'delay' then
  local stored = call('HGET', meta, 'kind')
  if stored and stored ~= kind then return { -1, stored } end
  return redis.error_reply('ERR dead jobs are of topics of the kind delay')
end
local stored = topic_kind(meta, ids, kind)
if stored ~= kind then return { -1, stored } end
local place = call('HGET', ids, id)
if place and not is_lost(string.sub(ids, 1, -4), place, id) then return 0 end
-- The index comes last: should this end in between, a repeat does it again.
call('HSET', rec, id, record)
call('ZADD', dead, died, id)
call('HSET', ids, id, 'D')
return 1
