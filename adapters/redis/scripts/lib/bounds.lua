-- SPDX-License-Identifier: MIT
-- What a bounded topic's groups are held to: as stored with the topic, else as
-- its last worker was configured (`bounds` in `meta`: length, overflow, linger,
-- batch, group_ttl, then patterns of hot groups), else the defaults.
local UNITS = { ms = 1, s = 1000, m = 60000, h = 3600000, d = 86400000 }
local MODES = { ['drop-oldest'] = 0, ['drop-new'] = 1, ['reject'] = 2 }

local function read_ms(text)
  local number, unit = string.match(text, '^(%d+)(%a+)$')
  return number and UNITS[unit] and number * UNITS[unit] or 0
end

local function read_bounds(options, meta)
  local own = call('HGET', meta, 'bounds')
  local words = {}
  for word in string.gmatch(own or '1000 0 0 128 0', '%S+') do
    words[#words + 1] = word
  end
  local set = call('HMGET', options, 'length', 'overflow', 'linger', 'batch',
                   'group_ttl', 'hot')
  local bounds = {
    length = tonumber(set[1] or words[1]),
    mode = set[2] and MODES[set[2]] or tonumber(words[2]),
    linger = set[3] and read_ms(set[3]) or tonumber(words[3]),
    batch = tonumber(set[4] or words[4]),
    ttl = set[5] and read_ms(set[5]) or tonumber(words[5]),
  }
  local hot = set[6] or table.concat(words, ' ', 6)
  if hot ~= '' then bounds.hot = hot end
  return bounds
end

-- How many batches a group gets at a turn; nil: it is not hot.
local function heat(bounds, group)
  if not bounds.hot then return nil end
  if not bounds.exact then
    bounds.exact, bounds.starts = {}, {}
    for word in string.gmatch(bounds.hot, '[^%s,]+') do
      local name, weight = string.match(word, '^(.+):(%d+)$')
      name, weight = name or word, tonumber(weight or 1)
      if string.sub(name, -1) == '*' then
        bounds.starts[#bounds.starts + 1] = { string.sub(name, 1, -2), weight }
      else
        bounds.exact[name] = weight
      end
    end
  end
  if bounds.exact[group] then return bounds.exact[group] end
  for _, start in ipairs(bounds.starts) do
    if string.sub(group, 1, #start[1]) == start[1] then return start[2] end
  end
end

-- Hold a group to its length after events came back to its head. Returns how
-- many were dropped: what was added may not be where adds are refused.
local function shorten(bounds, list)
  local over = call('LLEN', list) - bounds.length
  if over <= 0 or bounds.mode == 2 then return 0 end
  if bounds.mode == 0 then
    call('LTRIM', list, over, -1)
  else
    call('LTRIM', list, 0, bounds.length - 1)
  end
  return over
end
