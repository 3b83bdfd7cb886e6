-- SPDX-License-Identifier: MIT
-- A call of `add` may come again: its producer did not hear the answer. Until it
-- does, the call has a seat of its own, and `seen` holds the number of the last
-- call in each seat and what that one said. Numbers of a seat only grow, so an
-- equal one is a repeat, a smaller one comes late from a lost connection, and
-- both change nothing.

-- What the call said when it came first ({}: nothing, or it comes late); nil: it
-- is a new one.
local function said_before(seen, seat, number)
  local last = call('HGET', seen, seat)
  local last_number = last and string.match(last, '^%d+')
  if not last_number or tonumber(last_number) < tonumber(number) then return end
  local sound, said
  if last_number == number and #last > #number then
    sound, said = pcall(cmsgpack.unpack, string.sub(last, #number + 2))
  end
  return sound and type(said) == 'table' and said or {}
end

-- Where there are more than a few, a new seat drops some that nobody used for
-- two minutes (a number counts 1/128 ms since 2020), by the server's clock or the
-- producer's where that is behind: a call is sent again for one.
local function note_said(seen, seat, number, said, now)
  local value = number
  if #said > 0 then value = number .. ' ' .. cmsgpack.pack(said) end
  if call('HSET', seen, seat, value) == 0 or call('HLEN', seen) <= 100 then
    return
  end
  local some = call('HRANDFIELD', seen, 10, 'WITHVALUES')
  local clock = math.min((now - 1577836800000) * 128, tonumber(number) or 0)
  for i = 1, #some, 2 do
    local age = clock - (string.match(some[i + 1], '^%d+') or 0)
    if age > 120 * 1000 * 128 then call('HDEL', seen, some[i]) end
  end
end
