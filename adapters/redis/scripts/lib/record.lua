-- SPDX-License-Identifier: MIT
-- Packs and records (docs/packs.md), for clients that read and write neither.
-- Bodies stay bytes. It needs node.lua and number.lua.
--#include named
local FORMS = { retry = 'string', ttl_ms = 'number', url = 'string',
                headers = 'table', reason = 'string', error = 'string',
                spent = 'number', added_ms = 'number', key = 'string',
                priority = 'number', unique = 'string' }
local NEW = '\152\1\0\0\0\0\0\192' -- nearly every record begins so

local MOST_READ = 17 * 2 ^ 20 -- bytes of records at once

-- A pack, as far as it has been read: key, bytes it begins with, last slot,
-- header_len, ids. Its `state` is 'gone', 'newer' (a later weir wrote it, or
-- the key is of another type) or 'none' (its bytes are no pack) where it cannot
-- be opened.
local function open_pack(key, wants_ids)
  local FIRST = 1024 -- all of most packs of one job
  local bytes = redis.pcall('GETRANGE', key, '0', digits(FIRST - 1))
  if type(bytes) ~= 'string' then return { state = 'newer' } end
  if bytes == '' then return { state = 'gone' } end
  local w, version, last, _, flags, len0, len1, len2 = byte(bytes, 1, 8)
  if not len2 or w ~= 87 then return { state = 'none' } end
  if version ~= 49 then return { state = 'newer' } end
  local pack = { key = key, bytes = bytes, last = last,
                 header_len = len0 + len1 * 256 + len2 * 65536 }
  if flags > 1 or pack.header_len < 8 then return { state = 'none' } end
  if flags == 0 or not wants_ids then return pack end
  if pack.header_len > #bytes then
    bytes = call('GETRANGE', key, '0', digits(pack.header_len - 1))
  end
  local is_sound, to, ids = pcall(cmsgpack.unpack_one, bytes, 8)
  if not is_sound or to ~= pack.header_len and to ~= -1 or
     type(ids) ~= 'table' then
    return { state = 'none' }
  end
  pack.ids = ids
  return pack
end

local function bytes_at(pack, from, to)
  if to < #pack.bytes then return sub(pack.bytes, from + 1, to + 1) end
  return call('GETRANGE', pack.key, digits(from), digits(to))
end

-- A function that gives the bytes of the record of a slot out of lo..hi; none
-- where the pack does not have it.
local function records_of(pack, lo, hi)
  if hi > pack.last then return function() return '' end end
  local base = pack.header_len
  local offsets = bytes_at(pack, base + 4 * lo, base + 4 * hi + 7)
  if #offsets < 4 * (hi - lo + 2) then return function() return '' end end
  local first = struct.unpack('<I4', offsets)
  local last = struct.unpack('<I4', offsets, 4 * (hi - lo + 1) + 1)
  local block = ''
  if last > first and last - first < MOST_READ then
    base = base + 4 * (pack.last + 2)
    block = bytes_at(pack, base + first, base + last - 1)
  end
  return function(slot)
    local from, to = struct.unpack('<I4I4', offsets, 4 * (slot - lo) + 1)
    return sub(block, from - first + 1, to - first)
  end
end

-- The id of a slot, and whether weir made it of its place; nil: what the pack
-- has there is none.
local function id_of(pack, seq, slot)
  if not pack.ids then
    return '@' .. seq .. string.format('%02x', slot), true
  end
  local id = pack.ids[slot + 1]
  if type(id) == 'string' and #id <= 128 and
     string.find(id, '^["-z|~][!-z|~]*$') then
    return id, false
  end
  return nil
end

local function is_option(name, value)
  local form = FORMS[name]
  return not form or type(value) == form and
         (form ~= 'number' or value >= 0) and
         (form ~= 'table' or value[1] == nil) -- a map
end

-- { attempt, failures, timeouts, crashes, snoozes, options = table or nil,
-- raw = their bytes, body = bytes }; nil: it is none; 'newer'.
local function read_record(bytes)
  if #bytes > 8 and sub(bytes, 1, 8) == NEW then
    return { 0, 0, 0, 0, 0, raw = '', body = sub(bytes, 9) }
  end
  local head = byte(bytes)
  local at = head == 220 and 3 or head == 221 and 5 or 1
  if at == 1 and floor((head or 0) / 16) ~= 9 then return nil end
  local is_sound, from, version, a, f, t, c, s =
    pcall(cmsgpack.unpack_limit, bytes, 6, at)
  if not is_sound or type(version) ~= 'number' then return nil end
  if version > 1 then return 'newer' end
  if version ~= 1 or from < 0 or not (head == 152 or
     string.find(bytes, '^[\220\221]%z+\8')) then
    return nil
  end
  local record = { a, f, t, c, s }
  for i = 1, 5 do
    if type(record[i]) ~= 'number' or record[i] < 0 then return nil end
  end
  local has_options, to, options = pcall(cmsgpack.unpack_one, bytes, from)
  if not has_options or to < 0 or
     options ~= nil and type(options) ~= 'table' then
    return nil
  end
  for name, value in pairs(options or {}) do
    if not is_option(name, value) then return nil end
  end
  record.options, record.body = options, sub(bytes, to + 1)
  record.raw = options and sub(bytes, from + 1, to) or ''
  return record
end

-- At most `most` bytes of a text, cut between characters where it is UTF-8.
local function cut(text, most)
  if #text <= most then return text end
  local len = most
  while len > most - 4 and len > 0 and
        floor(byte(text, len + 1) / 64) == 2 do
    len = len - 1
  end
  return sub(text, 1, len)
end

-- The last eight attempts that did not finish the job: those before, so many
-- leases that ended, of which `crashes` tells more, and `own`, if any.
local function attempts_with(before, ended, crashes, own, now)
  local list = {}
  for _, one in ipairs(type(before) == 'table' and before or {}) do
    local at, outcome, why, who
    if type(one) == 'table' then at, outcome, why, who = unpack(one, 1, 4) end
    if type(at) == 'number' and type(outcome) == 'number' and
       type(why) == 'string' and type(who) == 'string' then
      list[#list + 1] = { at, outcome, cut(why, 200), cut(who, 40) }
    end
  end
  for _ = #crashes + 1, min(ended, 8) do
    list[#list + 1] = { now, 3, '', '' }
  end
  for _, crash in ipairs(crashes) do list[#list + 1] = crash end
  list[#list + 1] = own
  while #list > 8 do table.remove(list, 1) end
  return list
end

-- The bytes of a record that is written anew. `change` has any of `outcome` (of
-- a run that failed: 0 retried, 1 timed out, 2 failed), `error`, `reason` of a
-- dead one, `snoozes`; `ended` leases, with `crashes` of them, are crashes from
-- now on.
local function write_anew(record, seq, ended, crashes, change, now, worker)
  local options, own = {}, nil
  for name, value in pairs(record.options or {}) do
    if FORMS[name] or name == 'attempts' then options[name] = value end
  end
  -- cmsgpack writes an empty map as an array.
  if options.headers and not next(options.headers) then
    options.headers = nil
  end
  options.added_ms = options.added_ms or named_ms(seq)
  options.reason = change.reason
  local a, f, t, c, s = unpack(record, 1, 5)
  if change.outcome then
    local text = cut(change.error, 200)
    a, f, t = a + 1, f + 1, t + (change.outcome == 1 and 1 or 0)
    options.error = text ~= '' and text or nil
    own = { now, change.outcome, text, worker }
  end
  if own or ended > 0 then
    options.attempts = attempts_with(options.attempts, ended, crashes, own,
                                     now)
  end
  return '\152\1' .. cmsgpack.pack(a, f, t, c + ended,
                                   s + (change.snoozes or 0), options) ..
         record.body
end
