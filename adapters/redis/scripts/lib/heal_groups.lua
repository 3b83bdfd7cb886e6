-- SPDX-License-Identifier: MIT
-- Leases and turns of groups, for claim.lua of bounded topics: those that lie
-- too far ahead (honest.lua).
--#include honest
heal_leases(lease, now, lease_ms, function(group)
  local _, _, _, _, length = read_state(call('HGET', out, group))
  return length
end)

-- A turn is at most `linger` away, or what holds it back is in `out`.
local MOST_AHEAD, REGION = bounds.linger + HOLD + early + SLACK_MS, 2 ^ 45
for _, key in ipairs({ rot, hot }) do
  for _, base in ipairs(parts and parts.bases() or { 0 }) do
    local some = some_beyond(key, '(' .. digits(base + now + MOST_AHEAD),
                             '(' .. digits(base + REGION), now)
    for i = 1, #some, 2 do
      local token, _, _, last = read_state(call('HGET', out, some[i]))
      local is_held = token == '~' and
                      base + last + SLACK_MS >= tonumber(some[i + 1])
      if not is_held then
        needs_no_room(key)
        call('ZADD', key, 'XX', digits(base + now), some[i])
      end
    end
  end
end
