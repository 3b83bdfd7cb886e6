-- SPDX-License-Identifier: MIT
-- start: note that an entry with which a worker died is about to run.
--
-- KEYS  run past
-- ARGV  token, id
-- Reply { 1 }, or { 0 } when it is not under that token any more
local call = redis.call
--#include number
--#include past
--#include full
local run, past, id = KEYS[1], KEYS[2], ARGV[2]
if call('ZSCORE', run, id) ~= ARGV[1] then return { 0 } end
local fields = read_past(call('HGET', past, id))
fields[7] = 1
needs_no_room(run)
call('HSET', past, id, cmsgpack.pack(fields))
return { 1 }
