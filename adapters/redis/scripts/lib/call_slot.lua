-- SPDX-License-Identifier: MIT
-- A call of `add` may come again: its producer did not hear the answer. Until
-- the answer is there, the call has a call slot of its own, and `seen` holds
-- for each call slot the number and the reply of its last call. Numbers of a
-- call slot only grow, and have random digits behind a point. Only the same
-- text is a repeat, which changes nothing. Another number that is not above
-- the last one comes late from a lost connection, and nobody waits for its
-- answer, or is of another client with the same name. A producer that hears of
-- it has to add again, under another name: nothing of the call was stored.

local NOT_STORED = -4 -- in place of the first slot

-- What was said to the call when it came first ({}: nothing), or that it is not
-- stored; nil: the call is new. `whole` is what `number` has before the point.
local function said_before(seen, call_slot, number, whole)
  local last = call('HGET', seen, call_slot)
  local last_number = last and string.match(last, '^%d+')
  -- Digits behind the point would take strtod longer than all else here.
  if not last_number or last_number - whole < 0 then
    return
  end
  last_number = string.match(last, '^%d+%.?%d*')
  if last_number ~= number then return { 0, NOT_STORED } end
  return table_of(string.sub(last, #number + 2))
end

-- Where there are more than a few, a new call slot drops some that nobody used
-- for two minutes (a number counts 1/128 ms since 2020), by the clock of the
-- server or of the producer, whichever is behind: a call is sent again for one
-- minute. Those of an outbox begin with '!' and stay for a day, unless there
-- are very many: its entries may be sent again later. Their numbers may be old
-- already: the time of the add stands behind an '@'.
local function note_said(seen, call_slot, number, said, now)
  local value, clock = number, (now - 1577836800000) * 128
  if #said > 0 then value = number .. ' ' .. cmsgpack.pack(said) end
  if string.byte(call_slot) == 33 then
    value = value .. string.format('@%.0f', clock)
  end
  if call('HSET', seen, call_slot, value) == 0 then return end
  local count = call('HLEN', seen)
  if count <= 100 then return end
  local some = call('HRANDFIELD', seen, 10, 'WITHVALUES')
  clock = math.min(clock, tonumber(number) or 0)
  for i = 1, #some, 2 do
    local is_sender = string.byte(some[i]) == 33
    local used = string.match(some[i + 1], is_sender and '@(%d+)$' or '^%d+')
    local most = is_sender and count < 10000 and 86400 or 120
    local age = clock - (used or 0)
    if age > most * 1000 * 128 then call('HDEL', seen, some[i]) end
  end
end
