-- SPDX-License-Identifier: MIT
-- What is needed where a topic has `parts` (parts.lua).
local PART, MOST_PARTS, MOST_SORTED = 2 ^ 45, 250, 256
local MOST_LEASED, FORGOTTEN_HOURS = 1000, 24
local list, exact, starts, lengths = {}, {}, {}, {}

local function stem_of(pattern)
  return string.sub(pattern, -1) == '*' and string.sub(pattern, 1, -2) or nil
end

local function index()
  local is_length = {}
  exact, starts, lengths = {}, {}, {}
  for part, entry in ipairs(list) do
    local stem = entry.pattern and stem_of(entry.pattern)
    if stem then
      starts[stem] = part
      if not is_length[#stem] then lengths[#lengths + 1] = #stem end
      is_length[#stem] = true
    elseif entry.pattern then
      exact[entry.pattern] = part
    end
  end
  table.sort(lengths, function(a, b) return a > b end)
end

local function read(text)
  local known = {}
  for word in string.gmatch(text, '%S+') do
    if #list == MOST_PARTS then break end
    local pattern, hour = string.match(word, '^(.+)@(%d+)$')
    if pattern and known[pattern] then pattern = nil end
    if pattern then known[pattern] = true end
    list[#list + 1] = { pattern = pattern, hour = number_of(hour) }
  end
  index()
end

-- The part of the longest beginning of `name`, or 0.
local function part_of_start(name)
  for _, length in ipairs(lengths) do
    local part = starts[string.sub(name, 1, length)]
    if part then return part end
  end
  return 0
end

local function part_of(group) return exact[group] or part_of_start(group) end

-- The part that a pattern has.
local function part_named(pattern)
  local stem = stem_of(pattern)
  return stem and starts[stem] or not stem and exact[pattern] or nil
end

local function score(group, ms) return part_of(group) * PART + ms end

-- Scores of a part: from, and to the turn at `ms`, or all.
local function span(part, ms)
  return part == 0 and '-inf' or digits(part * PART),
         ms and digits(part * PART + ms) or '(' .. digits((part + 1) * PART)
end

-- Which groups a worker serves: `member` is its name and, behind a blank each,
-- its patterns. Nil: all of them.
local function served_by(member)
  local served = { some = {}, none = {} }
  for word in string.gmatch(string.match(member, '^%S*(.*)'), '%S+') do
    local is_out = string.sub(word, 1, 1) == '!'
    local words = is_out and served.none or served.some
    words[#words + 1] = is_out and string.sub(word, 2) or word
  end
  return #served.some + #served.none > 0 and served or nil
end

local function is_covered(pattern, by)
  local name = stem_of(pattern) or pattern
  for _, other in ipairs(by) do
    local stem = stem_of(other)
    if stem and string.sub(name, 1, #stem) == stem or other == pattern then
      return true
    end
  end
  return false
end

-- Are the groups of this part among them?
local function serves(served, part)
  local pattern = list[part] and list[part].pattern
  if not served or not pattern then return true end
  return (#served.some == 0 or is_covered(pattern, served.some)) and
         not is_covered(pattern, served.none)
end

-- --- waking --------------------------------------------------------------

-- When something is due first, by parts.
local firsts = {}
local function note_due(group, ms)
  local part = part_of(group)
  firsts[part] = min(firsts[part] or ms, ms)
end

-- As wake_one does, of those who serve a part, for each in which something is
-- due.
local function wake(idle, topic)
  if not next(firsts) then return end
  local known = {}
  local sleepers = redis.pcall('ZREVRANGEBYSCORE', idle, '+inf', '-inf',
                               'WITHSCORES')
  local function is_fit(member, at, part, due)
    if at < 0 then at = at + BUSY end
    if at <= due then return false end
    local patterns = string.match(member, ' .*') or ''
    if known[patterns] == nil then
      known[patterns] = served_by(member) or false
    end
    return serves(known[patterns] or nil, part)
  end
  for part, due in pairs(firsts) do
    for i = 1, #sleepers, 2 do
      if is_fit(sleepers[i], tonumber(sleepers[i + 1]), part, due) and
         call('ZREM', idle, sleepers[i]) == 1 and
         publish(sleepers[i], topic) > 0 then break end
    end
  end
end

-- --- claims --------------------------------------------------------------

local meta, keys, now -- the hash, both rotations and the time
local own, is_own_part = {}, {} -- what the worker serves

local function is_own(group) return is_own_part[part_of(group)] end

local function is_empty(part)
  local from, to = span(part)
  for _, key in ipairs(keys) do
    local some = call('ZRANGEBYSCORE', key, from, to, 'LIMIT', '0', '1')
    if #some > 0 then return false end
  end
  return true
end

local function give_part(pattern, hour)
  local part = 1
  while list[part] and (list[part].pattern or not is_empty(part)) do
    part = part + 1
  end
  if part > MOST_PARTS then return false end
  list[part] = { pattern = pattern, hour = hour }
  index()
  return true
end

-- Its groups are in the part of a shorter pattern. That gets another part, so
-- that what is in this one is sorted. False: there are too many.
local function name(pattern, hour)
  local part = part_named(pattern)
  if part then
    list[part].hour = hour
    return true
  end
  part = part_of_start(stem_of(pattern) or pattern)
  local was = list[part]
  if not was or is_empty(part) then return give_part(pattern, hour) end
  list[part] = {}
  return give_part(was.pattern, was.hour) and give_part(pattern, hour)
end

local function forget_patterns(hour)
  local is_less = false
  for part, entry in ipairs(list) do
    local age, pattern = hour - entry.hour, entry.pattern
    if pattern and pattern ~= '*' and
       (age > FORGOTTEN_HOURS or age < -1) then
      list[part] = {}
      is_less = true
    end
  end
  if is_less then index() end
end

-- Bring up to date what `text`, which was read, says. False: there are too many
-- patterns.
local function arrange(text, served)
  local hour, words = floor(now / 3600000), {}
  forget_patterns(hour)
  if not name('*', hour) then return false end
  for _, patterns in pairs(served or {}) do
    for _, pattern in ipairs(patterns) do
      if not name(pattern, hour) then return false end
    end
  end
  for part, entry in ipairs(list) do
    words[part] = entry.pattern and entry.pattern .. '@' .. entry.hour or '-'
  end
  words = table.concat(words, ' ')
  if words ~= text then call('HSET', meta, 'parts', words) end
  return true
end

-- Sort some of the groups that are in no part, `most` of them. Returns how
-- many.
local function sort_span(key, from, to, most)
  local some = call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT', '0',
                    digits(most))
  local entries = {}
  for i = 1, #some, 2 do
    local group, ms = some[i], tonumber(some[i + 1])
    ms = ms < 0 and 0 or number_of(ms % PART, now)
    entries[i], entries[i + 1] = digits(score(group, ms)), group
    if not is_own(group) then note_due(group, max(ms, now)) end
  end
  if #entries > 0 then call('ZADD', key, unpack(entries)) end
  return #entries / 2
end

-- Where the scores of our parts begin.
local function bases()
  local froms = {}
  for i, part in ipairs(own) do froms[i] = part * PART end
  return froms
end

-- True: these were all.
local function sort()
  local left = MOST_SORTED
  for _, key in ipairs(keys) do
    for part = 0, #list + 1 do
      if left > 0 and not (list[part] and list[part].pattern) then
        local from, to = span(part)
        left = left - sort_span(key, from, part > #list and '+inf' or to, left)
      end
    end
  end
  return left > 0
end

-- A claim begins: each pattern that its worker names gets a part. True: there
-- is more to sort; nil: there are too many patterns.
local function open(text, member, hash, rotations, time)
  local served = served_by(member)
  meta, keys, now = hash, rotations, time
  if not arrange(text, served) then return nil end
  for part, entry in ipairs(list) do
    if entry.pattern and serves(served, part) then
      own[#own + 1], is_own_part[part] = part, true
    end
  end
  return not sort()
end

-- The group of each of these parts whose turn comes first, and when.
local function heads_of(some)
  local heads = {}
  for _, key in ipairs(keys) do
    for _, part in ipairs(some) do
      local from, to = span(part)
      local head = call('ZRANGEBYSCORE', key, from, to, 'WITHSCORES', 'LIMIT',
                        '0', '1')
      if head[1] then
        heads[#heads + 1] = { head[1], tonumber(head[2]) % PART }
      end
    end
  end
  return heads
end

-- When a turn of ours comes first, or nil.
local heads = nil
local function first_turn()
  local first = nil
  heads = heads_of(own)
  for _, head in ipairs(heads) do first = min(first or head[2], head[2]) end
  return first
end

-- Groups of ours that are due, and with them those that are within `early` ms,
-- the longest waiting first. At first each part is asked for its share only.
local function due(key, early, most)
  local found, full, groups, up_to = {}, {}, {}, now
  if early > 0 and (first_turn() or now + 1) <= now then up_to = now + early end
  local share = min(floor(2 * most / max(#own, 1)) + 1, most)
  local function ask(part, from, count)
    local first, last = span(part, up_to)
    local entries = call('ZRANGEBYSCORE', key, first, last, 'WITHSCORES',
                         'LIMIT', digits(from), digits(count))
    for i = 1, #entries, 2 do
      found[#found + 1] = { entries[i], tonumber(entries[i + 1]) % PART }
    end
    return #entries / 2 == count
  end
  for _, part in ipairs(own) do
    if ask(part, 0, share) then full[#full + 1] = part end
  end
  for _, part in ipairs(full) do
    if #found >= most then break end
    ask(part, share, most - share)
  end
  table.sort(found, function(a, b) return a[2] < b[2] end)
  for i = 1, min(most, #found) do groups[i] = found[i][1] end
  return groups
end

-- What the claim leaves: what is due by now, or all.
local function note_heads(is_all)
  for _, head in ipairs(heads) do
    if is_all or head[2] <= now then note_due(head[1], max(head[2], now)) end
  end
end

-- What is not ours: a group, or all.
local function note_others(group)
  if group then
    for _, key in ipairs(keys) do
      local at = call('ZSCORE', key, group)
      if at then note_due(group, max(tonumber(at) % PART, now)) end
    end
    return
  end
  local others = {}
  for part, entry in ipairs(list) do
    if entry.pattern and not is_own_part[part] then
      others[#others + 1] = part
    end
  end
  heads = heads_of(others)
  note_heads(true)
end

-- --- counting ------------------------------------------------------------

-- Does any group of these patterns wait, or is it leased? True also where that
-- is not known.
local function has_any(patterns, rotations, lease)
  local served = served_by('- ' .. patterns)
  keys = rotations
  for _, words in pairs(served or {}) do
    for _, pattern in ipairs(words) do
      if not part_named(pattern) then return true end
    end
  end
  for part = 0, #list + 1 do
    if serves(served, part) and not is_empty(part) then return true end
  end
  local leased = call('ZRANGE', lease, '0', digits(MOST_LEASED))
  for _, group in ipairs(leased) do
    if serves(served, part_of(group)) then return true end
  end
  return #leased > MOST_LEASED
end
