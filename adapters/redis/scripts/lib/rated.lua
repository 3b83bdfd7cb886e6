-- SPDX-License-Identifier: MIT
-- `rated` in `meta` is the last token that was given out before `rate` or
-- `key_rate` became another one: such a claim used what that one gave, or
-- nothing, and gives nothing back (tokens.lua). A full server keeps it, too.
local function note_rated(meta, before, after)
  local function rates(limits)
    local rate, key_rate = string.match(limits or '',
                                        '^([^|]*)|?[^|]*|?([^|]*)')
    return rate .. '|' .. key_rate
  end
  if rates(before) == rates(after) then return end
  redis.pcall('HSET', meta, 'rated', redis.call('HGET', meta, 'claimed') or '0')
end
