-- SPDX-License-Identifier: MIT
-- A key of another type ends a script, which then stays half done. Where jobs
-- would be lost by that the keys are looked at before the first write.
local function needs_hashes(...)
  for _, key in ipairs({ ... }) do redis.call('HLEN', key) end
end

local function needs_zsets(...)
  for _, key in ipairs({ ... }) do redis.call('ZCARD', key) end
end
