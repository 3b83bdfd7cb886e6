-- SPDX-License-Identifier: MIT
-- undeliverable: jobs of the outbox whose target cannot take them become dead
-- here, in the topic of the verdict that brought them, and their pack and entry
-- go. Where that was done before nothing happens.
-- If the pack is lost, its jobs are counted instead.
--
-- KEYS  ids meta dead rec relay, pack
-- ARGV  name of the entry, most dead jobs, then for each job: its id ('':
--       none), the id that weir makes of its place, record; or how many are
--       lost
-- Reply { how many died, how many other dead jobs went for them }; 0: it was
--       done before
--#include node
--#include number
--#include dead
local ids, meta, dead, rec, relay, pack = unpack(KEYS)
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
--#include args
local lost = not ARGV[4] and ARGV[3]
local wrong = too_few(6, lost and 3 or 3 * math.ceil((#ARGV - 2) / 3) + 2) or
              bad_number('the number of dead jobs', ARGV[2], 0, 2 ^ 32) or
              lost and bad_number('the number of lost jobs', lost, 1, 256)
if wrong then return wrong end
if call('HEXISTS', relay, ARGV[1]) == 0 then return 0 end
for _, name in ipairs({ 'added', 'claimed', 'settled', 'lost' }) do
  increment(meta, name, lost and tonumber(lost) or 0) -- as if it was run here
end
local jobs, taken = {}, {}
for i = 3, lost and 0 or #ARGV, 3 do
  local id = ARGV[i]
  if id == '' or taken[id] or call('HEXISTS', ids, id) == 1 then
    id = ARGV[i + 1]
  end
  taken[id] = true
  jobs[#jobs + 1], jobs[#jobs + 2] = id, ARGV[i + 2]
end
local evicted = keep_dead(ids, meta, dead, rec, now, jobs, tonumber(ARGV[2]))
call('DEL', pack)
call('HDEL', relay, ARGV[1])
return { #jobs / 2, evicted }
