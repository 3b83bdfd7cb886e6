-- SPDX-License-Identifier: MIT
-- recall: which suspect was a worker of this name running when it died? Told
-- once.
--
-- KEYS  wait run started
-- ARGV  worker
-- Reply { node }, or { } when there is none, or the run ended in peace
--#include node
--#include number
--#include suspect
local wait, run, started = unpack(KEYS)
local noted = call('HGET', started, ARGV[1])
if not noted then return {} end
call('HDEL', started, ARGV[1])
local node, before, token = string.match(noted, '^(.*) (%d+) (%d+)$')
if not node then return {} end -- nothing that weir noted
local running = call('ZSCORE', run, node)
local score = running or call('ZSCORE', wait, node)
if not score then return {} end
local is_same = running and floor(tonumber(score)) == tonumber(token)
if is_same or suspicion(score) > tonumber(before) then return { node } end
return {} -- it was given back, whoever has it now
