-- SPDX-License-Identifier: MIT
-- A server may lose keys one by one: by eviction, with the end of a file, or by
-- a DEL. The index then has the id of a job that is nowhere.

-- Is the pack gone to which the index points, or the record of a dead job? Such
-- an id is free. An error, as while a slot moves to another node, says nothing.
local function is_lost(prefix, place, id)
  if place ~= 'D' then
    return #place == 12 and redis.pcall('EXISTS', prefix .. 'p:' .. place) == 0
  end
  return redis.pcall('HEXISTS', prefix .. 'rec', id) == 0 and
         type(redis.pcall('ZREM', prefix .. 'dead', id)) == 'number'
end
