-- SPDX-License-Identifier: MIT
-- A group that has events is on a rotation, or leased. One that is neither lost
-- its turn with `rot`, `hot` or `out`: it has one now. Where `meta` has
-- `strayed` each add looks for such groups: so many events wait again when they
-- are found, for stats counted them as lost.
-- `groups` are names and how many events were there. Returns how many groups
-- were lost; `only_counts` leaves them so. In scope are group.lua, bounds.lua,
-- parts.lua, what they need, and the keys.
local function put_strays(groups, only_counts)
  local count, lease = 0, string.sub(meta, 1, -5) .. 'lease'
  for _, group in ipairs(groups) do
    local name, events = unpack(group)
    if not (call('ZSCORE', rot, name) or call('ZSCORE', hot, name) or
            call('HGET', out, name) or call('ZSCORE', lease, name)) then
      count = count + 1
      local key = heat(bounds, name) and hot or rot
      local back = min(number_of(call('HGET', meta, 'strayed')), events)
      if not only_counts then
        call('ZADD', key, digits(parts and parts.score(name, now) or now), name)
        if parts then parts.note_due(name, now) end
        increment(meta, 'strayed', -back)
        increment(meta, 'waiting', back)
      end
    end
  end
  return count
end
