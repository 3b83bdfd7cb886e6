-- SPDX-License-Identifier: MIT
-- The new packs of a settle call, staged as for add, and the outbox: those for
-- other topics get an entry of `relay` (store/outbox.h).

-- Packs out of a flat list: [ key, jobs, header length, when (due.lua), form,
-- sources, target, ... ]; a target is '' or [ topic, kind, call slot, number,
-- second pack ]. One without a time to live was made permanent by this very
-- call when it came the first time, or is another producer's: its sources are
-- settled, or have to run again. Also returns whether some were not staged,
-- and the outbox where some are for other topics: the last key, `relay`, and
-- how many entries it has, which is an error before anything is written where
-- that key is of another type.
-- A pack whose form is 4 or more ends with the token of its first source: one
-- that does not is another producer's, and ours was not staged.
local function read_moves(flat, token_of)
  local moves, lacks_some, outbox = {}, false, nil
  for m = 1, #flat, 7 do
    local key, jobs, header_len, when, form, sources, target =
      unpack(flat, m, m + 6)
    local ttl = call('PTTL', KEYS[key])
    if form >= 4 and call('GETRANGE', KEYS[key], '-16', '-1') ~=
                     string.format('%016.0f', token_of(sources[1])) then
      ttl = -2
    end
    lacks_some = lacks_some or ttl == -2
    if target ~= '' and not outbox then
      outbox = { relay = KEYS[#KEYS], length = call('HLEN', KEYS[#KEYS]) }
    end
    moves[#moves + 1] = {
      key = KEYS[key], seq = sub(KEYS[key], -12), jobs = jobs,
      header_len = header_len, when = when, form = form % 4, sources = sources,
      target = target ~= '' and target, is_new = ttl >= 0, is_there = ttl ~= -2
    }
  end
  return moves, lacks_some, outbox
end

-- Record a pack for another topic, without the jobs whose sources were refused.
-- Returns its name and entry, nil where nothing is left of it or the entry is
-- another producer's or none, and how many jobs are new.
local function record(outbox, move, refused, now)
  local target, kind, call_slot, number, second = unpack(move.target)
  if not move.is_new then
    local entry = call('HGET', outbox.relay, move.seq)
    local fields = entry and table_of(entry) or {}
    local is_ours = fields[4] == call_slot and fields[5] == number
    return is_ours and move.seq .. entry or nil, 0
  end
  local gone = {}
  for slot = 0, move.jobs - 1 do
    if refused[move.sources[slot + 1]] then gone[#gone + 1] = char(slot) end
  end
  if #gone == move.jobs then
    call('DEL', move.key)
    return nil, 0
  end
  local entry = cmsgpack.pack({
    1, target, kind, call_slot, number, move.jobs, move.header_len,
    absolute(move.when, now), table.concat(gone), second
  })
  call('HSET', outbox.relay, move.seq, entry)
  outbox.length = outbox.length + 1
  call('PERSIST', move.key)
  return move.seq .. entry, move.jobs - #gone
end
