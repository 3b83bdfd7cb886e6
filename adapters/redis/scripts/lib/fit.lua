-- SPDX-License-Identifier: MIT
-- What one reply may bring: a connection admits 64 MiB and 16 more for each
-- body that was asked for (conn.h), and ends at more. What was written by
-- somebody else may be of any size. So no body has more than MOST_BODY, the
-- 16 MiB of a job's body and room for its record: of a larger one comes a text
-- that is none, and its job dies as malformed. And nothing more is put into a
-- reply that is full.
local MOST_BODY, most_reply = 17 * 2 ^ 20, 40 * 2 ^ 20
local EACH = 72 -- an element of a reply, as the connection counts it
local TOO_LARGE = '\193(too large)' -- neither UTF-8 nor msgpack
local weight = 0

local function is_full() return weight >= most_reply end

-- So many bodies were asked for.
local function ask_bodies(count)
  most_reply = most_reply + 2 ^ 24 * math.min(count, 16)
end

-- Bytes, or fields and values of an entry of a stream, as they may be given.
local function fit(body)
  local size = EACH + #body
  if type(body) == 'table' then
    size = EACH * #body
    for i = 1, #body do size = size + #body[i] end
  end
  if size > MOST_BODY then body, size = TOO_LARGE, #TOO_LARGE end
  weight = weight + size
  return body
end

-- As nearly always: none can be too large, since all together are not.
local function fits_whole(some)
  local size = weight + EACH * #some
  for i = 1, #some do size = size + #some[i] end
  if size > MOST_BODY then return false end
  weight = size
  return true
end

-- `count` entries of a list, `from` of them skipped, as they come when they are
-- taken one by one from its left, or else from its right.
local function read_end(list, from, count, is_right)
  if not is_right then
    return redis.call('LRANGE', list, from, from + count - 1)
  end
  local some, turned = redis.call('LRANGE', list, -from - count, -from - 1), {}
  for i = #some, 1, -1 do turned[#turned + 1] = some[i] end
  return turned
end

-- Entries of a list from `from` on, `most` of them, or fewer where the reply is
-- full with them; and what of them may be given. Not all are asked for at once,
-- since a script holds in memory what it asks for.
local function read_fitting(list, from, most, is_right)
  local entries, given, count = {}, {}, 0
  while count < most and not is_full() do
    local part = math.min(most - count, 128)
    local some = read_end(list, from + count, part, is_right)
    local is_whole = fits_whole(some)
    if is_whole and part == most then return some, some end
    for i = 1, #some do
      if is_full() then break end
      count = count + 1
      entries[count] = some[i]
      given[count] = is_whole and some[i] or fit(some[i])
    end
    if #some < part then break end
  end
  return entries, given
end
