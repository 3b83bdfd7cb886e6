-- SPDX-License-Identifier: MIT
-- What is added to the due time of a job of a lane (lanes.lua) in `wait`: above
-- all that stand at MIXED (mixed.lua) and are due by 2^44 ms.
local LANED = 3 * 2 ^ 44
-- In `turns` the distance of one priority to the next one, and how many of
-- these those have whose key may not run another job.
local LEVEL, BLOCKED = 2 ^ 45, 4
