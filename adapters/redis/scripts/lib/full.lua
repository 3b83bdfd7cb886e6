-- SPDX-License-Identifier: MIT
-- A full server refuses what may need room until a script has written. What
-- needs next to none comes behind this, which changes nothing.
local function needs_no_room(zset) redis.call('ZREM', zset, '') end
