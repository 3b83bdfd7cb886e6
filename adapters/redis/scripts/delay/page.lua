-- SPDX-License-Identifier: MIT
-- page: members of a sorted set, from a place on (see rank.lua).
--
-- KEYS  wait, run or dead
-- ARGV  score and member of the place ('' = the first of that score), most
-- Reply { score of the last member of all ('' = there is none), then of those
--         that are at the place or behind it: member, score, ... }
--#include rank
local call = redis.call
local key, score, member, most = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3])
local from = rank_of(key, score, member)
local last = call('ZRANGE', key, -1, -1, 'WITHSCORES')
local page = call('ZRANGE', key, from, from + most - 1, 'WITHSCORES')
return { last[2] or '', unpack(page) }
