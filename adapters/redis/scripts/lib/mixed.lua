-- SPDX-License-Identifier: MIT
-- A mixed pack has slots with due times of their own, in rising order. The hash
-- `due` has for its name, in ms and little endian:
--    0  6 bytes    when it was added: what is before that counts as that
--    6  6 bytes    a time
--   12  4 x slots  what each slot adds to this time
-- Its nodes stand in `wait` at the due time of their first slot and MIXED: a
-- claim of weir from before mixed packs, which would start all slots of a node
-- together, never finds them due. A node of one slot counts by its score, not
-- by the table: it may have been rescheduled. `mixed` in `meta` is 2 from the
-- first such pack on. `ready` counts those below `mixed_mark`, others below
-- `mark`, and no node lies across it.
local MIXED = 2 ^ 45

-- If the server lost a table, nothing tells when the slots of a node are due,
-- except the first one. Parts of such a node stand in `wait` with LOST_DUE in
-- their scores, which is one more than MOST_ENDED crashes. Their jobs die when
-- they are claimed, and never run too early.
local LOST_DUE = 127 / 128

-- A node has no table: was the table lost?
local function is_undated(score, size)
  local state = score - floor(score)
  return state == LOST_DUE or size > 1 and state == 0
end

-- One of 6 bytes.
local function number_at(bytes, at)
  local low, high = struct.unpack('<I4I2', bytes, at)
  return low + high * 4294967296
end

-- Nil where it has none for slot `hi`.
local function read_table(bytes, hi)
  if not bytes or #bytes < 16 + 4 * hi then return nil end
  return { bytes = bytes, from = number_at(bytes, 1),
           base = number_at(bytes, 7) }
end

local function due_at(entry, slot)
  local at = 13 + 4 * slot
  local b0, b1, b2, b3 = byte(entry.bytes, at, at + 3)
  local due = entry.base + b0 + b1 * 256 + b2 * 65536 + b3 * 16777216
  return due < entry.from and entry.from or due
end

-- How many slots of lo..hi are due before `limit`: few, most times.
local function count_before(entry, lo, hi, limit)
  local first, step = lo, 1
  while first + step - 1 <= hi and
        due_at(entry, first + step - 1) < limit do
    first, step = first + step, first + step - lo
  end
  local last = min(first + step - 1, hi + 1)
  while first < last do
    local middle = floor((first + last) / 2)
    if due_at(entry, middle) < limit then
      first = middle + 1
    else
      last = middle
    end
  end
  return first - lo
end

-- Call emit(lo, hi) for the largest nodes below lo..hi that cover from..to.
local function cover(lo, hi, from, to, emit)
  if from > to then return end
  if from <= lo and hi <= to then
    emit(lo, hi)
    return
  end
  local middle = lo + left_size(lo, hi)
  if from < middle then cover(lo, middle - 1, from, to, emit) end
  if to >= middle then cover(middle, hi, from, to, emit) end
end

-- The score in `wait` of what is due at `due`; `state` as in suspect.lua.
local function mixed_score(due, state)
  local score = MIXED + due + state
  return state == 0 and digits(score) or score
end

-- Append score, name of what is left of lo..hi without the slots in `without`
-- (nil: all of it), in nodes that do not lie across `mark_end`. Returns how
-- many slots are below that.
local function spread(list, entry, seq, lo, hi, without, state, mark_end)
  local function put(from, to)
    list[#list + 1] = mixed_score(due_at(entry, from), state)
    list[#list + 1] = node_name(seq, from, to)
  end
  local nodes, below = { 0, node_name(seq, lo, hi) }, 0
  if without then
    nodes = {}
    carve(nodes, 0, seq, lo, hi, without)
  end
  for i = 2, #nodes, 2 do
    local from, to = node_bounds(nodes[i])
    local count = 0
    if mark_end > 0 then count = count_before(entry, from, to, mark_end) end
    below = below + count
    cover(from, to, from, from + count - 1, put)
    cover(from, to, from + count, to, put)
  end
  return below
end

-- The tables of the packs of these nodes, as bytes by the packs' names.
local function tables_of(due_key, names)
  local seqs, tables = {}, {}
  for _, name in ipairs(names) do
    local seq = sub(name, 1, 12)
    if tables[seq] == nil then
      tables[seq] = false
      seqs[#seqs + 1] = seq
    end
  end
  local found = seqs[1] and call('HMGET', due_key, unpack(seqs)) or {}
  for i, seq in ipairs(seqs) do tables[seq] = found[i] end
  return tables
end
