-- SPDX-License-Identifier: MIT
-- purge: delete what is in a topic that is a list or a stream. A stream
-- keeps its entries, other groups may read them: this group goes past them.
--
-- KEYS  meta wait run lease held past dead auto, the list or stream, absent
-- ARGV  group ('': a list), '1' for the dead only
-- Reply { kind ('' = no such topic), entries deleted, 1 if there is more }
--#include lag
--#include number
--#include args
local wrong = too_few(9, 2)
if wrong then return wrong end
local meta, wait, run, lease, held, past, dead, auto, source = unpack(KEYS)
local group = ARGV[1]
local kind = call('HGET', meta, 'kind') or ''
if kind == '' then return { '', 0, 0 } end

if ARGV[2] == '1' then
  local oldest, ids = call('ZPOPMIN', dead, 500), {}
  for i = 1, #oldest, 2 do ids[#ids + 1] = oldest[i] end
  if #ids > 0 then
    call('HDEL', held, unpack(ids))
    call('HDEL', past, unpack(ids))
  end
  return { kind, #ids, #ids == 500 and 1 or 0 }
end

local left = external_left(source, group)
local count = left + call('ZCARD', wait) + call('ZCARD', run) +
              call('ZCARD', dead)
for _, jobs in ipairs(call('HVALS', auto)) do
  count = count + number_of(jobs)
end
increment(meta, 'purged', left)
call('UNLINK', wait, run, lease, held, past, dead, auto)
if group == '' then
  call('UNLINK', source)
  return { kind, count, 0 }
end
if not external_group(source, group) then return { kind, count, 0 } end
call('XGROUP', 'SETID', source, group, '$')
local ids = {}
for _, entry in ipairs(call('XPENDING', source, group, '-', '+', 500)) do
  ids[#ids + 1] = entry[1]
end
if #ids > 0 then call('XACK', source, group, unpack(ids)) end
return { kind, count, #ids == 500 and 1 or 0 }
