-- SPDX-License-Identifier: MIT
-- push: one new job by one call, for clients that build neither names nor
-- packs. What they may get wrong is checked here, as far as it costs little.
--
-- KEYS  wait ids meta idle options absent
-- ARGV  topic, id ('': weir makes one), body, when (due.lua: r or a), then
--       pairs: `retry`, `ttl_ms`, `url`, `header:NAME`, `unique`, `for`,
--       `else`, `max_wait`, `key` or `priority`, and its value
-- Reply { 'added', id }, { 'exists', id }, { 'held', id } of the job that has
--       its unique key, { 'full', '' } where as many jobs wait as may, or
--       { 'kind', kind } of a topic of another one: nothing was changed. An
--       error says what of the call cannot be.
local call = redis.call
--#include lone_rare
local keys, args = KEYS, ARGV
local wait, ids, meta, idle = keys[1], keys[2], keys[3], keys[4]
local topic, id, body, when = args[1], args[2], args[3], args[4]
local kind, own, revision, last = 'delay', '', false, nil
local seen, call_slot, number, run, lease, held -- no repeat, no hand-over
local find, sub, char = string.find, string.sub, string.char

if not (keys[5] and when) then
  return redis.error_reply('ERR there are fewer than 5 keys or 4 arguments')
end
local NO_VALUE, wrong = 'the body is not one msgpack value', nil
if #topic > 40 or not find(topic, '^[%w._:-]+$') then
  wrong = 'the topic is not 1 to 40 of A-Z a-z 0-9 . _ : -'
elseif #id > 128 or id ~= '' and not find(id, '^["-?A-z|~][!-z|~]*$') then
  wrong = 'the id is not 1 to 128 bytes from 0x21 to 0x7e without { and }, ' ..
          'or begins with @ or !'
elseif when ~= 'r0' and
       (#when > 14 or not find(when, '^[ra]%-?%d+$')) then
  wrong = 'the time is not r and a delay in ms, or a and a time in ms'
elseif #body > 256 then -- its first byte tells a text or a number
  if not find(body, '^[\128-\159\196-\201\217-\223]') then wrong = NO_VALUE end
else
  local is_read, last = pcall(cmsgpack.unpack_one, body)
  if #body == 0 or is_read and last ~= -1 or -- Lua does not know all types
     not is_read and not find(last, 'Bad data', 1, true) then
    wrong = NO_VALUE
  end
end

local map, rule, lane
if args[5] and not wrong then
  map = {}
  local LEVELS = { urgent = 1, high = 2, normal = 3, low = 4 } -- and one
  local headers
  for i = 5, #args, 2 do
    local name, value = args[i], args[i + 1]
    local header = string.match(name, '^header:(.+)$')
    if header and value then
      headers = headers or {}
      headers[header] = value
    elseif name == 'ttl_ms' and find(value or '', '^%d+$') and
           #value < 15 then
      map.ttl_ms = tonumber(value)
    elseif value and (name == 'unique' or name == 'for' or name == 'else' or
                      name == 'max_wait') then
      rule = rule or {}
      rule[name] = value
    elseif name == 'key' and value and #value > 0 and #value <= 2048 then
      map.key = value
    elseif name == 'priority' and LEVELS[value] then
      map.priority = LEVELS[value] ~= 3 and LEVELS[value] or nil
    elseif value and (name == 'retry' or name == 'url' and #value <= 2048) then
      map[name] = value
    else
      wrong = 'an option is not retry, ttl_ms, url (2,048 bytes), ' ..
              'header:NAME, unique, for, else, max_wait, key or priority, ' ..
              'with its value'
    end
  end
  map.headers = headers
end

local time = call('TIME')
local now_text = time[2]
now_text = time[1] .. (#now_text == 6 and sub(now_text, 1, 3) or
                       sub('00000' .. now_text, -6, -4))
local now = now_text + 0
local known = call('HMGET', meta, 'kind', 'max_pending', 'revision', 'added')
local most, is_own = 1048576, rule ~= nil
if known[3] then
  --#include max_body
  local set = call('HMGET', keys[5], 'max_body', 'unique', 'unique_for',
                   'unique_else', 'max_wait', 'key')
  most = max_body(set[1])
  local function key_at(path)
    --#include field
    local is_read, key = pcall(field_of, body, path)
    if not is_read then
      wrong = 'the key cannot be read: the body has a type without one'
    elseif #(key or '') > 2048 then
      wrong = 'the key in the body has more than 2,048 bytes'
    end
    return is_read and key
  end
  if set[2] and not rule and not wrong then
    local key = key_at(set[2])
    rule = key and { unique = key, ['for'] = set[3], ['else'] = set[4],
                     max_wait = set[5] } or nil
  end
  if set[6] and not (map and map.key) and not wrong then
    map = map or {}
    map.key = key_at(set[6]) or nil
  end
end
if map and (map.key or map.priority) then
  lane = (map.priority or 3) - 1 .. (map.key or '')
end
if #body > most then wrong = 'the body has more than ' .. most .. ' bytes' end
if is_own and not rule.unique then
  wrong = 'for, else and max_wait say something of a key: give unique, too'
end
if wrong then return redis.error_reply('ERR ' .. wrong) end

local count = tonumber(known[4]) or 0
if not (count > -2 ^ 45 and count < 2 ^ 45 - 1) then count = 0 end
count = count - count % 1
local record
if map or rule then
  local function make_record()
    map = map or {}
    map.unique = rule and rule.unique or nil
    local told = next(map) and cmsgpack.pack(map) or '\192' -- not an empty one
    return '\152\1\0\0\0\0\0' .. told .. body
  end
  record = make_record()
  if rule or lane then
    --#include lone_pack
    --#include push_unique
    local reply = push_unique(is_own)
    if reply then return reply end
  end
end
local pack
if record or id ~= '' or #body > 247 then
  --#include lone_pack
  record = record or '\152\1\0\0\0\0\0\192' .. body
  pack = lone_head(id, #record) .. record
else -- the same without a call
  pack = 'W1\0\0\0\8\0\0\0\0\0\0' .. char(8 + #body) ..
         '\0\0\0\152\1\0\0\0\0\0\192' .. body
end
local seq, refused, next_added = nil, nil, count + 1
for try = 0, 9 do -- a producer may have given the name by chance
  local serial = (count + try) % 8192000
  --#include lone_name
  local key = sub(wait, 1, -5) .. 'p:' .. seq
  repeat
    --#include lone
  until true
  if refused ~= -1 then break end
end
if not refused then
  return { 'added', id ~= '' and id or '@' .. seq .. '00' }
elseif refused == 0 then
  return { 'exists', id }
elseif refused == 256 then
  return { 'full', '' }
elseif refused ~= -1 then
  return { 'kind', refused }
end
return redis.error_reply('ERR no name is free, push again')
