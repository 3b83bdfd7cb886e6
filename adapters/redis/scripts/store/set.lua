-- SPDX-License-Identifier: MIT
-- set: store options with the topic, all of them or none. Their revision tells
-- workers to read them again. What other scripts look at is kept in `meta`.
--
-- KEYS  options ids meta, then what holds jobs of whatever kind, `cron` last
-- ARGV  kind of a topic that is made, then option, value ('' = remove it), ...
-- Reply { revision }, or { -1, kind, 1 if it has schedules } when the topic is
--       to become of another kind and has jobs: nothing was done
--
-- A topic that becomes of another kind has no jobs, so its totals begin again:
-- each kind counts its own way. Tokens go on, by what `claimed` and `token` of
-- either kind had reached; for `delay` all of these count as given back.
local call = redis.call
--#include number
--#include topic
--#include types
local options, ids, meta = unpack(KEYS, 1, 3)
--#include args
local wrong = too_few(4, 2 * math.floor(#ARGV / 2) + 1) or
              bad_word('the kind', ARGV[1], KINDS)
for i = 2, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1]
  if value ~= '' and name == 'kind' then
    wrong = wrong or bad_word('the kind', value, KINDS)
  elseif value ~= '' and value ~= 'none' and name == 'max_pending' then
    wrong = wrong or bad_number('max_pending', value, 1, MOST_MS)
  end
end
if wrong then return wrong end
needs_hashes(options)
local kind = topic_kind(meta, ids, ARGV[1])
local KEPT = { kind = true, paused = true, revision = true, max_pending = true,
               server = true, met = true }

local LIMITS = { rate = 1, parallel = 2, key_rate = 3, key_parallel = 4,
                 ageing = 5 }

-- Tokens of another rate come from now on, however long the one before would
-- have had none.
local function clip_bucket(meta, rate)
  --#include rate
  local step, burst = read_rate(rate)
  local time = call('TIME')
  local full, rest = string.match(call('HGET', meta, 'bucket') or '',
                                  '^(%d+)( .*)$')
  if not step or not full then return end
  full = math.min(full, time[1] * 1000000 + time[2] + step * burst)
  call('HSET', meta, 'bucket', string.format('%.0f', full) .. rest)
end

-- What claims hold the topic to (limits.lua). A part that is not named stays,
-- since it may be from a worker's configuration.
local function keep_limit(name, value)
  --#include rated
  local before = call('HGET', meta, 'limits') or ''
  local parts = { string.match(before .. '||||',
                               '^([^|]*)|([^|]*)|([^|]*)|([^|]*)|([^|]*)') }
  if name == 'ageing' and value ~= '' then
    --#include duration
    value = digits(read_ms(value) or 60000)
  end
  parts[LIMITS[name]] = value == 'none' and '' or value
  local text = table.concat(parts, '|', 1, 2)
  local rest = table.concat(parts, '|', 3, 5)
  if rest ~= '||' then text = text .. '|' .. rest end
  note_rated(meta, before, text)
  if name == 'rate' then clip_bucket(meta, parts[1]) end
  call('HSET', meta, 'limits', text)
  call('HDEL', meta, 'offer') -- none is handed over
end

local function begin_again(new_kind)
  local claimed, token = unpack(call('HMGET', meta, 'claimed', 'token'))
  local last = math.max(number_of(claimed), number_of(token))
  for _, field in ipairs(call('HKEYS', meta)) do
    if not KEPT[field] then call('HDEL', meta, field) end
  end
  last = digits(last)
  call('HSET', meta, 'claimed', last, 'returned', last, 'token', last)
  if new_kind ~= 'bounded' and call('HGET', options, 'lease') == 'none' then
    call('HDEL', options, 'lease')
  end
end

for i = 2, #ARGV, 2 do
  if ARGV[i] == 'kind' and ARGV[i + 1] ~= '' and ARGV[i + 1] ~= kind then
    if call('EXISTS', unpack(KEYS, 4)) > 0 then
      return { -1, kind, call('EXISTS', KEYS[#KEYS]) }
    end
    --#include unlink_keys
    unlink_keys(string.sub(ids, 1, -4))
    begin_again(ARGV[i + 1])
    kind = ARGV[i + 1]
  end
end
for i = 2, #ARGV, 2 do
  local name, value = ARGV[i], ARGV[i + 1]
  if value == '' then
    call('HDEL', options, name)
  else
    call('HSET', options, name, value)
  end
  if name == 'kind' and value ~= '' then
    call('HSET', meta, 'kind', value)
    call('HSET', ids, '!', value .. string.rep('-', 65 - #value)) -- topic.lua
  end
  if name == 'max_pending' then
    if tonumber(value) then
      call('HSET', meta, 'max_pending', value)
    else
      call('HDEL', meta, 'max_pending')
    end
  end
  if LIMITS[name] then keep_limit(name, value) end
end
if call('HGET', meta, 'limits') == '|' then call('HDEL', meta, 'limits') end
return { increment(meta, 'revision', 1) }
