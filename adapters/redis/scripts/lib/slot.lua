-- SPDX-License-Identifier: MIT
-- One job of a pack, wherever it stands.

--#include laned
-- What is added to due times where it stands in `wait`, as of mixed packs
-- (mixed.lua) or of lanes (lanes.lua).
local function region_of(score)
  return score >= LANED and LANED or score >= MIXED and MIXED or 0
end

-- The slots that have this id: two where one of them was refused by add.
local function slots_with(pack, id)
  local slots = {}
  for i, name in ipairs(pack.ids or {}) do
    if name == id then slots[#slots + 1] = i - 1 end
  end
  return slots
end

-- The at most nine nodes that can hold a slot, from the root down.
local function nodes_above(seq, last, target)
  local path, lo, hi = {}, 0, last
  while true do
    path[#path + 1] = node_name(seq, lo, hi)
    if lo == hi then return path end
    local half = left_size(lo, hi)
    if target < lo + half then hi = lo + half - 1 else lo = lo + half end
  end
end

-- The first of these slots that waits or runs, and how: in which key, in which
-- node, when it is due; nil: none does.
local function find_slot(wait, run, seq, last, slots, due_key)
  local function stand(slot, key, node, score)
    local region = key == wait and region_of(tonumber(score)) or 0
    local lo, hi = node_bounds(node)
    local entry = region > 0 and due_key and lo < hi and
                  read_table(call('HGET', due_key, seq), hi) or nil
    local number = bounded_score(score - region)
    return { slot = slot, key = key, node = node, lo = lo, hi = hi,
             score = score, region = region, entry = entry, number = number,
             runs = key == run,
             due = entry and due_at(entry, slot) or floor(number) }
  end
  for _, slot in ipairs(slots) do
    local path = nodes_above(seq, last, slot)
    for _, key in ipairs({ wait, run }) do
      local scores = call('ZMSCORE', key, unpack(path))
      for i = 1, #path do
        if scores[i] then return stand(slot, key, path[i], scores[i]) end
      end
    end
  end
end

-- Take it out of its node. Returns what is left of that, which is to be added
-- to its key again, and up to when `ready` counts there.
local function take_out(meta, seq, job)
  local left, own = {}, { [job.slot] = true }
  local mark = call('HGET', meta, job.region == 0 and 'mark' or
                    job.region == MIXED and 'mixed_mark' or 'laned_mark')
  local mark_end = number_of(mark, -1) + 1
  if job.entry then
    spread(left, job.entry, seq, job.lo, job.hi, own,
           job.number - floor(job.number), mark_end)
  else
    local is_lost = job.region == MIXED and
                    is_undated(job.number, job.hi - job.lo + 1)
    carve(left, is_lost and job.region + floor(job.number) + LOST_DUE or
                job.score, seq, job.lo, job.hi, own)
  end
  call('ZREM', job.key, job.node)
  if not job.runs and job.due < mark_end then
    increment(meta, 'ready', -1)
  end
  return left, mark_end
end
