-- SPDX-License-Identifier: MIT
-- Where workers serve only some groups (`groups`) each finds its own without
-- looking at those of others: the rotations are in parts, one for each pattern
-- that a worker names, and one for `*`. A group is in the part of the longest
-- pattern that matches it: so a pattern matches all groups of a part, or none.
-- A group's score is `part * PART` and the ms of its turn.
--
-- `parts` of `meta` has the patterns from part 1 on: PATTERN@HOUR, the hour in
-- which a worker named it last, or `-`. What is in part 0, or in another that
-- has no pattern, is sorted by claims. Where there is no `parts` all groups are
-- in part 0, and these functions are not made.
local parts = nil -- parts_of what `meta` has, where it has that
local function parts_of(text)
  --#include number
  local call = redis.call
  local floor, min, max = math.floor, math.min, math.max
  --#include wake
  --#include parts_rare
  read(text)
  return { score = score, note_due = note_due, wake = wake, open = open,
           is_own = is_own, due = due, first_turn = first_turn,
           note_heads = note_heads, note_others = note_others,
           bases = bases, has_any = has_any, list = list, span = span,
           size = PART }
end
