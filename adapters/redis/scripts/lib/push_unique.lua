-- SPDX-License-Identifier: MIT
-- A job that is pushed under a key, or into a lane: `rule`, if any, has
-- `unique`, which is the key, and maybe `for`, `else` and `max_wait`, as one
-- writes these options of a topic. In scope is what push.lua has. Returns what
-- it answers; nil where the rule is none and `is_own` is not set: the job has
-- no key then.
local function push_unique(is_own)
  local call, sub, floor = redis.call, string.sub, math.floor
  --#include number
  --#include wake
  local prefix = sub(wait, 1, -5)
  local unique, due_key = prefix .. 'unique', prefix .. 'due'
  local known = call('HMGET', meta, 'kind', 'revision', 'max_pending', 'mark',
                     'mixed_mark', 'lanes', 'laned_mark', 'lost')
  if known[1] and known[1] ~= kind then return { 'kind', known[1] } end
  call('ZCARD', wait) -- as types.lua says
  call('HLEN', due_key)
  --#include unique

  --#include duration
  local function ms_of(text)
    local ms = read_ms(text)
    return ms and string.format('%.0f', ms) or ''
  end
  local function rule_of(rule)
    local mode, hold = rule['else'] or 'reject', rule['for']
    if not hold then
      hold = mode == 'reject' and 'until-done' or 'until-start'
    elseif sub(hold, 1, 6) ~= 'until-' then
      hold = ms_of(hold)
    end
    local text = mode .. ' ' .. hold
    if rule.max_wait then
      text = text .. ' ' .. (mode == 'debounce' and ms_of(rule.max_wait) or 'x')
    end
    return read_rule(text)
  end
  local read
  if rule then
    read = rule_of(rule)
    if not read and not is_own then
      rule = nil
      record = make_record()
    end
    if not rule and not lane then return nil end
  end
  if rule then
    if not read or #rule.unique == 0 or #rule.unique > 2048 then
      return redis.error_reply('ERR the key is not 1 to 2,048 bytes, or ' ..
                               'for, else or max_wait is none')
    end
  end

  if not known[1] then
    --#include topic
    local stored = topic_kind(meta, ids, kind)
    if stored ~= kind then return { 'kind', stored } end
  end
  local due = tonumber(sub(when, 2))
  if string.byte(when) == 114 then due = due + now end
  for try = 0, 9 do -- a producer may have given the name by chance
    local seq, serial = nil, (count + try) % 8192000
    --#include lone_name
    local own = id ~= '' and id or '@' .. seq .. '00'
    local job = { id = own, seq = seq, pack_key = prefix .. 'p:' .. seq,
                  pack = lone_head(own, #record) .. record,
                  due = math.max(due, now), lane = lane, rule = read,
                  key = rule and rule.unique, first = now }
    local what, holder
    if read then
      what, holder = add_under_key(job)
    else
      job.is_made = id == ''
      if job.is_made then job.pack = lone_head('', #record) .. record end
      what = add_alone(job)
    end
    if what ~= -1 then
      end_adding(topic)
      local words = { [0] = 'exists', [256] = 'full', [HELD] = 'held' }
      return { what and words[what] or 'added',
               holder or what ~= 256 and own or '' }
    end
  end
  return redis.error_reply('ERR no name is free, push again')
end
