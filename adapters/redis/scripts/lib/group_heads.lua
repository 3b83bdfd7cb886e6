-- SPDX-License-Identifier: MIT
-- For bounded/stats.lua: tells `oldest`, for how many ms the first of the ready
-- events has been ready, and of a topic with `parts` `groups`: for each part in
-- which groups wait its pattern, how many, and the names of up to three. A few
-- groups are read of each part, those whose turn comes first: `oldest` is a
-- lower bound if more wait.
local first_ms, bytes_left = nil, 256 * 1024
local prefix = string.sub(meta, 1, -5)
local linger = read_bounds(prefix .. 'options', options[4]).linger

local function look_at(group)
  local event = bytes_left > 0 and
                redis.pcall('LINDEX', prefix .. 'g:' .. group, '0')
  if type(event) ~= 'string' then return end
  bytes_left = bytes_left - #event
  if string.find(event, '^.' .. string.rep('[%w_-]', 8)) then
    first_ms = min(first_ms or now, added_ms(event) + linger)
  end
end

-- Look at the first groups with scores from `from` to `to` whose turn has come.
-- Returns their number, with those whose turn is later, and up to three names.
local function look_at_span(from, to, base, most)
  local count, names = 0, {}
  for _, key in ipairs({ KEYS[3], KEYS[4] }) do
    count = count + number_of(redis.pcall('ZCOUNT', key, from, to))
    local some = redis.pcall('ZRANGEBYSCORE', key, from, to, 'WITHSCORES',
                             'LIMIT', '0', digits(most))
    for i = 1, #some, 2 do
      if tonumber(some[i + 1]) - base <= now then look_at(some[i]) end
      if #names < 3 then names[#names + 1] = some[i] end
    end
  end
  return count, table.concat(names, ', ')
end

if parts then
  local groups, list, PART = {}, parts.list, parts.size
  local most = max(floor(128 / (#list + 2)), 1)
  for part = 0, #list + 1 do
    local from, to = parts.span(part)
    if part > #list then to = '+inf' end
    local count, names = look_at_span(from, to, part * PART, most)
    if count > 0 and list[part] and list[part].pattern then
      groups[#groups + 1] = list[part].pattern
      groups[#groups + 1], groups[#groups + 2] = count, names
    end
  end
  if groups[1] then tell('groups', groups) end
else
  look_at_span('-inf', '+inf', 0, 64)
end
for _, group in ipairs(redis.pcall('ZRANGE', KEYS[2], '0', '63')) do
  look_at(group)
end
if first_ms then tell('oldest', max(now - first_ms, 0)) end
