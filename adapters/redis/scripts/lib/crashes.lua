-- SPDX-License-Identifier: MIT
-- The crashes of a pack's jobs: the field '!' .. SEQ of `started` has a line
-- for each lease that ended and counts (suspect.lua), with the first and the
-- last slot of its node, when it ended, whose it was, and how that worker
-- crashed if it told (renew.lua). The other fields are names of workers, which
-- do not begin so. The last 4 KiB stay; start.lua and `trim_crashes` drop the
-- lines of some packs if there are many.
local function note_crash(started, crash, at, worker)
  local node, lo, hi = unpack(crash)
  local field = '!' .. string.sub(node, 1, 12)
  local before = redis.pcall('HGET', started, field)
  if type(before) ~= 'string' then before = '' end
  local line = table.concat({ lo, hi, digits(at), worker }, ' ') .. '\n'
  local lines = string.sub(before .. line, -4096)
  if #lines == 4096 then lines = string.match(lines, '\n(.*)') end -- whole ones
  redis.pcall('HSET', started, field, lines)
end

local function trim_crashes(started)
  local count = redis.pcall('HLEN', started)
  if type(count) ~= 'number' or count <= 1000 then return end
  for _, field in ipairs(redis.pcall('HRANDFIELD', started, '10')) do
    if string.byte(field) == 33 then redis.pcall('HDEL', started, field) end
  end
end

-- The last eight of a slot, at most `ended`, as attempts of a record: each is
-- { ms, 3, how, worker }.
local function crashes_of(started, seq, slot, ended)
  local list = {}
  local text = ended > 0 and redis.pcall('HGET', started, '!' .. seq)
  for lo, hi, at, who, how in string.gmatch(
        type(text) == 'string' and text or '',
        '(%d+) (%d+) (%d+) (%S*) ?([^\n]*)\n') do
    if tonumber(lo) <= slot and slot <= tonumber(hi) then
      list[#list + 1] = { number_of(at), 3, how, who }
    end
  end
  while #list > math.min(ended, 8) do table.remove(list, 1) end
  return list
end
