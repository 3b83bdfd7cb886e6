-- SPDX-License-Identifier: MIT
-- What a job that is added alone needs seldom (lone.lua).
local function rare()
  --#include number
  --#include call_slot
  --#include lost
  --#include room
  --#include topic
  --#include wake
  return { number_of = number_of, increment = increment,
           is_lost = is_lost, said_before = said_before, note_said = note_said,
           room_left = room_left, topic_kind = topic_kind,
           wake_one = wake_one }
end
